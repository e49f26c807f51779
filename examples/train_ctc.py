"""Train a CTC model that reads lines of handwritten digits; it learns them within five minutes.

The lines are ``onemodel.datasets.DigitLines``, in batches of like widths, augmented as they are
collated. After every ``--save-every`` steps and at the end, weights, optimizer and loader state go
into one file, written whole or not at all. ``--resume`` goes on from there: the batches are those
that the uninterrupted run would have seen, so the weights are equal bit by bit (on one machine
with one version of the libraries and as many threads).

    pip install 'onemodel[torch,demo]'
    python examples/train_ctc.py --checkpoint run.pt --picture predictions.png
    python examples/train_ctc.py --checkpoint run.pt --resume
    torchrun --nproc-per-node 2 examples/train_ctc.py --checkpoint run.pt
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image, ImageDraw
from torch import nn
from torch.nn.functional import ctc_loss
from tqdm import tqdm

import onemodel as om
from onemodel.augment import GainOffset, Noise, Shift
from onemodel.datasets import DigitLines, ImageTable

CLASSES = 11  # CTC's blank and ten digits
STRIDE = 4  # columns of an image for each column of scores


class Reader(nn.Module):
    """Images [B, 1, 32, W] to log-probabilities [W / STRIDE, B, CLASSES]."""

    def __init__(self) -> None:
        super().__init__()

        def block(inside: int, outside: int, size: int, stride: int | tuple[int, int]) -> nn.Module:
            convolution = nn.Conv2d(inside, outside, size, stride, padding=size // 2, bias=False)
            return nn.Sequential(convolution, nn.BatchNorm2d(outside), nn.ReLU())

        self.columns = nn.Sequential(
            block(1, 16, 5, 2), block(16, 32, 3, 2), block(32, 64, 3, 1), nn.MaxPool2d((2, 1))
        )
        self.scores = nn.Sequential(
            nn.Conv1d(4 * 64, 96, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(96, 96, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(96, CLASSES, 1),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities, time first."""
        return self.scores(self.columns(images).flatten(1, 2)).permute(2, 0, 1).log_softmax(2)


