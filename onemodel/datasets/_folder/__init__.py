"""What `image_folder` reads beside pixels: which files there are, and their labels.

It knows names, links and text files. It must not know how an image is decoded or a table is made.
"""
