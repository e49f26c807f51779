"""Measure the kernels on one thread: the same work natively and in WebAssembly.

Prints one JSON object, {kernel: items a second}. benchmarks/wasm.mjs runs this file in
both and prints the ratios.
"""

import json
import time

import numpy as np

import onemodel as om

SECONDS = 0.3  # of measuring, for each kernel
SLICE = 0.002  # long enough for the clock, short enough that some slices go undisturbed


def rate(run, items):
    """Return how many items a second `run` handles, in the best of many short slices."""
    run()
    started = time.perf_counter()
    run()
    once = max(time.perf_counter() - started, 1e-7)
    repeats = max(1, int(SLICE / once))
    best = float("inf")
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        started = time.perf_counter()
        for _ in range(repeats):
            run()
        best = min(best, (time.perf_counter() - started) / repeats)
    return items / best


def lines(count, height=32):
    rng = om.SampleRng(1)
    return [
        om.Sample(rng.random((1, height, 200 + rng.next_int(100)), dtype=np.float32), [1], 0)
        for _ in range(count)
    ]


def kernels():
    """Return (name, what it counts, what to run, how many of them one run handles)."""
    # One source: what remains is deriving a generator for each slot, and two draws of it.
    slots = 65_536
    mixing = om.MixingSampler([slots], [1.0], slots)

    permutation = om.KeyedPermutation(10_000_019, 42)
    positions = np.arange(100_000, dtype=np.int64)
    taken = np.empty_like(positions)

    table = om.datasets.ImageTable.from_samples(lines(64))
    plain = om.DataLoader(table, batch_size=64, collate=om.ImageBatchCollator(pool=om.BufferPool()))
    augmented = om.DataLoader(
        table,
        batch_size=64,
        collate=om.ImageBatchCollator(
            pool=om.BufferPool(), augment=om.augment.GainOffset(gain=(0.8, 1.2))
        ),
    )
    pixels_in_batch = sum(int(width) for width in table.widths) * table.height

    side = 512
    gray = (np.arange(side * side) % 251).astype(np.uint8).reshape(side, side)
    gray_out = np.empty((1, side, side), dtype=np.float32)
    colour = (np.arange(side * side * 3) % 251).astype(np.uint8).reshape(side, side, 3)
    colour_out = np.empty((3, side, side), dtype=np.float32)

    def build(loader):
        with loader[0]:
            pass

    return [
        ("derive", "slots", lambda: mixing.batch_indices(1, 2, 0), slots),
        ("permutation take", "indices", lambda: permutation.take(positions, taken), len(positions)),
        ("collation", "pixels", lambda: build(plain), pixels_in_batch),
        ("collation, augmented", "pixels", lambda: build(augmented), pixels_in_batch),
        (
            "gray8 to planar",
            "pixels",
            lambda: om.image.gray8_to_planar(gray, 0.5, 0.25, gray_out),
            side * side,
        ),
        (
            "rgb8 to planar",
            "pixels",
            lambda: om.image.rgb8_to_planar(
                colour, [0.5, 0.5, 0.5], [0.25, 0.25, 0.25], colour_out
            ),
            side * side,
        ),
    ]


def measure():
    return {f"{name}, {unit}": rate(run, items) for name, unit, run, items in kernels()}


def measure_as_json():
    return json.dumps(measure())


if __name__ == "__main__":
    print(measure_as_json())
