"""Train a CTC model on lines of handwritten digits with JAX: few shapes, so few compilations.

Widths and targets are rounded up, so that `jax.jit` sees a handful of shapes; how often it compiled
is printed. A batch goes into the compiled step as it is: `ImageBatch` is a pytree. The state of the
loader is saved with the weights, and ``--resume`` goes on with the batches that the uninterrupted
run would have seen.

    pip install 'onemodel[jax,demo]' optax
    python examples/train_jax.py --checkpoint run.npz
    python examples/train_jax.py --checkpoint run.npz --resume
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm import tqdm

import onemodel as om
from onemodel.augment import GainOffset, Noise, Shift
from onemodel.datasets import DigitLines, ImageTable

CLASSES = 11  # CTC's blank and ten digits
STRIDE = 4  # columns of an image for each column of scores
OPTIMIZER = optax.chain(optax.clip_by_global_norm(5.0), optax.adamw(2e-3))

# kernel height and width, channels in and out, stride of both axes
LAYERS = ((5, 5, 1, 16, 2, 2), (3, 3, 16, 32, 2, 2), (3, 3, 32, 64, 2, 1))


def first_weights(seed: int) -> dict[str, jax.Array]:
    """Return weights drawn for this seed."""
    keys = jax.random.split(jax.random.key(seed), len(LAYERS) + 2)
    weights = {}
    for place, (height, width, inside, outside, *_) in enumerate(LAYERS):
        shape = (height, width, inside, outside)
        deviation = (2 / (height * width * inside)) ** 0.5
        weights[f"layer{place}"] = jax.random.normal(keys[place], shape) * deviation
        weights[f"bias{place}"] = jnp.zeros(outside)
    weights["hidden"] = jax.random.normal(keys[-2], (3, 4 * 64, 96)) * (2 / (3 * 4 * 64)) ** 0.5
    weights["scores"] = jax.random.normal(keys[-1], (96, CLASSES)) * 0.1
    return weights


def scores_of(weights: dict[str, jax.Array], images: jax.Array) -> jax.Array:
    """Return scores [B, W / STRIDE, CLASSES] of images [B, 1, 32, W]."""
    values = images.transpose(0, 2, 3, 1)
    for place, (*_, down, across) in enumerate(LAYERS):
        values = jax.lax.conv_general_dilated(
            values, weights[f"layer{place}"], (down, across), "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip
        values = jax.nn.relu(values + weights[f"bias{place}"])
    columns = values.transpose(0, 2, 1, 3).reshape(values.shape[0], values.shape[2], -1)
    columns = jax.lax.conv_general_dilated(
        columns, weights["hidden"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    )
    return jax.nn.relu(columns) @ weights["scores"]


def loss_of(weights: dict[str, jax.Array], batch: om.ImageBatch) -> jax.Array:
    """Return the mean over the lines of the CTC loss for each symbol."""
    scores = scores_of(weights, batch.images)
    columns = jnp.arange(scores.shape[1]) >= batch.widths[:, None] // STRIDE
    symbols = jnp.arange(batch.targets.shape[1]) >= batch.target_lengths[:, None]
    losses = optax.ctc_loss(scores, columns.astype(float), batch.targets, symbols.astype(float))
    return (losses / jnp.maximum(batch.target_lengths, 1)).mean()


@jax.jit
def step(weights: Any, memory: Any, batch: om.ImageBatch) -> tuple[Any, Any, jax.Array]:
    """Return weights and the optimizer's memory after one batch, and its loss."""
    loss, gradient = jax.value_and_grad(loss_of)(weights, batch)
    change, memory = OPTIMIZER.update(gradient, memory, weights)
    return optax.apply_updates(weights, change), memory, loss


read_columns = jax.jit(lambda weights, images: scores_of(weights, images).argmax(2))


