"""Promise: an argument that cannot be right is refused, and the message names it and its value."""

import itertools
import json
import re

import numpy as np
import pytest
from support import (
    BATCH,
    COUNT,
    SAMPLES,
    STEPS,
    Recording,
    expected_indices,
    indices_of,
    make_loader,
    refused,
    workers_0_and_2,
)

import onemodel
from onemodel import DataLoader, ShuffledSampler


def test_repr_is_readable():
    with make_loader(workers=0, prefetch=3) as loader:
        text = repr(loader)
    assert text.startswith("DataLoader(")
    for word in ("ShuffledSampler", "seed=7", "prefetch=3"):
        assert word in text
    assert " at 0x" not in text


NOT_A_WORD = [(-1, ValueError), (2**64, ValueError), (1.0, TypeError), (True, TypeError)]


words = pytest.mark.parametrize(("value", "error"), NOT_A_WORD, ids=repr)


@words
def test_seed_and_steps_are_words(value, error):
    with refused(error, "seed", value):
        make_loader(seed=value)
    with make_loader() as loader:
        with refused(error, "epoch", value):
            loader.set_epoch(value)
        with refused(error, "start", value):
            loader.steps(value)
        if value != 2**64:  # the end is not part of the run, so it may be one past the last step
            with refused(error, "stop", value):
                loader.steps(0, value)
        with refused((error, IndexError), value):
            loader[value]
        with refused((error, IndexError), value):
            loader.explain(value)
        with refused((error, IndexError), value):
            loader.digest(value)


def test_stop_is_not_before_start():
    with make_loader() as loader, refused(ValueError, "stop", 2, 7):
        loader.steps(7, 2)


def test_numpy_integers_are_taken():
    with make_loader(seed=np.uint64(7), workers=np.int64(0), prefetch=np.int32(2)) as loader:
        loader.set_epoch(np.int64(1))
        assert indices_of(loader.steps(np.int64(2), np.uint8(4))) == expected_indices([2, 3])
        assert indices_of([loader[np.int32(5)]]) == expected_indices([5])
        assert json.dumps(loader.state_dict())


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (1.5, TypeError)], ids=repr)
def test_workers(value, error):
    with refused(error, "workers", value):
        make_loader(workers=value)


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)], ids=repr
)
def test_prefetch(value, error):
    with refused(error, "prefetch", value):
        make_loader(prefetch=value)


@pytest.mark.parametrize(
    ("shard", "value"),
    [
        ((2, 2), 2),
        ((-1, 2), -1),
        ((0, 0), 0),
        ((0, -1), -1),
        ((0, 1.0), 1.0),
        ((False, 2), False),
        ((0,), (0,)),
        ((0, 1, 2), (0, 1, 2)),
        (5, 5),
    ],
    ids=repr,
)
def test_shard(shard, value):
    with refused((TypeError, ValueError), "shard", value):
        make_loader(shard=shard)


def test_shards_divide_the_batch():
    with refused(ValueError, "world", 3, BATCH):
        make_loader(shard=(0, 3))


def test_an_empty_dataset():
    with refused(ValueError, "dataset"):
        DataLoader([], 4)


def test_a_batch_larger_than_the_dataset():
    with refused(ValueError, "batch_size", 23, COUNT):
        DataLoader(SAMPLES, 23, drop_last=True)


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (-2, ValueError), (2.0, TypeError)], ids=repr
)
def test_batch_size(value, error):
    with refused(error, "batch_size", value):
        DataLoader(SAMPLES, value)


def test_batch_size_or_sampler():
    with refused((TypeError, ValueError), "batch_size", "sampler"):
        DataLoader(SAMPLES)
    with refused((TypeError, ValueError), "batch_size", "sampler"):
        DataLoader(SAMPLES, 4, sampler=ShuffledSampler(COUNT, BATCH))
    with refused((TypeError, ValueError), "shuffle", "sampler"):
        DataLoader(SAMPLES, shuffle=True, sampler=ShuffledSampler(COUNT, BATCH))


@pytest.mark.parametrize("name", ["transform", "collate", "sampler", "dataset"])
def test_what_cannot_serve(name):
    arguments = {"dataset": SAMPLES, "sampler": ShuffledSampler(COUNT, BATCH)} | {name: 5}
    with refused(TypeError, name, "int" if name == "dataset" else 5):
        DataLoader(**arguments)


@workers_0_and_2
def test_an_index_outside_the_dataset(workers):
    """A sampler made for a longer dataset: refused at once or at the step, never wrapped."""
    with (
        refused((IndexError, ValueError), COUNT),
        make_loader(sampler=onemodel.SequentialSampler(30, 5), workers=workers) as loader,
    ):
        list(loader)


@workers_0_and_2
def test_a_dataset_that_changes_its_length(workers):
    dataset = Recording([SAMPLES[index] for index in range(COUNT)])
    with make_loader(dataset, workers=workers, prefetch=1) as loader:
        stream = loader.steps(0)
        next(stream)
        del dataset.samples[10:]
        with pytest.raises((ValueError, RuntimeError)) as caught:
            indices_of(itertools.islice(stream, 2 * STEPS))
        assert re.search(r"\b22\b", str(caught.value))
        assert re.search(r"\b10\b", str(caught.value))
