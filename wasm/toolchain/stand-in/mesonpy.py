"""Stands in for meson-python while pip downloads NumPy's source release.

pip asks a source release for its metadata even when it only downloads it. NumPy answers
by configuring itself for the machine, which needs a C and a C++ compiler and a minute.
The release carries its finished metadata in PKG-INFO; this hands that over.
"""

import shutil
from pathlib import Path


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = Path(metadata_directory, "numpy.dist-info")
    folder.mkdir()
    shutil.copy("PKG-INFO", folder / "METADATA")
    return folder.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    raise NotImplementedError("only metadata can be had from this stand-in")
