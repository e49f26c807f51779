"""The engine: it builds batches, ahead of the consumer and in order.

It knows builders, keys, worker threads, devices and statistics.
It must not know the arguments of the loader or the command line.
"""
