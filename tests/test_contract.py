"""Promise: the batch at global step g is a pure function of (seed, g), the dataset, the sampler's
arguments, the transform and the collator. Nothing else.

For each of the samplers the bytes are compared with the twin's over workers, prefetch, start
steps, cuts, shards and random delays of the dataset's reads.
"""

import functools

import numpy as np
import pytest
from contract import Shaken, check_resume, check_shards, check_single_steps, check_stream
from reference import batches as twin
from reference import samplers as twin_samplers
from reference.digest import digest
from reference.lines import GoldenLines, gain_and_offset
from support import PackageSamples, assert_same_bytes, load_twin

import onemodel

COUNT, BATCH, HEIGHT = 53, 8, 3
SEED = 0xDEADBEEFCAFEF00D
SAMPLES = GoldenLines(COUNT, HEIGHT)
LENGTHS = [SAMPLES[index].image.shape[2] for index in range(COUNT)]
STEPS = 16  # more than two epochs of each sampler


def crop(rng, sample):
    """A transform that changes the shape: it keeps a random number of columns."""
    image, target, label = sample.image, sample.target, sample.label
    width = 1 + rng.next_int(image.shape[2])
    first = rng.next_int(image.shape[2] - width + 1)
    return type(sample)(image[:, :, first : first + width], target, label + rng.next_int(5))


SAMPLERS = {
    "sequential": lambda names: names.SequentialSampler(COUNT, BATCH, drop_last=False),
    "shuffled": lambda names: names.ShuffledSampler(COUNT, BATCH, drop_last=False),
    "mixing": lambda names: names.MixingSampler([20, 0, 33], [0.6, 1.0, 0.4], BATCH),
    "bucketed": lambda names: names.BucketedSampler(
        LENGTHS, BATCH, pool_batches=3, drop_last=False
    ),
    "shuffled slots": lambda names: names.BucketedSampler(
        LENGTHS, BATCH, pool_batches=3, drop_last=False, shuffle_slots=True
    ),
    "weighted": lambda names: names.WeightedSampler(LENGTHS, BATCH, drop_last=False),
    "weighted order": lambda names: names.WeightedSampler(
        LENGTHS, BATCH, replacement=False, drop_last=False
    ),
    "budget": lambda names: names.BudgetSampler(LENGTHS, 88, multiple_of=4, pool_batches=2),
}
OPTIONS = {"width_multiple": 4, "pad_value": 0.25, "augment": gain_and_offset}

every_sampler = pytest.mark.parametrize("name", SAMPLERS)


@functools.cache
def twin_digests(name, rank=0, ranks=1):
    sampler = SAMPLERS[name](load_twin())
    return [
        digest(
            twin.batch_at(
                g,
                seed=SEED,
                samples=SAMPLES,
                sampler=sampler,
                transform=crop,
                shard=(rank, ranks),
                **OPTIONS,
            )
        )
        for g in range(STEPS)
    ]


def loader_for(name, **options):
    return onemodel.DataLoader(
        Shaken(PackageSamples(SAMPLES)),
        sampler=SAMPLERS[name](onemodel),
        transform=crop,
        collate=onemodel.ImageBatchCollator(**OPTIONS),
        seed=SEED,
        **options,
    )


@every_sampler
def test_the_stream(name, needs_threads):
    make = functools.partial(loader_for, name)
    check_stream(make, twin_digests(name), starts=(0, 1, 5, 6, 7, 13, STEPS))


@every_sampler
def test_the_stream_without_threads(name):
    make = functools.partial(loader_for, name)
    check_stream(make, twin_digests(name), starts=range(0, STEPS + 1, 5), workers=(0,))


@every_sampler
def test_single_steps(name, needs_threads):
    check_single_steps(functools.partial(loader_for, name), twin_digests(name))


@every_sampler
def test_resume(name, needs_threads):
    check_resume(functools.partial(loader_for, name), twin_digests(name), cuts=(0, 1, 6, 7, 8, 15))


@every_sampler
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_shards(name, ranks, needs_threads):
    expected = functools.partial(twin_digests, name)
    check_shards(functools.partial(loader_for, name), expected, ranks=ranks)


