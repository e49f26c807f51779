"""Promise: an override wins, however it came about: no fast path passes over it, on any thread.

Each method that a fast path may skip is overridden in each way that Python knows. The batches of
a loader must then differ from those without it, and be the same with workers and without.
"""

import functools

import numpy as np
import pytest

import onemodel as om
from onemodel import augment, datasets, transforms

COUNT, BATCH = 16, 4
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 255, (COUNT, 6, 6, 3)).astype(np.uint8)
PLANES = RNG.random((COUNT, 3, 6, 6), dtype=np.float32)
LABELS = np.arange(COUNT) % 4
ONE_HOT = np.eye(4, dtype=np.float32)[LABELS]
ITEMS = [{"x": np.float32(k)} for k in range(COUNT)]


def samples(kind=om.Sample):
    return [kind(np.full((1, 4, 3 + k % 4), k + 1, np.float32), [k], k) for k in range(COUNT)]


def table():
    return datasets.ImageTable.from_samples(samples())


# What an override does: `call` is the method that it hides.


def brighter(call, rng, image):
    call(rng, image)
    image += 1


def brighter_sample(call, rng, sample):
    made = call(rng, sample)
    return om.Sample(made.image + 1, made.target, made.label)


def brighter_rows(call, rng, batch):
    first, *others = call(rng, batch)
    return ((first + 1).astype(first.dtype), *others)


def brighter_batch(call, samples, key):
    batch = call(samples, key)
    batch.images[...] += 1
    return batch


def turned(call, *arguments):
    return call(*arguments)[::-1].copy()


def next_rows(call, indices):
    return call((np.asarray(indices) + 1) % COUNT)


def next_item(call, index):
    return call((index + 1) % COUNT)


# The ways to override: from (class, its arguments, method, what it does) to an object.


def as_method(kind, method, does):
    hidden = getattr(kind, method)
    return lambda self, *given: does(functools.partial(hidden, self), *given)


def subclass(kind, given, method, does):
    return type("Sub", (kind,), {method: as_method(kind, method, does)})(**given)


def subclass_of_it(kind, given, method, does):
    return type("Again", (type(subclass(kind, given, method, does)),), {})(**given)


def mixin(kind, given, method, does):
    mixed = type("Mixin", (), {method: as_method(kind, method, does)})
    return type("Sub", (mixed, kind), {})(**given)


def wrapped(kind, given, method, does):
    function = functools.wraps(getattr(kind, method))(as_method(kind, method, does))
    return type("Sub", (kind,), {method: function})(**given)


def patched(kind, given, method, does):
    made = type("Sub", (kind,), {})(**given)
    setattr(type(made), method, as_method(kind, method, does))
    return made


def other_class(kind, given, method, does):
    made = type("Sub", (kind,), {})(**given)
    made.__class__ = type("Other", (kind,), {method: as_method(kind, method, does)})
    return made


def metaclass(kind, given, method, does):
    meta = type("Meta", (type(kind),), {})
    return meta("Sub", (kind,), {method: as_method(kind, method, does)})(**given)


def descriptor(kind, given, method, does):
    class Bound:
        def __get__(self, made, owner=None):
            return functools.partial(as_method(kind, method, does), made)

    return type("Sub", (kind,), {method: Bound()})(**given)


WAYS = [subclass, subclass_of_it, mixin, wrapped, patched, other_class, metaclass, descriptor]


def arrays(transform=None, images=PIXELS, labels=LABELS):
    return lambda workers: om.DataLoader(
        om.ArrayDataset(images, labels), BATCH, transform=transform, workers=workers
    )


def images(dataset=samples, **options):
    options = {"collate": om.ImageBatchCollator(), **options}
    return lambda workers: om.DataLoader(dataset(), BATCH, workers=workers, **options)


def augmented(part):
    return images(table, collate=om.ImageBatchCollator(augment=part))


def drawn(sampler):
    return lambda workers: om.DataLoader(
        om.ArrayDataset(PIXELS, LABELS), sampler=sampler, workers=workers
    )


