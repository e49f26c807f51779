"""Collation: samples or columns become one padded batch of arrays.

It knows samples, keys, augmentation chains and pooled memory.
It must not know samplers, the loader or threads.
"""
