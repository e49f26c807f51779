"""The jobs the C ceilings run: their structures, their aligned buffers, their calls.

A ctypes call releases the GIL and builds many batches, so no Python runs in what is timed.
"""

from __future__ import annotations

import ctypes

import numpy as np

from benchmarks.ceiling.build import CeilingMissingError, kernels, library

Pointer = ctypes.c_void_p


class LinesJob(ctypes.Structure):
    """The C structure `lines_job`, field by field."""

    _fields_ = (
        *((name, Pointer) for name in ("pixels", "offsets", "widths")),
        *((name, Pointer) for name in ("outputs", "indices", "real_widths")),
        ("count", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("height", "batch", "multiple", "buffers")),
        *((name, ctypes.c_float) for name in ("gain_low", "gain_span")),
        *((name, ctypes.c_float) for name in ("offset_low", "offset_span")),
        *((name, ctypes.c_float) for name in ("pad", "scale", "shift")),
        ("seed", ctypes.c_uint64),
    )


class ArraysJob(ctypes.Structure):
    """The C structure `arrays_job`, field by field."""

    _fields_ = (
        ("pixels", Pointer),
        ("outputs", Pointer),
        ("count", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("height", "width", "batch", "buffers")),
        ("scale", ctypes.c_float * 3),
        ("shift", ctypes.c_float * 3),
        ("seed", ctypes.c_uint64),
        ("stream", ctypes.c_int32),
    )


def aligned(size: int, dtype: np.typing.DTypeLike) -> np.ndarray:
    """Return a zeroed array whose memory starts on a cache line and is already mapped."""
    bytes_wanted = size * np.dtype(dtype).itemsize
    block = np.empty(bytes_wanted + 64, np.uint8)
    start = -block.ctypes.data % 64
    array = block[start : start + bytes_wanted].view(dtype)
    array[...] = 0
    return array


def pointers(arrays: list[np.ndarray]) -> ctypes.Array:
    return (Pointer * len(arrays))(*(array.ctypes.data for array in arrays))


class LinesCeiling:
    """Builds batches of ragged lines in C, into `buffers` outputs that it uses in turn."""

    def __init__(
        self,
        pixels,
        widths,
        height,
        batch,
        *,
        seed,
        buffers=8,
        multiple=4,
        gain=(0.8, 1.2),
        offset=(-0.1, 0.1),
        mean=0.5,
        std=0.5,
    ):
        widths = np.ascontiguousarray(widths, np.int32)
        starts = np.zeros(len(widths), np.int64)
        np.cumsum(widths[:-1].astype(np.int64) * height, out=starts[1:])
        source = aligned(pixels.size, pixels.dtype)
        source[:] = pixels.ravel()
        widest = -(-int(widths.max()) // multiple) * multiple
        self.outputs = [aligned(batch * height * widest, np.float32) for _ in range(buffers)]
        self.indices = [aligned(batch, np.int32) for _ in range(buffers)]
        self.widths = [aligned(batch, np.int32) for _ in range(buffers)]
        tables = [pointers(each) for each in (self.outputs, self.indices, self.widths)]
        scale = np.float32(1) / (np.float32(255) * np.float32(std))
        self.job = LinesJob(
            source.ctypes.data, starts.ctypes.data, widths.ctypes.data,
            *(ctypes.addressof(table) for table in tables),
            len(widths), height, batch, multiple, buffers,
            np.float32(gain[0]), np.float32(gain[1] - gain[0]),
            np.float32(offset[0]), np.float32(offset[1] - offset[0]),
            0.0, scale, np.float32(mean) / np.float32(std), seed,
        )  # fmt: skip
        self.kept = (source, starts, widths, tables)  # the job holds bare addresses
        self.prefix = f"{pixels.dtype.name} "
        self.batch, self.height, self.multiple = batch, height, multiple

    def kernels(self) -> dict[str, int]:
        """Return the kernels for this pixel type, by name without it."""
        return {
            name.removeprefix(self.prefix): number
            for name, number in kernels("lines_kernel").items()
            if name.startswith(self.prefix)
        }

    def run(self, kernel: int, first: int, steps: int, threads: int = 1) -> None:
        """Build the batches of `steps` global steps from `first` on."""
        library().lines_run(
            ctypes.byref(self.job), kernel, ctypes.c_int64(first), ctypes.c_int64(steps), threads
        )

    def built(self, step: int) -> dict[str, np.ndarray]:
        """Return the outputs of global step `step`, which must be the last in its buffer."""
        at = step % len(self.outputs)
        widest = -(-int(self.widths[at].max()) // self.multiple) * self.multiple
        shape = (self.batch, 1, self.height, widest)
        images = self.outputs[at][: np.prod(shape)].reshape(shape)
        return {"images": images, "widths": self.widths[at], "indices": self.indices[at]}


class ArraysCeiling:
    """Builds batches of flipped, normalised images in C, into `buffers` outputs in turn."""

    def __init__(self, pixels, batch, *, mean, std, seed, buffers=8, stream=0):
        count, height, width, _ = pixels.shape
        source = aligned(pixels.size, np.uint8)
        source[:] = pixels.ravel()
        self.shape = (batch, 3, height, width)
        self.outputs = [aligned(batch * 3 * height * width, np.float32) for _ in range(buffers)]
        table = pointers(self.outputs)
        mean, std = np.float32(mean), np.float32(std)
        scale, shift = np.float32(1) / (np.float32(255) * std), mean / std
        self.job = ArraysJob(
            source.ctypes.data, ctypes.addressof(table), count, height, width, batch, buffers,
            (ctypes.c_float * 3)(*scale), (ctypes.c_float * 3)(*shift), seed, stream,
        )  # fmt: skip
        self.kept = (source, table)

    def kernels(self) -> dict[str, int]:
        """Return the kernels that this CPU can run, by name."""
        return kernels("arrays_kernel")

    def run(self, kernel: int, first: int, steps: int, threads: int = 1) -> None:
        """Build the batches of `steps` global steps from `first` on."""
        library().arrays_run(
            ctypes.byref(self.job), kernel, ctypes.c_int64(first), ctypes.c_int64(steps), threads
        )

    def built(self, step: int) -> np.ndarray:
        """Return the images of global step `step`, which must be the last in its buffer."""
        return self.outputs[step % len(self.outputs)].reshape(self.shape)


def permutation_take(n: int, key: int, first: int, out: np.ndarray, kind: str = "plain") -> None:
    """Fill int64 `out` with permutation values; `kind` is "plain", "blocks" or "avx2"."""
    suffix = "" if kind == "plain" else f"_{kind}"
    done = getattr(library(), f"permutation_take{suffix}")(
        ctypes.c_uint64(n), ctypes.c_uint64(key), ctypes.c_int64(first),
        ctypes.c_int64(out.size), Pointer(out.ctypes.data),
    )  # fmt: skip
    if done == 0:
        raise CeilingMissingError("this CPU has no AVX2")
