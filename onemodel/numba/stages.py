"""``augmentation`` and ``row_transform``: functions of your own as native stages.

Source: docs/augmentations.md, section "Your own, compiled by Numba".
"""

from __future__ import annotations

import functools
import importlib
import operator
import pickle
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Self, overload

import numpy as np

from onemodel._common.arguments import check_flag, check_key
from onemodel._common.configured import Argument, Configured, configure
from onemodel._common.describe import shown
from onemodel._random.batch_rng import BatchRng
from onemodel._random.rng import SampleRng, derive
from onemodel._random.streams import ROW_STREAM
from onemodel._state.texts import digest_of, encoded
from onemodel._state.values import Describer
from onemodel.augment.protocol import CompiledAugmentation
from onemodel.numba.compiler import (
    check_function,
    check_same,
    checked_settings,
    compile_edit,
    compile_pixels,
    edit_pixels,
    run_python,
    with_defaults,
)
from onemodel.transforms.layout import check_layout
from onemodel.transforms.protocol import CompiledTransform, RowChain

__all__ = ["NumbaAugmentation", "NumbaTransform", "augmentation", "row_transform"]

#: Images that a function is tried on: none is square, and a row is no whole number of vectors.
TRIED = ((1, 32, 45), (3, 32, 37))

Function = Callable[..., None]
Key = int | str | None


class Stage(Configured):
    """What both kinds of stages share: the function, its arguments, text and pickle."""

    function: Argument[FunctionType] = Argument("function", "The function, as it was written.")
    settings: Argument[Mapping[str, Any]] = Argument("settings", "Values of all named parameters.")
    exact: Argument[bool] = Argument("exact", "Whether its bytes are compared with Python's.")

    @property
    def __wrapped__(self) -> Callable[..., None]:
        """The Python callable that gives the same bytes: a state describes a stage by it."""
        return with_defaults(self.function, self.settings)

    def with_settings(self, **changed: Any) -> Self:
        """Return a stage of the same function with other values of its named parameters.

        Raises:
            TypeError: if the function has no such parameter.
        """
        given = dict(self.arguments)
        given["settings"] = {**self.settings, **changed}
        return type(self)(**given)

    def __repr__(self) -> str:
        describer = Describer()
        made_of = f"{describer.text(self.__wrapped__)}, {describer.code}"
        settings = [f"{name}={value!r}" for name, value in self.settings.items()]
        text = ", ".join([*settings, f"code={digest_of(encoded(made_of))[:16]!r}"])
        return f"{self.function.__qualname__}({text})"

    def __reduce__(self) -> Any:
        function = self.function
        place = function.__module__, function.__qualname__
        found = _found_at(*place)
        given = {**self.arguments, "settings": dict(self.settings)}
        if isinstance(found, Stage) and found.function is function:
            del given["function"]
            if given.get("draw") is getattr(found, "draw", None):
                given.pop("draw", None)
            return _restored, (type(self), place, given)
        if found is function:
            return _made, (type(self), given)
        raise pickle.PicklingError(
            f"{'.'.join(place)} must be at the top of its module to be pickled"
        )

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # it never changes, as a function does not


