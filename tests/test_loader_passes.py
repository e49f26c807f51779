"""Promise: the loader is a run of numbered steps that can be entered anywhere.

A pass is one epoch and moves the loader to the next; `steps(start, stop)` crosses epochs; a single
step is `loader[g]`. All give the same batches, up to the last step of all.
"""

import numpy as np
import pytest
from support import STEPS, expected_indices, indices_of, integers, make_loader, workers_0_and_2

from onemodel import ArrayDataset, DataLoader


@workers_0_and_2
def test_passes_advance_the_epoch(workers):
    with make_loader(workers=workers) as loader:
        assert len(loader) == loader.steps_per_epoch == STEPS
        assert loader.epoch == 0
        for epoch in range(3):
            stream = iter(loader)
            assert loader.epoch == epoch
            first = next(stream)
            assert loader.epoch == epoch + 1
            steps = range(epoch * STEPS, (epoch + 1) * STEPS)
            assert indices_of([first, *stream]) == expected_indices(steps)
        assert loader.epoch == 3


def test_a_pass_is_of_the_epoch_at_which_it_started():
    """It starts with its first batch, whichever iterator was made first."""
    with make_loader() as loader:
        first = iter(loader)
        second = iter(loader)
        taken = [next(second)]
        assert indices_of(first) == expected_indices(range(STEPS, 2 * STEPS))
        assert indices_of([*taken, *second]) == expected_indices(range(STEPS))


@workers_0_and_2
def test_an_iterator_that_nobody_uses_changes_nothing(workers):
    with make_loader(workers=workers) as loader:
        state = loader.state_dict()
        unused = [iter(loader), loader.steps(), loader.steps(9), iter(loader)]
        assert loader.epoch == 0
        assert loader.state_dict() == state
        assert loader.stats.batches == 0
        del unused
        assert indices_of(loader) == expected_indices(range(STEPS))
        for closed in (iter(loader), loader.steps(3)):
            closed.close()
            assert list(closed) == []
        assert loader.epoch == 1


def test_set_epoch():
    with make_loader() as loader:
        loader.set_epoch(5)
        assert loader.epoch == 5
        assert indices_of(loader) == expected_indices(range(5 * STEPS, 6 * STEPS))
        assert loader.epoch == 6
        loader.set_epoch(0)
        assert indices_of(loader) == expected_indices(range(STEPS))


def test_set_epoch_changes_nothing_under_way():
    with make_loader() as loader:
        stream = iter(loader)
        next(stream)
        loader.set_epoch(9)
        assert indices_of(stream) == expected_indices(range(1, STEPS))


@workers_0_and_2
def test_steps_run_across_epochs(workers):
    with make_loader(workers=workers) as loader:
        assert indices_of(loader.steps(4, 15)) == expected_indices(range(4, 15))
        assert indices_of(loader.steps(stop=17)) == expected_indices(range(15, 17))
        assert indices_of(loader.steps(5, 5)) == []


def test_steps_leave_the_epoch_alone():
    with make_loader() as loader:
        assert len(indices_of(loader.steps(0, 9))) == 9
        assert loader.epoch == 0


def test_steps_without_end_go_on():
    with make_loader() as loader:
        stream = loader.steps(100 * STEPS)
        for g in range(100 * STEPS, 100 * STEPS + 20):
            batch = next(stream)
            assert (batch.epoch, batch.step) == divmod(g, STEPS)


def test_single_steps():
    with make_loader() as loader:
        for g in (17, 0, 5, 6, 0):
            batch = loader[g]
            assert [integers(batch.indices)] == expected_indices([g])
            assert (batch.epoch, batch.step) == divmod(g, STEPS)
        assert loader.epoch == 0


def test_an_iterator_is_its_own_iterator():
    with make_loader() as loader:
        stream = iter(loader)
        assert iter(stream) is stream
        assert len(list(stream)) == STEPS
        with pytest.raises(StopIteration):
            next(stream)
        with pytest.raises(StopIteration):
            next(stream)


def test_epoch_and_step_of_a_batch():
    with make_loader() as loader:
        for g, batch in enumerate(loader.steps(0, 2 * STEPS)):
            assert (batch.epoch, batch.step) == divmod(g, STEPS)


def test_the_last_step_of_all():
    loader = DataLoader(ArrayDataset(np.arange(6)), 2)
    stream = loader.steps(2**64 - 1)
    next(stream)
    with pytest.raises(StopIteration):
        next(stream)
    state = loader.state_dict()
    other = DataLoader(ArrayDataset(np.arange(6)), 2)
    other.load_state_dict(state)
    assert list(other.steps()) == []


def test_a_pass_ends_with_the_last_step():
    loader = DataLoader(ArrayDataset(np.arange(10)), 2)  # 2**64 is no multiple of 5
    loader.set_epoch(2**64 // 5 - 1)
    assert len(list(loader)) == 5
    assert len(list(loader)) == 2**64 % 5
    with pytest.raises(ValueError, match="first step"):
        next(iter(loader))
