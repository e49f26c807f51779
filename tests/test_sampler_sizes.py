"""Promise: a loader's repr shows how many items it reads, and how many an epoch leaves out.

A sampler may cover fewer items than the dataset has, never more; and a state saved after the
run's last step loads and gives an empty pass.
"""

import numpy as np
import pytest
from support import refused

from onemodel import (
    ArrayDataset,
    BucketedSampler,
    BudgetSampler,
    DataLoader,
    MixingSampler,
    SequentialSampler,
    ShuffledSampler,
    WeightedSampler,
)

DATA = ArrayDataset(np.arange(20))


def items(loader):
    return sum(len(batch) for batch in loader)


def test_the_loader_keeps_the_short_batch_and_a_sampler_drops_it():
    kept, dropped = DataLoader(DATA, 8), DataLoader(DATA, sampler=SequentialSampler(20, 8))
    assert (items(kept), items(dropped)) == (20, 16)
    assert "drop_last=False" in repr(kept)
    assert "left out" not in repr(kept)
    assert "drop_last=True" in repr(dropped)
    assert "4 left out an epoch" in repr(dropped)


@pytest.mark.parametrize(
    ("sampler", "left_out"),
    [
        (SequentialSampler(20, 6), 2),
        (ShuffledSampler(20, 5), 0),
        (ShuffledSampler(20, 6, drop_last=False), 0),
        (ShuffledSampler(18, 4), 2),
        (BucketedSampler(range(20), 7), 6),
        (BucketedSampler(range(20), 7, drop_last=False), 0),
        (MixingSampler([10, 10], [1, 1], 8), 0),
    ],
    ids=repr,
)
def test_what_an_epoch_leaves_out_is_shown(sampler, left_out):
    loader = DataLoader(DATA, sampler=sampler)
    text = repr(loader)
    assert (f"{left_out} left out an epoch" in text) == (left_out > 0)
    assert ("left out" in text) == (left_out > 0)
    if not isinstance(sampler, MixingSampler):  # which draws with replacement
        assert items(loader) == sampler.n - left_out


class Anyone:
    """A sampler with no more than the three members; what it leaves out nobody knows."""

    steps_per_epoch, batch_size = 2, 3

    def batch_indices(self, seed, epoch, step):
        return np.arange(3)


def test_of_other_samplers_nothing_is_said():
    text = repr(DataLoader(DATA, sampler=Anyone()))
    assert "left out" not in text
    assert "(20 items of" in text


@pytest.mark.parametrize(
    "sampler",
    [
        SequentialSampler(10, 5),
        ShuffledSampler(10, 5),
        BucketedSampler([3] * 10, 5),
        MixingSampler([4, 6], [1, 1], 5),
        BudgetSampler([3] * 10, 15),
        WeightedSampler([3] * 10, 5),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_a_sampler_of_fewer_items_is_taken_and_shown(sampler):
    loader = DataLoader(DATA, sampler=sampler)
    assert "10 of 20 items of ArrayDataset" in repr(loader)
    assert max(max(batch.tolist()) for batch in loader) < 10


@pytest.mark.parametrize(
    "sampler",
    [
        SequentialSampler(21, 5),
        ShuffledSampler(10**6, 5),
        BucketedSampler([3] * 21, 5),
        MixingSampler([4, 17], [1, 1], 5),
        BudgetSampler([3] * 21, 15),
        WeightedSampler([3] * 21, 5),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_a_sampler_of_more_items_is_refused(sampler):
    with refused(ValueError, "sampler", 20, sampler.n):
        DataLoader(DATA, sampler=sampler)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_state_after_the_runs_last_step_gives_an_empty_pass(steps, workers):
    """Global steps end at 2**64, which three steps an epoch do not divide."""
    data = ArrayDataset(np.arange(4 * steps))
    with DataLoader(data, 4, workers=workers) as loader:
        state = loader.state_dict(2**64 - 1)
        assert state["next_step"] == 2**64
        loader.load_state_dict(state)
        assert list(loader) == []  # and no epoch begins after it
        assert loader.state_dict()["next_step"] == 2**64
        loader.load_state_dict(state)
        assert list(loader.steps()) == []
        repr(loader)
        state["next_step"] = 2**64 - 1
        loader.load_state_dict(state)
        assert len(list(loader)) == 1
        with refused(ValueError, "first step"):  # nothing is left, and nothing was loaded
            list(loader)
        state["next_step"] = 2**64 + 1
        with refused(ValueError, "next_step", 2**64 + 1):
            loader.load_state_dict(state)
