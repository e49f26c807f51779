"""Promise: a dataset is never written to. An edit in place reaches the batch's own copy or raises.

Each dataset gives its own memory where it can, each callable edits what it gets in each way that
NumPy knows. The data must stay, and a step must have one batch however often it is built.
"""

import contextlib
from typing import NamedTuple

import numpy as np
import pytest

import onemodel as om
from onemodel import datasets

COUNT, BATCH = 16, 4

EDITS = {
    "*=": lambda array: np.multiply(array, 2, out=array),
    "a view": lambda array: array.view(np.uint8).fill(3),
    "reshaped": lambda array: array.reshape(-1).fill(3),
    "transposed": lambda array: array.T.fill(3),
    "a memoryview": lambda array: memoryview(array).cast("B").__setitem__(0, 7),
    "sort": lambda array: array[..., ::-1].sort(),
    "flat": lambda array: array.flat.__setitem__(0, 9),
    "frombuffer": lambda array: np.frombuffer(array, array.dtype).__setitem__(0, 9),
    "DLPack": lambda array: np.from_dlpack(array).fill(3),
    "byteswap": lambda array: array.byteswap(inplace=True),
}


class Pair(NamedTuple):
    x: object
    y: object


class Views:
    """A dataset of whole batches that gives views of its data."""

    def __init__(self, data, wrap):
        self.data, self.wrap = data, wrap

    def __len__(self):
        return COUNT

    def __getitem__(self, indices):
        return self.wrap(self.data[indices.min() : indices.max() + 1])


class Singles(Views):
    """A dataset of single items that gives views of its data."""

    def __getitem__(self, index):
        return self.wrap(self.data[index])


class Together(Singles):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def first(batch):
    """The array of a batch or an item, whatever holds it."""
    while not isinstance(batch, np.ndarray):
        if isinstance(batch, om.Sample):
            batch = batch.image
        else:
            batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return batch


def editing(edit):
    def transform(rng, batch):
        edit(first(batch))
        return batch

    return transform


WRAPS = {
    "bare": lambda array: array,
    "tuple": lambda array: (array, np.array(array)),
    "dict": lambda array: {"x": array, "y": np.array(array)},
    "named tuple": lambda array: Pair(array, np.array(array)),
}


def views(data, edit, wrap):
    return {"dataset": Views(data, wrap), "transform": editing(edit)}


def rows(data, edit, wrap):
    return {"dataset": om.ArrayDataset(data), "transform": editing(edit)}


def items(data, edit, wrap):
    return {"dataset": datasets.Items(Singles(data, wrap), transform=editing(edit))}


def items_together(data, edit, wrap):
    return {"dataset": datasets.Items(Together(data, wrap), transform=editing(edit))}


def stacked_items(data, edit, wrap):
    return {"dataset": datasets.Items(Singles(data, wrap)), "transform": editing(edit)}


def samples(data, edit, wrap):
    listed = [om.Sample(image, [1], k) for k, image in enumerate(data)]
    return {"dataset": listed, "transform": editing(edit), "collate": om.ImageBatchCollator()}


def table(data, edit, wrap):
    made = datasets.ImageTable.from_arrays(list(data))
    return {"dataset": made, "transform": editing(edit), "collate": om.ImageBatchCollator()}


FACES = [views, rows, items, items_together, stacked_items, samples, table]
REFUSALS = (ValueError, TypeError, BufferError, RuntimeError)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_in_place_does_not_reach_the_data(edit, face, wrap, workers):
    data = np.random.default_rng(0).random((COUNT, 1, 3, 5), dtype=np.float32)
    before = data.copy()
    with om.DataLoader(
        **face(data, EDITS[edit], WRAPS[wrap]), batch_size=BATCH, workers=workers
    ) as loader:
        found = set()
        for _ in range(3):
            try:
                found.add(om.digest(loader[1]))
            except REFUSALS as error:
                found.add(type(error))
        with contextlib.suppress(*REFUSALS):  # the consumer may edit it as well
            for batch in loader.steps(0, 4):
                for array in batch.arrays().values() if hasattr(batch, "arrays") else [batch]:
                    first(array)[...] = 0
    assert data.tobytes() == before.tobytes()
    assert len(found) == 1


class Kept(Views):
    """A dataset that gives the very view that it keeps, of memory that nothing else holds."""

    def __init__(self):
        self.data = np.zeros(COUNT * 4, np.float32).reshape(COUNT, 4)

    def __getitem__(self, indices):
        return self.data


def test_a_view_that_the_dataset_keeps_is_not_written_to():
    dataset = Kept()
    loader = om.DataLoader(dataset, COUNT, transform=editing(lambda array: array.fill(3)))
    assert loader.digest(0) == loader.digest(0)
    assert not dataset.data.any()
