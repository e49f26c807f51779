"""What several test files use: both implementations behind one set of names, and small checks."""

import contextlib
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st
from reference import batches, budget, collate, digest, image, permutation, rng, samplers, weighted
from reference.lines import GoldenLines

WORDS = st.integers(0, 2**64 - 1)
EDGE_WORDS = st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]) | WORDS


def load_twin():
    """The readable twins under the package's names."""

    def digest_at(g, *, seed, samples, sampler, **options):
        return digest.digest(
            batches.batch_at(g, seed=seed, samples=samples, sampler=sampler, **options)
        )

    return SimpleNamespace(
        mix=rng.mix,
        derive=rng.derive,
        SampleRng=rng.SampleRng,
        KeyedPermutation=permutation.KeyedPermutation,
        SequentialSampler=samplers.SequentialSampler,
        ShuffledSampler=samplers.ShuffledSampler,
        MixingSampler=samplers.MixingSampler,
        BucketedSampler=samplers.BucketedSampler,
        BudgetSampler=budget.BudgetSampler,
        WeightedSampler=weighted.WeightedSampler,
        gray8_to_planar=image.gray8_to_planar,
        rgb8_to_planar=image.rgb8_to_planar,
        Sample=collate.Sample,
        digest_at=digest_at,
    )


def load_package():
    """The compiled package under the same names."""
    import onemodel

    def digest_at(g, *, seed, samples, sampler, transform=None, shard=(0, 1), **options):
        with onemodel.DataLoader(
            PackageSamples(samples),
            sampler=sampler,
            transform=transform,
            collate=onemodel.ImageBatchCollator(**options),
            seed=seed,
            shard=shard,
        ) as loader:
            return loader.digest(g)

    return SimpleNamespace(
        mix=onemodel.mix,
        derive=onemodel.derive,
        SampleRng=onemodel.SampleRng,
        KeyedPermutation=onemodel.KeyedPermutation,
        SequentialSampler=onemodel.SequentialSampler,
        ShuffledSampler=onemodel.ShuffledSampler,
        MixingSampler=onemodel.MixingSampler,
        BucketedSampler=onemodel.BucketedSampler,
        BudgetSampler=onemodel.BudgetSampler,
        WeightedSampler=onemodel.WeightedSampler,
        gray8_to_planar=onemodel.image.gray8_to_planar,
        rgb8_to_planar=onemodel.image.rgb8_to_planar,
        Sample=onemodel.Sample,
        digest_at=digest_at,
    )


class PackageSamples:
    """A dataset of twin samples, handed out as the package's own."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        import onemodel

        image, target, label = self.samples[index]
        return onemodel.Sample(image, target, label)


def integers(values):
    """Any sequence of integers as a list of Python integers."""
    return [int(value) for value in values]


def same_bytes(left, right):
    """Whether two arrays are equal in dtype, shape and every byte."""
    left, right = np.asarray(left), np.asarray(right)
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes(order="C") == right.tobytes(order="C")
    )


def assert_same_bytes(actual, expected):
    """Equal in dtype, shape and every byte, with a readable difference where not."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if not same_bytes(actual, expected):
        np.testing.assert_array_equal(actual, expected)
        pytest.fail("the values are equal, the bytes are not (a zero of the other sign?)")


@contextlib.contextmanager
def refused(error, *words):
    """The block raises `error`, and its message or notes hold every one of `words`.

    A string stands for a whole word of the message (the argument's name); anything else for its
    text (the value received).
    """
    with pytest.raises(error) as caught:
        yield caught
    message = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    for word in words:
        if isinstance(word, str) and word.isidentifier():
            assert re.search(rf"\b{word}\b", message), f"no {word!r} in: {message}"
        else:
            assert str(word) in message, f"no {word!s} in: {message}"


# The run of most loader tests: 22 samples in batches of 4, the last of which has two rows.

COUNT, BATCH, STEPS = 22, 4, 6
SAMPLES = PackageSamples(GoldenLines(COUNT, 2))

workers_0_and_2 = pytest.mark.parametrize("workers", [0, 2])
every_count = pytest.mark.parametrize("workers", [0, 1, 2, 4])


def make_loader(dataset=SAMPLES, *, sampler=None, collate=None, seed=7, **options):
    """A loader of that run, with whatever is given in place of its parts."""
    import onemodel

    if sampler is None:
        sampler = onemodel.ShuffledSampler(len(dataset), BATCH, drop_last=False)
    return onemodel.DataLoader(
        dataset,
        sampler=sampler,
        collate=collate or onemodel.ImageBatchCollator(width_multiple=4),
        seed=seed,
        **options,
    )


def indices_of(batches):
    """The dataset indices of each batch."""
    return [integers(batch.indices) for batch in batches]


def expected_indices(steps, seed=7):
    """The dataset indices of the given global steps of that run."""
    import onemodel

    sampler = onemodel.ShuffledSampler(COUNT, BATCH, drop_last=False)
    return [integers(sampler.batch_indices(seed, *divmod(g, STEPS))) for g in steps]


def flat(lists):
    """The items of several lists as one."""
    return list(itertools.chain(*lists))


class Recording:
    """A dataset that writes down every read."""

    def __init__(self, samples=SAMPLES):
        self.samples = samples
        self.read = []

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        self.read.append(index)
        return self.samples[index]


def take(loader, count):
    """A pass from which `count` batches were taken, and the dataset indices of each."""
    stream = iter(loader)
    return stream, [integers(next(stream).indices) for _ in range(count)]


def saved(loader):
    """The state of a loader, which is closed."""
    with loader:
        return loader.state_dict()
