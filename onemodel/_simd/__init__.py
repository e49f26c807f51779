"""Loops in C, and the choice of the variant that this processor runs.

Knows memory and numbers: floats, bytes, words, rows.
Must not know samples, batches, datasets or operations; README.md says how a loop is added.
"""