def make_loader(lines: Any, batch_size: int, *, seed: int = 0, augment: Any = None, **options: Any):
    """Return batches whose shapes are few: widths of 64, targets of 8."""
    return om.DataLoader(
        lines,
        sampler=om.BucketedSampler(lines.widths, batch_size, shuffle_slots=True),
        collate=om.ImageBatchCollator(
            width_multiple=64, targets="padded", target_multiple=8, augment=augment
        ),
        seed=seed,
        device="jax",
        **options,
    )


def share_read(weights: Any, options: argparse.Namespace) -> float:
    """Return the share of held-out lines that are read without an error."""
    right = 0
    loader = make_loader(DigitLines(options.held_out, seed=2), options.batch_size)
    for batch in loader:
        columns = np.asarray(read_columns(weights, batch.images))
        for slot, row in enumerate(columns):
            row = row[: int(batch.widths[slot]) // STRIDE]
            symbols = row[np.append(True, row[1:] != row[:-1])]
            target = np.asarray(batch.targets[slot])[: int(batch.target_lengths[slot])]
            right += np.array_equal(symbols[symbols != 0], target)
    return right / (len(loader) * options.batch_size)


def save(path: Path, weights: Any, memory: Any, state: dict[str, Any]) -> None:
    """Write the run into one file, whole or not at all."""
    leaves = jax.tree.leaves((weights, memory))
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        arrays = {str(place): np.asarray(leaf) for place, leaf in enumerate(leaves)}
        np.savez(file, loader=json.dumps(state), **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def restore(path: Path, weights: Any, memory: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Read what ``save`` wrote."""
    with np.load(path) as stored:
        leaves, tree = jax.tree.flatten((weights, memory))
        leaves = [jnp.asarray(stored[str(place)]) for place in range(len(leaves))]
        weights, memory = jax.tree.unflatten(tree, leaves)
        return weights, memory, json.loads(str(stored["loader"]))


def train(options: argparse.Namespace) -> None:
    """Train from the checkpoint with ``--resume``, or from the start."""
    lines = ImageTable.from_samples(DigitLines(options.lines, seed=1), dtype="uint8", std=256 / 255)
    augment = om.Compose([Shift((-2, 2), (-2, 2)), GainOffset((0.7, 1.2)), Noise(0.05)])
    loader = make_loader(
        lines, options.batch_size, seed=options.seed, augment=augment, workers=options.workers
    )
    weights = first_weights(options.seed)
    memory = OPTIMIZER.init(weights)
    if options.resume:
        weights, memory, state = restore(options.checkpoint, weights, memory)
        loader.load_state_dict(state)
    start = loader.state_dict()["next_step"]
    losses = []
    began = time.monotonic()
    run = loader.steps(stop=options.steps if options.stop_at is None else options.stop_at)
    with loader, tqdm(run, total=options.steps, initial=start) as bar:
        for batch in bar:
            weights, memory, loss = step(weights, memory, batch)
            losses.append(float(loss))
            rate = len(losses) * options.batch_size / (time.monotonic() - began)
            stats = loader.stats
            waited = stats.wait_seconds / max(1e-9, stats.wait_seconds + stats.consumer_seconds)
            bar.set_postfix_str(f"loss {losses[-1]:.3f}, {rate:.0f} lines/s, waited {waited:.1%}")
        state = loader.state_dict()
    if options.checkpoint:
        save(options.checkpoint, weights, memory, state)
    print(f"loss {np.mean(losses[:5]):.3f} -> {np.mean(losses[-5:]):.3f}")
    print(f"compiled {step._cache_size()} times for {len(losses)} batches")
    print(f"weights {om.digest(np.concatenate([np.ravel(each) for each in weights.values()]))}")
    print(f"{share_read(weights, options):.1%} of the held-out lines without an error")


def main(arguments: list[str] | None = None) -> None:
    """Train as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=4000, help="of the training set")
    parser.add_argument("--held-out", type=int, default=320)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--stop-at", type=int, help="end before this step, as a crash would")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--resume", action="store_true")
    train(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
