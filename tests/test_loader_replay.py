"""Promise: a batch has one digest wherever it is taken, and `explain` names what made each slot."""

import numpy as np
import pytest
from reference import rng as twin_rng
from reference.digest import digest
from support import BATCH, COUNT, STEPS, expected_indices, integers, make_loader

import onemodel


def test_digests_agree():
    with make_loader() as loader:
        for g in (0, 5, 11):
            batch = loader[g]
            names = ("images", "widths", "targets", "target_lengths", "labels", "indices")
            expected = digest({name: np.array(getattr(batch, name)) for name in names})
            assert onemodel.digest(batch) == loader.digest(g) == expected


@pytest.mark.parametrize(
    "items",
    [
        {"x": np.arange(6, dtype=np.uint8).reshape(2, 3), "y": np.array([1.5, 2.5])},
        {"y": np.array([1.5, 2.5]), "x": np.arange(6, dtype=np.uint8).reshape(2, 3)},
        {"strided": np.arange(12, dtype=np.int64).reshape(3, 4).T},
        {"swapped": np.arange(3, dtype=">i4")},
        {"empty": np.zeros((0, 3), dtype=np.float32)},
        {"scalar": np.array(5, dtype=np.int16)},
    ],
    ids=lambda items: "-".join(items),
)
def test_digest_of_arrays_by_name(items):
    assert onemodel.digest(items) == digest(items)


def test_digest_of_a_tuple_numbers_its_items():
    arrays = (np.arange(3), np.arange(4, dtype=np.float32))
    assert onemodel.digest(arrays) == digest({"0": arrays[0], "1": arrays[1]})


@pytest.mark.parametrize(
    "thing", [None, object(), {"x": [object()]}, (np.zeros(3), None)], ids=type
)
def test_digest_of_something_else(thing):
    with pytest.raises(TypeError):
        onemodel.digest(thing)


@pytest.mark.parametrize("shard", [(0, 1), (1, 2)], ids=str)
def test_explain(shard):
    with make_loader(shard=shard) as loader:
        for g in (0, 5, 2 * STEPS + 3):
            epoch, step = divmod(g, STEPS)
            explanation = loader.explain(g)
            batch = loader[g]
            assert explanation["epoch"] == epoch
            assert explanation["step"] == step
            whole = expected_indices([g])[0]
            first = shard[0] * len(whole) // shard[1]
            stop = (shard[0] + 1) * len(whole) // shard[1]
            slots = explanation["slots"]
            assert [slot["index"] for slot in slots] == integers(batch.indices)
            assert [slot["slot"] for slot in slots] == list(range(first, stop))
            for slot in slots:
                for name, stream in (("transform", 0), ("augment", 1)):
                    key = twin_rng.derive(7, epoch, step, slot["slot"], stream)
                    assert slot[name] == key


def test_explain_reads_no_sample():
    class Untouchable(list):
        def __getitem__(self, index):
            raise AssertionError("explain needs no sample")

    with make_loader(Untouchable([None] * COUNT)) as loader:
        assert len(loader.explain(3)["slots"]) == BATCH