@every_sampler
def test_shards_are_rows_of_the_global_batch(name):
    """Put side by side, the ranks give the global batch; only the padding is their own."""
    with loader_for(name) as whole:
        for g in range(whole.steps_per_epoch + 1):
            expected = whole[g]
            first = 0
            for rank in range(4):
                with loader_for(name, shard=(rank, 4)) as part:
                    batch = part[g]
                    rows = len(batch.indices)
                    assert first == rank * len(expected.indices) // 4
                    here = slice(first, first + rows)
                    for output in ("indices", "widths", "target_lengths", "labels"):
                        assert_same_bytes(getattr(batch, output), getattr(expected, output)[here])
                    for row, width in enumerate(batch.widths):
                        assert_same_bytes(
                            batch.images[row, :, :, :width],
                            expected.images[first + row, :, :, :width],
                        )
                    first += rows
            assert first == len(expected.indices)


def test_a_short_last_batch_may_leave_ranks_empty():
    """Two rows among four ranks: decision 9 cuts with floors, and every rank still has the step."""
    steps = []
    for rank in range(4):
        loader = onemodel.DataLoader(
            PackageSamples(GoldenLines(10, 2)),
            sampler=onemodel.SequentialSampler(10, 8, drop_last=False),
            collate=onemodel.ImageBatchCollator(),
            shard=(rank, 4),
        )
        with loader:
            steps.append([batch.indices.tolist() for batch in loader])
    assert steps == [[[0, 1], []], [[2, 3], [8]], [[4, 5], []], [[6, 7], [9]]]


def test_the_seed_matters():
    """Two seeds give other rows, other crops and other pixels, at every step."""
    digests = set()
    for seed in (0, 1, 2**63, 2**64 - 1):
        with onemodel.DataLoader(
            PackageSamples(SAMPLES),
            sampler=SAMPLERS["sequential"](onemodel),
            transform=crop,
            collate=onemodel.ImageBatchCollator(**OPTIONS),
            seed=seed,
        ) as loader:
            digests |= {loader.digest(g) for g in range(STEPS)}
    assert len(digests) == 4 * STEPS


def test_transform_and_augmentation_draw_from_streams_of_their_own():
    """Leaving one of them away does not move the other."""

    def widths(**options):
        with onemodel.DataLoader(
            PackageSamples(SAMPLES), sampler=SAMPLERS["shuffled"](onemodel), seed=SEED, **options
        ) as loader:
            return [np.array(batch.widths).tolist() for batch in loader.steps(0, STEPS)]

    augmented = onemodel.ImageBatchCollator(augment=gain_and_offset)
    plain = onemodel.ImageBatchCollator()
    assert widths(transform=crop, collate=augmented) == widths(transform=crop, collate=plain)


def test_two_streams_of_one_loader_do_not_disturb_each_other(needs_threads):
    expected = twin_digests("shuffled")
    with loader_for("shuffled", workers=2, prefetch=2) as loader:
        first, second = loader.steps(0, STEPS), loader.steps(3, STEPS)
        for g in range(STEPS - 3):
            assert onemodel.digest(next(first)) == expected[g]
            assert onemodel.digest(next(second)) == expected[g + 3]


def test_workers_share_the_very_same_samples(needs_threads):
    """A dataset may keep its samples and give one object to all threads and all slots at once."""
    samples = GoldenLines(3, HEIGHT)
    sampler = twin_samplers.MixingSampler([3], [1.0], 16, steps_per_epoch=12)
    expected = [
        digest(twin.batch_at(g, seed=SEED, samples=samples, sampler=sampler, **OPTIONS))
        for g in range(12)
    ]
    for _ in range(20):
        loader = onemodel.DataLoader(
            [PackageSamples(samples)[index] for index in range(3)],
            sampler=onemodel.MixingSampler([3], [1.0], 16, steps_per_epoch=12),
            collate=onemodel.ImageBatchCollator(**OPTIONS),
            seed=SEED,
            workers=4,
        )
        with loader:
            assert [onemodel.digest(batch) for batch in loader.steps(0, 12)] == expected


def test_a_loader_with_more_workers_than_steps(needs_threads):
    with loader_for("shuffled", workers=4, prefetch=8) as loader:
        assert [onemodel.digest(batch) for batch in loader.steps(0, 1)] == twin_digests("shuffled")[
            :1
        ]


def test_steps_far_into_the_run():
    """Global steps have 64 bits; epoch 2**40 is as near as epoch 0."""
    sampler = SAMPLERS["shuffled"](twin_samplers)
    g = 2**40 * sampler.steps_per_epoch + 3
    expected = digest(
        twin.batch_at(g, seed=SEED, samples=SAMPLES, sampler=sampler, transform=crop, **OPTIONS)
    )
    with loader_for("shuffled") as loader:
        assert loader.digest(g) == expected
        assert [onemodel.digest(batch) for batch in loader.steps(g, g + 1)] == [expected]
