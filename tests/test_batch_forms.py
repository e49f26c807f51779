"""Promise: whatever form a collator is asked for, every path gives the twin's bytes.

Forms are padded targets, 64-bit labels, a fixed width, and the padding of the global batch, with
which shards are slices of the batch without shards. Without these arguments nothing is another
than it was: no digest, no text in a state. `loss_scale` makes the average of ranks' gradients that
of one process.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import batches as twin_batches
from reference import collate as twin
from reference import samplers as twin_samplers
from reference.digest import digest as twin_digest
from reference.lines import GoldenLines, gain_and_offset
from support import PackageSamples, assert_same_bytes, refused

import onemodel as om
from onemodel import BatchKey, DataLoader, ImageBatch, ImageBatchCollator, Sample, digest
from onemodel.augment import GainOffset, ResizeHeight, StretchWidth
from onemodel.datasets import ImageTable

NAMES = ImageBatch.FIELDS
COUNT, BATCH, SEED = 22, 8, 7  # three steps, the last of 6 rows
LINES = GoldenLines(COUNT, 2)
SAMPLES = [Sample(*LINES[index]) for index in range(COUNT)]
WIDEST = max(sample.image.shape[2] for sample in SAMPLES)
FLOATS = ImageTable.from_samples(SAMPLES)
BYTES = ImageTable.from_samples(
    [Sample(np.floor(np.asarray(s.image) * 256) / 256, s.target, s.label) for s in SAMPLES],
    dtype=np.uint8,
    std=256 / 255,
)

FORMS = {
    "padded": {"targets": "padded"},
    "padded, few shapes": {"targets": "padded", "target_multiple": 4, "width_multiple": 8},
    "int64": {"label_dtype": "int64"},
    "global": {"pad_to": "global", "width_multiple": 3},
    "fixed": {"pad_to": 20, "width_multiple": 4},
    "all": {
        "targets": "padded",
        "target_multiple": 3,
        "label_dtype": "int64",
        "pad_to": "global",
        "pad_value": -1.5,
    },
}


def crop(rng, sample):
    """A transform that decides the width by its slot's draws."""
    width = 1 + rng.next_int(sample.image.shape[2])
    return type(sample)(sample.image[:, :, :width], sample.target[: rng.next_int(9)], sample.label)


GAIN = GainOffset((0.8, 1.2), (-0.1, 0.1))  # the twin's gain_and_offset

# Dataset, transform, augmentation, and whether there is a native lane.
PATHS = {
    "list": (SAMPLES, None, GAIN, True),
    "table float32": (FLOATS, None, GAIN, True),
    "table uint8": (BYTES, None, None, True),
    "own augmentation": (SAMPLES, None, gain_and_offset, False),
    "own augmentation of a table": (FLOATS, None, gain_and_offset, False),
    "own dataset": (PackageSamples(LINES), None, GAIN, False),
    "own transform": (PackageSamples(LINES), crop, GAIN, False),
    "own transform of a table": (FLOATS, crop, None, False),
    "stretched list": (SAMPLES, StretchWidth(0.5, 1.2), None, False),
    "resized table": (FLOATS, ResizeHeight(3), GAIN, False),
}

WITH_TWIN = [
    path
    for path, (dataset, transform, _, _) in PATHS.items()
    if dataset is not BYTES and transform in (None, crop)
]

every_form = pytest.mark.parametrize("form", FORMS)
every_path = pytest.mark.parametrize("path", PATHS)


def make(path, form, shard=(0, 1), **options):
    dataset, transform, augment, native = PATHS[path]
    loader = DataLoader(
        dataset,
        sampler=om.ShuffledSampler(COUNT, BATCH, drop_last=False),
        transform=transform,
        collate=ImageBatchCollator(augment=augment, **FORMS[form]),
        seed=SEED,
        shard=shard,
        **options,
    )
    assert (loader._lane is not None) is native
    return loader


# The bytes

INT32 = st.integers(-(2**31), 2**31 - 1)


