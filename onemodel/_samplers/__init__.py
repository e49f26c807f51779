"""Samplers: which dataset indices a step of an epoch has.

It knows seeds, epochs, steps and permutations.
It must not know samples, batches or the loader.
"""
