"""How an `ImageTable` is built, cut into parts and written, and how mapped arrays are pickled.

It knows flat columns and files. It must not know the class that is made of them.
"""
