"""``Items``: datasets that give one item for one index, as most of PyTorch's do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._batch.key import BatchKey, checked_key
from onemodel._batch.notes import note, note_slot
from onemodel._batch.structure import own_arrays
from onemodel._common.arrays import read_only
from onemodel._common.describe import describe, shown
from onemodel._common.integers import check_integer
from onemodel._common.overrides import is_own
from onemodel._random.rng import slot_rng
from onemodel._random.streams import ITEM_STREAM, SUBSTITUTE_STREAM
from onemodel.datasets.made_once import MadeOnce
from onemodel.datasets.sample import Sample
from onemodel.datasets.split import checked_indices

__all__ = ["ItemBatch", "Items", "Substitute"]

#: How many other items are tried in the place of a broken one.
TRIES = 16

#: Calls each function and returns what they gave, in order; several at once where it can.
Run = Callable[[Sequence[Callable[[], Any]]], list[Any]]


class Substitute(NamedTuple):
    """An item that could not be read, and the one in its place.

    Attributes:
        slot: in the global batch.
        broken: the dataset index of the item that could not be read.
        used: that of the item in its place.
    """

    slot: int
    broken: int
    used: int


class ItemBatch(NamedTuple):
    """The items of a batch, one for each slot."""

    items: list[Any]
    indices: NDArray[np.int64]  # of what was read: with those of substitutes
    substitutes: tuple[Substitute, ...]


class Items(MadeOnce):
    """A dataset whose ``dataset[i]`` gives one item: any map-style dataset of PyTorch's, a list.

    Without a collator (the array face) the items of a batch are stacked: an item is an array, a
    number, a tuple or a dict of them, all of like shapes. What ``numpy.asarray`` takes is an
    array: tensors on the CPU, PIL images. With a collator (the sample face) each item becomes a
    ``Sample``, by ``sample`` or by ``transform``; a collator of yours gets what they give.

    Args:
        dataset: has a fixed length and gives the same item for the same index, to several threads
            at once. One with ``__getitems__(indices)`` is asked for many items together.
        transform: ``transform(rng, item) -> item`` for each slot; ``rng`` is the slot's own
            ``SampleRng``, stream 3. It must not edit what the dataset keeps.
        sample: ``sample(item) -> Sample``, called last.
        threads: how many threads read the items of one batch, in [1, 256], for datasets that wait
            for a disk or a network. 1 reads them one after another; several workers read several
            batches at once all the same.
        on_error: "raise", or "substitute": where ``dataset[i]`` raises, another index is drawn
            from the slot's own stream 4, up to 16 times. It is the same one whenever the step is
            built, as long as the same items are broken. Errors of the callables are raised.
        substitutes: the indices that substitutes are drawn from, for a sampler that leaves out a
            part of the dataset; None for all.
        index_field: where items are dicts, the name of a field that holds the index of the item
            that was read, int64; None for no such field.

    Raises:
        TypeError, ValueError: if an argument is not as described.

    >>> import numpy as np
    >>> import onemodel as om
    >>> pairs = [(np.full(2, k), k) for k in range(6)]
    >>> def jitter(rng, item):
    ...     x, label = item
    ...     return x + rng.next_int(10), label
    >>> loader = om.DataLoader(Items(pairs, transform=jitter), batch_size=3, shuffle=True)
    >>> x, labels = loader[0]
    >>> x.shape, labels.tolist()
    ((3, 2), [0, 4, 1])
    """

    _own = frozenset({"_arguments"})

    def __init__(
        self,
        dataset: Any,
        *,
        transform: Callable[[Any, Any], Any] | None = None,
        sample: Callable[[Any], Sample] | None = None,
        threads: int = 1,
        on_error: str = "raise",
        substitutes: ArrayLike | None = None,
        index_field: str | None = None,
    ) -> None:
        self._begin()
        if isinstance(dataset, Items):
            raise TypeError("dataset must give items, got Items; give all callables to one of them")
        try:
            length = len(dataset)
        except TypeError:
            raise TypeError(f"dataset must have a len, got {type(dataset).__name__}") from None
        if not hasattr(type(dataset), "__getitem__") or isinstance(dataset, Mapping | str | bytes):
            raise TypeError(f"dataset must give items by index, got {type(dataset).__name__}")
        for name, function in (("transform", transform), ("sample", sample)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable or None, got {shown(function)}")
        if not isinstance(on_error, str) or on_error not in ("raise", "substitute"):
            raise ValueError(f"on_error must be 'raise' or 'substitute', got {shown(on_error)}")
        if index_field is not None and not isinstance(index_field, str):
            raise TypeError(f"index_field must be a string or None, got {shown(index_field)}")
        drawn: NDArray[np.int64] | None = None
        if substitutes is not None:
            drawn = read_only(checked_indices(substitutes, length, "substitutes").copy())
            if not drawn.size:
                raise ValueError("substitutes must be at least one index, got none")
            if on_error == "raise":
                raise ValueError("substitutes must come with on_error='substitute', got 'raise'")
        self._arguments: dict[str, Any] = {
            "dataset": dataset,
            "transform": transform,
            "sample": sample,
            "threads": check_integer("threads", threads, 1, 257),
            "on_error": on_error,
            "substitutes": drawn,
            "index_field": index_field,
        }

    @property
    def dataset(self) -> Any:
        """The dataset of single items."""
        return self._arguments["dataset"]

    @property
    def transform(self) -> Callable[[Any, Any], Any] | None:
        """The transform of each item, or None."""
        transform: Callable[[Any, Any], Any] | None = self._arguments["transform"]
        return transform

    @property
    def sample(self) -> Callable[[Any], Sample] | None:
        """What makes a sample of an item, or None."""
        sample: Callable[[Any], Sample] | None = self._arguments["sample"]
        return sample

    @property
    def threads(self) -> int:
        """How many threads read the items of one batch."""
        return int(self._arguments["threads"])

    @property
    def on_error(self) -> str:
        """What is done about an item that cannot be read: "raise" or "substitute"."""
        return str(self._arguments["on_error"])

    @property
    def substitutes(self) -> NDArray[np.int64] | None:
        """The indices that substitutes are drawn from, read-only; None for all."""
        drawn: NDArray[np.int64] | None = self._arguments["substitutes"]
        return drawn

    @property
    def index_field(self) -> str | None:
        """The name of the field that holds the index, or None."""
        name: str | None = self._arguments["index_field"]
        return name

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        """Return the item at ``index`` as the dataset gives it, through ``sample`` if given."""
        item = self.dataset[index]
        return item if self.sample is None else self.sample(item)

    def read(self, key: BatchKey, run: Run | None = None) -> ItemBatch:
        """Return the items of the slots of ``key``, transformed with the slots' generators.

        Args:
            key: seed, epoch, step, first slot and the dataset indices.
            run: calls functions on several threads at once; None for one after another.
        """
        key = checked_key(key)
        # whether the items are the dataset's, and not those of a subclass that overrides them
        own = is_own(self, Items, "__getitem__")
        places = range(len(key.indices))
        together = self._read_together(key) if own else None
        if together is not None:
            read = list(zip(key.indices.tolist(), together, strict=True))
            made = [self._make(key, place, read[place], own) for place in places]
        elif run is None or self.threads == 1 or len(places) < 2:
            made = self._made(key, own, places)
        else:
            made = self._made_at_once(key, own, run)
        used = np.array([index for index, _ in made], np.int64)
        substitutes = tuple(
            Substitute(key.first_slot + place, index, other)
            for place, (index, other) in enumerate(
                zip(key.indices.tolist(), used.tolist(), strict=True)
            )
            if index != other
        )
        return ItemBatch([item for _, item in made], used, substitutes)

    def _made(self, key: BatchKey, own: bool, places: range) -> list[tuple[int, Any]]:
        return [self._make(key, place, self._read(key, place, own), own) for place in places]

    def _made_at_once(self, key: BatchKey, own: bool, run: Run) -> list[tuple[int, Any]]:
        count = len(key.indices)
        threads = min(self.threads, count)

        def some(number: int) -> list[tuple[int, Any]]:
            # neighbours: the first error of the first thread is that of the first slot
            places = range(number * count // threads, (number + 1) * count // threads)
            return self._made(key, own, places)

        parts = run([partial(some, number) for number in range(threads)])
        return [made for part in parts for made in part]

    def _read_together(self, key: BatchKey) -> list[Any] | None:
        """Return what ``dataset.__getitems__`` gives; None where items are read one by one."""
        if not callable(getattr(type(self.dataset), "__getitems__", None)):
            return None
        try:
            items = list(self.dataset.__getitems__(key.indices.tolist()))
        except Exception:
            if self.on_error == "raise":
                raise
            return None
        if len(items) != len(key.indices):
            raise ValueError(
                f"dataset.__getitems__ must return {len(key.indices)} items, got {len(items)}"
            )
        return items

    def _read(self, key: BatchKey, place: int, own: bool) -> tuple[int, Any]:
        """Return the index and the item of a slot: the broken ones' are those of a substitute."""
        index = int(key.indices[place])
        items = self.dataset if own else self
        try:
            return index, items[index]
        except Exception as error:
            if self.on_error == "raise":
                note_slot(error, key, place, index)
                raise
            broken = error
        slot = key.first_slot + place
        rng = slot_rng(key.seed, key.epoch, key.step, slot, SUBSTITUTE_STREAM)
        candidates = self.substitutes
        for _ in range(TRIES):
            drawn = rng.next_int(len(self) if candidates is None else len(candidates))
            other = drawn if candidates is None else int(candidates[drawn])
            try:
                return other, items[other]
            except Exception:  # another one is drawn
                continue
        note_slot(broken, key, place, index)
        note(broken, f"{TRIES} substitutes were drawn for it, and none of them could be read")
        raise broken

    def _make(self, key: BatchKey, place: int, read: tuple[int, Any], own: bool) -> tuple[int, Any]:
        """Return the index and the item of a slot through the callables."""
        index, item = read
        try:
            if self.transform is not None:
                slot = key.first_slot + place
                item = self.transform(
                    slot_rng(key.seed, key.epoch, key.step, slot, ITEM_STREAM), own_arrays(item)
                )
                if item is None:
                    raise TypeError(
                        f"transform must return an item, got None from {describe(self.transform)}"
                    )
            if self.sample is not None:
                item = self.sample(item) if own else item
                if not isinstance(item, Sample):
                    raise TypeError(
                        f"sample must return a Sample, got {type(item).__name__} "
                        f"from {describe(self.sample)}"
                    )
            if self.index_field is not None:
                if not isinstance(item, dict):
                    raise TypeError(
                        f"index_field must be None where items are no dicts, got "
                        f"{self.index_field!r} and an item of type {type(item).__name__}"
                    )
                if self.index_field in item:
                    raise ValueError(
                        f"index_field must be a name that items do not have, got "
                        f"{self.index_field!r}"
                    )
                item = {**item, self.index_field: index}
        except BaseException as error:
            note_slot(error, key, place, index)
            raise
        return index, item

    def _recipe(self) -> tuple[Any, ...]:
        return _fill, self._arguments

    def __repr__(self) -> str:
        named = {**self._arguments, "dataset": f"<{len(self)} of {type(self.dataset).__name__}>"}
        shown_arguments = [
            f"{name}={value if name == 'dataset' else describe(value)}"
            for name, value in named.items()
            if value is not None
        ]
        return f"Items({', '.join(shown_arguments)})"


def _fill(made: Items, arguments: dict[str, Any]) -> None:
    """Make ``made`` from its pickled arguments."""
    Items.__init__(made, **arguments)