# name: class, its arguments, method, what the override does, and the loader of the object
CASES = {
    "Blur": (augment.Blur, {}, "__call__", brighter, augmented),
    "Erase": (augment.Erase, {}, "__call__", brighter, augmented),
    "GainOffset": (augment.GainOffset, {}, "__call__", brighter, augmented),
    "HorizontalFlip": (augment.HorizontalFlip, {}, "__call__", brighter, augmented),
    "Invert": (augment.Invert, {}, "__call__", brighter, augmented),
    "Noise": (augment.Noise, {"sigma": 0.1}, "__call__", brighter, augmented),
    "Shift": (augment.Shift, {}, "__call__", brighter, augmented),
    "StretchWidth": (
        augment.StretchWidth,
        {},
        "__call__",
        brighter_sample,
        lambda part: images(transform=part),
    ),
    "ResizeHeight": (
        augment.ResizeHeight,
        {"height": 5},
        "__call__",
        brighter_sample,
        lambda part: images(transform=part),
    ),
    "Compose of augmentations": (
        om.Compose,
        {"parts": [augment.Invert()]},
        "__call__",
        brighter,
        augmented,
    ),
    "Compose of transforms": (
        om.Compose,
        {"parts": [transforms.RandomCrop(1)]},
        "__call__",
        brighter_rows,
        arrays,
    ),
    "Normalize": (
        transforms.Normalize,
        {"mean": 0.5, "std": 0.5},
        "__call__",
        brighter_rows,
        arrays,
    ),
    "RandomCrop": (transforms.RandomCrop, {"padding": 1}, "__call__", brighter_rows, arrays),
    "RandomHorizontalFlip": (
        transforms.RandomHorizontalFlip,
        {},
        "__call__",
        brighter_rows,
        arrays,
    ),
    "Cutout": (transforms.Cutout, {"size": 2}, "__call__", brighter_rows, arrays),
    "OneHot": (transforms.OneHot, {"classes": 4}, "__call__", brighter_rows, arrays),
    "Mixup": (
        transforms.Mixup,
        {},
        "__call__",
        brighter_rows,
        lambda part: arrays(part, PLANES, ONE_HOT),
    ),
    "CutMix": (
        transforms.CutMix,
        {},
        "__call__",
        brighter_rows,
        lambda part: arrays(part, PLANES, ONE_HOT),
    ),
    "SequentialSampler": (
        om.SequentialSampler,
        {"n": COUNT, "batch_size": BATCH},
        "batch_indices",
        turned,
        drawn,
    ),
    "ShuffledSampler": (
        om.ShuffledSampler,
        {"n": COUNT, "batch_size": BATCH},
        "batch_indices",
        turned,
        drawn,
    ),
    "MixingSampler": (
        om.MixingSampler,
        {"sizes": [10, 6], "shares": [0.5, 0.5], "batch_size": BATCH},
        "batch_indices",
        turned,
        drawn,
    ),
    "BucketedSampler": (
        om.BucketedSampler,
        {"lengths": np.arange(COUNT), "batch_size": BATCH},
        "batch_indices",
        turned,
        drawn,
    ),
    "BucketedSampler.plan": (
        om.BucketedSampler,
        {"lengths": np.arange(COUNT), "batch_size": BATCH},
        "plan",
        turned,
        drawn,
    ),
    "BudgetSampler": (
        om.BudgetSampler,
        {"lengths": np.arange(1, COUNT + 1), "budget": 40},
        "batch_indices",
        turned,
        drawn,
    ),
    "WeightedSampler": (
        om.WeightedSampler,
        {"weights": np.arange(1, COUNT + 1), "batch_size": BATCH},
        "batch_indices",
        turned,
        drawn,
    ),
    "WeightedSampler.plan": (
        om.WeightedSampler,
        {"weights": np.arange(1, COUNT + 1), "batch_size": BATCH, "replacement": False},
        "plan",
        turned,
        drawn,
    ),
    "ImageBatchCollator of samples": (
        om.ImageBatchCollator,
        {},
        "__call__",
        brighter_batch,
        lambda collate: images(collate=collate),
    ),
    "ImageBatchCollator of a table": (
        om.ImageBatchCollator,
        {},
        "__call__",
        brighter_batch,
        lambda collate: images(table, collate=collate),
    ),
    "ImageBatchCollator.from_columns": (
        om.ImageBatchCollator,
        {},
        "from_columns",
        brighter_batch,
        lambda collate: images(table, collate=collate),
    ),
    "DigitLines": (
        datasets.DigitLines,
        {"count": COUNT},
        "__getitem__",
        next_item,
        lambda made: images(lambda: made),
    ),
    "Items": (
        datasets.Items,
        {"dataset": ITEMS},
        "__getitem__",
        next_item,
        lambda made: lambda workers: om.DataLoader(made, BATCH, workers=workers),
    ),
    "Items of samples": (
        datasets.Items,
        {
            "dataset": ITEMS,
            "sample": lambda item: om.Sample(np.full((1, 2, 3), item["x"], np.float32)),
        },
        "__getitem__",
        next_item,
        lambda made: images(lambda: made),
    ),
    "list": (
        list,
        {},
        "__getitem__",
        next_item,
        lambda made: images(lambda: made.extend(samples()) or made if not len(made) else made),
    ),
}


