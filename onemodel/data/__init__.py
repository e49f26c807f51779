"""Data files of the package: the digits and the canonical digests (see README.md here).

It knows nothing: it has no code.
It must not know any other part.
"""
