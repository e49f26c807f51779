"""Promise: `device=` says what a batch becomes when the consumer takes it, and only then."""

import importlib.util
import sys
import types

import numpy as np
import pytest
from support import refused

import onemodel
from onemodel._engine.devices import resolve


def finish_of(device):
    """What `device` does to a batch, of whichever step."""
    finish = resolve(device)
    return lambda batch: finish(batch, 3)


def test_none_and_callables():
    assert resolve(None) is None
    assert finish_of(len)([1, 2]) == 2
    loader = onemodel.DataLoader(onemodel.ArrayDataset(np.arange(4)), 2, device=lambda b: b * 10)
    assert [batch.tolist() for batch in loader] == [[0, 10], [20, 30]]
    assert loader[1].tolist() == [20, 30]


@pytest.mark.parametrize("device", ["cuda", "torch:", "jax:0", "", "TORCH"])
def test_unknown_names(device):
    with refused(ValueError, "device", "torch", "jax", repr(device)):
        resolve(device)


def test_other_types():
    with refused(TypeError, "device", 3):
        resolve(3)


@pytest.mark.parametrize("device", ["torch", "torch:cpu", "jax"])
def test_a_missing_package_is_named(device, monkeypatch):
    package = device.partition(":")[0]
    monkeypatch.setitem(sys.modules, package, None)
    with refused(ImportError, "device", package, "install"):
        resolve(device)


class FakeTensor:
    def __init__(self, array):
        self.array = array
        self.place = None

    def to(self, place):
        self.place = place
        return self


@pytest.fixture
def fake_torch(monkeypatch):
    def device(name):
        if not name.startswith(("cpu", "cuda")):
            raise RuntimeError(f"Invalid device string: {name!r}")
        return f"<{name}>"

    module = types.ModuleType("torch")
    module.from_numpy = FakeTensor
    module.device = device
    monkeypatch.setitem(sys.modules, "torch", module)


class Imagelike:
    """What ImageBatch is to devices: an object that maps its own arrays."""

    def __init__(self, images):
        self.images = images

    def map(self, function):
        return Imagelike(function(self.images))


@pytest.mark.usefixtures("fake_torch")
def test_every_structure_is_handed_over_without_a_copy():
    to_torch = finish_of("torch")
    array = np.arange(3)
    assert to_torch(array).array is array
    assert to_torch((array, "text"))[0].array is array
    assert to_torch((array, "text"))[1] == "text"
    assert to_torch({"x": array})["x"].array is array
    assert to_torch(Imagelike(array)).images.array is array
    assert to_torch(array).place is None


@pytest.mark.usefixtures("fake_torch")
def test_what_is_read_only_is_copied():
    array = np.arange(3)
    array.flags.writeable = False
    tensor = finish_of("torch")(array)
    assert tensor.array is not array
    assert tensor.array.flags.writeable


@pytest.mark.usefixtures("fake_torch")
def test_a_named_device():
    assert finish_of("torch:cuda:0")(np.arange(3)).place == "<cuda:0>"
    with refused(ValueError, "device", "torch:gpu"):
        resolve("torch:gpu")


def needs(package):
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")


@needs("torch")
def test_torch_shares_the_memory_and_gives_it_back():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    loader = onemodel.DataLoader(onemodel.ArrayDataset(x), 3, device="torch")
    tensor = loader[0]
    assert tensor.tolist() == x.tolist()
    assert loader.stats.pool.returned == loader.stats.pool.rented - 1
    view = tensor[1:]
    del tensor
    assert loader.stats.pool.returned == loader.stats.pool.rented - 1
    del view
    assert loader.stats.pool.returned == loader.stats.pool.rented


@needs("jax")
def test_jax_gets_the_values():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    batch = onemodel.DataLoader(onemodel.ArrayDataset(x, x > 2), 3, device="jax")[0]
    assert np.asarray(batch[0]).tolist() == x.tolist()
    assert np.asarray(batch[1]).tolist() == (x > 2).tolist()


def test_dlpack_holds_the_memory():
    pool = onemodel.BufferPool()
    array = pool.rent(3, np.float32)
    array[...] = 5
    other = np.from_dlpack(array)
    del array
    assert pool.stats.returned == 0
    assert other.tolist() == [5, 5, 5]
    del other
    assert pool.stats.returned == 1
