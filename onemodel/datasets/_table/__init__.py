"""How an `ImageTable` is built, cut into parts and written.

It knows flat columns and files, and nothing of the class that is made of them.
"""