@st.composite
def batches_and_forms(draw):
    """Samples of a global batch, a part of it, and what a collator is asked for."""
    height = draw(st.integers(1, 3))
    samples = []
    for width in draw(st.lists(st.integers(1, 9), min_size=1, max_size=6)):
        image = np.arange(height * width, dtype=np.float32).reshape(1, height, width)
        samples.append(twin.Sample(image, tuple(draw(st.lists(INT32, max_size=5))), draw(INT32)))
    first = draw(st.integers(0, len(samples) - 1))
    end = draw(st.integers(first + 1, len(samples)))
    multiple = draw(st.integers(1, 5))
    targets = draw(st.sampled_from(["concatenated", "padded"]))
    form = {
        "width_multiple": multiple,
        "targets": targets,
        "target_multiple": draw(st.integers(1, 7)) if targets == "padded" else 1,
        "label_dtype": draw(st.sampled_from(["int32", "int64"])),
        "pad_to": draw(st.sampled_from([None, "global", 20 // multiple * multiple])),
    }
    return samples, first, end, form


@given(batches_and_forms(), st.sampled_from([None, "native", "python"]))
def test_a_collated_batch_is_the_twins(given_batch, augmented):
    samples, first, end, form = given_batch
    indices = np.arange(100, 100 + len(samples))
    key = BatchKey(1, 2, 3, first, indices[first:end], 9, len(samples), indices, 2)
    expected = twin.collate_images(
        samples[first:end],
        indices[first:end],
        1,
        2,
        3,
        first,
        augment=gain_and_offset if augmented else None,
        whole=samples,
        **form,
    )
    augment = {None: None, "native": GAIN, "python": gain_and_offset}
    collate = ImageBatchCollator(augment=augment[augmented], **form)
    seen = samples if form["pad_to"] == "global" else samples[first:end]
    batch = collate([Sample(*sample) for sample in seen], key)
    for name in NAMES:
        assert_same_bytes(getattr(batch, name), expected[name])
    assert digest(batch) == twin_digest(expected)
    assert batch.real_columns == batch.widths.sum()
    table = ImageTable.from_samples([Sample(*sample) for sample in samples])
    inside = key._replace(indices=np.arange(first, end), global_indices=np.arange(len(samples)))
    expected["indices"] = np.arange(first, end, dtype=np.int32)
    assert digest(collate.from_columns(table.columns, inside)) == twin_digest(expected)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", [1, 2, 4])
@every_form
@every_path
def test_every_path_gives_the_same_bytes(path, form, world, workers):
    """The batches that a loader delivers are the reference path's, which `digest` takes."""
    for rank in range(world):
        with make(path, form, (rank, world), workers=workers, prefetch=2) as loader:
            expected = [loader.digest(g) for g in range(4)]
            if loader._lane is not None:
                loader._builder.entry = None  # only the lane can build a batch
            assert [digest(batch) for batch in loader.steps(0, 4)] == expected


@pytest.mark.parametrize("world", [1, 2, 4])
@every_form
@pytest.mark.parametrize("path", WITH_TWIN)
def test_a_loader_s_batches_are_the_twins(path, form, world):
    _, transform, augment, _ = PATHS[path]
    for rank in range(world):
        with make(path, form, (rank, world)) as loader:
            for g, batch in enumerate(loader.steps(0, 4)):
                expected = twin_batches.batch_at(
                    g,
                    seed=SEED,
                    samples=LINES,
                    sampler=twin_samplers.ShuffledSampler(COUNT, BATCH, drop_last=False),
                    transform=transform,
                    augment=None if augment is None else gain_and_offset,
                    shard=(rank, world),
                    **FORMS[form],
                )
                assert digest(batch) == twin_digest(expected)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", [2, 4, 8])
@pytest.mark.parametrize("form", ["global", "all", "fixed"])
@every_path
def test_shards_are_slices_of_the_whole(path, form, world, workers):
    """With eight ranks for six rows two of them are empty."""
    with make(path, form) as whole:
        expected = [batch.arrays() for batch in whole.steps(0, 4)]
    parts = []
    for rank in range(world):
        with make(path, form, (rank, world), workers=workers) as loader:
            parts.append([batch.arrays() for batch in loader.steps(0, 4)])
    for g in range(4):
        for name in NAMES:
            of_ranks = [part[g][name] for part in parts]
            assert_same_bytes(np.concatenate(of_ranks), expected[g][name])
            if name != "targets" or form == "all":
                assert {array.shape[1:] for array in of_ranks} == {expected[g][name].shape[1:]}


@every_form
def test_an_empty_shard_has_the_shapes_and_dtypes_of_the_others(form):
    with make("own dataset", form, (0, 8)) as loader:
        batch, other = loader[2], loader[0]
    assert len(batch) == 0
    for name, array in batch.arrays().items():
        assert array.dtype == other.arrays()[name].dtype
        assert len(array) == 0
        assert array.ndim == other.arrays()[name].ndim


def test_only_own_slots_are_augmented():
    seen = []

    def augment(rng, image):
        seen.append(rng.state)

    collate = ImageBatchCollator(augment=augment, pad_to="global")
    with DataLoader(SAMPLES, 8, collate=collate, shard=(1, 4)) as loader:
        loader[0]
    assert seen == [om.derive(0, 0, 0, slot, 1) for slot in (2, 3)]


# Padded targets


def test_targets_without_symbols_have_a_column():
    samples = [Sample(np.zeros((1, 1, 1), np.float32))] * 2
    for multiple in (1, 5):
        collate = ImageBatchCollator(targets="padded", target_multiple=multiple)
        batch = DataLoader(samples, 2, collate=collate)[0]
        assert batch.targets.tolist() == [[0] * multiple] * 2
        assert batch.target_lengths.tolist() == [0, 0]


def test_nothing_of_an_earlier_batch_shines_through():
    """The pool's memory is used again: the padding is written each time."""
    collate = ImageBatchCollator(targets="padded", target_multiple=8, label_dtype="int64")
    image = np.zeros((1, 1, 1), np.float32)
    full, empty = [Sample(image, [7] * 8, -1)] * 4, [Sample(image)] * 4
    with DataLoader(full + empty, 4, collate=collate) as loader:
        for _ in range(3):
            first, second = loader.steps(0, 2)
            assert (first.targets == 7).all()
            assert (first.labels == -1).all()
            first.release()
            assert (second.targets == 0).all()
            assert (second.labels == 0).all()
            second.release()


def test_extreme_labels_and_symbols():
    image = np.zeros((1, 1, 1), np.float32)
    values = [-(2**31), 2**31 - 1]
    samples = [Sample(image, values, value) for value in values]
    collate = ImageBatchCollator(targets="padded", label_dtype="int64")
    for dataset in (samples, ImageTable.from_samples(samples)):
        batch = DataLoader(dataset, 2, collate=collate)[0]
        assert batch.labels.tolist() == values
        assert batch.targets.tolist() == [values] * 2
    with refused(ValueError, "label", 2**31):
        DataLoader([Sample(image, (), 2**31)], 1, collate=collate)[0]


def test_the_memory_of_a_form_goes_back_to_the_pool():
    pool = om.BufferPool()
    collate = ImageBatchCollator(pool=pool, **FORMS["all"])
    with DataLoader(SAMPLES, BATCH, collate=collate) as loader:
        batch = next(iter(loader))
        labels = batch.labels
        batch.release()
        assert pool.stats.rented - pool.stats.returned == 1
        assert labels.dtype == np.int64
        del labels, batch
        loader.close()
        assert pool.stats.rented == pool.stats.returned


# A fixed width


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["list", "table", "own"])
@pytest.mark.parametrize("shard", [(0, 1), (1, 2)])
def test_an_image_wider_than_the_batch_is_named(kind, shard, workers):
    images = [np.zeros((1, 2, width), np.float32) for width in (3, 4, 5, 4, 9, 4, 12, 4)]
    samples = [Sample(image) for image in images]
    dataset = {"list": samples, "table": ImageTable.from_samples(samples)}.get(kind)
    if dataset is None:
        dataset = PackageSamples([twin.Sample(image) for image in images])
    collate = ImageBatchCollator(pad_to=8)
    with DataLoader(dataset, 4, collate=collate, shard=shard, workers=workers) as loader:
        stream = loader.steps(0)
        assert next(stream).images.shape[3] == 8
        slot, index, width = (0, 4, 9) if shard == (0, 1) else (2, 6, 12)
        with refused(ValueError, f"slot {slot}", f"index {index}", "pad_to", 8, width) as caught:
            next(stream)
        with pytest.raises(ValueError) as alone:
            loader[1]
        assert str(alone.value) == str(caught.value)


def test_every_batch_has_the_fixed_width():
    with make("table uint8", "fixed") as loader:
        assert {batch.images.shape[3] for batch in loader} == {20}


def test_few_shapes():
    """With rounded or fixed sides a run has few shapes, of which each is compiled once."""

    def shapes(**form):
        sampler = om.ShuffledSampler(COUNT, 2)
        collate = ImageBatchCollator(targets="padded", **form)
        with DataLoader(SAMPLES, sampler=sampler, collate=collate) as loader:
            return {(b.images.shape, b.targets.shape) for b in loader.steps(0, 50)}

    assert len(shapes()) > 10
    assert len(shapes(width_multiple=12, target_multiple=8)) <= 2
    assert len(shapes(pad_to=WIDEST, target_multiple=8)) == 1


# The global batch, where a collator is called by hand or is not the library's


def test_a_key_without_the_global_batch():
    samples = SAMPLES[:2]
    collate = ImageBatchCollator(pad_to="global")
    alone = BatchKey(0, 0, 0, 0, np.arange(2))
    assert len(collate(samples, alone)) == 2
    with refused(ValueError, "global_indices", 4):
        collate(samples, alone._replace(global_rows=4))
    part = alone._replace(global_rows=4, global_indices=np.arange(4))
    with refused(ValueError, "samples", 4, 2):
        collate(samples, part)
    for first in (3, 2**63):
        with refused(ValueError, "first_slot", first):
            collate(SAMPLES[:4], part._replace(first_slot=first))


def test_a_subclass_sees_the_whole_batch():
    class Counting(ImageBatchCollator):
        def __call__(self, samples, key):
            batch = super().__call__(samples, key)
            batch.labels[:] = len(samples)
            return batch

    with DataLoader(FLOATS, 4, collate=Counting(pad_to="global"), shard=(1, 2)) as loader:
        assert loader._lane is None
        assert loader[0].labels.tolist() == [4, 4]
        assert loader[0].indices.tolist() == [2, 3]


@pytest.mark.parametrize("native", [True, False])
def test_an_overridden_argument_wins(native):
    class Wide(ImageBatchCollator):
        width_multiple = property(lambda self: 32)
        pad_to = property(lambda self: "global")
        targets = property(lambda self: "padded")

    with DataLoader(SAMPLES, 4, collate=Wide(), shard=(0, 2)) as loader:
        batch = next(iter(loader)) if native else loader[0]
        assert loader._lane is not None
        assert batch.images.shape[3] == 32
        longest = max(len(sample.target) for sample in SAMPLES[:4])
        assert batch.targets.shape == (2, longest)


def test_a_collator_of_ones_own_may_ask_for_the_whole_batch():
    class Own:
        pad_to = "global"

        def __call__(self, samples, key):
            return len(samples), key.first_slot, key.indices.tolist(), key.world

    with DataLoader(SAMPLES, 4, collate=Own(), shard=(1, 2)) as loader:
        assert loader[1] == (4, 2, [6, 7], 2)

    def wrapped(samples, key):
        return ImageBatchCollator(pad_to="global")(samples, key)

    loader = DataLoader(SAMPLES, 4, collate=wrapped, shard=(1, 2))
    with loader, refused(ValueError, "samples", 4, 2):
        loader[0]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["list", "own"])
def test_a_sample_of_another_rank_that_does_not_fit_is_named(kind, workers):
    """All ranks raise the same error: none of them waits for another that ended."""
    samples = list(SAMPLES[:8])
    samples[5] = Sample(np.zeros((1, 9, 3), np.float32))
    dataset = samples if kind == "list" else tuple(samples)
    texts = set()
    for rank in range(4):
        with DataLoader(
            dataset,
            8,
            collate=ImageBatchCollator(pad_to="global"),
            shard=(rank, 4),
            workers=workers,
        ) as loader:
            with refused(ValueError, "slot 5", "index 5", "H=2") as caught:
                next(loader.steps(0))
            texts.add(str(caught.value))
    assert len(texts) == 1


# What was there before stays


def test_without_these_arguments_nothing_changed():
    collate = ImageBatchCollator(width_multiple=4)
    text = "ImageBatchCollator(width_multiple=4, pad_value=0.0, augment=None)"
    assert repr(collate) == text
    assert (collate.targets, collate.target_multiple) == ("concatenated", 1)
    assert (collate.label_dtype, collate.pad_to) == ("int32", None)
    explicit = ImageBatchCollator(
        width_multiple=4,
        targets="concatenated",
        target_multiple=1,
        label_dtype="int32",
        pad_to=None,
    )
    assert repr(explicit) == text
    state = DataLoader(SAMPLES, 4, collate=collate).state_dict()
    assert state == DataLoader(SAMPLES, 4, collate=explicit).state_dict()
    DataLoader(SAMPLES, 4, collate=explicit).load_state_dict(state)


@every_form
def test_a_form_is_a_part_of_the_state(form):
    collate = ImageBatchCollator(**FORMS[form])
    for name, value in FORMS[form].items():
        assert f"{name}={value!r}" in repr(collate)
        assert getattr(collate, name) == value
        with pytest.raises(AttributeError):
            setattr(collate, name, value)
    state = DataLoader(SAMPLES, 4, collate=collate).state_dict()
    plain = DataLoader(SAMPLES, 4, collate=ImageBatchCollator())
    with refused(ValueError, "collator"):
        plain.load_state_dict(state)


@every_form
def test_a_form_is_pickled(form):
    collate = ImageBatchCollator(**FORMS[form])
    collate.note = "kept"
    copy = pickle.loads(pickle.dumps(collate))
    assert repr(copy) == repr(collate)
    assert copy.note == "kept"
    digests = [DataLoader(SAMPLES, 4, collate=c, shard=(0, 2)).digest(1) for c in (collate, copy)]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("targets", "pad", ValueError),
        ("targets", None, TypeError),
        ("targets", True, TypeError),
        ("label_dtype", "int8", ValueError),
        ("label_dtype", np.int64, TypeError),
        ("pad_to", "widest", ValueError),
        ("pad_to", 0, ValueError),
        ("pad_to", 2**31, ValueError),
        ("pad_to", 8.0, TypeError),
        ("pad_to", True, TypeError),
        ("target_multiple", 0, ValueError),
        ("target_multiple", 2**31, ValueError),
        ("target_multiple", "2", TypeError),
    ],
)
def test_arguments_are_checked(name, value, error):
    form = {"targets": "padded", name: value}
    with refused(error, name, repr(value)):
        ImageBatchCollator(**form)