class NumbaAugmentation(Stage, CompiledAugmentation):
    """A function as a native augmentation: see ``augmentation``."""

    draw: Argument[FunctionType | None] = Argument("draw", "What draws for an image, or None.")

    def __init__(
        self,
        function: FunctionType,
        settings: Mapping[str, Any] | None = None,
        exact: bool = True,
        draw: FunctionType | None = None,
    ) -> None:
        if draw is None:
            check_function("function", function, ("rng", "image"))
        else:
            check_function("function", function, ("pixel", "..."))
            check_function("draw", draw, ("rng", "shape"))
        checked = checked_settings([each for each in (draw, function) if each], settings)
        given = {
            "function": function,
            "settings": checked,
            "exact": check_flag("exact", exact),
            "draw": draw,
        }
        made = with_defaults(function, checked)
        held: Any
        if draw is None:
            held = compile_edit(made, np.dtype(np.float32), 3)
        else:
            held = compile_pixels(made, with_defaults(draw, checked))
        configure(self, NumbaAugmentation, given)
        self._held = held  # the code at the addresses
        if draw is None:
            self._edits(held.address)
        else:
            self._makes_pixels(
                held.draw.address,
                held.drawn_bytes,
                held.from_bytes.address,
                held.from_floats.address,
            )
        if exact:
            self._try()

    @property
    def __wrapped__(self) -> Function:
        """The Python callable that gives the same bytes: a state describes a stage by it."""
        made = super().__wrapped__
        if self.draw is None:
            return made
        return functools.partial(edit_pixels, with_defaults(self.draw, self.settings), made)

    def _try(self) -> None:
        """Compare with Python on images of our own; one shape that suits the function is enough."""
        for shape in TRIED:
            expected = SampleRng(2).random(shape, np.float32)
            found, rng, other = expected.copy(), SampleRng(1), SampleRng(1)
            try:
                run_python(self.__wrapped__, rng, expected)
            except (IndexError, ValueError, ZeroDivisionError) as error:  # it is for other images
                refused = error
                continue
            self(other, found)
            check_same(self.function.__qualname__, expected, found, rng.state == other.state)
            return
        raise TypeError(
            f"{self.function.__qualname__} must edit images float32 [C, H, W], such as "
            f"{list(TRIED[-1])}, got {type(refused).__name__}: {refused}"
        ) from refused


