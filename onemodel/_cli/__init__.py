"""The command line: one file a command, and what the commands share.

It knows the public package, the canonical digests, files and terminals. It must not know how a
batch is built. Nothing else in the package imports from here.
"""
