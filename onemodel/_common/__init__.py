"""What every layer uses: checks of arguments, batch structure, descriptions, the platform.

It knows Python values and arrays.
It must not know samples, samplers or anything else of the package.
"""
