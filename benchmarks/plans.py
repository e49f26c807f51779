"""Plans: permutation and sampler rates, and how long the first batch of a pass takes to come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import reference
from benchmarks import workloads as work
from benchmarks.ceiling import permutation_take
from benchmarks.harness import Contender, Measure, compare, counted, latency
from benchmarks.report import Table

SIZES = (2048, 10**6, 10**8)
TAKE = 65_536
"""Positions in one call: 512 KiB of indices, which a core's own cache holds."""


def rates(n: int) -> list[Contender]:
    """Return who turns positions into shuffled indices; a unit is one index."""
    key = reference.derive(work.SEED, 0, 0, 0, 101)
    count = min(n, TAKE)
    out = np.zeros(count, np.int64)

    def check(values: np.ndarray) -> None:
        wanted = [reference.permuted(n, key, position) for position in range(64)]
        reference.equal("permutation", np.asarray(values[:64], np.int64), np.array(wanted))

    def per_index(run: Callable[[], Any]) -> Measure:
        batches = counted(lambda times: [run() for _ in range(times)], max(1, TAKE // count))
        return lambda seconds: batches(seconds) * count

    def ceiling(kind: str) -> Callable[[], Measure]:
        def begin() -> Measure:
            permutation_take(n, key, 0, out, kind)
            check(out)
            return per_index(lambda: permutation_take(n, key, 0, out, kind))

        return begin

    def onemodel() -> Measure:
        import onemodel as om

        permutation, positions = om.KeyedPermutation(n, key), np.arange(count)
        check(permutation.take(positions, out=out))
        return per_index(lambda: permutation.take(positions, out=out))

    def sampler(make: Callable[[Any], Any], size: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            import onemodel as om

            made = make(om)
            made.batch_indices(work.SEED, 0, 0)
            steps = min(made.steps_per_epoch, 1000)

            def run() -> None:
                for step in range(steps):
                    made.batch_indices(work.SEED, 0, step)

            batches = counted(lambda times: [run() for _ in range(times)], 1)
            return lambda seconds: batches(seconds) * steps * size

        return begin

    def numpy_table() -> Measure:
        rng = np.random.default_rng(work.SEED)
        whole = counted(lambda times: [rng.permutation(n) for _ in range(times)], 1)
        return lambda seconds: whole(seconds) * n

    base = f"{n:,}"
    found = [
        # Ratios are to the loop as one writes it; the other two show what is left above it.
        Contender(f"C loop, n {base}", "ceiling", ceiling("plain"), 1, base),
        Contender(f"C loop in blocks, n {base}", "blocks", ceiling("blocks"), 1, base),
        Contender(f"C loop in blocks, AVX2, n {base}", "blocks", ceiling("avx2"), 1, base),
        Contender(f"onemodel KeyedPermutation.take, n {base}", "onemodel", onemodel, 0, base),
        Contender(
            f"onemodel ShuffledSampler, batches of 128, n {base}", "onemodel",
            sampler(lambda om: om.ShuffledSampler(n, 128), 128), 0, base,
        ),
        Contender(
            f"onemodel MixingSampler, batches of 128, n {base}", "onemodel",
            sampler(lambda om: om.MixingSampler([n // 2, n // 2], [3, 1], 128), 128), 0, base,
        ),
    ]  # fmt: skip
    if n <= 10**6:
        found.append(Contender(f"NumPy permutation table, n {base}", "numpy", numpy_table, 0, base))
    return found


class Virtual:
    """A dataset of any length without memory: row i is the number i."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(index, np.float32)


def starts(n: int, *, quick: bool) -> list[Contender]:
    """Return who hands over the first batch of an epoch, and the one at its middle, n items."""
    base, middle = f"{n:,}", n // 128 // 2

    def onemodel(at: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            import onemodel as om

            dataset, epoch = Virtual(n), iter(range(10**9))

            def first() -> Any:
                loader = om.DataLoader(dataset, 128, shuffle=True, seed=work.SEED)
                stream = iter(loader.steps(next(epoch) * loader.steps_per_epoch + at))
                return next(stream), stream

            first()
            return latency(first)

        return begin

    def torch_loader() -> tuple[Any, Any]:
        import torch
        from torch.utils.data import DataLoader

        class Rows(torch.utils.data.Dataset):
            def __len__(self) -> int:
                return n

            def __getitems__(self, indices: list[int]) -> Any:
                return torch.tensor(indices, dtype=torch.float32)

        def make(kind: Any = DataLoader) -> Any:
            return kind(Rows(), batch_size=128, shuffle=True, collate_fn=lambda rows: rows)

        return torch, make

    def torch_first() -> Measure:
        _, make = torch_loader()

        def first() -> Any:
            stream = iter(make())
            return next(stream), stream

        return latency(first)

    def torch_resume() -> Measure:
        from torchdata.stateful_dataloader import StatefulDataLoader

        _, make = torch_loader()
        loader = make(StatefulDataLoader)
        stream = iter(loader)
        for _ in range(middle):
            next(stream)
        state = loader.state_dict()

        def resume() -> Any:
            again = make(StatefulDataLoader)
            again.load_state_dict(state)
            stream = iter(again)
            return next(stream), stream

        return latency(resume)

    def grain(at: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            import grain as library

            seed = iter(range(2**31))

            def first() -> Any:
                dataset = library.MapDataset.range(n).shuffle(seed=next(seed)).batch(128)
                stream: Iterator[Any] = iter(dataset.to_iter_dataset())
                if at:
                    stream.set_state({"next_index": at})
                return next(stream), stream

            return latency(first)

        return begin

    found = [
        Contender(f"onemodel, first batch, n {base}", "onemodel", onemodel(0)),
        Contender(f"onemodel, resume at the middle, n {base}", "onemodel", onemodel(middle)),
        Contender(f"Grain, first batch, n {base}", "peer", grain(0)),
        Contender(f"Grain, resume at the middle, n {base}", "peer", grain(middle)),
    ]
    if n < 10**8 or not quick:
        found.append(Contender(f"PyTorch DataLoader, first batch, n {base}", "peer", torch_first))
    if n < 10**8:  # getting to the middle takes PyTorch minutes before anything is timed
        name = f"StatefulDataLoader, resume at the middle, n {base}"
        found.append(Contender(name, "peer", torch_resume))
    return found


def run(*, rounds: int, seconds: float, quick: bool, only: list[str]) -> list[Table]:
    """Time rates and starts at each size; return a table each."""
    speed = [each for n in SIZES for each in rates(n)]
    wait = [each for n in SIZES for each in starts(n, quick=quick)]
    return [
        Table(
            "rates",
            "Shuffled positions to indices, on one thread",
            compare(speed, rounds=rounds, seconds=seconds / 2, only=only),
            unit="indices/s",
        ),
        Table(
            "starts",
            "From making a loader to its first batch, shuffled, batch 128",
            compare(wait, rounds=min(rounds, 3), seconds=seconds / 2, only=only),
            unit="time",
            columns={},
        ),
    ]
