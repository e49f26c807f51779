"""Promise: whatever a public callable is given, it works or raises a TypeError, ValueError or
IndexError that names the argument.

Each argument of each callable is given every odd value of one table, the others being right. A
new public callable, or a new argument of one, fails here until it has a row. An error that the
value itself raises, in its `__index__` say, arrives as it is.
"""

import contextlib
import inspect
import re
import tempfile
import warnings

import numpy as np
import pytest

import onemodel as om
from onemodel import augment, datasets, image, transforms


class OwnError(Exception):
    """What the values below raise when they are asked."""


def raising_type(method):
    """A class one of whose special methods raises."""

    def raise_it(self, *arguments):
        raise OwnError("on purpose")

    return type(f"Raising{method}", (), {method: raise_it})


def raising(method):
    """An object of such a class."""
    return raising_type(method)()


class Hollow:
    """It claims a length and has no items."""

    def __len__(self):
        return 3


def odd_values():
    """Name and value; made anew for each test, so that none can spoil another."""
    return {
        "the text False": "False",
        "an empty text": "",
        "a number as text": "12",
        "bytes": b"12",
        "a bytearray": bytearray(b"12"),
        "10**400": 10**400,
        "-(10**400)": -(10**400),
        "10**5000, too long to print": 10**5000,
        "a list of it": [10**5000, 10**5000],
        "-1": -1,
        "2**63": 2**63,
        "2**64": 2**64,
        "-(2**63) - 1": -(2**63) - 1,
        "2.5": 2.5,
        "1e300": 1e300,
        "complex": 1j,
        "NumPy's complex": np.complex128(1j),
        "nan": float("nan"),
        "NumPy's nan": np.float32("nan"),
        "inf": float("inf"),
        "-inf": float("-inf"),
        "None": None,
        "Ellipsis": ...,
        "True": True,
        "NumPy's True": np.True_,
        "a type": raising_type("__init__"),
        "an object": object(),
        "a masked array": np.ma.masked_array([1, 2, 3], [True, False, False]),
        "masked": np.ma.masked,
        "a ragged list": [[1], [1, 2]],
        "a deep list": [[[[1]]]],
        "a list of text": ["1", "2"],
        "a list of None": [None, None],
        "a list of bools": [True, False],
        "an empty list": [],
        "an empty array": np.empty(0),
        "a dict": {"a": 1},
        "a set": {1, 2},
        "an iterator": iter([1, 2]),
        "a date": np.datetime64("2026-01-01"),
        "dates": np.array(["2026-01-01"], "M8[D]"),
        "a duration": np.timedelta64(3, "s"),
        "flags": np.array([True, False]),
        "a flag as array": np.array(True),
        "an integer as array": np.array(2),
        "objects": np.array([None, {}], object),
        "a structured array": np.zeros(2, [("a", "i4")]),
        "complex numbers": np.zeros(3, complex),
        "big-endian": np.arange(3, dtype=">i4"),
        "a pair of nan": (float("nan"), float("nan")),
        "a pair of text": ("0", "1"),
        "a pair the wrong way": (2, 1),
        "a pair of inf": (float("-inf"), float("inf")),
        "a pair of 10**400": (10**400, 10**400),
        "a slice": slice(None),
        "a raising __index__": raising("__index__"),
        "a raising __float__": raising("__float__"),
        "a raising __len__": raising("__len__"),
        "a raising __iter__": raising("__iter__"),
        "a raising __array__": raising("__array__"),
        "a raising __bool__": raising("__bool__"),
        "a length without items": Hollow(),
    }


def samples(count=6):
    return [om.Sample(np.full((1, 2, 3 + k), k, np.float32), [k], k) for k in range(count)]


def rng():
    return om.SampleRng(1)


def batch_rng():
    from onemodel._random.batch_rng import BatchRng

    return BatchRng(1, 0, 0, 0)


def batch_key():
    return om.BatchKey(0, 0, 0, 0, np.arange(2))


def rows():
    return om.ArrayDataset(np.arange(8))


def is_hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True


