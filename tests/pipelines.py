"""Small pipelines, pure and impure, that `check_loader` is held to; a new process imports them."""

import functools
import os
import random
import threading
import time

import numpy as np

import onemodel as om
from onemodel.augment import GainOffset
from onemodel.datasets import DigitLines, ImageTable
from onemodel.transforms import Compose, Normalize, OneHot, RandomHorizontalFlip

X = np.arange(40 * 6, dtype=np.float32).reshape(40, 6)
WORDS = ("ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen")


def arrays(transform=None, dataset=None, **options):
    return om.DataLoader(
        om.ArrayDataset({"x": X}) if dataset is None else dataset,
        4,
        shuffle=True,
        transform=transform,
        seed=3,
        **options,
    )


class Samples:
    """Samples made as they are read."""

    def __init__(self, item=None):
        self.item = item or (lambda index: X[index])

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        image = np.ascontiguousarray(self.item(index), np.float32).reshape(1, 2, 3)
        return om.Sample(image, [index % 5, 1], index)


def samples(transform=None, dataset=None, augment=None, **options):
    return om.DataLoader(
        Samples() if dataset is None else dataset,
        4,
        shuffle=True,
        transform=transform,
        collate=om.ImageBatchCollator(augment=augment),
        seed=3,
        **options,
    )


def with_image(sample, image):
    return om.Sample(np.asarray(image, np.float32), sample.target, sample.label)


# Pure, of every face and builder


def brighten(rng, sample):
    return with_image(sample, sample.image + np.float32(rng.next_single()))


def add_row_noise(rng, batch):
    batch["x"] += rng.row_random(len(batch["x"])).astype(np.float32)[:, None]


def darken(rng, image):
    image *= np.float32(rng.next_single())


def pure_arrays():
    return arrays(Compose([add_row_noise, lambda rng, batch: None]))


def pure_native_arrays():
    pixels = np.arange(24 * 48).reshape(24, 4, 4, 3).astype(np.uint8)
    dataset = om.ArrayDataset({"x": pixels, "y": np.arange(24) % 3})
    parts = [RandomHorizontalFlip(), Normalize(mean=0.5, std=0.5), OneHot(3)]
    return om.DataLoader(dataset, 5, transform=Compose(parts))


def pure_samples():
    return samples(brighten, augment=darken)


def pure_list():
    return samples(dataset=[Samples()[k] for k in range(30)], augment=GainOffset())


def pure_table():
    lines = DigitLines(30)
    return om.DataLoader(
        ImageTable.from_samples(lines),
        sampler=om.BucketedSampler(lines.widths, 6),
        collate=om.ImageBatchCollator(augment=GainOffset()),
        shard=(1, 2),
    )


def pure_own_collate():
    return om.DataLoader(Samples(), 4, collate=lambda items, key: {"n": [i.label for i in items]})


class Many(Samples):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def pure_many():
    return samples(brighten, Many())


def pure_items():
    return arrays(dataset=om.datasets.Items([(row, 3) for row in X], transform=item_noise))


def item_noise(rng, item):
    return item[0] + np.float32(rng.next_single()), item[1]


def on_a_device():
    return samples(device=lambda batch: "tensors")


PURE = [
    pure_arrays,
    pure_native_arrays,
    pure_samples,
    pure_list,
    pure_table,
    pure_own_collate,
    pure_many,
    pure_items,
    on_a_device,
]


# Impure


def numpy_noise(rng, batch):
    return {"x": batch["x"] + np.random.random()}


def global_numpy():
    return arrays(Compose([add_row_noise, numpy_noise]))


def python_noise(rng, sample):
    return with_image(sample, sample.image + random.random())


def global_python():
    return samples(Compose([brighten, python_noise]))


def fresh_noise(rng, sample):
    return with_image(sample, sample.image + np.random.default_rng().random())


def global_entropy():
    return samples(fresh_noise)


def global_augment():
    def shake(rng, image):
        image += np.random.random()

    return samples(augment=shake)


def stamp(rng, batch):
    return {"x": batch["x"], "t": np.full(len(batch["x"]), time.time_ns())}


def clock():
    return arrays(stamp)


class Views:
    """Batches that are the dataset's own arrays: of views the loader would make copies."""

    def __init__(self):
        self.x = [part.copy() for part in np.split(X, len(X) // 4)]

    def __len__(self):
        return 4 * len(self.x)

    def __getitem__(self, indices):
        return {"x": self.x[indices[0] // 4]}


def double(rng, batch):
    batch["x"] *= 2


def edited():
    return om.DataLoader(Views(), 4, transform=double)


class Growing(Samples):
    def __init__(self):
        super().__init__()
        self.reads = 0

    def __getitem__(self, index):
        self.reads += 1
        return om.Sample(np.full((1, 2, 3), self.reads, np.float32))


def changing():
    return samples(dataset=Growing())


def counter():
    count = [0]

    def step_size(rng, sample):
        count[0] += 1
        return with_image(sample, sample.image / count[0])

    return samples(step_size)


def made_unlike():
    number = next(NUMBERS)
    return arrays(lambda rng, batch: {"x": batch["x"] + number})


NUMBERS = iter(range(10**9))


def by_thread_name(rng, sample):
    here = threading.current_thread() is threading.main_thread()
    return with_image(sample, sample.image + (0 if here else 1))


def thread():
    return samples(by_thread_name)


def by_process(rng, sample):
    return with_image(sample, sample.image + os.getpid() % 1000)


def process():
    return samples(by_process)


@functools.cache
def first_process():
    return os.environ.setdefault("ONEMODEL_TEST_PROCESS", str(os.getpid()))


def by_set(rng, sample):
    places = {word: place for place, word in enumerate(set(WORDS))}
    return with_image(sample, sample.image + [places[word] for word in WORDS[:6:2]])


def hash_seed():
    return samples(by_set)


class Wandering:
    """A sampler that counts its calls."""

    steps_per_epoch, batch_size = 5, 4

    def __init__(self):
        self.calls = 0

    def __repr__(self):
        return "Wandering()"

    def batch_indices(self, seed, epoch, step):
        self.calls += 1
        return (np.arange(4) + self.calls) % 40


def sampler():
    return om.DataLoader(om.ArrayDataset(X), sampler=Wandering())


def widths():
    """Shapes that differ, and not values."""
    count = [0]

    def widen(rng, sample):
        count[0] += 1
        return with_image(sample, np.tile(sample.image, (1, 1, 1 + count[0] % 7)))

    return samples(widen)


def sometimes():
    """An error that comes with the second call for an index."""
    seen = set()

    def item(index):
        if index in seen:
            raise OSError(f"{index} is gone")
        seen.add(index)
        return X[index]

    return samples(dataset=Samples(item))


def broken():
    """The same error each time."""

    def item(index):
        raise OSError("no such file")

    return samples(dataset=Samples(item))


def no_loader():
    return 3
