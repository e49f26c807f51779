"""Random numbers: the derivation, the generators and the keyed permutation.

Knows seeds, epochs, steps, slots and streams as 64-bit words, and memory to fill.
Must not know samples, batches, samplers or who draws.
"""
