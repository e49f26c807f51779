"""Batches that a browser and the machine beside it must both make, byte for byte.

The same file runs natively (native_digests.py) and in the browser test's worker. It uses
the public interface alone, and no function whose last bit may differ between two C
libraries (sin, exp, pow): only arithmetic, which IEEE 754 fixes.
"""

import asyncio
import json
import sys
import warnings

import numpy as np

import onemodel as om

# Early steps, a late one, and steps whose epoch or number passes 32 and 53 bits.
STEPS = (*range(14), 97, 1_000_003, 2**33 + 5, 2**53 + 1, 2**63, 2**64 - 1)

SEED = 0xDEADBEEFCAFEF00D


class Lines:
    """Ragged images: sample i is drawn from SampleRng(mix(i))."""

    def __init__(self, count, channels=1, height=6):
        self.samples = [self.draw(index, channels, height) for index in range(count)]
        self.widths = np.array([sample.image.shape[2] for sample in self.samples])

    @staticmethod
    def draw(index, channels, height):
        rng = om.SampleRng(om.mix(index))
        width = 8 + rng.next_int(17)
        target = [1 + rng.next_int(10) for _ in range(1 + rng.next_int(5))]
        label = rng.next_int(10)
        return om.Sample(rng.random((channels, height, width), dtype=np.float32), target, label)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def rows(count):
    """Return columns of three types, every value an exact fraction."""
    numbers = np.arange(count * 12, dtype=np.int64)
    return {
        "pixels": (numbers * 37 % 251).astype(np.uint8).reshape(count, 3, 4),
        "values": ((numbers * 101 % 1009) / np.float64(1024)).astype(np.float32),
        "labels": np.arange(count, dtype=np.int32),
    }


def array_dataset(count):
    columns = rows(count)
    columns["values"] = columns["values"].reshape(count, 12)
    return om.ArrayDataset(columns)


def jitter(rng, arrays):
    """Transform a whole batch with every kind of array draw."""
    count = len(arrays["labels"])
    pixels = arrays["pixels"].astype(np.float32)
    pixels *= rng.random((count, 1, 1), dtype=np.float32)
    return {
        "pixels": pixels + rng.standard_normal(pixels.shape),
        "values": arrays["values"] + rng.uniform(-0.5, 0.5, size=(count, 1)),
        "labels": arrays["labels"][rng.permutation(count)],
        "drawn": rng.integers(-5, 2**40, size=count),
    }


def halve(rng, image):
    """Augment in place, in Python: what runs beside the native augmentations."""
    image *= np.float32(0.5) + np.float32(rng.next_single())


