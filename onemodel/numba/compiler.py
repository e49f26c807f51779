"""A Python function as the C function that native chains call, and the proof that both agree.

The arithmetic is that of the written order: no fast math, so LLVM neither reorders nor fuses;
division as NumPy's, without an error.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from onemodel._common.arrays import read_only
from onemodel._common.describe import shown
from onemodel.numba.draws import GENERATOR, METHODS, memory_of, size_of

__all__ = [
    "check_function",
    "check_same",
    "checked_settings",
    "compile_edit",
    "compile_pixels",
    "edit_pixels",
    "run_python",
    "with_defaults",
]

#: A compiled function has nobody to raise to.
RAISING = {"RAISE_VARARGS", "RERAISE", "SETUP_FINALLY", "PUSH_EXC_INFO"}


def check_function(name: str, function: Any, first: tuple[str, ...]) -> FunctionType:
    """Return a Python function that raises nothing of its own.

    Args:
        name: of the argument.
        function: what may be one.
        first: what its parameters without defaults stand for; an ellipsis allows more.

    Raises:
        TypeError: if it is none, has other parameters without defaults or any that may be left
            out in other ways, or has a ``raise``, ``assert`` or ``try``.
    """
    if type(function) is not FunctionType:
        raise TypeError(f"{name} must be a Python function, got {shown(function)}")
    code = function.__code__
    needed = code.co_argcount - len(function.__defaults__ or ())
    fits = needed >= len(first) - 1 if first[-1] == "..." else needed == len(first)
    if not fits or code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
        raise TypeError(
            f"{function.__qualname__} must have the parameters ({', '.join(first)}) and then only "
            "ones with defaults"
        )
    if any(step.opname in RAISING for step in dis.get_instructions(code)):
        raise TypeError(
            f"{function.__qualname__} must have no raise, assert or try: compiled, it runs where "
            "no error can be raised"
        )
    return function


def checked_settings(
    functions: Iterable[FunctionType], given: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """Return a value for each parameter that has a default; arrays are copied and read-only.

    Raises:
        TypeError: if a name is that of no such parameter.
    """
    values: dict[str, Any] = {}
    for function in functions:
        values.update(zip(named_parameters(function), function.__defaults__ or (), strict=True))
    for name, value in (given or {}).items():
        if name not in values:
            raise TypeError(f"settings must be of {list(values)}, got {shown(name)}")
        values[name] = value
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            values[name] = read_only(value.copy())
    return MappingProxyType(values)


def named_parameters(function: FunctionType) -> tuple[str, ...]:
    """Return the names of the parameters that have defaults."""
    code = function.__code__
    end = code.co_argcount
    return code.co_varnames[end - len(function.__defaults__ or ()) : end]


def with_defaults(function: FunctionType, settings: Mapping[str, Any]) -> FunctionType:
    """Return the function with the settings of its parameters as their defaults."""
    return FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        tuple(settings[name] for name in named_parameters(function)),
        function.__closure__,
    )


def compile_edit(function: Callable[..., Any], dtype: np.dtype[Any], rank: int) -> Any:
    """Return what holds the C form of ``function(rng, pixels)``: an EditFunction of the .pxd files.

    Its ``address`` stays as long as the object. Defaults are constants in it.

    Raises:
        TypeError: if Numba cannot compile it.
    """
    edit = njit(function)

    def run_planes(rng: Any, first: int, second: int, third: int, pixels: Any) -> None:
        edit(rng, numba.carray(pixels, (first, second, third)))

    def run_plane(rng: Any, first: int, second: int, third: int, pixels: Any) -> None:
        edit(rng, numba.carray(pixels, (first, second)))

    with as_type_error(function):
        return edit_function(numba.from_dtype(dtype), run_planes if rank == 3 else run_plane)


class PixelFunctions(NamedTuple):
    """The C form of ``draw(rng, shape)`` and ``function(pixel, *drawn)``; each has an address."""

    draw: Any
    drawn_bytes: int
    from_bytes: Any
    from_floats: Any


def compile_pixels(function: FunctionType, draw: FunctionType) -> PixelFunctions:
    """Compile a function of one pixel, and that of its draws for an image of a shape (C, H, W).

    Raises:
        TypeError: if Numba cannot compile them, or ``draw`` returns no tuple of numbers.
    """
    inner, making = njit(draw), njit(function)
    drawing = njit(lambda rng, shape: inner(rng, shape))  # with the defaults
    with as_type_error(draw):
        drawing.compile((GENERATOR, types.UniTuple(types.int64, 3)))
    drawn = drawing.nopython_signatures[0].return_type
    if not (
        isinstance(drawn, types.BaseTuple)
        and all(isinstance(each, types.Integer | types.Float) for each in drawn)
    ):
        raise TypeError(f"{draw.__qualname__} must return a tuple of numbers, got {drawn}")
    place = types.CPointer(drawn)
    read, write = memory_of(drawn)

    def run_draw(rng: Any, channels: int, height: int, width: int, place: Any) -> None:
        write(place, drawing(rng, (channels, height, width)))

    def make_pixels(
        place: Any, source: Any, scale: Any, shift: Any, width: int, target: Any
    ) -> None:
        values = read(place)
        before = numba.carray(source, (width,))
        after = numba.carray(target, (width,))
        for k in range(width):
            product = np.float32(before[k]) * scale
            after[k] = making(product - shift, *values)

    def take_pixels(
        place: Any, source: Any, scale: Any, shift: Any, width: int, target: Any
    ) -> None:
        values = read(place)
        before = numba.carray(source, (width,))
        after = numba.carray(target, (width,))
        for k in range(width):
            after[k] = making(before[k], *values)

    with as_type_error(function):
        single = types.float32
        compiled = [
            cfunc(
                types.void(
                    place,
                    types.CPointer(pixel),
                    single,
                    single,
                    types.int64,
                    types.CPointer(single),
                )
            )(run)
            for pixel, run in ((types.uint8, make_pixels), (single, take_pixels))
        ]
        return PixelFunctions(edit_function(drawn, run_draw), size_of(drawn), *compiled)


def njit(function: Callable[..., Any]) -> Any:
    return numba.njit(error_model="numpy")(function)


def cfunc(signature: Any) -> Any:
    return numba.cfunc(signature, error_model="numpy")


def edit_function(values: Any, run: Callable[..., None]) -> Any:
    """Return the EditFunction of a Python one."""
    sides = [types.int64] * 3
    return cfunc(types.void(GENERATOR, *sides, types.CPointer(values)))(run)


@contextmanager
def as_type_error(function: Callable[..., Any]) -> Iterator[None]:
    """Turn what Numba says of a function into a TypeError."""
    try:
        yield
    except NumbaError as error:
        raise TypeError(
            f"{function.__qualname__} must be a function that Numba compiles, with the draws "
            f"{', '.join(METHODS)}: {error}"
        ) from error


def edit_pixels(
    draw: Callable[..., Any], function: Callable[..., Any], rng: Any, image: NDArray[Any]
) -> None:
    """Edit an image as the compiled forms of both functions do."""
    drawn = draw(rng, image.shape)
    for place in np.ndindex(image.shape):
        image[place] = function(image[place], *drawn)


def run_python(function: Callable[..., Any], rng: Any, pixels: NDArray[Any]) -> None:
    """Edit pixels by the Python function; integers that wrap and odd floats are no warning."""
    with np.errstate(all="ignore"):
        function(rng, pixels)


def check_same(name: str, expected: NDArray[Any], found: NDArray[Any], same_draws: bool) -> None:
    """Compare what Python and the compiled form of a function made of one array.

    Raises:
        ValueError: if a byte differs, naming the first one's pixel, or the draws do.
    """
    words = f"u{expected.dtype.itemsize}"
    other = expected.view(words) != found.view(words)
    if other.any():
        place = np.unravel_index(int(np.argmax(other)), other.shape)
        problem = f"the same bytes compiled, got {found[place]} for {expected[place]} at " + str(
            [int(k) for k in place]
        )
    elif not same_draws:
        problem = "the same draws compiled, got others"
    else:
        return
    raise ValueError(
        f"{name} must give {problem}: write np.float32(...) around numbers that meet float32 "
        "pixels; exact=False allows other bytes"
    )
