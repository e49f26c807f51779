"""Promise: what `Columns` checked is what a batch reads, whatever happens to the caller's arrays;
what does not describe one dataset is refused, and the message names the column.
"""

import array
import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import assert_same_bytes, refused

import onemodel
from onemodel._batch.key import BatchKey
from onemodel._collate.inputs import from_columns
from onemodel.datasets import Columns


def arguments(**others):
    return {
        "pixels": np.arange(6, dtype=np.float32),
        "offsets": np.array([0, 2, 6], np.int64),
        "widths": np.array([1, 2], np.int64),
        "targets": np.arange(3, dtype=np.int32),
        "target_offsets": np.array([0, 1, 3], np.int64),
        "labels": np.array([8, 9], np.int32),
        "channels": 1,
        "height": 2,
        "scale": np.ones(1, np.float32),
        "shift": np.zeros(1, np.float32),
    } | others


class Dataset:
    """A dataset of one's own: the loader finds its columns."""

    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return self.columns.count

    def __getitem__(self, index):
        raise AssertionError("no sample is needed")


def batch_of(columns):
    with onemodel.DataLoader(Dataset(columns), 2, collate=onemodel.ImageBatchCollator()) as loader:
        return loader[0]


def test_a_batch_is_made_of_columns():
    batch = batch_of(Columns(**arguments()))
    assert batch.images[:, 0].tolist() == [[[0, 0], [1, 0]], [[2, 3], [4, 5]]]
    assert batch.targets.tolist() == [0, 1, 2]
    assert batch.labels.tolist() == [8, 9]


def test_bytes_are_scaled():
    columns = Columns(
        **arguments(
            pixels=np.arange(6, dtype=np.uint8),
            scale=np.full(1, 2, np.float32),
            shift=np.full(1, 1, np.float32),
        )
    )
    assert batch_of(columns).images[1, 0].tolist() == [[3, 5], [7, 9]]


def test_images_may_lie_anywhere():
    columns = Columns(**arguments(offsets=np.array([4, 1, 5], np.int64)))
    assert batch_of(columns).images[:, 0].tolist() == [[[4, 0], [5, 0]], [[1, 2], [3, 4]]]


def test_columns_that_change_afterwards_change_no_batch():
    given_arguments = arguments()
    columns = Columns(**given_arguments)
    expected = onemodel.digest(batch_of(columns))
    for name, column in given_arguments.items():
        if isinstance(column, np.ndarray) and name != "pixels":
            column.view(np.uint8)[...] = 0x7F
    assert onemodel.digest(batch_of(columns)) == expected
    assert given_arguments["pixels"].flags.writeable
    for name, column in columns.arrays.items():
        assert type(column) is np.ndarray
        with refused(ValueError, "read-only"):
            column[...] = 0
        shared = name == "pixels"
        assert np.may_share_memory(column, given_arguments[name]) is shared
    with pytest.raises(TypeError):
        columns.arrays["widths"] = np.ones(2, np.int64)
    for name in ("count", "channels", "height", "arrays"):
        with pytest.raises(AttributeError):
            setattr(columns, name, 3)


@pytest.mark.parametrize(
    ("error", "others", "words"),
    [
        (TypeError, {"pixels": [1.0] * 6}, ["pixels", "NumPy arrays", "list"]),
        (TypeError, {"offsets": array.array("q", [0, 2, 6])}, ["offsets", "NumPy arrays", "array"]),
        (TypeError, {"widths": np.ma.masked_array([1, 2])}, ["widths", "masked"]),
        (TypeError, {"channels": "1"}, ["channels", "'1'"]),
        (ValueError, {"channels": 0}, ["channels", "[1, 2**31)"]),
        (ValueError, {"height": 10**400}, ["height", "[1, 2**31)"]),
        (ValueError, {"pixels": np.arange(6.0)}, ["pixels", "float32", "float64 [6]"]),
        (ValueError, {"pixels": np.arange(6, dtype=">f4")}, ["pixels", ">f4"]),
        (ValueError, {"pixels": np.zeros((2, 3), np.uint8)}, ["pixels", "[2, 3]"]),
        (ValueError, {"pixels": np.zeros(12, np.float32)[::2]}, ["pixels", "contiguous"]),
        (ValueError, {"pixels": np.zeros(25, "u1")[1:].view("f4")}, ["pixels", "aligned"]),
        (ValueError, {"pixels": np.zeros(5, np.float32)}, ["offsets[1]", 2]),
        (ValueError, {"widths": np.array([1.0, 2.0])}, ["widths", "float64 [2]"]),
        (ValueError, {"widths": np.array([1, 0])}, ["widths[1]", 0]),
        (ValueError, {"widths": np.array([1, 2**31])}, ["widths[1]", 2**31]),
        (ValueError, {"widths": np.array([1])}, ["labels", "[1]", "[2]"]),
        (ValueError, {"offsets": np.array([0, 2])}, ["offsets", "[3]"]),
        (ValueError, {"offsets": np.array([-1, 2, 6])}, ["offsets[0]", -1]),
        (ValueError, {"offsets": np.array([0, 3, 7])}, ["offsets[1]", 3]),
        (ValueError, {"offsets": np.array([0, 2**63 - 1, 6])}, ["offsets[1]", 2**63 - 1]),
        (ValueError, {"offsets": np.array([0, 2, 5])}, ["offsets[2]", 6, 5]),
        (ValueError, {"target_offsets": np.array([1, 1, 3])}, ["target_offsets[0]", 1]),
        (ValueError, {"target_offsets": np.array([0, 4, 3])}, ["target_offsets", 3]),
        (ValueError, {"target_offsets": np.array([0, 1, 2])}, ["targets", 2, 3]),
        (ValueError, {"labels": np.zeros(0, np.int32)}, ["labels", 0]),
        (ValueError, {"labels": np.zeros(1000, np.int32)}, ["labels", "[2]", "[1000]"]),
        (ValueError, {"scale": np.ones(2, np.float32)}, ["scale", "[1]", "[2]"]),
        (ValueError, {"height": 2**31 - 1}, ["offsets[0]"]),
    ],
)
def test_what_describes_no_dataset_is_refused(error, others, words):
    columns = Columns.__new__(Columns)
    with refused(error, *words):
        columns.__init__(**arguments(**others))
    with pytest.raises(IndexError):
        from_columns(columns, BatchKey(0, 0, 0, 0, np.array([0], np.int64)))