def crop(rng, sample):
    """Return a narrower sample."""
    cut = rng.next_int(sample.image.shape[2] // 2)
    return om.Sample(sample.image[:, :, cut:], sample.target, sample.label)


def samplers(dataset, count):
    """Return one of each sampler for `count` items, by name."""
    third = count // 3
    return {
        "sequential": om.SequentialSampler(count, 8, drop_last=False),
        "shuffled": om.ShuffledSampler(count, 8),
        "mixing": om.MixingSampler([third, third, count - 2 * third], [0.5, 0.2, 0.3], 8),
        "bucketed": om.BucketedSampler(dataset, 8, pool_batches=3, drop_last=False),
        "weighted": om.WeightedSampler(range(1, count + 1), 8),
        "weighted once": om.WeightedSampler(range(1, count + 1), 8, replacement=False),
        "budget": om.BudgetSampler(dataset, 8 * int(max(dataset)), multiple_of=2),
    }


def augmentations():
    """Return every native augmentation that works in place, by name."""
    augment = om.augment
    return {
        "Blur": augment.Blur(p=0.7),
        "Erase": augment.Erase(),
        "GainOffset": augment.GainOffset(gain=(0.8, 1.2), offset=(-0.1, 0.1)),
        "HorizontalFlip": augment.HorizontalFlip(p=0.5),
        "Invert": augment.Invert(p=0.5),
        "Noise": augment.Noise(sigma=0.1),
        "Shift": augment.Shift(dx=(-3, 3), dy=(-2, 2)),
    }


def transforms():
    """Return every native transform that makes a new sample, by name."""
    return {
        "ResizeHeight": om.augment.ResizeHeight(9),
        "StretchWidth": om.augment.StretchWidth(0.7, 1.4),
    }


def loaders():
    """Return every loader whose batches are compared, by a name that says what it is."""
    lines = Lines(61)
    colour = Lines(24, channels=3, height=5)
    digits = om.datasets.DigitLines(40, seed=3, digits=(2, 5), height=16)
    arrays = array_dataset(61)
    native = augmentations()
    made = {}

    def samples(name, dataset=lines, sampler=None, transform=None, shard=(0, 1), **collate):
        made[f"samples, {name}"] = om.DataLoader(
            dataset,
            sampler=sampler or om.ShuffledSampler(len(dataset), 8),
            transform=transform,
            collate=om.ImageBatchCollator(**collate),
            seed=SEED,
            shard=shard,
        )

    for name, sampler in samplers(lines.widths, len(lines)).items():
        samples(name, sampler=sampler, width_multiple=8, pad_value=-1.0)
        samples(f"{name}, augmented", sampler=sampler, augment=native["GainOffset"])
        made[f"arrays, {name}"] = om.DataLoader(arrays, sampler=sampler, seed=SEED)
        made[f"arrays, {name}, transformed"] = om.DataLoader(
            arrays, sampler=sampler, transform=jitter, seed=SEED
        )
    for name, augmentation in native.items():
        samples(name, augment=augmentation)
    for name, transform in transforms().items():
        samples(name, transform=transform)
    samples("all native augmentations", augment=om.Compose(native.values()))
    samples("native and Python", augment=om.Compose([native["Noise"], halve, native["Blur"]]))
    samples("Python transform", transform=crop)
    samples("three channels", dataset=colour, augment=om.Compose(native.values()))
    samples("DigitLines", dataset=digits, augment=native["Shift"])
    samples(
        "uint8 table",
        dataset=om.datasets.ImageTable.from_samples(digits, dtype=np.uint8, std=256 / 255),
        augment=native["GainOffset"],
    )
    samples("second of two ranks", shard=(1, 2), augment=native["GainOffset"])
    made["arrays, second of two ranks"] = om.DataLoader(
        arrays, batch_size=8, shuffle=True, transform=jitter, seed=SEED, shard=(1, 2)
    )
    return made


def check_that_nothing_is_forgotten():
    """Raise if the package has an augmentation or a sampler that no case uses."""
    known = {*augmentations(), *transforms(), "NativeAugmentation"}
    forgotten = set(om.augment.__all__) - known
    known = {type(sampler).__name__ for sampler in samplers([1] * 9, 9).values()} | {"Sampler"}
    forgotten |= {name for name in om.__all__ if name.endswith("Sampler")} - known
    if forgotten:
        raise AssertionError(f"no case of the browser test uses {', '.join(sorted(forgotten))}")


def digests():
    """Return {case: {step: SHA-256 of its batch}}; steps are strings, as in JSON."""
    check_that_nothing_is_forgotten()
    found = {}
    for name, loader in loaders().items():
        found[name] = {str(step): loader.digest(step) for step in STEPS}
    return found


async def heartbeat():
    """Run an epoch by `async for` and count how often the event loop came round meanwhile."""
    beats = 0

    async def beat():
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    loader = om.DataLoader(array_dataset(64), batch_size=4, shuffle=True, seed=SEED)
    task = asyncio.ensure_future(beat())
    found = [om.digest(batch) async for batch in loader.aiter()]
    task.cancel()
    right = found == [loader.digest(step) for step in range(len(loader))]
    return {"batches": len(found), "beats": beats, "right": right}


async def report():
    """Return everything that the two sides compare, and which Python this is."""
    from onemodel._cli import verify

    warnings.simplefilter("error")
    return {
        "digests": digests(),
        "heartbeat": await heartbeat(),
        "workers": om.DataLoader(array_dataset(9), batch_size=3, workers=4).workers,
        "verify": [
            {"case": result.configuration, "step": result.step, "same": result.same}
            for result in verify.verify()
        ],
        "platform": f"Python {sys.version.split()[0]}, NumPy {np.__version__}, {sys.platform}, "
        f"pointers of {np.dtype(np.intp).itemsize * 8} bits",
    }


async def report_as_json():
    return json.dumps(await report())
