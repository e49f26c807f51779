"""Promise: whatever a dataset is given, it works or raises TypeError, ValueError or IndexError
with a message; and what it accepted makes batches.
"""

import array
import datetime
import inspect
import re

import numpy as np
import pytest

from onemodel.datasets import ArrayDataset, Columns, DigitLines, ImageTable
from onemodel.datasets.sample import Sample

ODD = {
    "text": "abc",
    "digits": "12",
    "empty text": "",
    "bytes": b"12",
    "huge": 10**400,
    "negative": -1,
    "2**63": 2**63,
    "float": 1.5,
    "huge float": 1e300,
    "nan": np.nan,
    "infinity": -np.inf,
    "complex": 1j,
    "None": None,
    "True": True,
    "np.True_": np.True_,
    "list": [1, 2],
    "empty list": [],
    "ragged": [[1], [2, 3]],
    "huge in a list": [10**400, 1],
    "text in a list": ["1", "2"],
    "None in a list": [None],
    "nested": [[[[1]]]],
    "dict": {"a": 1},
    "empty dict": {},
    "set": {1, 2},
    "date": datetime.date(2020, 1, 1),
    "dates": np.array(["2020", "2021"], "M8[s]"),
    "masked": np.ma.masked_array([1, 2], [True, False]),
    "masked image": np.ma.masked_array(np.zeros((1, 2, 3), np.float32)),
    "objects": np.array([object(), 1]),
    "rank 0": np.array(1),
    "float64": np.zeros((2, 3)),
    "float32": np.zeros((1, 2, 3), np.float32),
    "big-endian": np.zeros(6, ">f4"),
    "uint8": np.zeros(6, np.uint8),
    "int64": np.array([0, 1]),
    "uint64": np.array([2**64 - 1], np.uint64),
    "fields": np.zeros(2, "u1,f8"),
    "array.array": array.array("q", [0, 1]),
    "memoryview": memoryview(b"abc"),
    "iterator": iter([1, 2]),
    "generator": (k for k in range(3)),
    "function": len,
    "class": int,
    "slice": slice("a", None),
    "range": range(3),
    "object": object(),
}

COLUMNS = {
    "pixels": np.zeros(6, np.float32),
    "offsets": np.array([0, 2, 6]),
    "widths": np.array([1, 2]),
    "targets": np.arange(3, dtype=np.int32),
    "target_offsets": np.array([0, 1, 3]),
    "labels": np.zeros(2, np.int32),
    "channels": 1,
    "height": 2,
    "scale": np.ones(1, np.float32),
    "shift": np.zeros(1, np.float32),
}
TABLE = {name: COLUMNS[name] for name in COLUMNS if name not in ("scale", "shift")}
IMAGES = [np.zeros((2, 3), np.uint8)]
table = ImageTable(**TABLE)
rows = ArrayDataset(np.arange(5))

CALLS = {
    "Columns": (Columns, COLUMNS),
    "ImageTable": (ImageTable, TABLE | {"mean": 0.0, "std": 1.0, "names": ["a", "b"]}),
    "from_arrays": (
        ImageTable.from_arrays,
        {"images": IMAGES, "targets": [[1]], "labels": [0], "mean": 0.0, "std": 1.0},
    ),
    "from_samples": (
        ImageTable.from_samples,
        {"samples": [Sample(COLUMNS["pixels"].reshape(1, 2, 3))], "dtype": "f4", "mean": 0.0},
    ),
    "open": (ImageTable.open, {"directory": "nowhere", "memory_map": True}),
    "table[]": (lambda index: table[index], {"index": 0}),
    "table.take": (lambda indices: table.take(indices), {"indices": [0]}),
    "table.split": (
        lambda seed, fractions: table.split(seed, fractions),
        {"seed": 0, "fractions": (0.5,)},
    ),
    "ImageTable.concatenate": (ImageTable.concatenate, {"tables": [table]}),
    "ArrayDataset": (lambda array: ArrayDataset(array), {"array": np.zeros(2)}),
    "two arrays": (lambda array: ArrayDataset(np.zeros(2), array), {"array": np.zeros(2)}),
    "named array": (lambda array: ArrayDataset({"x": array}), {"array": np.zeros(2)}),
    "rows[]": (lambda index: rows[index], {"index": 0}),
    "rows.take": (lambda indices: rows.take(indices), {"indices": [0]}),
    "rows.split": (
        lambda seed, fractions: rows.split(seed, fractions),
        {"seed": 0, "fractions": (1.0,)},
    ),
    "ArrayDataset.concatenate": (ArrayDataset.concatenate, {"datasets": [rows]}),
    "DigitLines": (DigitLines, {"count": 2, "seed": 0, "digits": (1, 2), "height": 8}),
    "lines[]": (lambda index: DigitLines(2)[index], {"index": 0}),
}
# What an error calls an argument where it does not call it by its name.
NAMED = {
    ("Columns", "height"): "height|offsets",
    ("Columns", "widths"): "widths|labels",
    ("ImageTable", "height"): "height|pixels",
    ("ImageTable", "target_offsets"): "target",
    ("from_arrays", "images"): "image|at least 1 image",
    ("from_arrays", "targets"): "target|image",
    ("from_arrays", "labels"): "label",
    ("from_samples", "samples"): "sample|at least 1 image",
    ("table[]", "index"): "ind",
    ("table.take", "indices"): "ind",
    ("rows[]", "index"): "ind",
    ("lines[]", "index"): "ind",
    ("open", "directory"): "directory",
}
CASES = [pytest.param(call, name, id=f"{call}-{name}") for call in CALLS for name in CALLS[call][1]]


@pytest.mark.parametrize(("call", "name"), CASES)
def test_odd_values_raise_what_is_documented(call, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, usual = CALLS[call]
    messages = []
    for label, value in ODD.items():
        if inspect.isgenerator(value) or label == "iterator":
            value = iter([1, 2])
        try:
            made = function(**{**usual, name: value})
        except FileNotFoundError:
            assert call == "open", label
        except (TypeError, ValueError, IndexError) as error:
            messages.append(str(error))
        else:
            if isinstance(made, ImageTable):
                assert made[0].image.dtype == np.float32, label
            repr(made)
    word = NAMED.get((call, name), name)
    assert [message for message in messages if not re.search(rf"\b({word})", message)] == []
