"""Build the extension; Cython finds onemodel's .pxd files where onemodel is installed."""

from Cython.Build import cythonize
from setuptools import Extension, setup

extension = Extension(
    "scanlines.scanlines",
    ["scanlines/scanlines.pyx"],
    # a product must round before it is added to anything, on every processor
    extra_compile_args=["-O3", "-ffp-contract=off"],
)

setup(
    ext_modules=cythonize(
        [extension],
        compiler_directives={
            "language_level": 3,
            "cdivision": True,
            "freethreading_compatible": True,  # its operation touches nothing but its arguments
        },
    )
)
