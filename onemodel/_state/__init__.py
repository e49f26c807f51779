"""What a run is a run of: a loader's parts as short texts, and the state that holds them.

It knows datasets, samplers, transforms, collators and functions, as things to describe.
It must not know how a batch is built, threads or passes.
"""
