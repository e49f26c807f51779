"""``DataLoader``: the run as a sequence of global steps, each a pure function of (seed, g)."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import numpy as np

from onemodel._common import threads
from onemodel._common.batch_key import BatchKey
from onemodel._common.describe import describe
from onemodel._common.integers import TWO_64, check_integer, check_uint64
from onemodel._engine.array_builder import ArrayBatchBuilder
from onemodel._engine.devices import resolve
from onemodel._engine.digest import digest
from onemodel._engine.prefetch import BatchSequence, Cursor
from onemodel._engine.sample_builder import SampleBatchBuilder
from onemodel._engine.state import check_state, make_state
from onemodel._engine.stats import LoaderStats
from onemodel._memory.pool import BufferPool
from onemodel._random.rng import derive
from onemodel._random.streams import AUGMENTATION_STREAM, ROW_STREAM, TRANSFORM_STREAM
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.samplers import MixingSampler, Sampler, SequentialSampler, ShuffledSampler

__all__ = ["DataLoader"]

# Their indices are below their n by construction; other samplers' are checked batch by batch,
# those of classes made from them too.
_BOUNDED_SAMPLERS = (SequentialSampler, ShuffledSampler, MixingSampler, BucketedSampler)


class DataLoader:
    """Batches that replay: the one at global step g is a pure function of (seed, g).

    It depends on the seed, g, the dataset, the sampler's arguments, the transform and the
    collator; not on workers, prefetch, timing, what was built before or interruption. Shards
    are slices of that batch; docs/guarantees.md says what a slice can't keep.

    With ``collate`` the dataset gives samples: ``dataset[i]`` is a ``Sample``, ``transform(rng,
    sample)`` returns a new one, and ``collate(samples, key)`` makes the batch. Without it the
    dataset gives arrays: ``dataset[indices]`` is a whole batch (an array, a tuple or a dict),
    and ``transform(rng, arrays)`` returns another.

    Args:
        dataset: has a fixed ``len``; it is read from several threads at once and must give the
            same item for the same index.
        batch_size: slots of the global batch, for a sequential or shuffled order.
        shuffle: every index once an epoch, in the epoch's keyed order.
        drop_last: leave out the rows that fill no whole batch; else the last batch is short.
        sampler: a ``Sampler``, in place of the three before.
        transform: called with the generator first; its draws depend on nothing but the key.
        collate: ``ImageBatchCollator`` or any ``collate(samples, key)``.
        seed: integer in [0, 2**64).
        workers: threads that build ahead, at least 0; 0 where the platform has no threads.
        prefetch: batches that may be built or waiting ahead of the consumer, at least 1.
        shard: (rank, world); this loader gives the contiguous slots of its rank out of each
            global batch. batch_size must be divisible by world.
        device: None for NumPy; "torch", "torch:cuda:0", "jax"; or a callable for each batch.

    Raises:
        TypeError, ValueError: naming the argument, its range and the value.

    >>> import numpy as np
    >>> import onemodel as om
    >>> data = om.ArrayDataset({"x": np.arange(10)})
    >>> loader = om.DataLoader(data, batch_size=4, shuffle=True, seed=42)
    >>> [batch["x"].tolist() for batch in loader]
    [[9, 2, 8, 4], [3, 6, 1, 0], [7, 5]]
    >>> loader[5]["x"].tolist()  # any batch of the run, at once
    [5, 4]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        *,
        shuffle: bool = False,
        drop_last: bool = False,
        sampler: Sampler | None = None,
        transform: Callable[..., Any] | None = None,
        collate: Callable[..., Any] | None = None,
        seed: int = 0,
        workers: int = 0,
        prefetch: int = 8,
        shard: tuple[int, int] = (0, 1),
        device: str | Callable[[Any], Any] | None = None,
    ) -> None:
        self.dataset = dataset
        self.seed = check_uint64("seed", seed)
        wanted_workers = check_integer("workers", workers, 0, 2**16)
        self.workers = wanted_workers if threads.can_start_threads() else 0
        self.prefetch = check_integer("prefetch", prefetch, 1, 2**31)
        self._length = _dataset_length(dataset)
        self.sampler = _make_sampler(self._length, batch_size, shuffle, drop_last, sampler)
        self.steps_per_epoch = check_integer(
            "sampler.steps_per_epoch", self.sampler.steps_per_epoch, 1, 2**63
        )
        self.shard = _check_shard(shard, self.sampler.batch_size)
        for name, function in (("transform", transform), ("collate", collate)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable or None, got {function!r}")
        self.transform = transform
        self.collate = collate
        self._check_indices = type(self.sampler) not in _BOUNDED_SAMPLERS
        self._builder: SampleBatchBuilder | ArrayBatchBuilder
        if collate is not None:
            self._pool = getattr(collate, "pool", None)
            self._builder = SampleBatchBuilder(dataset, transform, collate)
        else:
            if isinstance(dataset, list | tuple):
                raise TypeError(
                    f"collate must be given for a dataset of samples such as a "
                    f"{type(dataset).__name__}, for example ImageBatchCollator(); wrap arrays "
                    f"in an ArrayDataset"
                )
            self._pool = BufferPool()
            self._builder = ArrayBatchBuilder(dataset, transform, self._pool)
        self._finish = resolve(device)
        self._stats = LoaderStats(prefetch=self.prefetch if self.workers else 0)
        self._epoch = 0
        self._resume: int | None = None  # a loaded state's next step, until a pass starts there
        self._cursor: Cursor | None = None
        self._sequences: weakref.WeakSet[BatchSequence] = weakref.WeakSet()

    # One pass, the run, one batch

    def __iter__(self) -> BatchSequence:
        """Start a pass over epoch ``epoch`` and move ``epoch`` on by one.

        After ``load_state_dict`` the first pass is what remains of the epoch that was left.
        """
        start = self._epoch * self.steps_per_epoch if self._resume is None else self._resume
        check_integer("the pass's first step", start, 0, TWO_64)
        self._epoch = start // self.steps_per_epoch + 1
        return self._start(start, min(self._epoch * self.steps_per_epoch, TWO_64))

    def steps(self, start: int | None = None, stop: int | None = None) -> BatchSequence:
        """Return the run itself: the batches of global steps start, start + 1, ..., stop - 1.

        Args:
            start: None for where a loaded state says, else for 0.
            stop: None to go on for ever.
        """
        if start is not None:
            first = check_integer("start", start, 0, TWO_64)
        else:  # a state saved after the very last step says 2**64: nothing is left
            first = 0 if self._resume is None else self._resume
        end = TWO_64 if stop is None else check_integer("stop", stop, first, TWO_64 + 1)
        return self._start(first, end)

    def aiter(self) -> AsyncIterator[Any]:
        """Start a pass as ``iter`` does, for ``async for``; the event loop runs between batches.

        What ``steps`` returns can be iterated so as well.
        """
        return iter(self)

    def __getitem__(self, g: int) -> Any:
        """Build the batch of global step g now, on this thread."""
        batch = self._build(check_uint64("g", g))
        return batch if self._finish is None else self._finish(batch)

    def __len__(self) -> int:
        """How many batches a whole pass yields."""
        return self.steps_per_epoch

    def _start(self, start: int, stop: int) -> BatchSequence:
        self._check_length()
        self._resume = None
        self._cursor = Cursor(start)
        sequence = BatchSequence(
            self._build,
            start,
            stop,
            workers=self.workers,
            prefetch=self.prefetch,
            finish=self._finish,
            stats=self._stats,
            cursor=self._cursor,
        )
        self._sequences.add(sequence)
        return sequence

    # Where the run stands

    @property
    def epoch(self) -> int:
        """The epoch that the next pass runs over."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass run over ``epoch``, from its start."""
        self._epoch = check_integer("epoch", epoch, 0, TWO_64 // self.steps_per_epoch)
        self._resume = None
        self._cursor = None

    def state_dict(self) -> dict[str, Any]:
        """Return where the run stands: the step after the last batch that the consumer took.

        Plain values, ready for JSON: "version", "next_step", "seed", and what the step is of:
        "dataset_length", "sampler", "collator". Workers, prefetch and shards are not part of it.
        """
        next_step = self._epoch * self.steps_per_epoch
        if self._cursor is not None:
            next_step = self._cursor.next_step
        return make_state(
            next_step=next_step,
            seed=self.seed,
            dataset_length=self._length,
            sampler=self.sampler,
            collator=self.collate,
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state: the next pass, or ``steps()``, starts at its next step, once.

        Raises:
            ValueError: naming the field that differs, with both values.
        """
        next_step = check_state(state, self.state_dict())
        self._epoch = next_step // self.steps_per_epoch
        self._resume = next_step
        self._cursor = Cursor(next_step)

    # Looking into it

    def explain(self, g: int) -> dict[str, Any]:
        """Return what makes the batch of global step g, without building it.

        A dict: "global_step", "epoch", "step", and "slots", a list with for each slot of this
        shard its "slot", dataset "index", and the generator states "transform" (stream 0),
        "augment" (stream 1) and "row" (stream 2, the array face's native transforms). The
        generator that an array transform is called with is the first slot's "transform".
        """
        key = self._key(check_uint64("g", g))
        slots = [
            {
                "slot": slot,
                "index": index,
                "transform": derive(key.seed, key.epoch, key.step, slot, TRANSFORM_STREAM),
                "augment": derive(key.seed, key.epoch, key.step, slot, AUGMENTATION_STREAM),
                "row": derive(key.seed, key.epoch, key.step, slot, ROW_STREAM),
            }
            for slot, index in enumerate(key.indices.tolist(), key.first_slot)
        ]
        return {"global_step": int(g), "epoch": key.epoch, "step": key.step, "slots": slots}

    def digest(self, g: int) -> str:
        """Return the SHA-256 of the batch of global step g, as ``onemodel.digest`` defines it."""
        return digest(self._build(check_uint64("g", g)))

    @property
    def stats(self) -> LoaderStats:
        """What was measured so far; ``print(loader.stats)`` says what the run waits for."""
        if isinstance(self._pool, BufferPool):
            self._stats.pool = self._pool.stats
        return self._stats

    def close(self) -> None:
        """End every pass that still runs, and its workers. A new pass may be started."""
        for sequence in list(self._sequences):
            sequence.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        rank, world = self.shard
        shard = f", shard {rank} of {world}" if world > 1 else ""
        return (
            f"DataLoader({self._length} items of {type(self.dataset).__name__}, "
            f"{self.steps_per_epoch} steps an epoch, {describe(self.sampler)}, "
            f"seed={self.seed}, epoch={self._epoch}, workers={self.workers}, "
            f"prefetch={self.prefetch}{shard})"
        )

    # Building

    def _build(self, g: int) -> Any:
        try:
            return self._builder.build(self._key(g))
        except BaseException as error:
            epoch, step = divmod(g, self.steps_per_epoch)
            note = f"while building global step {g} (epoch {epoch}, step {step})"
            notes = getattr(error, "__notes__", [])
            if notes and notes[-1].startswith("slot "):  # from the builder: make one note of two
                note = f"{note}, {notes.pop()}"
            error.add_note(note)
            raise

    def _key(self, g: int) -> BatchKey:
        self._check_length()
        epoch, step = divmod(g, self.steps_per_epoch)
        indices = self.sampler.batch_indices(self.seed, epoch, step)
        if self._check_indices:
            indices = _check_batch_indices(indices, self._length, self.sampler)
        rank, world = self.shard
        if world == 1:
            return BatchKey(self.seed, epoch, step, 0, indices)
        first = rank * len(indices) // world
        end = (rank + 1) * len(indices) // world
        return BatchKey(self.seed, epoch, step, first, indices[first:end])

    def _check_length(self) -> None:
        length = len(self.dataset)
        if length != self._length:
            raise ValueError(
                f"dataset must keep its length: it had {self._length} items when the loader was "
                f"made, and has {length}"
            )


def _dataset_length(dataset: Any) -> int:
    try:
        length = len(dataset)
    except TypeError:
        raise TypeError(f"dataset must have a len, got {type(dataset).__name__}") from None
    if length < 1:
        raise ValueError(f"dataset must have at least one item, got {length}")
    return length


def _make_sampler(
    length: int, batch_size: int | None, shuffle: bool, drop_last: bool, sampler: Sampler | None
) -> Sampler:
    if sampler is None:
        if batch_size is None:
            raise TypeError("batch_size must be given where no sampler is")
        kind = ShuffledSampler if shuffle else SequentialSampler
        return kind(length, batch_size, drop_last=drop_last)
    if batch_size is not None or shuffle or drop_last:
        raise TypeError(
            f"batch_size, shuffle and drop_last must not be given with a sampler, got "
            f"{batch_size}, {shuffle} and {drop_last} beside {describe(sampler)}"
        )
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"sampler must have steps_per_epoch, batch_size and batch_indices, got {sampler!r}"
        )
    reach = getattr(sampler, "n", 0)
    if isinstance(reach, int) and reach > length:
        raise ValueError(
            f"sampler must be for at most the dataset's {length} items, got n = {reach}"
        )
    return sampler


def _check_shard(shard: Any, batch_size: int) -> tuple[int, int]:
    try:
        rank, world = shard
    except (TypeError, ValueError):
        raise TypeError(f"shard must be a pair (rank, world), got {shard!r}") from None
    world = check_integer(f"world of shard {shard!r}", world, 1, 2**31)
    rank = check_integer(f"rank of shard {shard!r}", rank, 0, world)
    if batch_size % world:
        raise ValueError(
            f"batch_size must be divisible by the world of shard {shard!r}, got {batch_size}"
        )
    return rank, world


def _check_batch_indices(indices: Any, length: int, sampler: Any) -> np.ndarray[Any, Any]:
    values = np.asarray(indices)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise TypeError(
            f"sampler must return integers [B], got {values.dtype} {list(values.shape)} "
            f"from {describe(sampler)}"
        )
    if values.size and not (values.min() >= 0 and values.max() < length):
        raise IndexError(
            f"sampler must return indices in [0, {length}), got {int(values.min())} to "
            f"{int(values.max())} from {describe(sampler)}"
        )
    return values.astype(np.int64)