def test_arguments_that_contradict_each_other():
    with refused(ValueError, "target_multiple", "concatenated", 4):
        ImageBatchCollator(target_multiple=4)
    with refused(ValueError, "pad_to", "width_multiple", 4, 10):
        ImageBatchCollator(width_multiple=4, pad_to=10)
    assert ImageBatchCollator(pad_to=np.int64(12)).pad_to == 12


# Where a batch is, and what its loss is multiplied by


@pytest.mark.parametrize("workers", [0, 2])
@every_path
def test_a_batch_says_its_step_its_rows_and_its_ranks(path, workers):
    for rank in range(4):
        with make(path, "padded", (rank, 4), workers=workers) as loader:
            for g, batch in enumerate(loader.steps(0, 5)):
                rows = 6 if g == 2 else 8
                for one in (batch, batch.map(np.copy), pickle.loads(pickle.dumps(batch))):
                    assert (one.global_step, one.epoch, one.step) == (g, *divmod(g, 3))
                    assert (one.global_rows, one.world) == (rows, 4)
                    assert one.loss_scale == len(one) * 4 / rows


def test_an_empty_shard_says_so_too():
    with make("list", "padded", (0, 8)) as loader:
        batch = loader[2]
    assert (len(batch), batch.global_step, batch.global_rows, batch.world) == (0, 2, 6, 8)
    assert batch.loss_scale == 0