class OddSampler:
    """A sampler of the user's, some of whose answers are odd."""

    def __init__(self, steps_per_epoch=2, batch_size=4, indices=(0, 1)):
        self.steps_per_epoch, self.batch_size, self.indices = steps_per_epoch, batch_size, indices

    def batch_indices(self, seed, epoch, step):
        return self.indices


def loader(**options):
    return om.DataLoader(om.ArrayDataset(np.arange(8)), 4, **options)


def first_batch(made):
    """What a loader refuses later than at once it refuses with its first batch."""
    return made[0]


def load_state(next_step=3, **changes):
    made = loader()
    made.load_state_dict({**made.state_dict(), "next_step": next_step, **changes})
    return list(made)


ROWS = np.zeros((4, 6, 6, 3), np.uint8)
FLOATS = np.zeros((4, 6, 6, 3), np.float32)
LABELS = np.arange(4)
PIXELS = np.zeros(2 * 4 * 5, np.uint8)


def table():
    return datasets.ImageTable.from_samples(samples())


def saved():
    """A directory that holds a table, new each time."""
    place = tempfile.mkdtemp(dir=".")
    table().save(f"{place}/table")
    return f"{place}/table"


def save(directory):
    """Save a table; where something is already, the system's error says so."""
    with contextlib.suppress(OSError):
        table().save(directory)


