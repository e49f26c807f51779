"""Memory: the pool of batch buffers, and C's view of an array.

It knows sizes, alignment and who holds a buffer.
It must not know what is stored there.
"""
