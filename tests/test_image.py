"""Promise: the image helpers round each operation to float32, take any layout of the pixels, and
write where they are told.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from reference import image as twin
from support import assert_same_bytes, refused

from onemodel import image
from onemodel._simd import scale_and_shift

MEANS = st.floats(-2, 2, width=32)
STDS = st.floats(1 / 128, 8, width=32)
GRAY = arrays.arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 40)))
COLOUR = arrays.arrays(np.uint8, st.tuples(st.integers(1, 5), st.integers(1, 19), st.just(3)))

# Views of an image [H, W] or [H, W, 3]: each gives the same pixels in another layout.
LAYOUTS = {
    "rows apart": lambda a: np.repeat(a, 3, axis=0)[::3],
    "columns apart": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "rows backwards": lambda a: a[::-1].copy()[::-1],
    "columns backwards": lambda a: a[:, ::-1].copy()[:, ::-1],
    "Fortran order": lambda a: np.asfortranarray(a),
    "inside a larger one": lambda a: np.pad(a, [(1, 2), (3, 1)] + [(0, 0)] * (a.ndim - 2))[
        1 : 1 + a.shape[0], 3 : 3 + a.shape[1]
    ],
    "one row for all": lambda a: np.broadcast_to(a[:1], a.shape),
}
layouts = pytest.mark.parametrize("layout", LAYOUTS)


@given(GRAY, MEANS, STDS)
def test_gray_is_the_twins(pixels, mean, std):
    assert_same_bytes(
        image.gray8_to_planar(pixels, mean, std), twin.gray8_to_planar(pixels, mean, std)
    )


@given(COLOUR, st.lists(MEANS, min_size=3, max_size=3), st.lists(STDS, min_size=3, max_size=3))
def test_rgb_is_the_twins(pixels, mean, std):
    assert_same_bytes(
        image.rgb8_to_planar(pixels, mean, std), twin.rgb8_to_planar(pixels, mean, std)
    )


@pytest.mark.parametrize("width", [1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 127, 257])
def test_every_byte_at_every_width(width):
    """Wide loops have tails; each width ends in another one."""
    pixels = (np.arange(3 * width) * 89 % 256).astype(np.uint8).reshape(3, width)
    assert_same_bytes(
        image.gray8_to_planar(pixels, 0.1307, 0.3081), twin.gray8_to_planar(pixels, 0.1307, 0.3081)
    )
    colour = (np.arange(2 * width * 3) * 53 % 256).astype(np.uint8).reshape(2, width, 3)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    assert_same_bytes(
        image.rgb8_to_planar(colour, mean, std), twin.rgb8_to_planar(colour, mean, std)
    )


@layouts
def test_gray_layouts(layout):
    pixels = (np.arange(5 * 21) * 37 % 256).astype(np.uint8).reshape(5, 21)
    view = LAYOUTS[layout](pixels)
    assert_same_bytes(
        image.gray8_to_planar(view, 0.5, 0.25), twin.gray8_to_planar(view.copy(), 0.5, 0.25)
    )


@layouts
def test_rgb_layouts(layout):
    pixels = (np.arange(5 * 9 * 3) * 37 % 256).astype(np.uint8).reshape(5, 9, 3)
    view = LAYOUTS[layout](pixels)
    mean, std = (0.5, 0.25, 0.125), (0.25, 0.5, 1.0)
    expected = twin.rgb8_to_planar(view.copy(), mean, std)
    assert_same_bytes(image.rgb8_to_planar(view, mean, std), expected)


def test_channels_in_another_order():
    """A BGR image is an RGB image seen backwards."""
    pixels = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    view = pixels[:, :, ::-1]
    expected = twin.rgb8_to_planar(view.copy(), (0, 0, 0), (1, 1, 1))
    assert_same_bytes(image.rgb8_to_planar(view, (0, 0, 0), (1, 1, 1)), expected)


def test_read_only_pixels_stay_as_they_are():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    pixels.flags.writeable = False
    image.gray8_to_planar(pixels, 0, 1)
    assert pixels.ravel().tolist() == list(range(12))


def test_out_is_written_and_returned():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    out = np.full((1, 3, 4), np.nan, dtype=np.float32)
    assert image.gray8_to_planar(pixels, 0.5, 0.5, out=out) is out
    assert_same_bytes(out, twin.gray8_to_planar(pixels, 0.5, 0.5))

    colour = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    out = np.full((3, 3, 4), np.nan, dtype=np.float32)
    assert image.rgb8_to_planar(colour, [0.5] * 3, [0.5] * 3, out=out) is out
    assert_same_bytes(out, twin.rgb8_to_planar(colour, [0.5] * 3, [0.5] * 3))


def test_out_may_be_a_part_of_a_larger_array():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    canvas = np.full((3, 3, 4), -7, dtype=np.float32)
    image.gray8_to_planar(pixels, 0, 1, out=canvas[1:2])
    expected = np.full((3, 3, 4), -7, dtype=np.float32)
    expected[1:2] = twin.gray8_to_planar(pixels, 0, 1)
    assert_same_bytes(canvas, expected)


def test_out_with_gaps_is_refused_and_left_alone():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    canvas = np.full((1, 5, 9), -7, dtype=np.float32)
    with refused(ValueError, "out"):
        image.gray8_to_planar(pixels, 0, 1, out=canvas[:, 1:4, 2:6])
    assert (canvas == -7).all()


# Refusals

GOOD = np.zeros((3, 4), dtype=np.uint8)
GOOD_COLOUR = np.zeros((3, 4, 3), dtype=np.uint8)


@pytest.mark.parametrize("shape", [(4,), (1, 3, 4), ()], ids=str)
def test_gray_checks_the_rank(shape):
    with refused((TypeError, ValueError), "pixels", list(shape)):
        image.gray8_to_planar(np.zeros(shape, dtype=np.uint8), 0, 1)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 1), (3, 4, 4), (3, 3, 4, 3)], ids=str)
def test_rgb_checks_the_shape(shape):
    with refused((TypeError, ValueError), "pixels", list(shape)):
        image.rgb8_to_planar(np.zeros(shape, dtype=np.uint8), [0] * 3, [1] * 3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32, bool], ids=str)
def test_pixels_are_bytes(dtype):
    with refused((TypeError, ValueError), "pixels", np.dtype(dtype).name):
        image.gray8_to_planar(GOOD.astype(dtype), 0, 1)
    with refused((TypeError, ValueError), "pixels", np.dtype(dtype).name):
        image.rgb8_to_planar(GOOD_COLOUR.astype(dtype), [0] * 3, [1] * 3)


@pytest.mark.parametrize("std", [0.0, -1.0, float("nan"), float("inf"), 1e-50], ids=repr)
def test_std_is_checked(std):
    with refused(ValueError, "std", std):
        image.gray8_to_planar(GOOD, 0.5, std)
    with refused(ValueError, "std", std):
        image.rgb8_to_planar(GOOD_COLOUR, [0.5] * 3, [1, std, 1])


@pytest.mark.parametrize("mean", [float("nan"), float("inf"), 1e50], ids=repr)
def test_mean_is_checked(mean):
    with refused(ValueError, "mean", mean):
        image.gray8_to_planar(GOOD, mean, 1)
    with refused(ValueError, "mean", mean):
        image.rgb8_to_planar(GOOD_COLOUR, [0, 0, mean], [1] * 3)


def test_rgb_needs_three_means_and_stds():
    with refused(ValueError, "mean", [0.5] * 2):
        image.rgb8_to_planar(GOOD_COLOUR, [0.5] * 2, [1] * 3)
    with refused(ValueError, "std", [2.0] * 4):
        image.rgb8_to_planar(GOOD_COLOUR, [0.5] * 3, [2.0] * 4)


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((3, 4), dtype=np.float32),
        np.zeros((1, 3, 5), dtype=np.float32),
        np.zeros((1, 3, 4), dtype=np.float64),
        np.zeros((1, 3, 4), dtype=np.float32).tolist(),
    ],
    ids=["rank", "shape", "dtype", "list"],
)
def test_out_is_checked(out):
    with refused((TypeError, ValueError), "out"):
        image.gray8_to_planar(GOOD, 0, 1, out=out)


def test_out_must_be_writable():
    out = np.zeros((1, 3, 4), dtype=np.float32)
    out.flags.writeable = False
    with refused(ValueError, "out"):
        image.gray8_to_planar(GOOD, 0, 1, out=out)


def test_without_mean_and_std_pixels_become_0_to_1():
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert_same_bytes(image.gray8_to_planar(pixels), twin.gray8_to_planar(pixels, 0, 1))
    colour = np.repeat(pixels[:, :, np.newaxis], 3, axis=2)
    expected = twin.rgb8_to_planar(colour, [0] * 3, [1] * 3)
    assert_same_bytes(image.rgb8_to_planar(colour), expected)


@pytest.mark.parametrize("std", [0.25, 1e38, 1e-30])
@pytest.mark.parametrize("mean", [0.5, 1e-38, 1e-45])
def test_numpys_error_state_changes_nothing(mean, std):
    """The caller's np.seterr is about its own arithmetic; results that don't fit are refused."""
    with np.errstate(all="ignore"):
        try:
            expected = image.gray8_to_planar(GOOD, mean, std)
        except ValueError:
            expected = None
    scale_and_shift._remembered.cache_clear()
    with np.errstate(all="raise"):
        if expected is None:
            with refused(ValueError, mean, std):
                image.gray8_to_planar(GOOD, mean, std)
        else:
            assert_same_bytes(image.gray8_to_planar(GOOD, mean, std), expected)


ODD_NUMBERS = [
    "0.5",
    b"1",
    ["0.5"] * 3,
    np.array(["1"]),
    1j,
    np.complex64(1),
    None,
    np.ma.masked,
    np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    [[1.0], [1.0, 2.0]],
    [1.0, None, 2.0],
    np.datetime64("2020-01-01"),
    10**400,
    [10**400] * 3,
    {"a": 1},
]


@pytest.mark.parametrize("value", ODD_NUMBERS, ids=lambda each: repr(each)[:20])
def test_mean_and_std_are_numbers(value):
    with refused((TypeError, ValueError), "mean must"):
        image.rgb8_to_planar(GOOD_COLOUR, value, 1.0)
    with refused((TypeError, ValueError), "std must"):
        image.rgb8_to_planar(GOOD_COLOUR, 0.0, value)