# What is called, with arguments that are right. A key that is a class or function of the package
# must have all of its arguments here.
CALLS = {
    "ArrayDataset": (om.ArrayDataset, {"array": np.arange(3)}),
    "ArrayDataset(dict)": (
        lambda names: om.ArrayDataset({names: np.arange(3)} if is_hashable(names) else "names"),
        {"names": "x"},
    ),
    "ArrayDataset.take": (lambda indices: rows().take(indices), {"indices": [1, 2]}),
    "ArrayDataset.split": (
        lambda **given: rows().split(**given),
        {"seed": 1, "fractions": [0.5, 0.5]},
    ),
    "ArrayDataset.concatenate": (om.ArrayDataset.concatenate, {"datasets": [rows()]}),
    "ArrayDataset.map_fields": (
        lambda function: rows().map_fields(function),
        {"function": lambda field, array: array},
    ),
    "ArrayDataset.structured": (lambda arrays: rows().structured(arrays), {"arrays": [1]}),
    "ArrayDataset[]": (lambda index: om.ArrayDataset(np.arange(3))[index], {"index": 1}),
    "BucketedSampler": (
        om.BucketedSampler,
        {
            "lengths": [3, 1, 2],
            "batch_size": 2,
            "pool_batches": 2,
            "drop_last": True,
            "shuffle_slots": False,
        },
    ),
    "BucketedSampler.plan": (
        lambda **given: om.BucketedSampler([3, 1, 2], 2).plan(**given),
        {"seed": 1, "epoch": 0},
    ),
    "BucketedSampler.batch_indices": (
        lambda **given: om.BucketedSampler([3, 1, 2], 2).batch_indices(**given),
        {"seed": 1, "epoch": 0, "step": 0},
    ),
    "BudgetSampler": (
        om.BudgetSampler,
        {
            "lengths": [3, 1, 2],
            "budget": 6,
            "multiple_of": 1,
            "largest_batch": 2,
            "pool_batches": 2,
        },
    ),
    "BudgetSampler.batch_indices": (
        lambda **given: om.BudgetSampler([3, 1, 2], 3).batch_indices(**given),
        {"seed": 1, "epoch": 0, "step": 0},
    ),
    "BufferPool": (om.BufferPool, {"allocate": None}),
    "BufferPool.rent": (lambda **given: om.BufferPool().rent(**given), {"shape": 3, "dtype": "f4"}),
    "Compose": (om.Compose, {"parts": [augment.Invert()]}),
    "DataLoader": (
        lambda **given: first_batch(om.DataLoader(**given)),
        {
            "dataset": om.ArrayDataset(np.arange(8)),
            "batch_size": 4,
            "shuffle": False,
            "drop_last": False,
            "transform": None,
            "collate": None,
            "seed": 0,
            "workers": 0,
            "prefetch": None,
            "shard": (0, 1),
            "device": None,
        },
    ),
    "DataLoader(sampler=)": (
        lambda sampler: om.DataLoader(om.ArrayDataset(np.arange(8)), sampler=sampler)[0],
        {"sampler": om.SequentialSampler(8, 4)},
    ),
    "a sampler's answers": (
        lambda **given: om.DataLoader(rows(), sampler=OddSampler(**given))[0],
        {"steps_per_epoch": 2, "batch_size": 4, "indices": [0, 1]},
    ),
    "DataLoader(pool=)": (lambda pool: om.DataLoader(rows(), 4, pool=pool)[0], {"pool": None}),
    "DataLoader.load_state_dict(allow=)": (
        lambda allow: loader().load_state_dict(loader().state_dict(), allow=allow),
        {"allow": ()},
    ),
    "DataLoader[]": (lambda g: loader()[g], {"g": 3}),
    "DataLoader.digest": (lambda g: loader().digest(g), {"g": 3}),
    "DataLoader.explain": (lambda g: loader().explain(g), {"g": 3}),
    "DataLoader.set_epoch": (lambda epoch: loader().set_epoch(epoch), {"epoch": 3}),
    "DataLoader.state_dict": (lambda step: loader().state_dict(step), {"step": 3}),
    "DataLoader.steps": (
        lambda start, stop: loader().steps(start, stop),
        {"start": 0, "stop": 2**64},
    ),
    "DataLoader.load_state_dict": (
        lambda state: loader().load_state_dict(state),
        {"state": loader().state_dict()},
    ),
    "a state's fields": (load_state, loader().state_dict()),
    "ImageBatchCollator": (
        lambda **given: om.ImageBatchCollator(**given),
        {
            "width_multiple": 1,
            "pad_value": 0.0,
            "augment": None,
            "pool": None,
            "targets": "padded",
            "target_multiple": 1,
            "label_dtype": "int32",
            "pad_to": None,
        },
    ),
    "ImageBatchCollator()": (
        lambda **given: om.ImageBatchCollator()(**given),
        {"samples": samples(2), "key": batch_key()},
    ),
    "ImageBatchCollator.from_columns": (
        lambda key: om.ImageBatchCollator().from_columns(table().columns, key),
        {"key": batch_key()},
    ),
    "ImageBatch.map": (
        lambda function: om.ImageBatchCollator()(samples(2), batch_key()).map(function),
        {"function": np.copy},
    ),
    "a key's fields": (
        lambda **given: om.ImageBatchCollator(augment=augment.Invert())(
            samples(2), om.BatchKey(**given)
        ),
        {"seed": 0, "epoch": 0, "step": 0, "first_slot": 0, "indices": [0, 1]},
    ),
    "KeyedPermutation": (om.KeyedPermutation, {"n": 5, "key": 42}),
    "KeyedPermutation[]": (
        lambda position: om.KeyedPermutation(5, 42)[position],
        {"position": 1},
    ),
    "KeyedPermutation.inverse": (
        lambda index: om.KeyedPermutation(5, 42).inverse(index),
        {"index": 1},
    ),
    "KeyedPermutation.take": (
        lambda **given: om.KeyedPermutation(5, 42).take(**given),
        {"positions": [1, 2], "out": None},
    ),
    "MixingSampler": (
        om.MixingSampler,
        {"sizes": [3, 5], "shares": [0.5, 0.5], "batch_size": 2, "steps_per_epoch": None},
    ),
    "MixingSampler.batch_indices": (
        lambda **given: om.MixingSampler([3], [1], 2).batch_indices(**given),
        {"seed": 1, "epoch": 0, "step": 0},
    ),
    "Sample": (
        om.Sample,
        {"image": np.zeros((1, 2, 3), np.float32), "target": [1], "label": 0},
    ),
    "SampleRng": (om.SampleRng, {"state": 1}),
    "SampleRng.next_int": (lambda n: rng().next_int(n), {"n": 3}),
    "SampleRng.integers": (
        lambda **given: rng().integers(**given),
        {"low": 0, "high": 3, "size": 2},
    ),
    "SampleRng.permutation": (lambda n: rng().permutation(n), {"n": 3}),
    "SampleRng.random": (lambda **given: rng().random(**given), {"size": 2}),
    "SampleRng.standard_normal": (lambda size: rng().standard_normal(size), {"size": 2}),
    "SampleRng.uniform": (
        lambda **given: rng().uniform(**given),
        {"low": 0.0, "high": 1.0, "size": 2},
    ),
    "SequentialSampler": (om.SequentialSampler, {"n": 5, "batch_size": 2, "drop_last": True}),
    "SequentialSampler.batch_indices": (
        lambda **given: om.SequentialSampler(5, 2).batch_indices(**given),
        {"seed": 1, "epoch": 0, "step": 0},
    ),
    "ShuffledSampler": (om.ShuffledSampler, {"n": 5, "batch_size": 2, "drop_last": True}),
    "ShuffledSampler.batch_indices": (
        lambda **given: om.ShuffledSampler(5, 2).batch_indices(**given),
        {"seed": 1, "epoch": 0, "step": 0},
    ),
    "WeightedSampler": (
        om.WeightedSampler,
        {
            "weights": [3, 1, 2],
            "batch_size": 2,
            "replacement": False,
            "steps_per_epoch": 1,
            "drop_last": True,
        },
    ),
    "WeightedSampler.plan": (
        lambda **given: om.WeightedSampler([3, 1, 2], 2, replacement=False).plan(**given),
        {"seed": 1, "epoch": 0},
    ),
    "WeightedSampler.batch_indices": (
        lambda **given: om.WeightedSampler([3, 1, 2], 2).batch_indices(**given),
        {"seed": 1, "epoch": 0, "step": 0},
    ),
    "check_ctc": (om.check_ctc, {"dataset": samples(), "downsample": 1}),
    "check_loader": (
        lambda **given: om.check_loader(**{"processes": False, **given}),
        {"make_loader": loader, "steps": 1},
    ),
    "check_loader(processes=)": (
        lambda processes: om.check_loader(lambda: loader(), steps=1, processes=processes),
        {"processes": False},
    ),
    "inspect_loader": (om.inspect_loader, {"loader": loader(), "epochs": 1, "ranks": None}),
    "derive": (om.derive, {"seed": 1, "epoch": 1, "step": 1, "slot": 1, "stream": 1}),
    "digest": (om.digest, {"batch": np.arange(3)}),
    "mix": (om.mix, {"x": 1}),
    "augment.Blur": (augment.Blur, {"p": 0.5}),
    "augment.Erase": (augment.Erase, {"count": 1, "size": (2, 8), "fill": 0.0}),
    "augment.GainOffset": (augment.GainOffset, {"gain": (0.8, 1.2), "offset": (-0.1, 0.1)}),
    "augment.HorizontalFlip": (augment.HorizontalFlip, {"p": 0.5}),
    "augment.Invert": (augment.Invert, {"p": 0.5}),
    "augment.Noise": (augment.Noise, {"sigma": 0.1}),
    "augment.ResizeHeight": (augment.ResizeHeight, {"height": 4, "keep_aspect": True}),
    "augment.Shift": (augment.Shift, {"dx": (-1, 1), "dy": (-1, 1), "fill": 0.0}),
    "augment.StretchWidth": (augment.StretchWidth, {"low": 0.8, "high": 1.2}),
    "augment()": (
        lambda rng, image: augment.Invert()(rng, image),
        {"rng": rng(), "image": np.zeros((1, 2, 3), np.float32)},
    ),
    "transforms.Compose": (transforms.Compose, {"parts": [transforms.RandomHorizontalFlip()]}),
    "transforms.CutMix": (
        transforms.CutMix,
        {"alpha": 1.0, "block": 8, "key": None, "label_key": None, "layout": None},
    ),
    "transforms.Mixup": (
        transforms.Mixup,
        {"alpha": 1.0, "block": 8, "key": None, "label_key": None},
    ),
    "transforms.Cutout": (transforms.Cutout, {"size": 2, "key": None, "layout": None}),
    "transforms.Normalize": (
        transforms.Normalize,
        {"mean": 0.5, "std": 0.5, "key": None, "layout": None},
    ),
    "transforms.OneHot": (transforms.OneHot, {"classes": 4, "key": None}),
    "transforms.RandomCrop": (
        transforms.RandomCrop,
        {"padding": 1, "size": None, "key": None, "layout": None},
    ),
    "transforms.RandomHorizontalFlip": (
        transforms.RandomHorizontalFlip,
        {"p": 0.5, "key": None, "layout": None},
    ),
    "transforms.RandomHorizontalFlip()": (
        lambda **given: transforms.RandomHorizontalFlip()(*given.values()),
        {"rng": batch_rng(), "batch": ROWS},
    ),
    "transforms.OneHot()": (
        lambda **given: transforms.OneHot(4)(*given.values()),
        {"rng": batch_rng(), "batch": (ROWS, LABELS)},
    ),
    "transforms.Mixup()": (
        lambda **given: transforms.Mixup()(*given.values()),
        {"rng": batch_rng(), "batch": (FLOATS, np.zeros((4, 2), np.float32))},
    ),
    "datasets.DigitLines": (
        datasets.DigitLines,
        {"count": 3, "seed": 0, "digits": (3, 5), "height": 32},
    ),
    "datasets.DigitLines[]": (lambda index: datasets.DigitLines(3)[index], {"index": 1}),
    "datasets.Items": (
        lambda **given: first_batch(om.DataLoader(datasets.Items(**given), 2)),
        {
            "dataset": [{"x": 1}, {"x": 2}],
            "transform": None,
            "threads": 1,
            "on_error": "substitute",
            "substitutes": None,
            "index_field": None,
        },
    ),
    "datasets.Items(sample=)": (
        lambda sample: datasets.Items([1, 2], sample=sample),
        {"sample": None},
    ),
    "datasets.ImageTable": (
        datasets.ImageTable,
        {
            "pixels": PIXELS,
            "widths": [5, 5],
            "channels": 1,
            "height": 4,
            "offsets": None,
            "targets": (),
            "target_offsets": None,
            "labels": None,
            "mean": 0.0,
            "std": 1.0,
            "names": None,
        },
    ),
    "datasets.ImageTable.take": (lambda indices: table().take(indices), {"indices": [1, 2]}),
    "datasets.ImageTable.split": (
        lambda **given: table().split(**given),
        {"seed": 1, "fractions": [0.5, 0.5]},
    ),
    "datasets.ImageTable.concatenate": (
        datasets.ImageTable.concatenate,
        {"tables": [table()]},
    ),
    "datasets.ImageTable.open(memory_map=)": (
        lambda memory_map: datasets.ImageTable.open(saved(), memory_map=memory_map),
        {"memory_map": True},
    ),
    "datasets.ImageTable.save": (save, {"directory": "a"}),
    "datasets.Items.read": (lambda key: datasets.Items([1, 2]).read(key), {"key": batch_key()}),
    "datasets.ImageTable[]": (lambda index: table()[index], {"index": 1}),
    "datasets.ImageTable.from_arrays": (
        datasets.ImageTable.from_arrays,
        {
            "images": [np.zeros((4, 5), np.uint8)],
            "targets": None,
            "labels": None,
            "mean": 0.0,
            "std": 1.0,
        },
    ),
    "datasets.ImageTable.from_samples": (
        datasets.ImageTable.from_samples,
        {"samples": samples(), "dtype": np.float32, "mean": 0.0, "std": 1.0},
    ),
    "image.gray8_to_planar": (
        image.gray8_to_planar,
        {"pixels": np.zeros((2, 3), np.uint8), "mean": 0.0, "std": 1.0, "out": None},
    ),
    "image.rgb8_to_planar": (
        image.rgb8_to_planar,
        {"pixels": np.zeros((2, 3, 3), np.uint8), "mean": 0.0, "std": 1.0, "out": None},
    ),
    "image.scale_and_shift": (image.scale_and_shift, {"mean": 0.0, "std": 1.0, "channels": 3}),
}

