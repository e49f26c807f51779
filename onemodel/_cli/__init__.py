"""The command line: `onemodel demo`, `verify` and `pack`.

It knows the public package and what its commands print.
It must not know how a batch is made; nothing imports it.
"""
