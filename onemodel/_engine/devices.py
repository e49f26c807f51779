"""Where a batch goes when the consumer takes it: ``device=`` as a function of the batch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from onemodel._batch.notes import note, note_finish
from onemodel._batch.structure import map_leaves
from onemodel._collate.image_batch import ImageBatch
from onemodel._common.describe import shown
from onemodel._engine import jax_batches
from onemodel._simd.float_mode import DefaultFloatMode

__all__ = ["converter", "resolve"]

#: From an array and its name to a tensor.
ToTensor = Callable[[np.ndarray[Any, Any], str], Any]


class Finish(Protocol):
    """From a batch and its global step to the batch on its device."""

    def __call__(self, batch: Any, g: int) -> Any:
        """Return the batch of global step ``g`` on its device."""


FORMS = (
    'None, a callable, "torch", "torch:DEVICE" (for example "torch:cuda:0"), "jax" or a '
    "jax.sharding.Sharding"
)


def resolve(device: Any) -> Finish | None:
    """Return the function to apply to each batch and its global step, or None to keep NumPy.

    What it raises is an error of that step, and says so in a note.

    "torch" and "jax" hand over each array of the batch without a copy, on the CPU; the memory
    returns to the pool when the last tensor on it is gone. "torch:cuda:0" copies to the device.
    An array that is read-only is copied first, for a tensor could write to it, and so is one of
    the other byte order. Nested dicts, tuples and lists are walked; what can't be a tensor
    (strings, dates, objects, masked arrays) stays as it is. An error names the field and the step.
    The package is imported here, and only when asked for.

    With a ``jax.sharding.Sharding`` each array is this process's part of a global ``jax.Array``,
    which ``jax.make_array_from_process_local_data`` makes; the batch is then the global one.
    While ``jax_enable_x64`` is off, integers that JAX would cut to 32 bits are an error, and
    float64 becomes float32, rounded to nearest, infinite beyond its range. ``ImageBatch`` is made
    a pytree of its six arrays.

    Args:
        device: None, a callable ``f(batch)``, "torch", "torch:DEVICE", "jax" or a sharding.

    Raises:
        TypeError, ValueError: if ``device`` is none of these.
        ImportError: if the package is missing.

    >>> resolve(None)
    """
    if device is None:
        return None
    if jax_batches.is_sharding(device):
        return _finish(_jax_global(device))
    if callable(device) and not isinstance(device, str):
        return _finish(device)
    if not isinstance(device, str):
        raise TypeError(
            f"device must be {FORMS}, got {shown(device)} of type {type(device).__name__}"
        )
    return _finish(converter(device))


def converter(device: str) -> Callable[[Any], Any]:
    """Return what "torch", "torch:DEVICE" or "jax" does to a batch, of whichever step.

    Raises:
        ValueError, ImportError: as ``resolve``.
    """
    package, _, place = device.partition(":")
    if package == "torch" and (place or device == "torch"):
        to_tensor = _torch(device, place)
    elif device == "jax":
        to_tensor = _jax()
    else:
        raise ValueError(f"device must be {FORMS}, got {device!r}")
    return lambda batch: map_leaves(batch, _named(device, to_tensor))


def _finish(move: Callable[[Any], Any]) -> Finish:
    def finish(batch: Any, g: int) -> Any:
        try:
            with DefaultFloatMode():
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


def _named(device: Any, to_tensor: ToTensor) -> Callable[[Any, str], Any]:
    """Return ``to_tensor`` for arrays, whose errors name the field; others stay as they are."""

    def convert(leaf: Any, name: str) -> Any:
        if not isinstance(leaf, np.ndarray) or isinstance(leaf, np.ma.MaskedArray):
            return leaf
        try:
            return to_tensor(leaf, name)
        except Exception as error:
            what = f"{name}, {leaf.dtype} {list(leaf.shape)}"
            note(error, f"{what}, can't be given to {shown(device)}")
            raise

    return convert


def _import(package: str, device: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs the package {package}, which can't be imported "
            f"({error}); install it, or leave device=None for NumPy arrays",
            name=package,
        ) from error


def _torch(device: str, place: str) -> ToTensor:
    torch = _import("torch", device)
    if place:
        try:
            target = torch.device(place)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ValueError(f"device must name a torch device, got {device!r}: {error}") from None
    else:
        target = None

    def to_tensor(array: np.ndarray[Any, Any], name: str) -> Any:
        if array.dtype.kind not in "biufc":
            return array
        tensor = torch.from_numpy(_plain(array))
        # a copy from ordinary memory is done when .to returns: the pool may have the buffer back
        return tensor if target is None else tensor.to(target)

    return to_tensor


def _jax() -> ToTensor:
    jax = _import("jax", "jax")
    dlpack = _import("jax.dlpack", "jax")
    jax_batches.register(jax)

    def to_tensor(array: np.ndarray[Any, Any], name: str) -> Any:
        if array.dtype.kind in "iuf":
            return dlpack.from_dlpack(np.ascontiguousarray(_plain(_uncut(jax, array, name))))
        if _is_jax_s(array):
            return jax.numpy.asarray(_plain(array))  # DLPack leaves these out
        return array

    return to_tensor


def _jax_global(sharding: Any) -> Callable[[Any], Any]:
    """Return what makes this process's batch a part of global arrays."""
    jax = _import("jax", "jax")
    jax_batches.register(jax)

    def to_tensor(array: np.ndarray[Any, Any], name: str) -> Any:
        if not _is_jax_s(array):
            return array
        local = _plain(_uncut(jax, array, name))
        return jax.make_array_from_process_local_data(sharding, local)

    def move(batch: Any) -> Any:
        jax_batches.check_part(batch)
        made = map_leaves(batch, _named(sharding, to_tensor))
        if isinstance(made, ImageBatch):
            made.world = 1  # it holds the rows of all ranks
        return made

    return move


def _is_jax_s(array: np.ndarray[Any, Any]) -> bool:
    """Return whether JAX has such arrays: numbers and bools, bfloat16 and its like (kind V)."""
    kind = array.dtype.kind
    return kind in "biufc" or (kind == "V" and array.dtype.type is not np.void)


def _uncut(jax: Any, array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Return integers of 64 bits as 32 bits where that is all that JAX keeps of them."""
    if array.dtype.kind not in "iu" or array.itemsize < 8 or jax.config.jax_enable_x64:
        return array
    dtype = np.dtype(f"{array.dtype.kind}4")
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    outside = array[(array < low) | (array > high)]
    if outside.size:
        bounds = "[-2**31, 2**31)" if low else "[0, 2**32)"
        raise ValueError(
            f"{name} must be in {bounds} for JAX while jax_enable_x64 is off, got {outside[0]}"
        )
    return array.astype(dtype)


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array, or a copy where a tensor can't be backed by its memory.

    Tensors may write, have this machine's byte order, and step forward by whole elements.
    """
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    forward = all(step >= 0 and step % array.itemsize == 0 for step in array.strides)
    return array if array.flags.writeable and array.flags.aligned and forward else array.copy()