# Public, and here not called with odd values.
LEFT_OUT = {
    "BatchKey": "a plain tuple, made by the library",
    "ImageBatch": "a plain container, made by the library",
    "Sampler": "a protocol",
    "augment.NativeAugmentation": "a base class",
    "transforms.NativeTransform": "a base class",
    "datasets.TarItems": "paths of files, which test_tar_items.py gives it",
    "datasets.Columns": "flat arrays that are checked one by one in test_image_table.py",
}

# Keyword arguments that a row above calls by another name than the package does.
POSITIONAL = {"ArrayDataset", "mix"}

ROWS_OF_THE_TABLE = [
    (call, argument) for call, (_, arguments) in CALLS.items() for argument in arguments
]


# How errors call some arguments: one of them, or what the user's own code calls them.
SYNONYMS = {
    "batch": "batch|images|array|labels",
    "dataset": "dataset|items",
    "images": "image",
    "index": "index|indices",
    "indices": "index|indices|sampler",
    "labels": "label",
    "positions": "position",
    "samples": "sample",
    "tables": "table|tables",
    "datasets": "datasets?(\\[\\d+\\])?",
    "batch_size": "batch_size|multiple_of",
    "targets": "target",
}


def names_it(text, argument):
    """Whether a message has the argument's name, in the singular as well, as a whole word."""
    return re.search(rf"\b({argument}|{SYNONYMS.get(argument, argument)})\b", text) is not None


