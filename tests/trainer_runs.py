"""What the tests of real trainers share: a loader, a model, and which steps a run saw."""

import functools
import warnings

import numpy as np
import pytest

import onemodel as om

torch = pytest.importorskip("torch", reason="torch is not installed")
import onemodel.torch  # noqa: E402  it needs torch

STEPS = 6  # an epoch of 22 items has these batches, the last one short
EPOCHS = 3


def make_loader(labels="y", **options):
    """Batches {"x": float32 [B, 1, 4, 4], labels: int64 [B]}, no two of the run alike."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (22, 4, 4, 1), np.uint8)
    data = om.ArrayDataset({"x": images, labels: np.arange(22) % 3})
    transform = om.Compose([om.transforms.RandomCrop(1), om.transforms.Normalize(0.5, 0.5)])
    return om.DataLoader(data, 4, shuffle=True, transform=transform, seed=7, **options)


def make_view(labels="y", **options):
    return om.torch.LoaderView(make_loader(labels, **options))


@functools.cache
def _steps_by_digest(labels):
    loader = make_loader(labels)
    return {loader.digest(g): g for g in range(STEPS * (EPOCHS + 4))}


def step_of(batch):
    """Which global step a batch of tensors is, by its digest."""
    labels = next(name for name in batch if name != "x")
    return _steps_by_digest(labels)[
        om.digest({name: batch[name].cpu().numpy() for name in ("x", labels)})
    ]


def epochs(first, last=None):
    """The steps of whole epochs."""
    return list(range(first * STEPS, (first if last is None else last) * STEPS + STEPS))


@pytest.fixture(autouse=True)
def quiet():
    """A trainer's own warnings are not what these tests are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
