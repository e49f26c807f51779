"""Random numbers: SplitMix64, its draws, the seed derivation, keyed permutations.

It knows integers and arrays.
It must not know datasets, batches or threads.
"""
