"""Promise: `device=` says what a batch becomes when the consumer takes it, and only then."""

import importlib.util
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest
from support import refused

import onemodel
from onemodel import ImageBatch
from onemodel._engine.devices import resolve


def finish_of(device):
    """What `device` does to a batch, of whichever step."""
    finish = resolve(device)
    return lambda batch: finish(batch, 3)


def test_none_and_callables():
    assert resolve(None) is None
    assert resolve(len)([1, 2], 0) == 2
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

    def from_numpy(array):
        """What torch takes: numbers in native order that step forward."""
        if array.dtype.kind not in "biufc" or array.dtype == np.longdouble:
            raise TypeError(f"can't convert np.ndarray of type {array.dtype}")
        if not array.dtype.isnative:
            raise ValueError("given numpy array has byte order different from the native one")
        if any(step < 0 or step % array.itemsize for step in array.strides):
            raise ValueError("at least one stride is negative or no multiple of the element size")
        assert array.flags.writeable
        return FakeTensor(array)

    module = types.ModuleType("torch")
    module.from_numpy = from_numpy
    module.device = device
    monkeypatch.setitem(sys.modules, "torch", module)


class Imagelike:
    """What ImageBatch is to devices: an object that maps its own arrays."""

    def __init__(self, images):
        self.images = images

    def map(self, function):
        return Imagelike(function(self.images))


def torch_of(device="torch"):
    """The batch as tensors."""
    finish = resolve(device)
    return lambda batch, g=0: finish(batch, g)


@pytest.mark.usefixtures("fake_torch")
def test_every_structure_is_handed_over_without_a_copy():
    to_torch = torch_of()
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
    tensor = torch_of()(array)
    assert tensor.array is not array
    assert tensor.array.flags.writeable


@pytest.mark.usefixtures("fake_torch")
def test_a_named_device():
    assert torch_of("torch:cuda:0")(np.arange(3)).place == "<cuda:0>"
    with refused(ValueError, "device", "torch:gpu"):
        resolve("torch:gpu")


@pytest.mark.usefixtures("fake_torch")
def test_nested_structures_are_walked_to_the_bottom():
    array = np.arange(3)
    batch = {"a": ({"b": [array, "text", 3]}, None), "c": Imagelike({"d": array})}
    made = torch_of()(batch)
    assert made["a"][0]["b"][0].array is array
    assert made["a"][0]["b"][1:] == ["text", 3]
    assert made["a"][1] is None
    assert made["c"].images["d"].array is array
    assert batch["a"][0]["b"][0] is array

    class Pair(NamedTuple):
        x: object
        y: object

    assert type(torch_of()([Pair(array, 1)])[0]) is Pair


@pytest.mark.parametrize(
    "field",
    [
        np.array(["a", "bc"]),
        np.array([b"a", b"bc"]),
        np.array(["2026-01-01"], "datetime64[D]"),
        np.array([3], "timedelta64[s]"),
        np.array([None, {}], object),
        np.zeros(2, [("x", "f4"), ("y", "i4")]),
        np.ma.masked_array([1, 2], [True, False]),
    ],
    ids=lambda field: str(field.dtype),
)
@pytest.mark.parametrize("device", ["torch", "torch:cpu", "jax"])
@pytest.mark.usefixtures("fake_torch", "fake_jax")
def test_what_cannot_be_a_tensor_stays(device, field):
    made = torch_of(device)({"x": np.arange(3), "names": field})
    assert made["names"] is field
    assert isinstance(made["x"], FakeTensor)


@pytest.mark.parametrize("dtype", [">f4", ">i8", ">u2", ">c16", "<f4", "<i8"])
@pytest.mark.parametrize("device", ["torch", "jax"])
@pytest.mark.usefixtures("fake_torch", "fake_jax")
def test_the_other_byte_order_is_swapped(device, dtype):
    tensor = torch_of(device)(np.array([1, 2, 300], dtype))
    assert tensor.array.dtype.isnative
    assert tensor.array.tolist() == [1, 2, 300]


