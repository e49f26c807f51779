"""Promise: a pool with `allocate=` takes all its memory from there, and holds it until it is freed.

No byte of a batch depends on it. What the allocator raises, or gives that is no memory, is the
error of the batch.
"""

import gc
import pickle
import weakref

import numpy as np
import pytest
from support import refused

import onemodel as om


class Memory(np.ndarray):
    """Ordinary memory that can be watched."""


class Allocator:
    """Hands out memory and remembers it without holding it."""

    def __init__(self):
        self.sizes = []
        self.given = []

    def __call__(self, size):
        memory = np.empty(size, np.uint8).view(Memory)
        self.sizes.append(size)
        self.given.append(weakref.ref(memory))
        return memory

    @property
    def alive(self):
        return sum(each() is not None for each in self.given)


def test_memory_comes_from_the_allocator_and_is_used_again():
    allocate = Allocator()
    pool = om.BufferPool(allocate=allocate)
    array = pool.rent((5, 7), "float32")
    assert array.ctypes.data % 64 == 0
    assert len(allocate.sizes) == pool.stats.allocated == 1
    memory = allocate.given[0]()
    assert np.shares_memory(array.view(np.uint8), memory)
    del memory
    array[...] = 3
    del array
    assert pool.rent((5, 7), "float32").tolist() == [[3.0] * 7] * 5
    assert len(allocate.sizes) == 1


def test_memory_is_held_while_it_is_used_and_freed_after():
    allocate = Allocator()
    pool = om.BufferPool(allocate=allocate)
    array = pool.rent(100, "int64")
    pool.clear()
    gc.collect()
    assert allocate.alive == 1
    array[...] = 9
    del array
    assert allocate.alive == 1  # the pool keeps it
    pool.clear()
    assert allocate.alive == 0
    array = pool.rent(100, "int64")
    del pool
    gc.collect()
    assert allocate.alive == 1
    del array
    gc.collect()
    assert allocate.alive == 0


def test_memory_of_other_sizes_is_freed_to_make_room():
    allocate = Allocator()
    pool = om.BufferPool(allocate=allocate)
    for size in (1000, 9000, 80000, 100):
        pool.rent(size, "uint8")
    assert allocate.alive < len(allocate.sizes)
    assert sum(ref().nbytes for ref in allocate.given if ref() is not None) >= pool.stats.bytes


@pytest.mark.parametrize(
    "wrong",
    [
        lambda size: None,
        lambda size: size,
        lambda size: bytes(size),
        lambda size: np.empty(size - 1, np.uint8),
        lambda size: np.empty(2 * size, np.uint8)[::2],
    ],
)
def test_what_is_no_such_memory_is_refused(wrong):
    pool = om.BufferPool(allocate=wrong)
    with refused(TypeError, "allocate", "writable, contiguous", 192):
        pool.rent(3, "float32")
    assert pool.stats == (0, 0, 0, 0)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("error", [OSError("the device is gone"), MemoryError("out of it")])
def test_what_it_raises_is_the_error_of_the_batch(workers, error):
    def allocate(size):
        raise error

    pool = om.BufferPool(allocate=allocate)
    lines = om.datasets.DigitLines(8, height=8)
    collate = om.ImageBatchCollator(pool=pool)
    with om.DataLoader(lines, 4, collate=collate, workers=workers) as loader:
        with pytest.raises(type(error)) as caught:
            next(iter(loader))
        assert error in (caught.value, caught.value.__cause__)
    assert pool.stats.rented == pool.stats.bytes == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_the_same(workers):
    lines = om.datasets.ImageTable.from_samples(om.datasets.DigitLines(30, height=8))
    numbers = om.ArrayDataset(np.arange(30.0), np.arange(30))
    expected = None
    for own in (False, True):
        allocate = Allocator() if own else None
        pool = om.BufferPool(allocate=allocate)
        collate = om.ImageBatchCollator(pool=pool, augment=om.augment.Noise())
        faces = [
            om.DataLoader(lines, 4, collate=collate, workers=workers),
            om.DataLoader(numbers, 4, shuffle=True, workers=workers, pool=pool),
        ]
        digests = [[om.digest(batch) for batch in loader] for loader in faces]
        for loader in faces:
            loader.close()
        if own:
            assert digests == expected
            assert len(allocate.sizes) == pool.stats.allocated > 0
        expected = digests


def test_arguments():
    for wrong in (3, "pinned"):
        with refused(TypeError, "allocate", "callable", wrong):
            om.BufferPool(allocate=wrong)
    with pytest.raises(TypeError):
        om.BufferPool(Allocator())
    pool = om.BufferPool(allocate=Allocator())
    with refused(TypeError, "cannot be changed"):
        pool.__init__(allocate=bytearray)
    data = om.ArrayDataset(np.arange(4))
    with refused(TypeError, "pool", "BufferPool", 3):
        om.DataLoader(data, 2, pool=3)
    with refused(TypeError, "pool", "collator"):
        om.DataLoader(om.datasets.DigitLines(4), 2, collate=om.ImageBatchCollator(), pool=pool)


def test_a_pickled_pool_asks_the_same_allocator():
    pool = pickle.loads(pickle.dumps(om.BufferPool(allocate=bytearray)))
    pool.rent(3, "uint8")
    assert pool.stats.allocated == 1
    with refused(TypeError, "allocate"):
        pickle.loads(pickle.dumps(om.BufferPool(allocate=bytes))).rent(3, "uint8")
