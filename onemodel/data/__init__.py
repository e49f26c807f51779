"""Data files of the package: the digits and the canonical digests (see README.md here).

It has no code, so it knows nothing.
It must not know any other part.
"""