def read(scores: torch.Tensor, widths: torch.Tensor) -> list[list[int]]:
    """Return the likeliest symbols of each image: repeats and blanks are dropped."""
    found = []
    for row, width in zip(scores.argmax(2).T, widths.tolist(), strict=True):
        symbols = torch.unique_consecutive(row[: width // STRIDE])
        found.append(symbols[symbols != 0].tolist())
    return found


def make_loader(options: argparse.Namespace, shard: tuple[int, int]) -> om.DataLoader:
    """Return the training batches of one rank."""
    lines = ImageTable.from_samples(DigitLines(options.lines, seed=1), dtype="uint8", std=256 / 255)
    return om.DataLoader(
        lines,
        sampler=om.BucketedSampler(lines.widths, options.batch_size, shuffle_slots=True),
        collate=om.ImageBatchCollator(
            width_multiple=STRIDE,
            augment=om.Compose([Shift((-2, 2), (-2, 2)), GainOffset((0.7, 1.2)), Noise(0.05)]),
        ),
        seed=options.seed,
        workers=options.workers,
        shard=shard,
        device="torch",
    )


def held_out(options: argparse.Namespace) -> om.DataLoader:
    """Return lines that no training batch holds, each once."""
    lines = DigitLines(options.held_out, seed=2)
    return om.DataLoader(
        lines,
        sampler=om.BucketedSampler(lines.widths, 50, drop_last=False),
        collate=om.ImageBatchCollator(width_multiple=STRIDE),
        device="torch",
    )


@torch.no_grad()
def evaluate(model: nn.Module, options: argparse.Namespace) -> float:
    """Return the share of held-out lines that are read without an error; draw some of them."""
    model.eval()
    right = 0
    drawn = []
    for batch in held_out(options):
        targets = torch.split(batch.targets, batch.target_lengths.tolist())
        for slot, symbols in enumerate(read(model(batch.images), batch.widths)):
            right += symbols == targets[slot].tolist()
            if len(drawn) < 12 and slot % 4 == 0:
                image = batch.images[slot, 0, :, : int(batch.widths[slot])]
                drawn.append((image.numpy(), symbols, targets[slot].tolist()))
    model.train()
    if options.picture:
        draw(drawn, options.picture)
    return right / options.held_out


def draw(lines: list[tuple[np.ndarray, list[int], list[int]]], path: Path) -> None:
    """Write images with what was read below them, in red where that is wrong."""
    height = 54
    widest = max(image.shape[1] for image, _, _ in lines)
    sheet = Image.new("RGB", (widest + 16, height * len(lines) + 8), "white")
    pen = ImageDraw.Draw(sheet)
    for row, (image, symbols, target) in enumerate(lines):
        pixels = 255 - np.clip(image * 256, 0, 255).astype(np.uint8)
        sheet.paste(Image.fromarray(pixels), (8, 8 + row * height))
        text = " ".join(str(symbol - 1) for symbol in symbols)
        pen.text((8, 41 + row * height), text, "darkgreen" if symbols == target else "red")
    sheet.save(path)


def save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, loader) -> None:
    """Write the run into one file, whole or not at all."""
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "loader": loader.state_dict(),
        }
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def learning_rate(step: int, steps: int, highest: float) -> float:
    """Rise over the first tenth of the run, fall along a cosine: a function of the step alone."""
    rise = steps / 10
    if step < rise:
        return highest * (step + 1) / (rise + 1)
    return highest * (0.01 + 0.99 * (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2)


def loss_of(model: nn.Module, batch: om.ImageBatch) -> torch.Tensor:
    """Return the mean over the lines of the loss for each symbol."""
    return ctc_loss(
        model(batch.images),
        batch.targets.long(),
        batch.widths.long() // STRIDE,
        batch.target_lengths.long(),
        zero_infinity=True,
    )


def train(options: argparse.Namespace) -> None:
    """Train from the checkpoint with ``--resume``, or from the start."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if world > 1 else 0
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    plain = Reader()
    optimizer = torch.optim.AdamW(plain.parameters(), weight_decay=0.01)
    loader = make_loader(options, (rank, world))
    if options.resume:
        stored = torch.load(options.checkpoint, weights_only=True)
        plain.load_state_dict(stored["model"])
        optimizer.load_state_dict(stored["optimizer"])
        loader.load_state_dict(stored["loader"])
    model = nn.parallel.DistributedDataParallel(plain) if world > 1 else plain
    start = loader.state_dict()["next_step"]
    losses = []
    began = time.monotonic()
    run = loader.steps(stop=options.steps if options.stop_at is None else options.stop_at)
    with loader, tqdm(run, total=options.steps, initial=start, disable=rank > 0) as bar:
        for step, batch in enumerate(bar, start):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, options.steps, options.learning_rate)
            loss = loss_of(model, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
            if (step + 1) % 10 == 0:
                rate = len(losses) * options.batch_size / (time.monotonic() - began)
                bar.set_postfix_str(
                    f"loss {np.mean(losses[-10:]):.3f}, {rate:.0f} lines/s, "
                    f"waited {waited(loader):.2%}"
                )
            if rank == 0 and (step + 1) % options.save_every == 0:
                save(options.checkpoint, plain, optimizer, loader)
    if rank == 0:
        save(options.checkpoint, plain, optimizer, loader)
        report(plain, options, losses, time.monotonic() - began, waited(loader))
    if world > 1:
        dist.destroy_process_group()


def waited(loader: om.DataLoader) -> float:
    """Return the share of its time that the training loop waited for batches."""
    stats = loader.stats
    return stats.wait_seconds / max(1e-9, stats.wait_seconds + stats.consumer_seconds)


def report(
    model: nn.Module,
    options: argparse.Namespace,
    losses: list[float],
    seconds: float,
    share: float,
) -> None:
    """Print what the run came to."""
    if losses:
        tenth = max(1, len(losses) // 10)
        print(f"loss {np.mean(losses[:tenth]):.3f} -> {np.mean(losses[-tenth:]):.3f}")
        print(f"trained {seconds:.1f} s, waited {share:.2%}")
    print(f"exact held-out lines {evaluate(model, options):.3f}")
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    print(f"weights {digest.hexdigest()}")


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, or these arguments, and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True, help="a .pt file")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--picture", type=Path, help="a .png file of predictions")
    parser.add_argument("--lines", type=int, default=8192, help="training lines")
    parser.add_argument("--held-out", type=int, default=1000, help="lines to test with")
    parser.add_argument("--batch-size", type=int, default=32, help="lines over all ranks")
    parser.add_argument("--steps", type=int, default=1200, help="the whole run")
    parser.add_argument("--stop-at", type=int, help="stop after this step, as if interrupted")
    parser.add_argument("--save-every", type=int, default=100, help="steps")
    parser.add_argument("--learning-rate", type=float, default=4e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    train(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
