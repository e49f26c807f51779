"""Writes a wheel again without what no page uses, packed as small as zip can.

    python wasm/demo/trim_wheel.py WHEEL OUTPUT

A page compiles nothing and checks no types: stubs, headers, f2py and tests are left out. The
order and the dates of the entries are fixed, so that the same wheel gives the same bytes.
"""

import sys
import zipfile
from pathlib import PurePosixPath

UNUSED_ENDINGS = (".pyi", ".h", ".c", ".pxd", ".pyx", ".a", ".txt", ".md")
UNUSED_FOLDERS = {"f2py", "tests", "include", "_pyinstaller", "testing"}


def is_used(name):
    """Whether a page may need this entry; a package's own metadata stays."""
    parts = PurePosixPath(name).parts
    if parts[0].endswith(".dist-info"):
        return parts[-1] in ("METADATA", "WHEEL", "RECORD")
    return not name.endswith(UNUSED_ENDINGS) and not UNUSED_FOLDERS.intersection(parts)


def trim(wheel, output):
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(output, "w") as target:
        for name in sorted(filter(is_used, source.namelist())):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            target.writestr(entry, source.read(name), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    trim(*sys.argv[1:])