class NumbaTransform(Stage, CompiledTransform):
    """A function ``f(rng, row)`` as a native row transform: see ``row_transform``."""

    def __init__(
        self,
        function: FunctionType,
        settings: Mapping[str, Any] | None = None,
        exact: bool = True,
        key: int | str | None = None,
        layout: str | None = None,
    ) -> None:
        given = {
            "function": check_function("function", function, ("rng", "row")),
            "settings": checked_settings([function], settings),
            "exact": check_flag("exact", exact),
            "key": check_key("key", key),
            "layout": check_layout(layout),
        }
        configure(self, NumbaTransform, given)
        self._held: dict[tuple[str, int], Any] = {}

    def _compiled(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
        """Return the address of the function for rows of this kind, compiled when first asked."""
        kind = dtype.name, len(shape)
        if kind not in self._held:
            made = compile_edit(self.__wrapped__, dtype, len(shape))
            self._held.setdefault(kind, made)
            if self.exact:
                try:
                    self._try(dtype, shape)
                except BaseException:
                    del self._held[kind]
                    raise
        address: int = self._held[kind].address
        return address

    def _try(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        row = SampleRng(2).random(shape, np.float32)
        expected = (row * np.float32(256)).astype(np.uint8) if dtype == np.uint8 else row
        rows = BatchRng(1)
        found = np.empty((1, *shape), dtype)
        RowChain([self], dtype, shape).run(rows, expected[np.newaxis], None, found)
        rng = SampleRng(derive(1, 0, 0, 0, ROW_STREAM))
        run_python(self.__wrapped__, rng, expected)
        check_same(
            self.function.__qualname__, expected, found[0], rng.next_u64() == rows.row_u64(1)[0]
        )


@overload
def augmentation(
    function: Function, /, *, draw: Function | None = ..., exact: bool = ...
) -> NumbaAugmentation: ...
@overload
def augmentation(
    *, draw: Function | None = ..., exact: bool = ...
) -> Callable[[Function], NumbaAugmentation]: ...
def augmentation(function: Any = None, /, *, draw: Any = None, exact: bool = True) -> Any:
    """Compile a function to a native augmentation, which is returned in its place.

    ``function(rng, image)`` edits ``image``, float32 [C, H, W], in place with draws from ``rng``:
    ``next_u64``, ``next_single``, ``next_double``, ``next_int`` and ``next_normal``. With ``draw``,
    ``function(pixel, *draw(rng, shape))`` returns the new value of each pixel: the fastest form,
    for what happens to all pixels alike. ``shape`` is (C, H, W).

    The stage runs without the GIL in the pass that makes a batch, wherever augmentations of the
    library do, and gives the bytes of the function called as a Python callable.

    Further parameters need defaults; ``stage.with_settings(name=value)`` is one with others. They
    and all that the function closes over become constants. Nothing is checked inside: an index
    outside of the image destroys memory, a ``next_int`` of 0 is no error.

    Args:
        function: nothing in it may raise. A stage is pickled by the name of the function.
        draw: returns a tuple of numbers, drawn once an image.
        exact: run both forms on a small image, and refuse a function whose bytes or draws
            differ, for example because ``np.exp`` or ``sum`` do; False leaves this out.

    Raises:
        TypeError: if it is no such function or Numba cannot compile it.
        ValueError: if compiled and Python's bytes differ.

    >>> import numpy as np
    >>> import onemodel
    >>> def amount(rng, shape, most=0.5):
    ...     return (np.float32(most * rng.next_double()),)
    >>> @augmentation(draw=amount)
    ... def brighten(pixel, amount):
    ...     return pixel + amount
    >>> image = np.zeros((1, 1, 2), np.float32)
    >>> brighten.with_settings(most=1.0)(onemodel.SampleRng(0), image)
    >>> image
    array([[[0.8833108, 0.8833108]]], dtype=float32)
    """
    if function is None:
        return functools.partial(augmentation, draw=draw, exact=exact)
    return NumbaAugmentation(function, None, exact, draw)


@overload
def row_transform(
    function: Function, /, *, exact: bool = ..., key: Key = ..., layout: str | None = ...
) -> NumbaTransform: ...
@overload
def row_transform(
    *, exact: bool = ..., key: Key = ..., layout: str | None = ...
) -> Callable[[Function], NumbaTransform]: ...
def row_transform(
    function: Any = None,
    /,
    *,
    exact: bool = True,
    key: Key = None,
    layout: str | None = None,
) -> Any:
    """Compile ``function(rng, row)`` to a native transform of the array face's rows.

    As ``augmentation``, but ``row`` is one row of the array ``key`` as it is: uint8 [H, W, C] or
    [H, W], float32 [C, H, W] or [H, W]; with ``layout`` as that says. Its draws are those of the
    row's own generator. It is compiled, and compared with Python, when rows of a dtype and rank
    are first met.

    Args:
        function: as for ``augmentation``.
        exact: likewise.
        key: which array; None for the first (of a dict: "x" where there is one).
        layout: "HWC" or "CHW", the axes of a row; None for the usual ones of its dtype.

    Raises:
        TypeError, ValueError: as from ``augmentation``; where rows are first met.

    >>> import numpy as np
    >>> import onemodel
    >>> @row_transform
    ... def drop(rng, row):
    ...     row[rng.next_int(row.shape[0])] = 0
    >>> drop(onemodel.SampleRng(0), np.ones((2, 3, 2), np.uint8)).tolist()
    [[[1, 1], [1, 1], [0, 0]], [[1, 1], [0, 0], [1, 1]]]
    """
    if function is None:
        return functools.partial(row_transform, exact=exact, key=key, layout=layout)
    return NumbaTransform(function, None, exact, key, layout)


def _found_at(module: str, qualified_name: str) -> Any:
    """Return what has this name, None where nothing has."""
    try:
        return operator.attrgetter(qualified_name)(importlib.import_module(module))
    except (AttributeError, ImportError):
        return None


def _restored(kind: type[Any], place: tuple[str, str], given: dict[str, Any]) -> Any:
    """Return the stage like the one of this name: how a pickle is read."""
    found = _found_at(*place)
    if not isinstance(found, Stage):
        raise TypeError(f"{'.'.join(place)} must be a stage of onemodel.numba, got {shown(found)}")
    return kind(**{**found.arguments, **given})


def _made(kind: type[Any], given: dict[str, Any]) -> Any:
    """Return the stage of functions that have names of their own: how a pickle is read."""
    return kind(**given)
