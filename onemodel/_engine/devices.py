"""Where a batch goes when the consumer takes it: ``device=`` as a function of the batch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from onemodel._batch.notes import note_finish
from onemodel._batch.structure import map_arrays

__all__ = ["resolve"]


class Finish(Protocol):
    """From a batch and its global step to the batch on its device."""

    def __call__(self, batch: Any, g: int) -> Any:
        """Return the batch of global step ``g`` on its device."""


FORMS = 'None, a callable, "torch", "torch:DEVICE" (for example "torch:cuda:0") or "jax"'


def resolve(device: str | Callable[[Any], Any] | None) -> Finish | None:
    """Return the function to apply to each batch and its global step, or None to keep NumPy.

    What it raises is an error of that step, and says so in a note.

    "torch" and "jax" hand over each array of the batch without a copy, on the CPU; the memory
    returns to the pool when the last tensor on it is gone. "torch:cuda:0" copies to the device.
    An array that is read-only is copied first, for a tensor could write to it. The package is
    imported here, and only when asked for.

    Args:
        device: None, a callable ``f(batch)``, "torch", "torch:DEVICE" or "jax".

    Raises:
        TypeError, ValueError: if ``device`` is none of these.
        ImportError: if the package is missing.

    >>> resolve(None)
    """
    if device is None:
        return None
    if callable(device) and not isinstance(device, str):
        return _finish(device)
    if not isinstance(device, str):
        raise TypeError(f"device must be {FORMS}, got {device!r} of type {type(device).__name__}")
    package, _, place = device.partition(":")
    if package == "torch" and (place or device == "torch"):
        to_tensor = _torch(device, place)
    elif device == "jax":
        to_tensor = _jax()
    else:
        raise ValueError(f"device must be {FORMS}, got {device!r}")
    return _finish(lambda batch: map_arrays(batch, to_tensor))


def _finish(move: Callable[[Any], Any]) -> Finish:
    def finish(batch: Any, g: int) -> Any:
        try:
            return move(batch)
        except (StopIteration, StopAsyncIteration) as error:
            # Raised from __next__ it would end the loop as if the run were over.
            raise RuntimeError(
                f"{type(error).__name__} was raised by device= at global step {g}"
            ) from error
        except BaseException as error:
            note_finish(error, g)
            raise

    return finish


def _import(package: str, device: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs the package {package}, which can't be imported "
            f"({error}); install it, or leave device=None for NumPy arrays",
            name=package,
        ) from error


def _torch(device: str, place: str) -> Callable[[Any], Any]:
    torch = _import("torch", device)
    if place:
        try:
            target = torch.device(place)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ValueError(f"device must name a torch device, got {device!r}: {error}") from None
    else:
        target = None

    def to_tensor(array: Any) -> Any:
        if not isinstance(array, np.ndarray):
            return array
        tensor = torch.from_numpy(_writable(array))
        # a copy from ordinary memory is done when .to returns: the pool may have the buffer back
        return tensor if target is None else tensor.to(target)

    return to_tensor


def _jax() -> Callable[[Any], Any]:
    jax = _import("jax", "jax")
    dlpack = _import("jax.dlpack", "jax")

    def to_tensor(array: Any) -> Any:
        if not isinstance(array, np.ndarray):
            return array
        if array.dtype.kind not in "iuf":
            return jax.numpy.asarray(array)  # booleans and others that DLPack leaves out
        return dlpack.from_dlpack(_writable(array))

    return to_tensor


def _writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array if array.flags.writeable else array.copy()
