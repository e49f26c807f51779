"""From a global step to its batch: the reference path, and native lanes that run without the GIL.

It knows samplers, datasets, transforms, collators and memory.
It must not know threads, passes, positions or devices.
"""
