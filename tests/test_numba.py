"""Promise: a function that Numba compiles is a native stage with the bytes of its Python form.

Its draws are those of `SampleRng`, its arithmetic is that of the written order, and a run notices
a function that changed.
"""

import pickle
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_bytes, refused

import onemodel
from onemodel import ArrayDataset, Compose, DataLoader, ImageBatchCollator, Sample, SampleRng
from onemodel._random.batch_rng import BatchRng
from onemodel.augment import Blur, GainOffset, Noise
from onemodel.augment.protocol import Chain
from onemodel.transforms import Normalize, RandomHorizontalFlip

pytest.importorskip("numba", reason="Numba is not installed")

from onemodel.numba import augmentation, row_transform

TENTH = np.float32(0.1)


@augmentation
def streak(rng, image, most=3, table=np.linspace(0, 1, 5, dtype=np.float32)):
    """Every draw, an array, integers and float32 arithmetic."""
    factor = np.float32(0.5 + rng.next_single() * 0.5)
    level = table[rng.next_int(5)]
    more = np.float32(rng.next_normal() * 0.25) + np.float32(rng.next_double())
    channels, height, width = image.shape
    for _ in range(rng.next_int(most) + 1):
        row = rng.next_int(height)
        for channel in range(channels):
            for column in range(width):
                value = image[channel, row, column] * factor + more
                image[channel, row, column] = level if value > np.float32(0.9) else value
    if rng.next_u64() & np.uint64(1):
        image[0, 0, 0] = TENTH


def gain_and_offset(rng, shape, low=np.float32(0.8), span=np.float32(0.4)):
    gain = low + span * np.float32(rng.next_single())
    return gain, np.float32(-0.1) + np.float32(0.2) * np.float32(rng.next_single())


@augmentation(draw=gain_and_offset)
def scaled(pixel, gain, offset):
    return pixel * gain + offset


def counts_of(rng, shape):
    return rng.next_int(shape[2]), rng.next_double(), np.float32(rng.next_single())


@augmentation(draw=counts_of)
def mixed(pixel, count, number, single, more=2):
    """Integers, float64 and float32 drawn; the branch and the setting are read for each pixel."""
    if pixel < single:
        return pixel + np.float32(count * more)
    return pixel * number


@row_transform
def damaged(rng, row, count=2):
    for _ in range(count):
        y, x = rng.next_int(row.shape[0]), rng.next_int(row.shape[1])
        row[y, x] = row[0, 0]


@row_transform(key="pictures")
def damaged_pictures(rng, row):
    row[rng.next_int(row.shape[0])] = 7


AUGMENTATIONS = [streak, scaled, mixed]


def python_form(stage):
    """A plain callable: no fast path sees that it is a stage."""
    return lambda rng, image: stage.__wrapped__(rng, image)


@given(state=st.integers(0, 2**64 - 1), n=st.integers(1, 2**63 - 1))
@settings(deadline=None)
def test_draws_are_those_of_the_generator(state, n):
    rng, values = SampleRng(state), np.zeros((1, 1, 5), np.int64)
    expected = SampleRng(state)
    drawn = draws(rng, n)
    values = [
        expected.next_u64(),
        expected.next_single(),
        expected.next_double(),
        expected.next_int(n),
        expected.next_int(3),
        expected.next_normal(),
    ]
    assert drawn == values
    assert rng.state == expected.state


def draws(rng, n):
    """All draws of a compiled function, by way of a float32 image that holds their bits."""

    @augmentation(exact=False)
    def bits(rng, image):
        words = image.view(np.uint64).reshape(-1)
        floats = image.view(np.float64).reshape(-1)
        bound = words[0]
        words[0] = rng.next_u64()
        floats[1] = rng.next_single()
        floats[2] = rng.next_double()
        words[3] = rng.next_int(np.int64(bound))
        words[4] = rng.next_int(3)
        floats[5] = rng.next_normal()

    stage = BITS.setdefault("stage", bits) if not BITS else BITS["stage"]
    image = np.zeros((1, 1, 12), np.float32)
    words, floats = image.view(np.uint64).reshape(-1), image.view(np.float64).reshape(-1)
    words[0] = n
    stage(rng, image)
    return [
        int(words[0]), floats[1], floats[2], int(words[3]), int(words[4]), floats[5]
    ]
