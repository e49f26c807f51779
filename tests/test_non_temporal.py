"""Promise: non-temporal stores write the same bytes as ordinary ones, in every variant."""

import numpy as np
import pytest

from onemodel import BatchKey, Sample
from onemodel._collate.collate import collate
from onemodel._collate.inputs import from_samples
from onemodel._memory.pool import BufferPool
from onemodel._random.batch_rng import BatchRng
from onemodel._simd import dispatch
from onemodel.augment import Blur, GainOffset, Invert
from onemodel.augment.protocol import Chain
from onemodel.datasets.gather import gather_rows
from onemodel.transforms import Normalize, RandomHorizontalFlip
from onemodel.transforms.protocol import RowChain

RNG = np.random.default_rng(11)


@pytest.fixture(params=dispatch.variants())
def variant(request):
    before = dispatch.selected()
    dispatch.select(request.param)
    yield request.param
    dispatch.select(before)


@pytest.mark.parametrize("parts", [[], [GainOffset(), Invert(0.5)], [Blur(1.0), GainOffset()]])
@pytest.mark.parametrize("padded", [61, 64, 3000])
def test_collation(variant, parts, padded):
    """Padded widths that are multiples of 4 and that are not; a row wider than any source."""
    samples = [Sample(RNG.random((2, 5, width), dtype=np.float32)) for width in (1, 7, 16, 60, 61)]
    key = BatchKey(1, 2, 3, 4, np.arange(5, dtype=np.int64))
    inputs = from_samples(samples, key)
    pool = BufferPool()
    held, made = [], []
    for non_temporal in (False, True):
        assert pool.exceeds_cache is non_temporal
        images = collate(inputs, pool, (padded, 0, 1), 0.5, Chain(parts), key)["images"]
        made.append(images.tobytes())
        del images
        held.append(pool.rent(2 << 20, np.float32))  # now more is out than caches hold
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "parts", [[Normalize(0.5, 0.25)], [RandomHorizontalFlip(), Normalize(0, 1)]]
)
@pytest.mark.parametrize("width", [5, 16, 32])
def test_rows(variant, parts, width):
    rows = RNG.integers(0, 256, (9, 4, width, 3), dtype=np.uint8)
    chain = RowChain(parts, rows.dtype, rows.shape[1:])
    made = []
    for non_temporal in (False, True):
        result = np.empty((7, *chain.shape), chain.dtype)
        chain.run(
            BatchRng(1, 2, 3), rows, np.arange(8, 1, -1, dtype=np.int64), result, non_temporal
        )
        made.append(result.tobytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("shape", [(9, 8), (9, 3, 5), (9, 64)])
def test_gather(variant, shape):
    rows = RNG.random(shape, dtype=np.float32)
    places = np.array([8, 0, 3, 3, 1])
    assert gather_rows(rows, places, non_temporal=True).tobytes() == rows[places].tobytes()


def test_a_pool_exceeds_the_cache_when_more_is_out_than_caches_hold():
    pool = BufferPool()
    held = [pool.rent(1 << 20, np.float32)]
    assert not pool.exceeds_cache
    held.append(pool.rent(1 << 20, np.float32))
    assert pool.exceeds_cache
    held.pop()
    assert not pool.exceeds_cache