def test_a_batch_made_by_hand_is_whole():
    batch = ImageBatchCollator()(SAMPLES[:3], BatchKey(0, 0, 0, 0, np.arange(3)))
    assert (batch.global_step, batch.global_rows, batch.world) == (None, None, 1)
    assert batch.loss_scale == 1


@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_the_average_of_scaled_gradients_is_that_of_the_global_batch(world):
    """Least squares on features that see the padding, as a network's do.

    The last batch has 6 rows, of which ranks get unequal parts or none.
    """
    weights = np.array([0.5, -2.0, 1.0])

    def gradient(batch):
        """The gradient of the mean square over the batch's rows; zeros where it has none."""
        rows = batch.images[:, 0].astype(np.float64).mean(axis=2)
        features = np.concatenate([rows, np.ones((len(batch), 1))], axis=1)
        residual = features @ weights - batch.labels
        return 2 * features.T @ residual / max(len(batch), 1)

    def average(g, form, scaled=True):
        total = np.zeros(3)
        for rank in range(world):
            with make("list", form, (rank, world)) as loader:
                batch = loader[g]
                total += gradient(batch) * (batch.loss_scale if scaled else 1)
        return total / world

    with make("list", "global") as whole:
        for g in range(4):
            expected = gradient(whole[g])
            np.testing.assert_allclose(average(g, "global"), expected, rtol=1e-12)
            if world > 1:  # what each of the two is for
                assert not np.allclose(average(g, "int64"), expected, rtol=1e-4)
                unequal = g == 2 and world > 2
                scaled = np.allclose(average(g, "global", scaled=False), expected, rtol=1e-4)
                assert scaled is not unequal


def test_a_batch_shows_its_shapes():
    batch = DataLoader(SAMPLES, 2, collate=ImageBatchCollator(targets="padded", pad_to=20))[0]
    longest = max(batch.target_lengths)
    assert repr(batch).endswith(f"images=[2, 1, 2, 20], targets=[2, {longest}])")
    assert repr(batch.map(np.ndim)).endswith("images=4, targets=2)")
    plain = DataLoader(SAMPLES, 2, collate=ImageBatchCollator())[0]
    assert repr(plain).endswith(f"targets={plain.target_lengths.sum()})")
    batch.release()
    assert repr(batch).endswith("released)")
