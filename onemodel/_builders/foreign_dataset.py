"""Datasets of the array face that are not the library's: what they are asked, and hints.

Such a dataset must give a whole batch for an array of indices. One of single items does not, and
often nobody notices; where it can be told, the error says what was asked and what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.notes import note
from onemodel._batch.structure import Structure

__all__ = ["asked", "batch_reader", "gives_many"]

REMEDY = (
    "wrap a dataset of single items in datasets.Items, or give it __getitems__(indices), or put an "
    "ArrayDataset in its place, or pass collate=function(samples, key)"
)

#: From int64 indices to a batch.
Reader = Callable[[NDArray[np.int64]], Structure]


def gives_many(dataset: Any) -> bool:
    """Return whether its class has ``__getitems__``, PyTorch's method for many items at once.

    A wrapper that merely delegates attributes is not looked through.
    """
    return callable(getattr(type(dataset), "__getitems__", None))


def asked(count: int) -> str:
    """Return what the dataset was asked for, and what one of single items needs."""
    return f"dataset[indices] was asked for with an int64 array of {count} indices; {REMEDY}"


def batch_reader(dataset: Any) -> Reader:
    """Return the function that reads a batch of a dataset that is not an ``ArrayDataset``.

    Raises:
        TypeError: if the dataset is known to have no batches: a mapping, or a PyTorch dataset
            without ``__getitems__``.
    """
    if gives_many(dataset):
        return lambda indices: _of_list(dataset, indices)
    if isinstance(dataset, Mapping):
        raise TypeError(
            f"dataset must give batches by index, got a {type(dataset).__name__}; wrap its arrays "
            "in an ArrayDataset"
        )
    if _is_a(dataset, "torch.utils.data", "Dataset") and not _indexes_tensors(dataset):
        raise TypeError(
            f"dataset must give a batch for an array of indices, got the PyTorch dataset "
            f"{type(dataset).__name__} without __getitems__; {REMEDY}"
        )
    if _is_a(dataset, "h5py", "Dataset"):
        return lambda indices: _rising(dataset, indices)
    return lambda indices: _of_array(dataset, indices)


def _is_a(dataset: Any, module: str, name: str) -> bool:
    """Return whether it is an instance of a class of a package that somebody has imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(dataset, kind)


def _indexes_tensors(dataset: Any) -> bool:
    """Return whether it is PyTorch's TensorDataset itself, which indexes whole tensors."""
    return type(dataset) is getattr(sys.modules.get("torch.utils.data"), "TensorDataset", None)


def _of_array(dataset: Any, indices: NDArray[np.int64]) -> Structure:
    try:
        found = dataset[indices]
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        note(error, asked(len(indices)))
        raise
    return tuple(found) if isinstance(found, list) else found


def _rising(dataset: Any, indices: NDArray[np.int64]) -> Structure:
    """Read of an HDF5 dataset, whose indices must rise, and put the rows in their order."""
    unique, positions = np.unique(indices, return_inverse=True)
    return dataset[unique][positions.reshape(-1)]


def _of_list(dataset: Any, indices: NDArray[np.int64]) -> Structure:
    found = dataset.__getitems__(indices.tolist())
    return _stacked(found, len(indices)) if isinstance(found, list) else found


def _stacked(samples: list[Any], count: int) -> Structure:
    """Make a batch out of samples of one structure: arrays and numbers are stacked."""
    if len(samples) != count:
        raise ValueError(f"dataset.__getitems__ must return {count} samples, got {len(samples)}")
    if not samples:
        raise ValueError("dataset.__getitems__ must return samples, got none")
    first = samples[0]
    try:
        if isinstance(first, dict):
            return {name: np.stack([sample[name] for sample in samples]) for name in first}
        if isinstance(first, tuple | list):
            return tuple(np.stack(column) for column in zip(*samples, strict=True))
        return np.stack(samples)
    except (TypeError, ValueError, LookupError) as error:
        note(error, "dataset.__getitems__ must return samples of one structure and like shapes")
        raise
