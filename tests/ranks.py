"""One rank of a training run, for tests that start several: with processes, torchrun or Ray.

Each step of each rank leaves a record in a folder. Rank 0 leaves the loader's state there, as a
checkpoint; a rank that finds one goes on from it.
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

import onemodel as om

COUNT, BATCH, STEPS = 44, 8, 6  # the last batch of an epoch has 4 rows
FACES = ("arrays", "lines")


def negative(rng, batch):
    """A transform of a user's own, one draw a row."""
    pixels, labels = batch
    flip = rng.row_random(len(pixels)) < 0.5
    return np.where(flip[:, None, None, None], 255 - pixels, pixels), labels


def make_loader(face, shard=(0, 1), **options):
    if face == "lines":
        lines = om.datasets.DigitLines(COUNT, height=12, digits=(1, 4))
        return om.DataLoader(
            lines,
            sampler=om.BucketedSampler(
                lines.widths, BATCH, pool_batches=2, drop_last=False, shuffle_slots=True
            ),
            transform=om.augment.StretchWidth(),
            collate=om.ImageBatchCollator(augment=om.augment.GainOffset()),
            seed=42,
            shard=shard,
            **options,
        )
    pixels = np.arange(COUNT * 48, dtype=np.uint8).reshape(COUNT, 4, 4, 3)
    return om.DataLoader(
        om.ArrayDataset(pixels, np.arange(COUNT)),
        sampler=om.ShuffledSampler(COUNT, BATCH, drop_last=False),
        transform=om.Compose([om.transforms.RandomCrop(1), negative]),
        seed=42,
        shard=shard,
        **options,
    )


def rows_of(batch):
    """A digest of each row: of an image's own pixels, since padding depends on the rank."""
    if isinstance(batch, om.ImageBatch):
        rows = [
            image[:, :, :width].tobytes()
            for image, width in zip(batch.images, batch.widths, strict=True)
        ]
    else:
        rows = [b"".join(field[k].tobytes() for field in batch) for k in range(len(batch[0]))]
    return [hashlib.sha256(row).hexdigest() for row in rows]


def train(loader, rank, world, folder, stop, killed_after=None, meet=lambda: None):
    """Take steps up to ``stop``, or die; ``meet()`` returns when all ranks have called it."""
    folder = Path(folder)
    checkpoint = folder / "state.json"
    if checkpoint.exists():
        loader.load_state_dict(json.loads(checkpoint.read_text()))
    meet()  # nobody writes a state before all have read it
    for batch in loader.steps(stop=stop):
        following = loader.state_dict()["next_step"]
        record = {"digest": om.digest(batch), "rows": rows_of(batch)}
        write(folder / f"{world}-{rank}-{following - 1}.json", record)
        meet()
        if rank == 0:
            write(checkpoint, loader.state_dict())
        if following - 1 == killed_after:
            os.kill(os.getpid(), signal.SIGKILL)
    loader.close()


def write(path, content):
    """Write a file whole or not at all."""
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(content))
    part.replace(path)


def check(face, folder, world, steps):
    """What the ranks built is what one process builds, by digests and by rows."""
    whole = make_loader(face)
    alone = [make_loader(face, (rank, world)) for rank in range(world)]
    for g in steps:
        records = [
            json.loads((Path(folder) / f"{world}-{rank}-{g}.json").read_text())
            for rank in range(world)
        ]
        assert [record["digest"] for record in records] == [each.digest(g) for each in alone]
        rows = [row for record in records for row in record["rows"]]
        assert rows == rows_of(whole[g])
        assert len(rows) in (BATCH, COUNT % BATCH)


def under_torchrun(face, folder, stop, killed_after):
    """One rank as torchrun starts it; gloo says when all have taken a step."""
    from torch import distributed

    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    loader = make_loader(face, (rank, world), workers=2)
    dies = killed_after if rank == world - 1 else None
    train(loader, rank, world, folder, stop, dies, distributed.barrier)
    distributed.destroy_process_group()


if __name__ == "__main__":
    chosen, place, last, killed = sys.argv[1:]
    under_torchrun(chosen, place, int(last), int(killed) if int(killed) >= 0 else None)
