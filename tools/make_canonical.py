"""Make `onemodel/data/canonical.json`: the digests that `onemodel verify` compares with.

    python tools/make_canonical.py           write the file
    python tools/make_canonical.py --check   exit with 1 unless the file is what would be written

Everything is computed by the reference implementations under `tests/reference`, plain Python
integers and single NumPy operations; the package is never imported. About a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "onemodel" / "data" / "canonical.json"
sys.path.insert(0, str(ROOT / "tests"))

from reference import augment, batches, digest, digit_lines, lines, rng, samplers  # noqa: E402
from reference.collate import Sample  # noqa: E402

ALGORITHM = 1

SYNTHETIC = {"kind": "synthetic lines", "count": 60, "height": 6}
DIGITS = {"kind": "digit lines", "count": 90, "seed": 3, "digits": [1, 5], "height": 24}
DIGIT_TABLE = {**DIGITS, "kind": "digit lines in a uint8 table"}
ARRAYS = {"kind": "arrays", "count": 50}

SEQUENTIAL = {"kind": "sequential", "batch_size": 8, "drop_last": True}
SHUFFLED = {"kind": "shuffled", "batch_size": 8, "drop_last": True}
SHUFFLED_ALL = {"kind": "shuffled", "batch_size": 7, "drop_last": False}
BUCKETED = {"kind": "bucketed", "batch_size": 8, "pool_batches": 3, "drop_last": True}
BUCKETED_ALL = {"kind": "bucketed", "batch_size": 8, "pool_batches": 64, "drop_last": False}
MIXING = {
    "kind": "mixing",
    "sizes": [20, 0, 40],
    "shares": [0.3, 5.0, 0.1],
    "batch_size": 8,
    "steps_per_epoch": None,
}

PLAIN = [{"kind": "plain gain"}]
GAIN_OFFSET = [{"kind": "GainOffset", "gain": [0.8, 1.2], "offset": [-0.1, 0.1]}]
NATIVE = [
    {"kind": "Shift", "dx": [-2, 3], "dy": [-1, 1], "fill": 0.25},
    {"kind": "Blur", "p": 0.5},
    {"kind": "HorizontalFlip", "p": 0.5},
    {"kind": "Erase", "count": 2, "size": [1, 4], "fill": -0.5},
    {"kind": "Invert", "p": 0.25},
    {"kind": "Noise", "sigma": 0.1},
]
RESHAPED = [
    {"kind": "StretchWidth", "low": 0.7, "high": 1.4},
    {"kind": "ResizeHeight", "height": 9, "keep_aspect": False},
]
LARGE_SEED = 2**64 - 1


def collate(augment=(), width_multiple=4, pad_value=0.0):
    """Describe a collator."""
    return {"augment": list(augment), "width_multiple": width_multiple, "pad_value": pad_value}


def configuration(name, dataset, sampler, **changes):
    """Describe a loader: the usual one but for `changes`."""
    usual = {"seed": 42, "transform": [], "collate": collate(), "shard": [0, 1], "workers": 0}
    return {"name": name, "dataset": dataset, "sampler": sampler, **usual, **changes}


CONFIGURATIONS = [
    configuration("synthetic lines, sequential", SYNTHETIC, SEQUENTIAL),
    configuration("synthetic lines, shuffled", SYNTHETIC, SHUFFLED),
    configuration("synthetic lines, shuffled, short last batch", SYNTHETIC, SHUFFLED_ALL),
    configuration("synthetic lines, mixing", SYNTHETIC, MIXING),
    configuration("synthetic lines, bucketed", SYNTHETIC, BUCKETED),
    configuration("synthetic lines, bucketed, short batch", SYNTHETIC, BUCKETED_ALL),
    configuration(
        "synthetic lines, shuffled, GainOffset", SYNTHETIC, SHUFFLED, collate=collate(GAIN_OFFSET)
    ),
    configuration(
        "synthetic lines, bucketed, GainOffset after a callable, shard 1 of 2",
        SYNTHETIC,
        BUCKETED_ALL,
        collate=collate(PLAIN + GAIN_OFFSET),
        shard=[1, 2],
    ),
    configuration(
        "synthetic lines, shuffled, Python augmentation, workers",
        SYNTHETIC,
        SHUFFLED,
        collate=collate(PLAIN),
        workers=2,
    ),
    configuration(
        "synthetic lines, shuffled, transform, largest seed",
        SYNTHETIC,
        SHUFFLED,
        transform=[{"kind": "crop left"}],
        collate=collate(PLAIN, width_multiple=1, pad_value=-0.5),
        seed=LARGE_SEED,
    ),
    configuration(
        "synthetic lines, mixing, all native augmentations, workers",
        SYNTHETIC,
        MIXING,
        collate=collate(GAIN_OFFSET + NATIVE),
        workers=2,
    ),
    configuration(
        "synthetic lines, shuffled, native augmentations around a callable",
        SYNTHETIC,
        SHUFFLED_ALL,
        collate=collate(NATIVE[:3] + PLAIN + NATIVE[3:], width_multiple=1, pad_value=1.0),
    ),
    configuration(
        "synthetic lines, shuffled, stretched and resized",
        SYNTHETIC,
        SHUFFLED,
        transform=RESHAPED,
        collate=collate(GAIN_OFFSET),
    ),
    configuration("digit lines, shuffled, workers", DIGITS, SHUFFLED, workers=2),
    configuration("digit lines, bucketed", DIGITS, BUCKETED),
    configuration(
        "digit lines in a uint8 table, bucketed, GainOffset, workers",
        DIGIT_TABLE,
        BUCKETED,
        collate=collate(GAIN_OFFSET),
        workers=2,
    ),
    configuration("arrays, shuffled", ARRAYS, SHUFFLED_ALL, collate=None),
    configuration(
        "arrays, sequential, transform, workers",
        ARRAYS,
        SEQUENTIAL,
        transform=[{"kind": "flip and scale"}],
        collate=None,
        workers=2,
    ),
]


class Table:
    """Samples by index; those that were asked for are kept."""

    def __init__(self, source):
        self.source = source
        self.known = {}

    def __len__(self):
        return len(self.source)

    def __getitem__(self, index):
        if index not in self.known:
            self.known[index] = self.source[index]
        return self.known[index]


def make_dataset(kind, **options):
    """Make a table of twin samples, or a dict of arrays."""
    if kind == "synthetic lines":
        return Table(lines.GoldenLines(**options))
    if kind.startswith("digit lines"):
        return Table(digit_lines.DigitLines(**options))
    count = options["count"]
    x = [37 * k % 251 for k in range(count * 60)]
    return {
        "x": np.array(x, dtype=np.uint8).reshape(count, 4, 5, 3),
        "y": np.arange(count, dtype=np.int32),
    }


def make_sampler(dataset, kind, **options):
    """Make the twin of a sampler."""
    length = len(dataset["y"]) if isinstance(dataset, dict) else len(dataset)
    if kind == "sequential":
        return samplers.SequentialSampler(length, **options)
    if kind == "shuffled":
        return samplers.ShuffledSampler(length, **options)
    if kind == "mixing":
        return samplers.MixingSampler(**options)
    widths = [dataset[i].image.shape[2] for i in range(length)]
    return samplers.BucketedSampler(widths, **options)


def crop_left(generator, sample):
    """Cut up to half of the columns off on the left; the label counts them."""
    cut = generator.next_int(sample.image.shape[2] // 2 + 1)
    return Sample(sample.image[:, :, cut:], sample.target, cut)


def plain_gain(generator, image):
    """Multiply by 0.5 + NextSingle, in float32."""
    image *= np.float32(0.5) + np.float32(generator.next_single())


def flip_and_scale(generator, arrays):
    """Draw a flip and a gain a row, noise an element, and an order of the rows; also a "z"."""
    count = len(arrays["y"])
    x = arrays["x"].astype(np.float32)
    for row, flipped in enumerate(generator.integers(0, 2, size=count)):
        if flipped:
            x[row] = x[row, :, ::-1].copy()
    gains = generator.random(count, dtype=np.float32)
    for row in range(count):
        x[row] = x[row] * gains[row]
    x = x + generator.standard_normal(x.shape)
    order = generator.permutation(count)
    return {"x": x, "y": arrays["y"][order], "z": generator.uniform(-1.0, 1.0, size=count)}


PLAIN_CALLABLES = {
    "crop left": crop_left,
    "plain gain": plain_gain,
    "flip and scale": flip_and_scale,
}


def compose(parts):
    """Put callables in a row, as transform or augmentation; None for none."""
    made = [make_callable(**part) for part in parts]

    def apply(generator, value):
        for part in made:
            result = part(generator, value)
            value = value if result is None else result
        return value

    return apply if made else None


def make_callable(kind, **options):
    """Make the twin of one augmentation or transform."""
    if kind in PLAIN_CALLABLES:
        return PLAIN_CALLABLES[kind]
    return getattr(augment, kind)(**options)


def array_batch(g, arrays, sampler, spec):
    """Build the batch of the array face: one generator a batch, that of slot 0, stream 0."""
    epoch, step = batches.locate(g, sampler.steps_per_epoch)
    indices = sampler.batch_indices(spec["seed"], epoch, step)
    batch = {name: array[indices] for name, array in arrays.items()}
    transform = compose(spec["transform"])
    if transform is None:
        return batch
    return transform(rng.SampleRng(rng.derive(spec["seed"], epoch, step, 0, 0)), batch)


def digests_of(spec, datasets):
    """Compute the digests of a configuration; `datasets` keeps what was made before."""
    key = json.dumps(spec["dataset"])
    if key not in datasets:
        datasets[key] = make_dataset(**spec["dataset"])
    dataset = datasets[key]
    sampler = make_sampler(dataset, **spec["sampler"])
    steps = sampler.steps_per_epoch
    result = {}
    # The first steps, an epoch's last and the next one's first, and two far away.
    for g in sorted({0, 1, steps - 1, steps, 1000, 10**12}):
        if spec["collate"] is None:
            batch = array_batch(g, dataset, sampler, spec)
        else:
            options = dict(spec["collate"])
            options["augment"] = compose(options["augment"])
            batch = batches.batch_at(
                g,
                seed=spec["seed"],
                samples=dataset,
                sampler=sampler,
                transform=compose(spec["transform"]),
                shard=spec["shard"],
                **options,
            )
        result[str(g)] = digest.digest(batch)
    return result


def canonical_text():
    """Make the text of the file."""
    datasets = {}
    made = [{**spec, "digests": digests_of(spec, datasets)} for spec in CONFIGURATIONS]
    content = {"algorithm": ALGORITHM, "configurations": made}
    return json.dumps(content, indent=1) + "\n"


def main():
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    text = canonical_text()
    if parser.parse_args().check:
        same = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text
        print(f"{TARGET}: {'same' if same else 'DIFFERENT'}")
        return 0 if same else 1
    TARGET.write_text(text, encoding="utf-8", newline="\n")
    print(f"{TARGET}: {text.count('digests')} configurations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
