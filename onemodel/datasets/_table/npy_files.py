"""Flat `.npy` files of format 1.0: written to disk, read whole or memory-mapped.

NumPy's own reader hands the header to a Python parser, which raises whatever it likes on damaged
text. Here it has one form, that of every writer known, and anything else is one error.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Header",
    "digest_of",
    "native",
    "read_array",
    "read_header",
    "write_array",
    "write_parts",
    "wrong",
]

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{ *'descr': *'([^'\\]{1,16})', *'fortran_order': *False, *"
    rb"'shape': *\(([0-9]{1,19}(?:, *[0-9]{1,19})*,?|)\),? *\} *\n",
)


class Header(NamedTuple):
    """What the header of a file says."""

    dtype: str
    shape: tuple[int, ...]
    start: int  # of the elements, in bytes

    @property
    def file_bytes(self) -> int:
        """Bytes of the whole file."""
        return self.start + math.prod(self.shape) * np.dtype(self.dtype).itemsize


def wrong(path: Path, expected: str, found: str) -> NoReturn:
    """Raise the one error of a file that is not as it should be."""
    raise ValueError(f"{path}: expected {expected}, found {found}")


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write a new file in little-endian byte order and C order, and bring it to disk."""
    write_parts(path, array.dtype, array.shape, [array])


def write_parts(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], parts: Iterable[NDArray[Any]]
) -> None:
    """Write a new file of that shape from parts, one after another, and bring it to disk."""
    little = dtype.newbyteorder("<")
    header = {"descr": little.str, "fortran_order": False, "shape": shape}
    with open(path, "xb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, little).data)
        file.flush()
        os.fsync(file.fileno())


def read_header(path: Path, dtypes: tuple[str, ...]) -> Header:
    """Read the header of a file whose dtype is one of ``dtypes``.

    Raises:
        ValueError: the file has no such header.
    """
    with open(path, "rb") as file:
        head = file.read(len(_MAGIC) + 2)
        size = int.from_bytes(head[len(_MAGIC) :], "little")
        text = file.read(size)
    if not head.startswith(_MAGIC) or len(head) != len(_MAGIC) + 2 or len(text) != size:
        wrong(path, "an .npy file of format 1.0 in C order", f"{head!r} at its start")
    found = _HEADER.fullmatch(text)
    if found is None:
        wrong(path, "an .npy file of format 1.0 in C order", f"the header {text!r:.160}")
    dtype = found[1].decode("latin-1")
    if dtype not in dtypes:
        wrong(path, f"dtype {' or '.join(dtypes)}", f"dtype {dtype!r}")
    shape = tuple(int(side) for side in found[2].split(b",") if side)
    return Header(dtype, shape, len(head) + size)


def read_array(path: Path, header: Header, *, memory_map: bool) -> NDArray[Any]:
    """Return the elements behind a header, read-only and in this machine's byte order.

    Memory-mapped elements stay where they are if they are native, and are read if they are not.

    Raises:
        ValueError: the file is shorter than its header says.
    """
    if memory_map and 0 not in header.shape:  # a file without elements cannot be mapped
        try:
            mapped = np.memmap(path, header.dtype, "r", header.start, header.shape)
        except (ValueError, OverflowError) as error:
            wrong(path, f"{header.file_bytes} bytes", f"{path.stat().st_size} bytes: {error}")
        _read_at_random(mapped)
        array: NDArray[Any] = mapped.view(np.ndarray)
    else:
        count = math.prod(header.shape)
        array = np.fromfile(path, header.dtype, count, offset=header.start)
        if array.size != count:
            wrong(path, f"{header.file_bytes} bytes", f"{path.stat().st_size} bytes")
        array = array.reshape(header.shape)
    array = native(array)
    array.flags.writeable = False
    return array


def _read_at_random(mapped: Any) -> None:
    """Tell the system not to read what lies behind a page: the next image lies elsewhere."""
    import mmap  # not every platform has it, and only a mapped table needs it

    pages, advice = getattr(mapped, "_mmap", None), getattr(mmap, "MADV_RANDOM", None)
    if pages is not None and advice is not None:
        with contextlib.suppress(OSError):
            pages.madvise(advice)


def native(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array if it has this machine's byte order, else a converted copy.

    >>> import numpy as np
    >>> native(np.array([1, 2], ">f4")) == native(np.array([1, 2], "<f4"))
    array([ True,  True])
    """
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, which is read in blocks."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