def digests(make):
    """The digests of three steps, which must be the same on every thread."""
    found = []
    for workers in (0, 2):
        with make(workers) as loader:
            found.append([om.digest(batch) for batch in loader.steps(0, 3)])
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", CASES)
def test_an_override_wins(name, way):
    kind, given, method, does, make = CASES[name]
    assert digests(make(way(kind, given, method, does))) != digests(make(kind(**given)))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_rows_of_a_subclass_are_asked_for(way):
    plain = om.ArrayDataset(PIXELS, LABELS)

    def taking(self):
        om.ArrayDataset.__init__(self, PIXELS, LABELS)

    kind = type("Rows", (om.ArrayDataset,), {"__init__": taking})
    other = way(kind, {}, "__getitem__", next_rows)
    for transform in (None, transforms.RandomCrop(1)):

        def make(dataset, transform=transform):
            return lambda workers: om.DataLoader(
                dataset, BATCH, transform=transform, workers=workers
            )

        assert digests(make(other)) != digests(make(plain))


PATCHED = [
    "BucketedSampler",
    "BucketedSampler.plan",
    "BudgetSampler",
    "DigitLines",
    "ImageBatchCollator of a table",
    "ImageBatchCollator of samples",
    "MixingSampler",
    "OneHot",
    "SequentialSampler",
    "ShuffledSampler",
    "WeightedSampler",
    "WeightedSampler.plan",
]


@pytest.mark.parametrize("name", PATCHED)
def test_our_own_class_may_be_patched(name, monkeypatch):
    kind, given, method, does, make = CASES[name]
    plain = digests(make(kind(**given)))
    monkeypatch.setattr(kind, method, as_method(kind, method, does))
    assert digests(make(kind(**given))) != plain


@pytest.mark.parametrize("name", [name for name in PATCHED if not name.endswith(".plan")])
def test_what_is_patched_later_changes_no_batch(name, monkeypatch):
    """A loader reads its parts once: else one step would have two batches."""
    kind, given, method, does, make = CASES[name]
    with make(kind(**given))(0) as loader:
        plain = [loader.digest(g) for g in range(3)]
        monkeypatch.setattr(kind, method, as_method(kind, method, does))
        if name not in ("DigitLines", "OneHot"):  # asked by the reference path alone
            assert [loader.digest(g) for g in range(3)] == plain
        assert [om.digest(batch) for batch in loader.steps(0, 3)] == [
            loader.digest(g) for g in range(3)
        ]


FIELDS = {
    "image": {"image": property(lambda self: om.Sample.image.__get__(self) + 1)},
    "target": {"target": property(lambda self: np.array([5], np.int32))},
    "label": {"label": property(lambda self: 99)},
    "__getattribute__": {
        "__getattribute__": lambda self, name: (
            99 if name == "label" else om.Sample.__getattribute__(self, name)
        )
    },
    "no fields of its own": {
        "__init__": lambda self, image, target, label: None,
        "image": property(lambda self: np.ones((1, 4, 3), np.float32)),
        "target": property(lambda self: [1]),
        "label": property(lambda self: 2),
    },
}


@pytest.mark.parametrize("transform", [None, augment.ResizeHeight(4)], ids=str)
@pytest.mark.parametrize("name", FIELDS)
def test_a_sample_that_overrides_a_field_is_asked(name, transform):
    kind = type("Sub", (om.Sample,), FIELDS[name])

    def seen(samples):
        return digests(images(lambda: samples, transform=transform))

    given = samples(kind)
    expected = [om.Sample(each.image, each.target, each.label) for each in given]
    assert seen(given) == seen(expected) != seen(samples())


OPTIONS = {
    "augment": augment.Invert(),
    "label_dtype": "int64",
    "pad_to": 20,
    "pad_value": 3.0,
    "targets": "padded",
    "width_multiple": 8,
}


@pytest.mark.parametrize("dataset", [samples, table])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_collator_that_overrides_an_option_is_asked(name, dataset):
    value = OPTIONS[name]
    kind = type("Sub", (om.ImageBatchCollator,), {name: property(lambda self: value)})
    expected = digests(images(dataset, collate=om.ImageBatchCollator(**{name: value})))
    assert digests(images(dataset, collate=kind())) == expected
    assert expected != digests(images(dataset))
