"""Make `onemodel/data/canonical.json`: the digests that `onemodel verify` compares with.

    python tools/make_canonical.py           write the file
    python tools/make_canonical.py --check   exit with 1 unless the file is what would be written

Everything is computed by the reference implementations under `tests/reference`, plain Python
integers and single NumPy operations; the package is never imported. A few seconds.
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

from canonical_configurations import CONFIGURATIONS  # noqa: E402
from reference import (  # noqa: E402
    augment,
    batches,
    budget,
    digest,
    digit_lines,
    lines,
    rng,
    samplers,
    transforms,
    weighted,
)
from reference.collate import Sample  # noqa: E402

ALGORITHM = 1


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
    if kind.startswith("faint lines"):
        return Table(lines.FaintLines(**options))
    if kind.startswith("digit lines"):
        return Table(digit_lines.DigitLines(**options))
    count = options["count"]
    values = [37 * k % 251 for k in range(count * 60)]
    if kind == "faint arrays":
        faint = [value * 2.0**-140 for value in values]
        x = np.array(faint, dtype=np.float32).reshape(count, 3, 4, 5)
    else:
        x = np.array(values, dtype=np.uint8).reshape(count, 4, 5, 3)
    return {
        "x": x,
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
    if kind == "weighted":
        return weighted.WeightedSampler(**options)
    widths = [dataset[i].image.shape[2] for i in range(length)]
    if kind == "budget":
        return budget.BudgetSampler(widths, **options)
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


ROW_TRANSFORMS = {
    "RandomHorizontalFlip": transforms.flip,
    "RandomCrop": transforms.crop,
    "Cutout": transforms.cutout,
}
BLENDS = {"Mixup": transforms.mixup, "CutMix": transforms.cutmix}
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
    """Build the batch of the array face, for the slots of the shard."""
    epoch, step = batches.locate(g, sampler.steps_per_epoch)
    indices = sampler.batch_indices(spec["seed"], epoch, step)
    rank, ranks = spec["shard"]
    first, stop = (edge * len(indices) // ranks for edge in (rank, rank + 1))
    batch = {name: array[indices[first:stop]] for name, array in arrays.items()}
    # The batch has a generator, that of its first slot, and each of its rows has one.
    generator = rng.SampleRng(rng.derive(spec["seed"], epoch, step, first, 0))
    rows = transforms.row_generators(spec["seed"], epoch, step, first, stop - first)
    for part in spec["transform"]:
        batch = array_part(generator, rows, first, batch, **part)
    return batch


def array_part(generator, rows, first_slot, batch, kind, **options):
    """Apply one transform to a batch of arrays."""
    x, y = batch["x"], batch["y"]
    if kind in PLAIN_CALLABLES:
        return PLAIN_CALLABLES[kind](generator, batch)
    if kind == "Normalize":
        return {**batch, "x": transforms.normalize(x, **options)}
    if kind == "OneHot":
        return {**batch, "y": transforms.one_hot(y, **options)}
    if kind in BLENDS:
        x, y = BLENDS[kind](rows, x, y, first_slot=first_slot, **options)
        return {**batch, "x": x, "y": y}
    return {**batch, "x": ROW_TRANSFORMS[kind](rows, x, **options)}


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
