"""Promise: dataset, sampler, transform and collate may be anyone's, and each gets what it needs."""

import numpy as np
import pytest
from reference import rng as twin_rng
from reference.lines import GoldenLines
from support import (
    COUNT,
    STEPS,
    Recording,
    expected_indices,
    indices_of,
    make_loader,
    refused,
    workers_0_and_2,
)

import onemodel
from onemodel import (
    BatchKey,
    DataLoader,
    ImageBatchCollator,
    Sample,
    SequentialSampler,
    ShuffledSampler,
)


def test_custom_collate_gets_samples_and_key():
    with make_loader(collate=lambda samples, key: (samples, key), shard=(1, 2), seed=9) as loader:
        samples, key = loader[STEPS + 2]
        whole = expected_indices([STEPS + 2], seed=9)[0]
        assert isinstance(key, BatchKey)
        assert (key.seed, key.epoch, key.step, key.first_slot) == (9, 1, 2, 2)
        assert key.indices.dtype == np.int64
        assert key.indices.tolist() == whole[2:]
        assert all(isinstance(sample, Sample) for sample in samples)
        golden = GoldenLines(COUNT, 2)
        for sample, index in zip(samples, whole[2:], strict=True):
            assert np.array_equal(sample.image, golden[index].image)


@workers_0_and_2
@pytest.mark.parametrize("result", [None, 0, "text", [], StopIteration], ids=repr)
def test_custom_collate_may_return_anything(workers, result):
    """None and the like are batches too, not the end of the stream."""
    with make_loader(collate=lambda samples, key: result, workers=workers) as loader:
        assert list(loader.steps(0, 5)) == [result] * 5


def test_custom_sampler():
    """Anything with the three members of a sampler is one."""

    class Countdown:
        steps_per_epoch = 3
        batch_size = 2

        def batch_indices(self, seed, epoch, step):
            return np.array([5 - step, epoch], dtype=np.int64)

    with make_loader(sampler=Countdown()) as loader:
        assert indices_of(loader.steps(0, 5)) == [[5, 0], [4, 0], [3, 0], [5, 1], [4, 1]]


def test_transform_gets_its_slots_generator():
    seen = []

    def transform(rng, sample):
        seen.append(rng.state)
        assert isinstance(rng, onemodel.SampleRng)
        return sample

    with make_loader(transform=transform, shard=(1, 2)) as loader:
        assert len(loader[STEPS + 1].indices) == 2
    assert seen == [twin_rng.derive(7, 1, 1, slot, 0) for slot in (2, 3)]


def test_transform_may_be_composed():
    def double(rng, sample):
        return Sample(sample.image * np.float32(2), sample.target, sample.label)

    def relabel(rng, sample):
        return Sample(sample.image, sample.target, rng.next_int(100))

    with (
        make_loader(transform=onemodel.Compose([double, relabel])) as composed,
        make_loader() as plain,
    ):
        batch, original = composed[0], plain[0]
        expected = [
            twin_rng.SampleRng(twin_rng.derive(7, 0, 0, slot, 0)).next_int(100) for slot in range(4)
        ]
        assert batch.labels.tolist() == expected
        assert np.array_equal(batch.images, original.images * 2)


def test_a_dataset_may_be_read_a_batch_at_a_time():
    """PyTorch's `__getitems__` is used where a dataset has it."""
    asked = []

    class Batched(Recording):
        def __getitems__(self, indices):
            asked.append(indices)
            return [self.samples[index] for index in indices]

    dataset = Batched()
    with make_loader(dataset) as loader, make_loader() as plain:
        assert loader.digest(8) == plain.digest(8)
    assert asked == expected_indices([8])
    assert dataset.read == []


def test_a_dataset_that_reads_too_little_is_found_out():
    class Batched(Recording):
        def __getitems__(self, indices):
            return [self.samples[index] for index in indices[1:]]

    with make_loader(Batched()) as loader, refused(ValueError, "__getitems__", 4, 3):
        loader[0]


@pytest.mark.parametrize("kind", [list, tuple])
def test_samplers_made_from_ours_may_give_any_integers(kind):
    class Other(ShuffledSampler):
        def batch_indices(self, seed, epoch, step):
            return super().batch_indices(seed, epoch, step)[::-1].astype(np.int32)[::1]

    samples = kind(Sample(np.full((1, 2, 3), k, np.float32)) for k in range(8))
    loader = DataLoader(samples, sampler=Other(8, 4), collate=ImageBatchCollator())
    expected = ShuffledSampler(8, 4).batch_indices(0, 0, 1)[::-1]
    assert loader[1].indices.tolist() == expected.tolist()


def test_samplers_made_from_ours_are_checked():
    class Wrong(ShuffledSampler):
        def batch_indices(self, seed, epoch, step):
            return super().batch_indices(seed, epoch, step) - 1

    samples = [Sample(np.zeros((1, 2, 3), np.float32))] * 4
    loader = DataLoader(samples, sampler=Wrong(4, 4), collate=ImageBatchCollator())
    with pytest.raises(IndexError, match="got -1 to 2"):
        loader[0]


class FromColumns:
    """A collator of a user's own that fulfils the protocol of column collators."""

    def __call__(self, samples, key):
        raise AssertionError("asked with samples")

    def from_columns(self, columns, key):
        return {"widths": columns.arrays["widths"][key.indices], "step": np.array([key.step])}


def test_a_collator_of_ones_own_is_handed_the_columns():
    table = onemodel.datasets.ImageTable.from_arrays(
        [np.zeros((2, width), np.uint8) for width in range(3, 9)]
    )
    loader = DataLoader(table, sampler=SequentialSampler(6, 2), collate=FromColumns())
    assert [batch["widths"].tolist() for batch in loader] == [[3, 4], [5, 6], [7, 8]]


def test_an_overridden_call_is_asked_with_samples():
    class Counting(FromColumns):
        def __call__(self, samples, key):
            return np.array([len(samples)])

    table = onemodel.datasets.ImageTable.from_arrays([np.zeros((2, 3), np.uint8)] * 4)
    loader = DataLoader(table, sampler=SequentialSampler(4, 2), collate=Counting())
    assert [batch.tolist() for batch in loader] == [[2], [2]]
