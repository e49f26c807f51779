"""Promise: an error of anyone's code arrives at its own step, whole, and ends the stream.

It is the same object, with its traceback, and a note says step, slot and dataset index.
"""

import re
import traceback

import numpy as np
import pytest
from reference import rng as twin_rng
from support import (
    BATCH,
    COUNT,
    STEPS,
    Recording,
    every_count,
    expected_indices,
    flat,
    indices_of,
    make_loader,
    refused,
    workers_0_and_2,
)

from onemodel import BatchKey, ImageBatchCollator, Sample, ShuffledSampler
from onemodel._builders.sample_builder import SampleBatchBuilder


class Broken(Recording):
    """Reading one index raises one given exception object."""

    def __init__(self, index, error):
        super().__init__()
        self.index = index
        self.error = error

    def __getitem__(self, index):
        if index == self.index:
            raise self.error
        return self.samples[index]


class OwnError(Exception):
    """An exception with arguments that a copy would not survive."""

    def __init__(self, first, *, second):
        super().__init__(first)
        self.second = second


class OwnBaseError(BaseException):
    """An exception that `except Exception` does not see."""


BAD_STEP = STEPS + 3  # in the second epoch


BAD_SLOT = 2


def bad_index():
    return expected_indices([BAD_STEP])[0][BAD_SLOT]


def assert_note(error, **facts):
    """The notes hold each name with its value."""
    notes = "\n".join(error.__notes__)
    for name, value in facts.items():
        assert re.search(rf"\b{name.replace('_', ' ')}\b\D{{0,3}}{value}\b", notes), notes


@every_count
@pytest.mark.parametrize(
    "make_error",
    [
        lambda: OwnError("text", second=object()),
        lambda: OwnBaseError("not an Exception"),
        lambda: KeyError("missing"),
        lambda: IndexError("a dataset's own"),
        lambda: KeyboardInterrupt("raised by the dataset"),
    ],
    ids=["own", "base", "key", "index", "interrupt"],
)
def test_an_error_arrives_at_its_step_and_ends_the_stream(workers, make_error):
    """The same object, with the traceback that leads into the dataset, and a note."""
    error = make_error()
    start = BAD_STEP - 2  # the bad index is read by no earlier step of this run
    assert bad_index() not in flat(expected_indices(range(start, BAD_STEP)))
    with make_loader(Broken(bad_index(), error), workers=workers) as loader:
        # To the end of the epoch: in the next one the same object would be raised once more.
        stream = loader.steps(start, 2 * STEPS)
        assert indices_of([next(stream), next(stream)]) == expected_indices([start, start + 1])
        with pytest.raises(type(error)) as caught:
            next(stream)
        assert caught.value is error
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        assert frames.count("__getitem__") == 1
        assert_note(
            error,
            global_step=BAD_STEP,
            epoch=1,
            step=BAD_STEP - STEPS,
            slot=BAD_SLOT,
            index=bad_index(),
        )
        for _ in range(2):
            assert_ended_by_an_error(stream, BAD_STEP, type(error).__name__)


def assert_ended_by_an_error(stream, step, name):
    """A further `next` does not say that the pass is over: it names where to go on."""
    with pytest.raises(RuntimeError) as caught:
        next(stream)
    message = str(caught.value)
    for text in (name, f"loader.steps({step})", f"loader.steps({step + 1})"):
        assert text in message


@workers_0_and_2
@pytest.mark.parametrize("collate", [None, lambda samples, key: samples], ids=["images", "custom"])
def test_stop_iteration_of_a_dataset_is_an_error(workers, collate):
    """Let through as it is, it would end the loop in silence, or shorten the batch."""
    dataset = Broken(bad_index(), StopIteration("oops"))
    with make_loader(dataset, workers=workers, collate=collate) as loader:
        with pytest.raises(RuntimeError) as caught:
            list(loader.steps(BAD_STEP, BAD_STEP + 5))
        assert isinstance(caught.value.__cause__, StopIteration)


