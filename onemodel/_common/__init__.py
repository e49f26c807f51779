"""What every layer uses: checks of arguments, descriptions, optional packages, the platform.

It knows Python values and arrays.
It must not know samples, samplers or anything else of the package.
"""
