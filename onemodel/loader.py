"""``DataLoader``: the run as a sequence of global steps, each a pure function of (seed, g)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

from onemodel._batch.digest import digest
from onemodel._builders.native import epoch_planner, native_lane
from onemodel._builders.step_builder import StepBuilder, dataset_length
from onemodel._common.arguments import check_flag
from onemodel._common.configured import added_attributes, rebuild
from onemodel._common.describe import describe
from onemodel._common.integers import TWO_64, check_integer, check_uint64
from onemodel._engine.batch_sequence import BatchSequence
from onemodel._engine.devices import Finish, resolve
from onemodel._engine.prefetch import Cursor, Pass, Prefetcher
from onemodel._engine.stats import LoaderStats
from onemodel._loader.arguments import (
    DEPTH,
    check_shard,
    check_workers,
    make_builder,
    make_sampler,
)
from onemodel._loader.explanation import explain
from onemodel._loader.position import Position
from onemodel._loader.prefetchers import Prefetchers
from onemodel._memory.pool import BufferPool
from onemodel._samplers.samplers import Sampler
from onemodel._state.fingerprint import Fingerprint
from onemodel._state.state import check_allowed, check_state, make_state

__all__ = ["DataLoader"]


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
        workers: threads that build ahead, at least 0; 0 where the platform has no threads. "auto"
            chooses the number by measuring while the loader runs, also 0; no batch depends on it.
        prefetch: batches that may be built or waiting ahead of the consumer, in [1, 2**16]; no
            more threads than this run. None for 8, or twice the workers where that is more.
        shard: (rank, world); this loader gives the contiguous slots of its rank out of each
            global batch. batch_size must be divisible by world; of a sampler whose batches have
            several sizes, its multiple_of. "env" for what torchrun, MPI, SLURM or JAX say of
            this process; (0, 1) where none of them does.
        device: None for NumPy; "torch", "torch:cuda:0", "jax"; a ``jax.sharding.Sharding`` for
            global arrays; or a callable for each batch.
        pool: where the memory of array batches comes from, None for a pool of its own; a collator
            has its pool as an argument of its own.

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
        workers: int | Literal["auto"] = 0,
        prefetch: int | None = None,
        shard: tuple[int, int] | Literal["env"] = (0, 1),
        device: Any = None,
        pool: BufferPool | None = None,
    ) -> None:
        if hasattr(self, "_builder"):
            raise TypeError("a DataLoader cannot be changed; make another")
        added = frozenset(self.__dict__)  # by a subclass
        self._arguments = {
            "dataset": dataset,
            "batch_size": batch_size,
            "shuffle": shuffle,
            "drop_last": drop_last,
            "sampler": sampler,
            "transform": transform,
            "collate": collate,
            "seed": seed,
            "workers": workers,
            "prefetch": prefetch,
            "shard": shard,
            "device": device,
            "pool": pool,
        }
        self._dataset = dataset
        self._workers, self._prefetch = check_workers(workers, prefetch)
        self._automatic = isinstance(workers, str)
        self._sampler = make_sampler(
            dataset_length(dataset),
            batch_size,
            check_flag("shuffle", shuffle),
            check_flag("drop_last", drop_last),
            sampler,
        )
        check_integer("sampler.steps_per_epoch", self._sampler.steps_per_epoch, 1, 2**63)
        own_shard = check_shard(shard, self._sampler)
        self._transform = transform
        self._collate = collate
        builder, self._pool = make_builder(dataset, transform, collate, pool)
        self._device = device
        self._finish: Finish | None = resolve(device)
        self._builder = StepBuilder(
            dataset, self._sampler, builder, check_uint64("seed", seed), own_shard
        )
        self._lane = native_lane(self._builder)
        self._prefetchers = Prefetchers(
            partial(
                Prefetcher,
                self._builder.entry,
                self._lane,
                workers=self._workers,
                depth=self._prefetch,
                # memory for many batches only where many workers turn out to help
                window=DEPTH if self._automatic and prefetch is None else self._prefetch,
                automatic=self._automatic,
                planner=epoch_planner(self._builder, self._lane),
                steps_per_epoch=self.steps_per_epoch,
            ),
            self._prefetch if self._workers else 0,
        )
        self._position = Position(self.steps_per_epoch)
        self._fingerprint = Fingerprint(dataset, self._sampler, transform, collate)
        self._own: frozenset[str] = frozenset({*self.__dict__, "_own"}) - added

    # What was configured: it stays

    @property
    def dataset(self) -> Any:
        """The dataset."""
        return self._dataset

    @property
    def sampler(self) -> Sampler:
        """The sampler: the one given, or what batch_size, shuffle and drop_last made."""
        return self._sampler

    @property
    def batch_sampler(self) -> None:
        """None, as the sampler's items are batches; frameworks that see a sampler ask for it."""
        return None

    @property
    def transform(self) -> Callable[..., Any] | None:
        """The transform, or None."""
        return self._transform

    @property
    def collate(self) -> Callable[..., Any] | None:
        """The collator; None on the array face."""
        return self._collate

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self._builder.seed

    @property
    def shard(self) -> tuple[int, int]:
        """(rank, world)."""
        return self._builder.shard

    @property
    def steps_per_epoch(self) -> int:
        """How many steps an epoch has."""
        return self._builder.steps_per_epoch

    @property
    def workers(self) -> int | str:
        """How many threads build ahead at most, or "auto"; 0 where the platform has none."""
        return "auto" if self._automatic and self._workers else self._workers

    @property
    def prefetch(self) -> int:
        """How many batches may be built or waiting ahead of the consumer."""
        return self._prefetch

    # One pass, the run, one batch

    def __iter__(self) -> BatchSequence:
        """Return a pass over epoch ``epoch``; its first batch moves ``epoch`` on by one.

        An iterator that nobody uses changes nothing. After ``load_state_dict`` the first pass is
        what remains of the epoch that was left.
        """
        return self._pass(None)

    def __aiter__(self) -> BatchSequence:
        """Return a pass as ``iter`` does, for ``async for``."""
        return iter(self)

    def aiter(self) -> BatchSequence:
        """Return a pass as ``iter`` does, for ``async for``; the event loop runs meanwhile.

        What ``steps`` returns can be iterated so as well.
        """
        return iter(self)

    def steps(self, start: int | None = None, stop: int | None = None) -> BatchSequence:
        """Return the run itself: the batches of global steps start, start + 1, ..., stop - 1.

        Args:
            start: None to go on from where the run stands at the first ``next``: after the last
                batch that was taken, where a loaded state says, or else at 0.
            stop: None to go on for ever.
        """
        if start is not None:
            start = check_integer("start", start, 0, TWO_64)
        if stop is not None:
            stop = check_integer("stop", stop, start or 0, TWO_64 + 1)

        def decide() -> Pass:
            first = self._position.next_step if start is None else start
            last = TWO_64 if stop is None else max(stop, first)
            return Pass(first, last, False, Cursor(first))

        def again(at: int | None) -> tuple[Any, ...]:
            return self.steps, start if at is None else at, stop

        return self._sequence(decide, again)

    def __getitem__(self, g: int) -> Any:
        """Build the batch of global step g now, on this thread."""
        step = check_uint64("g", g)
        batch, error = self._builder.entry(step)
        if error is not None:
            raise error
        return batch if self._finish is None else self._finish(batch, step)

    def __len__(self) -> int:
        """How many batches a whole pass yields."""
        return self.steps_per_epoch

    def _pass(self, at: int | None) -> BatchSequence:
        """Return the pass over the next epoch, or what remains of one from global step ``at``."""

        def decide() -> Pass:
            start, stop = self._position.next_pass(at)
            self._position.epoch = start // self.steps_per_epoch + 1
            return Pass(start, stop, True, Cursor(start))

        return self._sequence(decide, lambda begun: (self._pass, at if begun is None else begun))

    def _sequence(
        self, decide: Callable[[], Pass], again: Callable[[int | None], tuple[Any, ...]]
    ) -> BatchSequence:
        def begin() -> tuple[Pass, Prefetcher, int]:
            self._builder.check_length()
            self._fingerprint.take_down()  # before a batch can change a callable
            before = self._position.epoch
            run = decide()
            prefetcher = self._prefetchers.acquire()
            try:
                number = prefetcher.begin(run)
            except BaseException:
                self._position.epoch = before
                prefetcher.free()
                raise
            self._position.follow(run)
            return run, prefetcher, number

        return BatchSequence(begin, self._prefetchers.release, self._finish, again)

    # Where the run stands

    @property
    def epoch(self) -> int:
        """The epoch that the next pass runs over."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass run over ``epoch``; a loaded position inside it stays.

        Raises:
            ValueError: if a state was loaded whose next step lies in another epoch.
        """
        self._position.set_epoch(epoch)

    def state_dict(self, step: int | None = None) -> dict[str, Any]:
        """Return where the run stands: the step after the last batch that the consumer took.

        Plain values, ready for JSON: "version", "next_step", and what the step is of: "seed",
        "dataset_length", "dataset", "sampler", "transform", "augmentation", "collator" and "code".
        Workers, prefetch and shards are not part of it. The parts are described once, callables
        before the loader's first pass; so a state costs microseconds.

        Args:
            step: the last global step that counts as taken, for a consumer that looks ahead; None
                for the last one that was taken.
        """
        following = self._position.next_step if step is None else check_uint64("step", step) + 1
        return make_state(following, self.seed, self._builder.length, self._fingerprint)

    def load_state_dict(self, state: dict[str, Any], allow: Iterable[str] = ()) -> None:
        """Go on from a state: the next pass, or ``steps()``, starts at its next step, once.

        States of version 1, which knew less of the parts, are taken as well.

        Args:
            state: what ``state_dict`` returned, here or elsewhere.
            allow: names of fields that may differ, for example {"transform"}. The batches from
                here on are those of this loader.

        Raises:
            TypeError: naming the field whose type is wrong.
            ValueError: naming the field that differs, with both values; or an unknown name.
        """
        allowed = check_allowed(allow)
        next_step = check_state(state, self.state_dict(), self._state_of_version_1, allowed)
        self._position.go_on_at(next_step)

    def _state_of_version_1(self) -> dict[str, Any]:
        return {
            "version": 1,
            "next_step": 0,
            "seed": self.seed,
            "dataset_length": self._builder.length,
            "sampler": describe(self._sampler),
            "collator": describe(self._collate),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments, what a subclass added, and where the run stands."""
        position = self._position
        made_by = (
            type(self),
            DataLoader,
            self._arguments,
            position.epoch,
            position.inside_epoch,
        )
        return _rebuild_loader, made_by, added_attributes(self, self._own)

    # Looking into it

    def explain(self, g: int) -> dict[str, Any]:
        """Return what makes the batch of global step g, without building it.

        A dict: "global_step", "epoch", "step", and "slots", a list with for each slot of this
        shard its "slot", dataset "index", and the generator states "transform" (stream 0),
        "augment" (stream 1) and "row" (stream 2, the array face's native transforms). The
        generator that an array transform is called with is the first slot's "transform". With
        ``datasets.Items`` also "item", that of its transform (stream 3).
        """
        return explain(self._builder, check_uint64("g", g))

    def digest(self, g: int) -> str:
        """Return the SHA-256 of the batch of global step g, as ``onemodel.digest`` defines it."""
        batch, error = self._builder.entry(check_uint64("g", g))
        if error is not None:
            raise error
        return digest(batch)

    @property
    def stats(self) -> LoaderStats:
        """What was measured so far; ``print(loader.stats)`` says what the run waits for."""
        stats = self._prefetchers.stats
        if isinstance(self._pool, BufferPool):
            stats = replace(stats, pool=self._pool.stats)
        reader = getattr(self._builder.builder, "reader", None)
        if reader is not None:
            stats = replace(stats, substitutes=reader.substitutes)
        return stats

    def close(self) -> None:
        """End every pass that still runs, and wait for its workers. A new pass may be started."""
        self._prefetchers.close(wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        # An exception is not kept waiting for a dataset that may never return.
        self._prefetchers.close(wait=kind is None)

    def __repr__(self) -> str:
        rank, world = self.shard
        shard = f", shard {rank} of {world}" if world > 1 else ""
        length = self._builder.length
        reach = getattr(self._sampler, "n", length)
        covered = f"{reach} of " if isinstance(reach, int) and reach != length else ""
        left_out = 0
        drops = getattr(self._sampler, "drop_last", False) is True
        if drops and isinstance(reach, int) and not getattr(self._sampler, "replacement", False):
            left_out = reach - self.steps_per_epoch * self._sampler.batch_size
        dropped = f"{left_out} left out an epoch, " if left_out > 0 else ""
        running = self._prefetchers.running_levels
        chosen = f" ({running[0]} now)" if self._automatic and running else ""
        return (
            f"DataLoader({covered}{length} items of {type(self._dataset).__name__}, "
            f"{self.steps_per_epoch} steps an epoch, {dropped}{describe(self._sampler)}, "
            f"seed={self.seed}, epoch={self.epoch}, workers={self.workers}{chosen}, "
            f"prefetch={self.prefetch}{shard})"
        )


def _rebuild_loader(
    kind: type[DataLoader],
    owner: type[DataLoader],
    arguments: dict[str, Any],
    epoch: int,
    position: int | None,
) -> DataLoader:
    """Return a loader of these arguments that goes on at ``position``, or with ``epoch``."""
    made: DataLoader = rebuild(kind, owner, arguments)
    made._position.epoch = epoch
    if position is not None:
        made._position.go_on_at(position)
    return made
