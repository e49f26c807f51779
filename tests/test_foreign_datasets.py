"""Promise: on the array face a dataset of single items is refused, or its error says what to do.

What can be made to work does: bare arrays, HDF5 datasets, PyTorch's TensorDataset, and every
dataset with `__getitems__`. The packages themselves are not needed: fakes stand for them.
"""

import sys
import types

import numpy as np
import pytest
from support import refused

from onemodel import ArrayDataset, DataLoader

X = np.arange(24, dtype=np.float32).reshape(8, 3)
REMEDIES = (
    "dataset[indices]",
    "int64 array of 4 indices",
    "ArrayDataset",
    "__getitems__",
    "collate",
)


@pytest.fixture
def fake_torch(monkeypatch):
    class Dataset:
        def __getitem__(self, index):
            raise NotImplementedError

    class TensorDataset(Dataset):
        def __init__(self, *tensors):
            self.tensors = tensors

        def __getitem__(self, index):
            return tuple(tensor[index] for tensor in self.tensors)

        def __len__(self):
            return len(self.tensors[0])

    class ConcatDataset(Dataset):
        def __len__(self):
            return 8

    data = types.ModuleType("torch.utils.data")
    data.Dataset, data.TensorDataset, data.ConcatDataset = Dataset, TensorDataset, ConcatDataset
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)
    return data


def mirrored(kind):
    """A map-style dataset: its item [C] is mirrored, and so would be a batch's rows."""

    class Mirrored(kind):
        def __len__(self):
            return len(X)

        def __getitem__(self, index):
            return X[index][::-1]

    return Mirrored


def test_a_torch_dataset_is_refused_at_once(fake_torch):
    for dataset in (mirrored(fake_torch.Dataset)(), fake_torch.ConcatDataset()):
        with refused(TypeError, "dataset", type(dataset).__name__, *REMEDIES[2:]):
            DataLoader(dataset, 4)


def test_a_torch_dataset_with_getitems_serves(fake_torch):
    class Many(mirrored(fake_torch.Dataset)):
        def __getitems__(self, indices):
            return [self[index] for index in indices]

    assert DataLoader(Many(), 4)[1].tolist() == X[4:, ::-1].tolist()


def test_a_torch_dataset_with_a_collator_serves(fake_torch):
    dataset = mirrored(fake_torch.Dataset)()
    loader = DataLoader(dataset, 4, collate=lambda items, key: np.stack(items))
    assert loader[1].tolist() == X[4:, ::-1].tolist()


def test_a_tensor_dataset_serves(fake_torch):
    x, y = DataLoader(fake_torch.TensorDataset(X, X[:, 0]), 4)[1]
    assert x.tolist() == X[4:].tolist()
    assert y.tolist() == X[4:, 0].tolist()
    inherited = type("Inherited", (fake_torch.TensorDataset,), {})(X)
    with refused(TypeError, "Inherited"):
        DataLoader(inherited, 4)


def test_torch_is_never_imported():
    before = "torch" in sys.modules
    DataLoader(X, 4)
    assert ("torch" in sys.modules) == before


def test_a_wrapper_is_not_looked_through():
    """It overrides what an item is; what it delegates would be the items of the other."""

    class Many:
        def __len__(self):
            return len(X)

        def __getitems__(self, indices):
            return [X[index] for index in indices]

    class Wrapper:
        def __init__(self, wrapped):
            self.wrapped = wrapped

        def __len__(self):
            return len(self.wrapped)

        def __getitem__(self, indices):
            return -X[indices]

        def __getattr__(self, name):
            return getattr(self.wrapped, name)

    wrapper = Wrapper(Many())
    assert DataLoader(wrapper, 4)[0].tolist() == (-X[:4]).tolist()
    loader = DataLoader(wrapper, 4, collate=lambda items, key: np.stack(items))
    assert loader[0].tolist() == (-X[:4]).tolist()


class SingleItems:
    def __init__(self, item):
        self.item = item

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return self.item(index)


@pytest.mark.parametrize("error", [TypeError, IndexError, ValueError, KeyError, AttributeError])
@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_single_item_says_what_was_asked(error, workers):
    raised = error("from within")

    def item(index):
        raise raised

    with (
        DataLoader(SingleItems(item), 4, workers=workers) as loader,
        refused(error, "from within", *REMEDIES) as caught,
    ):
        next(iter(loader))
    assert caught.value is raised


def test_numpys_own_words_get_the_note():
    files = [f"{k}.png" for k in range(8)]
    with refused(TypeError, *REMEDIES):
        DataLoader(SingleItems(lambda index: files[index]), 4)[0]


@pytest.mark.parametrize(
    ("item", "error"),
    [
        (lambda index: X[0], ValueError),
        (lambda index: (X[index], 3), TypeError),
        (lambda index: {}, ValueError),
        (lambda index: np.float32(1), TypeError),
        (lambda index: None, TypeError),
    ],
    ids=["one item", "a number", "nothing", "a scalar", "none"],
)
def test_a_result_that_is_no_batch_says_what_was_asked(item, error):
    with refused(error, "SingleItems", "step 0", *REMEDIES):
        DataLoader(SingleItems(item), 4)[0]


def test_samples_of_unlike_shapes():
    class Ragged(SingleItems):
        def __getitems__(self, indices):
            return [np.zeros(index + 1) for index in indices]

    with refused(ValueError, "__getitems__", "structure"):
        DataLoader(Ragged(None), 4)[0]


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_samples(count):
    class Few(SingleItems):
        def __getitems__(self, indices):
            return [X[index] for index in indices[:count]]

    with refused(ValueError, "__getitems__", 4, count):
        DataLoader(Few(None), 4)[0]


def test_a_bare_dict_is_refused():
    with refused(TypeError, "dataset", "dict", "ArrayDataset"):
        DataLoader({"x": X}, 4)
    assert DataLoader(ArrayDataset({"x": X}), 4)[0]["x"].tolist() == X[:4].tolist()


def test_bare_arrays_serve():
    assert DataLoader(X, 4, shuffle=True, seed=1)[0].tolist() == (
        DataLoader(ArrayDataset(X), 4, shuffle=True, seed=1)[0].tolist()
    )


def test_hdf5_is_read_rising_and_given_back_in_order(monkeypatch):
    class Dataset:
        """As h5py's: the indices of a selection must rise."""

        def __len__(self):
            return len(X)

        def __getitem__(self, indices):
            assert np.all(np.diff(indices) > 0)
            return X[indices]

    module = types.ModuleType("h5py")
    module.Dataset = Dataset
    monkeypatch.setitem(sys.modules, "h5py", module)

    class Repeating:
        steps_per_epoch, batch_size = 1, 5

        def batch_indices(self, seed, epoch, step):
            return np.array([3, 7, 3, 0, 7])

    assert DataLoader(Dataset(), sampler=Repeating())[0].tolist() == X[[3, 7, 3, 0, 7]].tolist()
    shuffled = DataLoader(Dataset(), 4, shuffle=True, seed=5)
    expected = DataLoader(ArrayDataset(X), 4, shuffle=True, seed=5)
    assert [b.tolist() for b in shuffled] == [b.tolist() for b in expected]
