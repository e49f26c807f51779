"""Promise: no edit through a `Sample` changes the dataset it came from, and what a batch cannot
hold is an error that names slot, dataset index and field.
"""

import copy
import pickle

import numpy as np
import pytest
from support import assert_same_bytes, refused

import onemodel
from onemodel import DataLoader, ImageBatchCollator, Sample
from onemodel.datasets import DigitLines, ImageTable


def image(value=1.0):
    return np.full((1, 2, 3), value, np.float32)


def double_in_place(rng, sample):
    sample.image[...] *= 2
    return sample


def overwrite_target(rng, sample):
    sample.target[...] = 7
    return sample


def overwrite_symbol(rng, sample):
    sample.target[0] = 7
    return sample


DATASETS = {
    "list of symbols": lambda: [Sample(image(k), [k]) for k in range(4)],
    "list": lambda: [Sample(image(k), np.array([k])) for k in range(4)],
    "floats": lambda: ImageTable.from_arrays(
        [image(k) for k in range(4)], targets=[[k] for k in range(4)]
    ),
    "bytes": lambda: ImageTable.from_arrays(
        [np.full((2, 3), k, np.uint8) for k in range(4)], targets=[[k] for k in range(4)]
    ),
}


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("transform", [double_in_place, overwrite_target, overwrite_symbol])
def test_a_transform_cannot_write_to_the_dataset(dataset, transform):
    data = DATASETS[dataset]()
    with DataLoader(data, 2, collate=ImageBatchCollator()) as loader:
        expected = loader.digest(0)
    with DataLoader(data, 2, collate=ImageBatchCollator(), transform=transform) as loader:
        for _ in range(3):
            with pytest.raises((TypeError, ValueError), match=r"read-only|item assignment"):
                loader[0]
    with DataLoader(data, 2, collate=ImageBatchCollator()) as loader:
        assert loader.digest(0) == expected


def test_the_callers_array_stays_the_callers():
    pixels, target = image(), np.array([1, 2])
    sample = Sample(pixels, target)
    assert pixels.flags.writeable
    assert target.flags.writeable
    assert np.shares_memory(sample.image, pixels)
    pixels[...] = 5
    assert sample.image[0, 0, 0] == 5
    for field in (sample.image, sample.target, DigitLines(1)[0].image):
        with pytest.raises(ValueError, match="read-only"):
            field[...] = 0
    for name in ("image", "target", "label"):
        with pytest.raises(AttributeError):
            setattr(sample, name, 1)


class Lying(np.ndarray):
    """Says that it is a float32 image of another shape."""

    ndim = property(lambda self: 3)
    dtype = property(lambda self: np.dtype(np.float32))
    shape = property(lambda self: (1, 2, 3))
    flags = property(lambda self: image().flags)

    def copy(self, order="C"):
        return np.zeros(1, np.int8)

    def view(self, *arguments):
        return self

    def __array__(self, dtype=None, copy=None):
        return image()


def test_subclasses_are_seen_as_what_they_are():
    sample = Sample(image(3).view(Lying), np.array([1, 2]).view(Lying))
    assert type(sample.image) is np.ndarray
    assert type(sample.target) is np.ndarray
    batch = ImageBatchCollator()([sample], onemodel.BatchKey(0, 0, 0, 0, np.array([0])))
    assert_same_bytes(batch.images[0], image(3))
    with refused(TypeError, "slot 5", "image", "int8"):
        collate(Sample(np.zeros(2, np.int8).view(Lying)))


def collate(sample):
    return ImageBatchCollator()([sample], onemodel.BatchKey(0, 0, 0, 5, np.array([6])))


@pytest.mark.parametrize(
    ("error", "fields", "words"),
    [
        (TypeError, {"image": [[[1.0]]]}, ["image", "list"]),
        (TypeError, {"image": np.ma.masked_array(image(), image() > 0)}, ["image", "masked"]),
        (TypeError, {"image": image().astype(">f4")}, ["image", ">f4"]),
        (TypeError, {"image": image().astype(np.float64)}, ["image", "float64"]),
        (ValueError, {"image": image()[0]}, ["image", "[2, 3]"]),
        (ValueError, {"image": image()[:, :0]}, ["image", "[1, 0, 3]"]),
        (TypeError, {"target": np.ma.masked_array([1], [True])}, ["target", "masked"]),
        (TypeError, {"target": [[1], [2, 3]]}, ["target"]),
        (TypeError, {"target": [10**400]}, ["target"]),
        (TypeError, {"target": [True]}, ["target"]),
        (TypeError, {"target": np.array(["1"])}, ["target"]),
        (TypeError, {"target": np.array(["2020"], "M8[s]")}, ["target"]),
        (TypeError, {"target": [1j]}, ["target"]),
        (ValueError, {"target": "12"}, ["target", "shape ()"]),
        (ValueError, {"target": [2**31]}, ["target", 2**31]),
        (ValueError, {"target": None}, ["target", "shape ()"]),
        (ValueError, {"label": 10**400}, ["label"]),
        (TypeError, {"label": "3"}, ["label", "'3'"]),
        (TypeError, {"label": np.nan}, ["label", "nan"]),
        (TypeError, {"label": True}, ["label", True]),
    ],
)
def test_fields_that_no_batch_holds(error, fields, words):
    with refused(error, "slot 5", "index 6", *words):
        collate(Sample(**({"image": image()} | fields)))


def test_odd_memory_is_read_as_it_is():
    raw = np.zeros(25, np.uint8)
    odd = raw[1:].view(np.float32).reshape(1, 2, 3)
    odd[...] = 4
    symbols = np.zeros(9, np.uint8)[1:].view(np.int32)
    symbols[...] = 3
    batch = collate(Sample(odd, symbols))
    assert_same_bytes(batch.images[0], image(4))
    assert batch.targets.tolist() == [3, 3]


def test_a_sample_is_made_once():
    sample = Sample(image())
    with refused(TypeError, "changed"):
        sample.__init__(image(2))
    collate(sample)
    with refused(TypeError, "changed"):
        sample.__init__(image(2))


class Page(Sample):
    """At module level, so that it can be pickled; with arguments of its own."""

    def __init__(self, number):
        super().__init__(image(number), [number], number)
        self.number = number


class Slotted(Sample):
    __slots__ = ("extra",)


class Forgetful(Sample):
    def __init__(self):
        pass


def test_a_subclass_must_call_init():
    with refused(TypeError, "Forgetful.__init__", "slot 5"):
        collate(Forgetful())
    assert "NoneType" in repr(Forgetful())


def test_a_pickle_holds_the_fields_and_what_a_subclass_added():
    for again in (pickle.loads(pickle.dumps(Page(3))), copy.deepcopy(Page(3))):
        assert type(again) is Page
        assert (again.number, again.target, again.label) == (3, (3,), 3)
        assert_same_bytes(again.image, image(3))
        with pytest.raises(ValueError, match="read-only"):
            again.image[...] = 0
    slotted = Slotted(image())
    slotted.extra = "kept"
    assert pickle.loads(pickle.dumps(slotted)).extra == "kept"