def problem(call, argument, value):
    """What is wrong with how a call takes an odd value, or None."""
    function, arguments = CALLS[call]
    given = {**arguments, argument: value}
    try:
        if call in POSITIONAL:
            function(*given.values())
        else:
            function(**given)
    except OwnError:
        return None
    except (TypeError, ValueError, IndexError) as error:
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
        # Of a value out of range, what it is in relation to may be named: low and high, say.
        names = {argument} if isinstance(error, TypeError) else set(arguments)
        return None if any(names_it(text, name) for name in names) else f"no {names} in: {text}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize(("call", "argument"), ROWS_OF_THE_TABLE, ids=lambda name: name)
def test_odd_values(call, argument, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of masks and of casts
        problems = {
            name: found
            for name, value in odd_values().items()
            if (found := problem(call, argument, value)) is not None
        }
    assert not problems, "\n".join(f"{name}: {found}" for name, found in problems.items())


@pytest.mark.parametrize("call", CALLS)
def test_the_right_values_are_right(call, tmp_path, monkeypatch):
    """Otherwise every odd value would be refused for another argument's sake."""
    monkeypatch.chdir(tmp_path)
    function, arguments = CALLS[call]
    if call in POSITIONAL:
        function(*arguments.values())
    else:
        function(**arguments)


def public_callables():
    modules = {"": om, "augment.": augment, "transforms.": transforms, "datasets.": datasets}
    for prefix, module in {**modules, "image.": image}.items():
        for name in module.__all__:
            if callable(getattr(module, name)):
                yield prefix + name, getattr(module, name)


def argument_names(function):
    """The names of a callable's arguments: of its signature, or else of its documentation."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        section = re.search(r"\n +Args:\n(.*?)(\n\n|$)", function.__doc__ or "", re.DOTALL)
        lines = re.findall(r"^        (\w[\w, ]*):", section[1], re.MULTILINE) if section else []
        return {name for line in lines for name in line.split(", ")}
    return {each.name for each in parameters if each.kind is not each.VAR_POSITIONAL}


def test_every_public_callable_and_argument_has_a_row():
    missing = []
    for name, function in public_callables():
        if name in LEFT_OUT or (name.startswith("datasets.") and name[9:] in CALLS):
            continue  # or it is in the package under its bare name, too
        covered = set()
        for call, (_, arguments) in CALLS.items():
            if call == name or call.startswith(f"{name}("):
                covered |= set(arguments)
        missing += [f"{name}({argument})" for argument in argument_names(function) - covered]
        if not covered:
            missing.append(name)
    assert missing == []