@workers_0_and_2
@pytest.mark.parametrize("where", ["sampler", "transform", "collate", "augment"])
def test_errors_of_every_part_arrive(workers, where):
    error = OwnError("text", second=2)
    state = twin_rng.derive(7, 1, 3, BAD_SLOT, 1)

    def transform(rng, sample):
        if rng.state == twin_rng.derive(7, 1, 3, BAD_SLOT, 0):
            raise error
        return sample

    def augment(rng, image):
        if rng.state == state:
            raise error

    def collate(samples, key):
        if (key.epoch, key.step) == (1, 3):
            raise error
        return key

    class Sampler(ShuffledSampler):
        def batch_indices(self, seed, epoch, step):
            if (epoch, step) == (1, 3):
                raise error
            return super().batch_indices(seed, epoch, step)

    options = {
        "sampler": {"sampler": Sampler(COUNT, BATCH, drop_last=False)},
        "transform": {"transform": transform},
        "collate": {"collate": collate},
        "augment": {"collate": ImageBatchCollator(augment=augment)},
    }[where]
    with make_loader(workers=workers, **options) as loader:
        stream = loader.steps(0)
        assert indices_of(next(stream) for _ in range(BAD_STEP)) == expected_indices(
            range(BAD_STEP)
        )
        with pytest.raises(OwnError) as caught:
            next(stream)
        assert caught.value is error
        facts = {"global_step": BAD_STEP, "epoch": 1, "step": 3}
        if where in ("transform", "augment"):
            facts |= {"slot": BAD_SLOT, "index": bad_index()}
        assert_note(error, **facts)
        assert_ended_by_an_error(stream, BAD_STEP, "OwnError")
        assert indices_of(loader.steps(BAD_STEP + 1, BAD_STEP + 3)) == expected_indices(
            [BAD_STEP + 1, BAD_STEP + 2]
        )


@workers_0_and_2
def test_an_error_far_ahead_waits_for_its_turn(workers):
    """The error of step 5 is built early and delivered late; an unread error is nobody's."""
    index = expected_indices([5])[0][0]
    with make_loader(
        Broken(index, OwnError("text", second=3)), workers=workers, prefetch=8
    ) as loader:
        assert indices_of(loader.steps(0, 5)) == expected_indices(range(5))
        stream = loader.steps(0, 9)
        assert indices_of([next(stream) for _ in range(5)]) == expected_indices(range(5))
        with pytest.raises(OwnError):
            next(stream)


def test_an_error_of_a_single_step_has_its_note():
    error = OwnError("text", second=4)
    with make_loader(Broken(bad_index(), error)) as loader:
        with pytest.raises(OwnError) as caught:
            loader[BAD_STEP]
        assert caught.value is error
        assert_note(error, global_step=BAD_STEP, epoch=1, step=3, slot=BAD_SLOT)
        assert indices_of([loader[BAD_STEP - 1]]) == expected_indices([BAD_STEP - 1])


@workers_0_and_2
def test_after_an_error_the_loader_still_works(workers):
    dataset = Broken(bad_index(), OwnError("text", second=5))
    with make_loader(dataset, workers=workers) as loader:
        with pytest.raises(OwnError):
            list(loader.steps(0, 100))
        dataset.index = None
        assert indices_of(loader.steps(0, 9)) == expected_indices(range(9))


@workers_0_and_2
def test_a_bad_sample_says_which(workers):
    class Bad(Recording):
        def __getitem__(self, index):
            if index == bad_index():
                return Sample(np.zeros((1, 2, 3)))
            return self.samples[index]

    with (
        make_loader(Bad(), workers=workers) as loader,
        refused((TypeError, ValueError), "float64", bad_index(), BAD_SLOT, BAD_STEP),
    ):
        list(loader.steps(BAD_STEP, BAD_STEP + 1))


def test_an_index_past_a_list_names_its_slot():
    samples = [Sample(np.zeros((1, 2, 3), np.float32))] * 4
    key = BatchKey(0, 0, 0, 2, np.array([3, 4]))
    with pytest.raises(IndexError, match=r"\[0, 4\), got 4") as caught:
        SampleBatchBuilder(samples, None, ImageBatchCollator()).build(key)
    assert caught.value.__notes__ == ["while building epoch 0, step 0, slot 3, dataset index 4"]
