"""Promise: batches become tensors without a copy, and move as a whole, whatever their structure."""

import importlib
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from support import refused

import onemodel as om


class Thing:
    """A tensor that only remembers where it was sent."""

    def __init__(self, *sent):
        self.sent = sent

    def to(self, device, *, non_blocking=False):
        return Thing(*self.sent, device, non_blocking)

    def pin_memory(self):
        return Thing(*self.sent, "pinned")


def image_batch(make):
    return om.ImageBatch(*[make() for _ in range(6)], epoch=1, step=2, real_columns=3)


def test_an_image_batch_moves_all_its_tensors():
    batch = image_batch(Thing)
    moved = batch.to("cuda:0", non_blocking=True)
    assert [thing.sent for thing in moved.arrays().values()] == [("cuda:0", True)] * 6
    assert (moved.epoch, moved.step, moved.real_columns) == (1, 2, 3)
    assert batch.to("cpu").images.sent == ("cpu", False)
    assert [thing.sent for thing in batch.pin_memory().arrays().values()] == [("pinned",)] * 6
    assert batch.images.sent == ()


@pytest.mark.parametrize("method", ["to", "pin_memory"])
def test_an_image_batch_of_arrays_says_how_to_get_tensors(method):
    batch = image_batch(lambda: np.arange(3))
    with refused(TypeError, "images", method, "ndarray", 'device="torch"'):
        getattr(batch, method)(*(["cpu"] if method == "to" else []))


def test_without_torch_the_import_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("onemodel.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with refused(ImportError, "torch is not installed", "pip install 'onemodel[torch]'"):
        importlib.import_module("onemodel.torch")


@pytest.mark.usefixtures("needs_subprocess")
def test_nothing_else_imports_torch():
    code = "import sys, onemodel, onemodel._cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def torch():
    """PyTorch, with onemodel's part for it."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    importlib.import_module("onemodel.torch")
    return torch


class Pair(NamedTuple):
    x: object
    y: object


def nested():
    return {
        "a": Pair(np.arange(3), [np.ones(2, np.float32), "text"]),
        "b": image_batch(lambda: np.arange(4, dtype=np.int32)),
        "names": np.array(["x", "y"]),
        "none": None,
    }


def test_tensors_have_the_memory_of_the_arrays(torch):
    batch = nested()
    made = om.torch.to_tensors(batch)
    assert type(made["a"]) is Pair
    assert made["a"].x.data_ptr() == batch["a"].x.ctypes.data
    assert made["a"].y[0].data_ptr() == batch["a"].y[0].ctypes.data
    assert made["a"].y[1] == "text"
    assert made["b"].labels.data_ptr() == batch["b"].labels.ctypes.data
    assert made["b"].step == 2
    assert made["names"] is batch["names"]
    assert made["none"] is None
    again = om.torch.to_tensors(made)
    assert again["a"].x is made["a"].x


def test_all_tensors_move(torch):
    batch = nested()
    for given in (batch, om.torch.to_tensors(batch)):
        moved = om.torch.to_device(given, torch.device("meta"), non_blocking=True)
        assert moved["a"].x.device.type == moved["a"].y[0].device.type == "meta"
        assert all(tensor.is_meta for tensor in moved["b"].arrays().values())
        assert moved["names"] is batch["names"]
    assert om.torch.to_device(np.arange(3), "cpu").tolist() == [0, 1, 2]
    with refused(TypeError, "longdouble" if np.longdouble().itemsize == 8 else "float128"):
        om.torch.to_device({"x": np.zeros(2, np.longdouble)}, "cpu")


def test_all_tensors_are_pinned(torch, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor + 100)
    pinned = om.torch.pin_memory(nested())
    assert pinned["a"].x.tolist() == [100, 101, 102]
    assert pinned["b"].widths.tolist() == [100, 101, 102, 103]
    assert pinned["names"].tolist() == ["x", "y"]


def test_a_pinned_pool_asks_torch_for_pinned_memory(torch, monkeypatch):
    empty, asked = torch.empty, []

    def fake_empty(size, dtype, pin_memory):
        asked.append((size, dtype, pin_memory))
        return empty(size, dtype=dtype)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "empty", fake_empty)
    pool = om.torch.pinned_pool()
    pool.rent(100, "uint8")
    ((size, dtype, pinned),) = asked
    assert size >= 100
    assert dtype == torch.uint8
    assert pinned is True


def test_without_cuda_a_pinned_pool_is_an_ordinary_one(torch, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    loader = om.DataLoader(
        om.ArrayDataset(np.arange(4)), 2, pool=om.torch.pinned_pool(), device="torch"
    )
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]


def test_batches_of_a_pinned_pool_are_pinned(torch):
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    loader = om.DataLoader(
        om.ArrayDataset(np.arange(4)), 2, pool=om.torch.pinned_pool(), device="torch"
    )
    assert loader[0].is_pinned()
    assert om.torch.pin_memory(np.arange(3)).is_pinned()
