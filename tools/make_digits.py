"""Make `onemodel/data/digits.npz` from the digits that scikit-learn's wheel carries.

    python tools/make_digits.py           write the file
    python tools/make_digits.py --check   exit with 1 unless the file is what would be written

The archive is stored, not deflated, with a fixed date: its bytes depend on the digits alone and
not on the zlib, Python or NumPy that wrote them. Wheels and Git compress it anyway.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TARGET = Path(__file__).resolve().parent.parent / "onemodel" / "data" / "digits.npz"


def digits_archive() -> bytes:
    """Return the bytes of the archive, after checking that scikit-learn holds what we expect."""
    source = load_digits()
    pixels = source.images.astype(np.uint8)
    labels = source.target.astype(np.uint8)
    if pixels.shape != (1797, 8, 8) or labels.shape != (1797,):
        raise SystemExit(f"unexpected shapes: {pixels.shape}, {labels.shape}")
    if not (np.array_equal(pixels, source.images) and pixels.max() == 16):
        raise SystemExit("the pixels are not the integers 0 to 16")
    if not (np.array_equal(labels, source.target) and labels.max() == 9):
        raise SystemExit("the labels are not the digits 0 to 9")

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for name, array in (("pixels", pixels), ("labels", labels)):
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            file.writestr(entry, content.getvalue())
    return archive.getvalue()


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    content = digits_archive()
    if parser.parse_args().check:
        same = TARGET.is_file() and TARGET.read_bytes() == content
        print(f"{TARGET}: {'same' if same else 'DIFFERENT'}")
        return 0 if same else 1
    TARGET.write_bytes(content)
    print(f"{TARGET}: {len(content):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
