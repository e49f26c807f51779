"""Commands about one loader, named as MODULE:MAKE_LOADER, and their pictures.

It knows the public package, the checks and Pillow. It must not know how a batch is built.
"""
