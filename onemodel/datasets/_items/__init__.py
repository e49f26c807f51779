"""Single items by index: an adapter for datasets of others, and tar files with an index.

It knows items, slots and their generators. It must not know how items become a batch.
"""
