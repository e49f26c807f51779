"""What a batch is: its key, its structure, its digest, and what an error says of its place.

It knows arrays, names and coordinates of a run.
It must not know how a batch is built, who builds it or where it goes.
"""
