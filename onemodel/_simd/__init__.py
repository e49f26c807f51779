"""Loops in C, compiled for the baseline and for AVX2, and their choice at import.

It knows pointers, counts and constants.
It must not know Python objects, random keys or batches.
"""