@pytest.mark.usefixtures("fake_torch")
def test_strides_that_a_tensor_cannot_have_are_copied():
    pairs = np.zeros(4, np.dtype([("x", "f4"), ("y", "i2")]))
    pairs["x"] = [1, 2, 3, 4]
    assert torch_of()(np.arange(3)[::-1]).array.tolist() == [2, 1, 0]
    assert torch_of()(pairs["x"]).array.tolist() == [1, 2, 3, 4]
    every_other = np.arange(6)[::2]
    assert torch_of()(every_other).array is every_other


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.usefixtures("fake_torch")
def test_an_error_names_field_and_step(workers):
    data = onemodel.ArrayDataset({"x": np.arange(4), "y": np.zeros((4, 2), np.longdouble)})
    with onemodel.DataLoader(data, 2, device="torch", workers=workers) as loader:
        with refused(TypeError, "y", "'torch'", "global step 5"):
            next(loader.steps(5))
        with refused(TypeError, "batch['y']", "[2, 2]", "global step 1"):
            loader[1]


@pytest.mark.usefixtures("fake_torch")
def test_an_error_names_the_field_of_an_image_batch():
    batch = ImageBatch(*[np.arange(3)] * 4, np.zeros(3, np.longdouble), np.arange(3), 0, 0, 9)
    with refused(TypeError, "batch.labels", "global step 7"):
        torch_of()(batch, 7)


@pytest.mark.usefixtures("fake_torch")
def test_a_batch_class_that_raises_for_unknown_attributes():
    class Strict:
        def __getattr__(self, name):
            raise KeyError(name)

    batch = Strict()
    assert torch_of()(batch) is batch


@pytest.fixture
def fake_jax(monkeypatch):
    """As JAX where 64 bits are off: what is wider is cut without a word."""

    def convert(array):
        assert array.dtype.isnative
        assert array.dtype.kind not in "iu" or array.itemsize < 8 or module.config.jax_enable_x64
        return FakeTensor(array)

    module = types.ModuleType("jax")
    module.config = types.SimpleNamespace(jax_enable_x64=False)
    module.numpy = types.SimpleNamespace(asarray=convert)
    module.tree_util = types.SimpleNamespace(
        GetAttrKey=str, register_pytree_with_keys=lambda *functions: None
    )
    module.dlpack = types.ModuleType("jax.dlpack")
    module.dlpack.from_dlpack = convert
    monkeypatch.setitem(sys.modules, "jax", module)
    monkeypatch.setitem(sys.modules, "jax.dlpack", module.dlpack)
    return module


@pytest.mark.parametrize(
    ("dtype", "fits", "outside", "bounds"),
    [
        ("i8", [-(2**31), 2**31 - 1], 2**31, "[-2**31, 2**31)"),
        ("i8", [0], -(2**31) - 1, "[-2**31, 2**31)"),
        ("i8", [1], 2**40 + 5, "[-2**31, 2**31)"),
        ("u8", [0, 2**32 - 1], 2**32, "[0, 2**32)"),
        (">i8", [7], 2**40 + 5, "[-2**31, 2**31)"),
    ],
)
def test_jax_gets_integers_that_fit_or_an_error(fake_jax, dtype, fits, outside, bounds):
    to_jax = torch_of("jax")
    made = to_jax({"y": np.array(fits, dtype)})["y"].array
    assert made.tolist() == fits
    assert made.itemsize == 4
    with refused(ValueError, "batch['y']", bounds, outside, "global step 3"):
        to_jax({"y": np.array([*fits, outside], dtype)}, 3)
    fake_jax.config.jax_enable_x64 = True
    assert to_jax(np.array([*fits, outside], dtype)).array.tolist() == [*fits, outside]


@pytest.mark.usefixtures("fake_jax")
def test_jax_gets_no_integers_as_well():
    assert torch_of("jax")(np.empty(0, np.int64)).array.dtype == np.int32


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


@needs("torch")
def test_torch_takes_what_the_fake_takes():
    data = {
        "x": np.arange(4, dtype=">f4"),
        "names": np.array(["a", "b", "c", "d"]),
    }
    batch = onemodel.DataLoader(onemodel.ArrayDataset(data), 2, device="torch")[1]
    assert batch["x"].tolist() == [2, 3]
    assert batch["names"].tolist() == ["c", "d"]


@needs("jax")
def test_jax_refuses_what_it_would_cut():
    data = onemodel.ArrayDataset({"y": np.array([1, 2**40 + 5])})
    loader = onemodel.DataLoader(data, 1, device="jax")
    assert np.asarray(loader[0]["y"]).tolist() == [1]
    with refused(ValueError, "batch['y']", 2**40 + 5, "global step 1"):
        loader[1]


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
