"""Promise: no batch of the budget sampler is larger than its budget, and ranks get equal parts.

A batch's items times its longest length are within the budget, and its items divide by
``multiple_of``. Steps and sizes are the same in every epoch; an epoch has every item once, but for
fewer than ``multiple_of``. The indices are the twin's, and a loader with workers, shards or a
resumed state gives the same.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import budget as twin
from support import EDGE_WORDS, integers, refused

from onemodel import ArrayDataset, BudgetSampler, DataLoader
from onemodel._builders.native import native_lane

LENGTHS = st.lists(st.integers(0, 60) | st.just(2**32 - 1), min_size=1, max_size=70)


@st.composite
def arguments(draw):
    """Lengths, a budget that holds them, and options."""
    lengths = draw(LENGTHS)
    multiple = draw(st.integers(1, min(4, len(lengths))))
    budget = multiple * max(1, *lengths) + draw(st.integers(0, 500))
    largest = draw(st.none() | st.integers(multiple, 12))
    options = {"multiple_of": multiple, "largest_batch": largest}
    return lengths, budget, options | {"pool_batches": draw(st.integers(1, 6))}


def epoch_of(sampler, seed, epoch):
    return [
        integers(sampler.batch_indices(seed, epoch, step))
        for step in range(sampler.steps_per_epoch)
    ]


@given(arguments(), EDGE_WORDS, EDGE_WORDS)
def test_it_is_the_twins(made_of, seed, epoch):
    lengths, budget, options = made_of
    sampler = BudgetSampler(lengths, budget, **options)
    expected = twin.BudgetSampler(lengths, budget, **options)
    assert sampler.steps_per_epoch == expected.steps_per_epoch
    assert sampler.batch_size == expected.batch_size
    for step in range(sampler.steps_per_epoch):
        indices = sampler.batch_indices(seed, epoch, step)
        assert indices.dtype == np.int64
        assert indices.tolist() == expected.batch_indices(seed, epoch, step)


@given(arguments(), EDGE_WORDS)
def test_what_every_epoch_holds(made_of, seed):
    lengths, budget, options = made_of
    sampler = BudgetSampler(lengths, budget, **options)
    multiple = options["multiple_of"]
    sizes = set()
    for epoch in range(3):
        batches = epoch_of(sampler, seed, epoch)
        for batch in batches:
            assert batch
            assert len(batch) % multiple == 0
            assert len(batch) * max(lengths[index] for index in batch) <= budget
            assert len(batch) <= (options["largest_batch"] or len(lengths))
        given_out = list(itertools.chain(*batches))
        assert len(set(given_out)) == len(given_out) == len(lengths) - len(lengths) % multiple
        sizes.add(tuple(sorted(map(len, batches))))
    assert len(sizes) == 1
    assert max(*next(iter(sizes)), 0) == sampler.batch_size


def test_no_batch_is_a_crumb():
    """The last group's items are spread evenly: none of its batches is one item alone."""
    sampler = BudgetSampler([10] * 97, 320, pool_batches=2)
    sizes = [len(batch) for batch in epoch_of(sampler, 0, 0)]
    assert sorted(sizes) == [16, 17, 32, 32]


def test_epochs_differ():
    lengths = np.random.default_rng(0).integers(1, 100, 300)
    sampler = BudgetSampler(lengths, 800)
    assert len({str(epoch_of(sampler, seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_each_item_is_left_out_at_times():
    """Of 7 items in pairs one is left out, of the last group, and not always the same."""
    sampler = BudgetSampler([1] * 7, 4, multiple_of=2)
    left = {
        index
        for epoch in range(60)
        for index in set(range(7)) - set(itertools.chain(*epoch_of(sampler, 0, epoch)))
    }
    assert left == set(range(7))


def test_it_pads_little():
    lengths = np.random.default_rng(0).integers(64, 1025, 16_384)
    sampler = BudgetSampler(lengths, 32 * 1024)
    padded = sum(len(batch) * lengths[batch].max() for batch in epoch_of(sampler, 0, 0))
    assert 1 - lengths.sum() / padded < 0.05


def test_a_pool_and_a_cap_beyond_all_items():
    sampler = BudgetSampler([3, 1, 2], 2**62, pool_batches=2**31 - 1)
    assert sampler.steps_per_epoch == 1
    assert sampler.batch_size == 3
    assert sorted(epoch_of(sampler, 0, 0)[0]) == [0, 1, 2]
    assert BudgetSampler([0] * 5, 2, pool_batches=1).steps_per_epoch == 3


def test_the_lengths_are_copied():
    lengths = np.array([3, 1, 2])
    sampler = BudgetSampler(lengths, 3)
    before, text = epoch_of(sampler, 0, 0), repr(sampler)
    lengths[:] = 1
    assert (epoch_of(sampler, 0, 0), repr(sampler)) == (before, text)
    assert not sampler.lengths.flags.writeable
    assert not any(array.flags.writeable for array in sampler.groups)
    for word in ("sha256", "budget=3", "multiple_of=1", "largest_batch=None", "pool_batches=8"):
        assert word in text


def test_refusals():
    with refused(ValueError, "budget", 19, "20"):
        BudgetSampler([10, 3], 19, multiple_of=2)
    with refused(ValueError, "multiple_of", 3, "2"):
        BudgetSampler([10, 3], 100, multiple_of=3)
    with refused(ValueError, "largest_batch", 1):
        BudgetSampler([10, 3], 100, multiple_of=2, largest_batch=1)
    for name, value in (("budget", 0), ("multiple_of", 0), ("pool_batches", 0)):
        with refused(ValueError, name, value):
            BudgetSampler([1, 1], **{"budget": 5, name: value})
        for wrong in (True, "5", 2.0):
            with refused(TypeError, name):
                BudgetSampler([1, 1], **{"budget": 5, name: wrong})
    for lengths, error in (([], ValueError), ([-1], ValueError), ([2**32], ValueError)):
        with refused(error, "lengths"):
            BudgetSampler(lengths, 5)
    for lengths in ([1.0], [True], "11", [10**400]):
        with refused(TypeError, "lengths"):
            BudgetSampler(lengths, 5)


# Through a loader

N = 103
DATA = ArrayDataset(np.arange(N))
WIDTHS = 1 + np.arange(N) * 37 % 101


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shard", [(0, 1), (1, 2), (3, 4)])
def test_the_native_lane_gives_the_samplers_indices(shard, workers):
    sampler = BudgetSampler(WIDTHS, 600, multiple_of=4, pool_batches=2)
    rank, world = shard
    expected = []
    for batch in itertools.chain(*(epoch_of(sampler, 9, epoch) for epoch in range(3))):
        rows = len(batch) // world
        expected.append(batch[rank * rows : (rank + 1) * rows])
    options = {"sampler": sampler, "seed": 9, "shard": shard, "workers": workers}
    with DataLoader(DATA, **options) as loader:
        assert native_lane(loader._builder) is not None
        run = loader.steps(0, len(expected))
        given_out = [integers(next(run)) for _ in range(5)]
        state = loader.state_dict()
    with DataLoader(DATA, **options) as loader:
        loader.load_state_dict(state)
        given_out += [integers(batch) for batch in loader.steps(stop=len(expected))]
    assert given_out == expected


def test_a_world_that_does_not_divide_every_batch_is_refused():
    sampler = BudgetSampler([1] * 40, 8, multiple_of=2)
    assert sampler.batch_size % 4 == 0
    with refused(ValueError, "multiple_of", "(0, 4)", 2):
        DataLoader(DATA, sampler=sampler, shard=(0, 4))
    DataLoader(DATA, sampler=sampler, shard=(1, 2))