@given(
    st.lists(st.integers(-2, 8), min_size=3, max_size=3),
    st.lists(st.integers(-1, 4), min_size=2, max_size=2),
)
def test_what_is_accepted_lies_inside(offsets, widths):
    try:
        columns = Columns(**arguments(offsets=np.array(offsets), widths=np.array(widths)))
    except ValueError:
        assert not (
            all(w >= 1 and o >= 0 and o + 2 * w <= 6 for o, w in zip(offsets, widths, strict=False))
            and offsets[2] == offsets[1] + 2 * widths[1]
        )
    else:
        images = batch_of(columns).images
        for k in range(2):
            image = np.arange(offsets[k], offsets[k] + 2 * widths[k]).reshape(2, -1)
            assert images[k, 0, :, : widths[k]].tolist() == image.tolist()


def test_foreign_byte_order_is_converted_or_refused():
    columns = Columns(
        **{
            name: value.astype(value.dtype.newbyteorder(">"))
            if isinstance(value, np.ndarray) and name != "pixels"
            else value
            for name, value in arguments().items()
        }
    )
    assert onemodel.digest(batch_of(columns)) == onemodel.digest(batch_of(Columns(**arguments())))


class Lying(np.ndarray):
    """Says that it is what it is not."""

    ndim = property(lambda self: 1)
    dtype = property(lambda self: np.dtype(np.int64))
    shape = property(lambda self: (2,))
    flags = property(lambda self: np.zeros(2).flags)

    def __len__(self):
        return 2

    def copy(self, order="C"):
        return np.zeros(100, np.int64)


def test_subclasses_that_lie_are_not_believed():
    small = np.zeros(1, np.int8).view(Lying)
    # Its true length is taken as the count, which the labels then don't have.
    with refused(ValueError, "labels"):
        Columns(**arguments(widths=small))
    with refused(ValueError, "pixels"):
        Columns(**arguments(pixels=small))


def test_columns_are_made_once():
    made = Columns(**arguments())
    with refused(TypeError, "once"):
        made.__init__(**arguments())
    with pytest.raises(TypeError, match="must call"):
        pickle.dumps(Columns.__new__(Columns))


class Named(Columns):
    """At module level, so that it can be pickled; with arguments of its own."""

    def __init__(self, name):
        super().__init__(**arguments())
        self.name = name


def test_a_pickle_gives_the_same_columns():
    for again in (pickle.loads(pickle.dumps(Named("a"))), copy.deepcopy(Named("a"))):
        assert type(again) is Named
        assert again.name == "a"
        for name, column in again.arrays.items():
            assert_same_bytes(column, Named("a").arrays[name])


def test_mapped_pixels_are_pickled_by_path(tmp_path):
    np.save(tmp_path / "pixels.npy", np.arange(100_000, dtype=np.float32))
    mapped = np.load(tmp_path / "pixels.npy", mmap_mode="r")[7:13]
    columns = Columns(**arguments(pixels=mapped))
    content = pickle.dumps(columns)
    assert len(content) < 5_000
    again = pickle.loads(content)
    assert again.arrays["pixels"].tolist() == [7, 8, 9, 10, 11, 12]
    assert len(pickle.dumps(again)) < 5_000


def test_its_text():
    assert repr(Columns(**arguments())) == "Columns(2 images, 1 channels, height 2, float32)"
    assert len(Columns(**arguments())) == 2
