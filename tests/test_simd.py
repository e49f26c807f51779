"""Promise: a loop's bytes depend neither on the variant that runs, nor on where memory lies, nor on
the kind of stores; and a loop writes its target and nothing beside it.
"""

import numpy as np
import pytest

from onemodel._simd import dispatch
from onemodel._simd.pixels import bytes_to_planar
from onemodel._simd.scale_and_shift import scale_and_shift

RNG = np.random.default_rng(17)
WIDTHS = range(1, 71)
SCALE, SHIFT = np.float32(0.0123), np.float32(0.456)
GAIN, OFFSET = np.float32(1.37), np.float32(-0.21)
UNTOUCHED = np.float32(-77)


@pytest.fixture(params=dispatch.variants())
def variant(request):
    before = dispatch.selected()
    dispatch.select(request.param)
    yield request.param
    dispatch.select(before)


def misaligned(dtype, size, start):
    """Return memory for `size` elements, `start` elements past a 64-byte aligned address."""
    memory = np.zeros(size * np.dtype(dtype).itemsize + 64 + 64 * 8, np.uint8)
    first = -memory.ctypes.data % 64 + start * np.dtype(dtype).itemsize
    return memory[first : first + size * np.dtype(dtype).itemsize].view(dtype)


def stored(pixels, padded, pad, scaled):
    """The twin of store_rows: each operation rounds to float32."""
    values = pixels
    if pixels.dtype == np.uint8:
        product = pixels.astype(np.float32) * SCALE
        values = product - SHIFT
    if scaled:
        product = values * GAIN
        values = product + OFFSET
    rows = np.full((len(pixels), padded), pad, np.float32)
    rows[:, : pixels.shape[1]] = values
    return rows


def check_rows(pixels, padded, target_start, scaled, non_temporal):
    """Store rows into the middle of memory whose ends must stay as they were."""
    size = len(pixels) * padded
    memory = misaligned(np.float32, size + 32, target_start)
    memory[:] = UNTOUCHED
    out = memory[16 : 16 + size].reshape(len(pixels), padded)
    dispatch.store_rows(
        pixels,
        out,
        0.75,
        SCALE,
        SHIFT,
        gain_offset=(GAIN, OFFSET) if scaled else None,
        non_temporal=non_temporal,
    )
    assert out.tobytes() == stored(pixels, padded, 0.75, scaled).tobytes()
    assert (memory[:16] == UNTOUCHED).all()
    assert (memory[16 + size :] == UNTOUCHED).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32], ids=["bytes", "floats"])
@pytest.mark.parametrize("scaled", [False, True], ids=["as read", "gain and offset"])
@pytest.mark.parametrize("non_temporal", [False, True], ids=["ordinary", "non-temporal"])
def test_rows_of_every_width_and_padded_width(variant, dtype, scaled, non_temporal):
    """Sources and targets start at every place within 16 bytes, by turns."""
    for width in WIDTHS:
        for more in (0, 1, 2, 3, 4, 7, 8, 9, 16, 37):
            source = misaligned(dtype, 3 * (width + 1), (width + more) % 16)
            source[:] = RNG.integers(0, 256, len(source))
            rows = source.reshape(3, width + 1)[:, :width]  # rows that are not one after another
            check_rows(rows, width + more, more * 5 % 4, scaled, non_temporal)
            check_rows(rows, width + more, 0, scaled, non_temporal)
            check_rows(rows, width + more, 4, scaled, non_temporal)


def test_rows_of_every_byte(variant):
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 256)
    check_rows(pixels, 256, 0, False, False)
    check_rows(pixels, 257, 0, True, False)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a[:, ::-1], lambda a: a[::2]])
def test_planes(variant, channels, layout):
    for width in WIDTHS:
        pixels = layout(RNG.integers(0, 256, (4, width, channels), dtype=np.uint8))
        scale, shift = scale_and_shift([0.25] * channels, [0.5] * channels, channels)
        out = np.empty((channels, *pixels.shape[:2]), np.float32)
        bytes_to_planar(pixels, scale, shift, out)
        product = pixels.transpose(2, 0, 1).astype(np.float32) * scale[:, None, None]
        assert out.tobytes() == (product - shift[:, None, None]).tobytes()


def test_what_does_not_fit_is_refused():
    rows = np.zeros((2, 5), np.float32)
    with pytest.raises(ValueError):
        dispatch.store_rows(rows, np.empty((2, 4), np.float32), 0)
    with pytest.raises(ValueError):
        dispatch.store_rows(rows, np.empty((3, 5), np.float32), 0)
    with pytest.raises(ValueError):
        dispatch.store_rows(rows[:, ::2], np.empty((2, 5), np.float32), 0)
    with pytest.raises(ValueError):
        dispatch.store_rows(rows.astype(np.float64), np.empty((2, 5), np.float32), 0)


def test_a_variant_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"name must be one of .*baseline.*, got 'sse9'"):
        dispatch.select("sse9")
    assert dispatch.selected() in dispatch.variants()
