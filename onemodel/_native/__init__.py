"""Batches of the library's own parts, built without the GIL from indices to the finished bytes.

It knows samplers, columns, arrays, operations and the pool. It must not know threads, passes or
devices, and never raises: what it cannot build, the reference path builds or explains.
"""
