"""Promise: what a batch is made of is described by short texts that tell other parts apart.

A text is the same in every process, whether a file is run or imported, and in every Python. Code is
compared where the Python is the same. No address and nothing that a batch changes gets in.
"""

import dataclasses
import enum
import functools
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
from support import SAMPLES, make_loader, refused, saved

import onemodel
from onemodel import ArrayDataset, DataLoader, transforms
from onemodel._state import state as state_module
from onemodel._state.code import code_digest
from onemodel._state.texts import LONGEST
from onemodel._state.values import Describer

X = np.zeros((12, 4, 4, 3), np.uint8)


def text_of(value):
    return Describer().text(value)


def code_of(value):
    describer = Describer()
    describer.text(value)
    return describer.code


def both(value):
    describer = Describer()
    return describer.text(value), describer.code


def arrays_loader(transform=None, **options):
    return DataLoader(ArrayDataset(X), batch_size=4, transform=transform, **options)


# What tells parts apart


def scaled(factor, table=None):
    def transform(rng, batch, power=1, *, offset=0):
        return batch * factor if table is None else table[batch]

    return transform


def with_defaults(power, offset):
    transform = scaled(2)
    transform.__defaults__, transform.__kwdefaults__ = (power,), {"offset": offset}
    return transform


def constants(rng, batch):
    return batch + 1


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, rng, batch):
        return self.inner(batch)

    def inner(self, batch):
        return batch * self.factor

    def method(self, rng, batch):
        return batch


class OtherCode(Scale):
    def inner(self, batch):
        return batch + self.factor


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, rng, batch):
        return batch


@dataclasses.dataclass
class Settings:
    factor: int

    def __call__(self, rng, batch):
        return batch


class Mode(enum.Enum):
    FIRST = 1
    SECOND = 2


LONG = np.arange(5000)
CHANGED = np.where(LONG == 2500, 0, LONG)  # its repr is the same

DIFFERENT = {
    "native argument": (transforms.RandomCrop(1), transforms.RandomCrop(2)),
    "native class": (transforms.RandomCrop(1), transforms.RandomHorizontalFlip()),
    "closure": (scaled(2), scaled(3)),
    "closure's array": (scaled(2, LONG), scaled(2, CHANGED)),
    "array's dtype": (scaled(2, LONG), scaled(2, LONG.astype(np.uint64))),
    "array's shape": (scaled(2, LONG), scaled(2, LONG.reshape(50, 100))),
    "default": (with_defaults(1, 0), with_defaults(2, 0)),
    "keyword default": (with_defaults(1, 0), with_defaults(1, 2)),
    "partial's function": (functools.partial(scaled(1), power=1), functools.partial(constants)),
    "partial's argument": (
        functools.partial(constants, batch=1),
        functools.partial(constants, batch=2),
    ),
    "bound to": (Scale(1).method, Scale(2).method),
    "method": (Scale(1).method, Scale(1).__call__),
    "attribute": (Scale(1), Scale(2)),
    "attribute's array": (Scale(LONG), Scale(CHANGED)),
    "slot": (Slotted(1), Slotted(2)),
    "dataclass": (Settings(1), Settings(2)),
    "enumeration": (scaled(Mode.FIRST), scaled(Mode.SECOND)),
    "pattern": (scaled(re.compile("a")), scaled(re.compile("b"))),
    "part of a chain": (
        onemodel.Compose([constants, Scale(1)]),
        onemodel.Compose([constants, Scale(2)]),
    ),
    "order of a chain": (
        onemodel.Compose([constants, Scale(1)]),
        onemodel.Compose([Scale(1), constants]),
    ),
    "type of a number": (scaled(1), scaled(1.0)),
    "text and number": (scaled("1"), scaled(1)),
    "sign of zero": (scaled(0.0), scaled(-0.0)),
    "deep inside": (scaled([{"a": (1, {2})}]), scaled([{"a": (1, {3})}])),
    "end of a long text": (scaled("x" * 500 + "a"), scaled("x" * 500 + "b")),
    "library function": (np.add, np.multiply),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_another_value_has_another_text(case):
    one, other = DIFFERENT[case]
    assert text_of(one) != text_of(other)
    if callable(one) and not isinstance(one, np.ufunc):
        with arrays_loader(one) as first, arrays_loader(other) as second:
            state = first.state_dict()
            first.load_state_dict(state)
            with refused(ValueError, "transform", "allow={'transform'}"):
                second.load_state_dict(state)
            second.load_state_dict(state, allow={"transform"})


SOURCES = {
    "constant": ("def f(rng, x):\n    return x * 2", "def f(rng, x):\n    return x * 3"),
    "operator": ("def f(rng, x):\n    return x * 2", "def f(rng, x):\n    return x + 2"),
    "name": ("def f(rng, x):\n    return x.real", "def f(rng, x):\n    return x.imag"),
    "inner": (
        "def f(rng, x):\n    return (lambda y: y * 2)(x)",
        "def f(rng, x):\n    return (lambda y: y * 3)(x)",
    ),
    "set": (
        "def f(rng, x):\n    return x in {'a', 'b'}",
        "def f(rng, x):\n    return x in {'a', 'c'}",
    ),
    "helper": (
        "def g(x):\n    return x * 2\ndef f(rng, x):\n    return g(x)",
        "def g(x):\n    return x * 3\ndef f(rng, x):\n    return g(x)",
    ),
    "global augmentation": (
        "from onemodel.transforms import RandomCrop\nC = RandomCrop(1)\ndef f(r, x):\n    C(r, x)",
        "from onemodel.transforms import RandomCrop\nC = RandomCrop(2)\ndef f(r, x):\n    C(r, x)",
    ),
    "method": (
        "class F:\n    def __call__(self, rng, x):\n        return x * 2\nf = F()",
        "class F:\n    def __call__(self, rng, x):\n        return x * 3\nf = F()",
    ),
}


def executed(source):
    module = types.ModuleType("made")
    exec(source, module.__dict__)
    return module.f


@pytest.mark.parametrize("case", SOURCES)
def test_other_code_is_noticed(case, monkeypatch):
    one, other = map(executed, SOURCES[case])
    assert both(one) == both(executed(SOURCES[case][0]))
    assert text_of(one) == text_of(other)
    assert code_of(one) != code_of(other)
    with arrays_loader(one) as first, arrays_loader(other) as second:
        state = first.state_dict()
        code = state["code"]["transform"]
        with refused(
            ValueError, "transform", "code", code, second.state_dict()["code"]["transform"]
        ):
            second.load_state_dict(state)
        monkeypatch.setattr(state_module, "PYTHON", "cpython 3.99.0")  # bytecode is another there
        second.load_state_dict(state)


def test_the_code_of_what_a_method_names_takes_part():
    assert text_of(Scale(1)) == text_of(Scale(1))
    assert code_of(Scale(1)) != code_of(OtherCode(1))


def test_how_code_is_written_does_not_matter():
    first = executed('def f(rng, x):\n    "One text."\n    y = x * 2\n    return y')
    second = executed(
        '\n\n\ndef f(r, a):\n    "Another."\n    # longer\n    z = a * 2\n    return z'
    )
    assert code_digest(first) == code_digest(second)


# What must not get in


class Restless:
    """All of this differs from one process or moment to the next, and none of it is an argument."""

    def __init__(self):
        self.lock = threading.Lock()
        self.itself = self
        self.generator = np.random.default_rng()
        self.file = sys.stdout
        self.iterator = iter([1])
        self.nothing = object()

    def __call__(self, rng, batch):
        return batch


class Counting:
    def __init__(self):
        self.calls, self.seen = 0, {}

    def __call__(self, rng, batch):
        self.calls += 1
        self.seen[self.calls] = len(batch)
        return batch


def test_no_address_and_no_moving_state():
    made = both(Restless())
    assert made == both(Restless())
    assert "0x" not in made[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_callable_counts_does_not_matter(workers):
    """It is described before its loader's first batch, in the new process as in the old one."""
    with arrays_loader(Counting(), workers=workers) as loader:
        list(loader)
        state = loader.state_dict()
    with arrays_loader(Counting()) as loader:
        loader.load_state_dict(state)


def test_a_value_that_changes_after_the_first_pass_is_not_noticed_and_before_it_is():
    table = np.arange(4)
    with arrays_loader(scaled(1, table)) as loader:
        table[0] = 7
        before = loader.state_dict()
        table[0] = 8
        assert loader.state_dict() == before
    with arrays_loader(scaled(1, table)) as loader:
        assert loader.state_dict()["transform"] != before["transform"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        10**6000,
        "x" * 10**6,
        b"\0" * 1000,
        list(range(10**5)),
        functools.reduce(lambda inner, _: [inner], range(3000), 1),
        "\ud800" * 300,
        lambda rng, batch: batch,
        np.zeros((0, 3)),
        np.array([(1, 2.0)], "i4,f8"),
        np.array([1, None], object),
        np.datetime64("2020-01-01"),
        np.dtype("f4"),
        X.take,
        len,
        np,
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_text_is_short_whatever_the_value(value):
    text = text_of(value)
    assert 0 < len(text) <= LONGEST
    assert text == text_of(value)
    json.dumps(text)


def test_a_method_that_raises_spoils_no_state():
    class Hostile:
        def __getattr__(self, name):
            raise OSError(name)

        def __reduce_ex__(self, protocol):
            raise OSError("reduce")

        def __repr__(self):
            raise OSError("repr")

        def __call__(self, rng, batch):
            return batch

    assert text_of(Hostile()).endswith("Hostile>")


def test_shared_and_equal_values_have_one_text():
    """A pickle, or a memory-mapped copy as joblib makes them, is the same value."""
    table = np.arange(5, dtype=np.int64)
    for value in ([table, table], {"a": table, "b": [table]}, Scale(table)):
        assert both(value) == both(pickle.loads(pickle.dumps(value)))
    assert text_of([table, table]) == text_of([table, table.copy()])
    assert text_of(table[::-1]) == text_of(table[::-1].copy())
    assert text_of(table) == text_of(table.astype(">i8"))


def test_an_array_in_a_file_is_the_same_array(tmp_path):
    np.save(tmp_path / "x.npy", LONG)
    assert text_of(np.load(tmp_path / "x.npy", mmap_mode="r")) == text_of(LONG)


def test_data_in_a_file_is_known_by_content_and_not_by_path(tmp_path):
    """A run goes on where the files lie elsewhere."""
    texts = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        np.save(folder / "x.npy", LONG)
        mapped = ArrayDataset(np.load(folder / "x.npy", mmap_mode="r"))
        lines = onemodel.datasets.DigitLines(3)
        onemodel.datasets.ImageTable.from_samples(lines).save(folder / "t")
        table = onemodel.datasets.ImageTable.open(folder / "t")
        texts.append([text_of(scaled(each)) for each in (mapped, table, table.columns)])
    assert texts[0] == texts[1]
    assert texts[0][0] == text_of(scaled(ArrayDataset(LONG)))


def test_a_tensor_is_described_by_its_values():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(5.0)
    assert text_of(tensor) == text_of(torch.arange(5.0))
    assert text_of(tensor) != text_of(tensor + 1)
    layer = torch.nn.Linear(2, 2)
    before = text_of(layer)
    with torch.no_grad():
        layer.weight += 1
    assert text_of(layer) != before


# The user's own word


class Told:
    def __init__(self, fingerprint, content=0):
        self.fingerprint, self.content = fingerprint, content

    def __len__(self):
        return len(X)

    def __getitem__(self, indices):
        return X[indices]

    def __call__(self, rng, batch):
        return batch


def test_a_fingerprint_stands_for_what_an_object_holds():
    assert text_of(Told("v1", 1)) == text_of(Told("v1", 2)) != text_of(Told("v2", 1))
    assert text_of(Told(1)) != text_of(Told("1"))


@pytest.mark.parametrize("mark", [1, "v1", "x" * 1000], ids=["int", "text", "long"])
def test_a_dataset_is_known_by_its_fingerprint(mark):
    with DataLoader(Told(mark), batch_size=4) as loader:
        state = loader.state_dict()
    with DataLoader(Told(mark, 9), batch_size=4) as loader:
        loader.load_state_dict(state)
    for other in (Told("v2"), ArrayDataset(X)):
        with DataLoader(other, batch_size=4) as loader:
            with refused(ValueError, "dataset", state["dataset"]):
                loader.load_state_dict(state)
            loader.load_state_dict(state, allow=["dataset"])


def test_any_dataset_may_be_given_one():
    data = ArrayDataset(X)
    data.fingerprint = "2026-12"
    with DataLoader(data, batch_size=4) as loader:
        assert loader.state_dict()["dataset"] == "ArrayDataset, fingerprint '2026-12'"
    data.fingerprint = lambda: 1  # a method of another meaning
    with DataLoader(data, batch_size=4) as loader:
        assert loader.state_dict()["dataset"] == "ArrayDataset"


def test_a_table_on_disk_is_known_by_its_stored_digest(tmp_path):
    def text(table):
        with DataLoader(table, batch_size=2, collate=onemodel.ImageBatchCollator()) as loader:
            return loader.state_dict()["dataset"]

    def table(first):
        images = [np.full((2, 3), pixel, np.uint8) for pixel in (first, 1, 2, 3, 4, 5)]
        return onemodel.datasets.ImageTable.from_arrays(images)

    for name, first in (("one", 0), ("same", 0), ("other", 9)):
        table(first).save(tmp_path / name)
    opened = {
        name: onemodel.datasets.ImageTable.open(tmp_path / name)
        for name in ("one", "same", "other")
    }
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text())
    assert text(opened["one"]) == f"ImageTable, stored digest {manifest['sha256']}"
    assert text(opened["one"]) == text(opened["same"]) != text(opened["other"])
    assert text(pickle.loads(pickle.dumps(opened["one"]))) == text(opened["one"])
    in_memory = onemodel.datasets.ImageTable.open(tmp_path / "one", memory_map=False)
    assert text(in_memory) == text(opened["one"]) == text(pickle.loads(pickle.dumps(in_memory)))
    assert text(table(0)) == "ImageTable"

    parts = [part(opened["one"]) for part in (lambda t: t[:4], lambda t: t[1:5], lambda t: t)]
    assert len({text(part) for part in parts}) == 3
    assert text(parts[0]) == text(opened["same"][:4]) == text(pickle.loads(pickle.dumps(parts[0])))


def test_digit_lines_are_known_by_their_arguments():
    def state(**options):
        lines = onemodel.datasets.DigitLines(8, **options)
        return saved(DataLoader(lines, batch_size=2, collate=onemodel.ImageBatchCollator()))

    assert state(seed=1) == state(seed=1)
    assert state(seed=1)["dataset"] != state(seed=2)["dataset"]


# Samplers and collators


class Strided:
    """A sampler of a user's own."""

    batch_size = 4
    steps_per_epoch = 3

    def __init__(self, stride):
        self.stride = stride

    def batch_indices(self, seed, epoch, step):
        return np.arange(4 * step, 4 * step + 4) * self.stride % 12


class Reversed(Strided):
    def batch_indices(self, seed, epoch, step):
        return super().batch_indices(seed, epoch, step)[::-1]


class Later(onemodel.ShuffledSampler):
    def batch_indices(self, seed, epoch, step):
        return super().batch_indices(seed, epoch + 1, step)


def test_a_sampler_of_one_s_own_needs_no_repr():
    texts = [both(each) for each in (Strided(1), Strided(5), Reversed(1), Later(12, 4))]
    assert len(set(texts)) == 4
    assert texts[0] == both(Strided(1))
    assert both(Later(12, 4)) != both(onemodel.ShuffledSampler(12, 4))


class Shown(Strided):
    """With a plan that it keeps: that is no argument, and its repr says so."""

    def __repr__(self):
        return f"{type(self).__name__}(stride={self.stride})"

    def batch_indices(self, seed, epoch, step):
        self.plan = super().batch_indices(seed, epoch, step)
        return self.plan


def test_a_sampler_s_own_repr_is_compared():
    shown = Shown(5)
    with DataLoader(ArrayDataset(X), sampler=shown) as loader:
        list(loader)
        state = loader.state_dict()
    assert state["sampler"] == "Shown(stride=5)"
    with DataLoader(ArrayDataset(X), sampler=shown) as loader:
        loader.load_state_dict(state)
    with (
        DataLoader(ArrayDataset(X), sampler=Shown(7)) as loader,
        refused(ValueError, "sampler", "Shown(stride=5)", "Shown(stride=7)"),
    ):
        loader.load_state_dict(state)


def test_a_sampler_whose_repr_raises_spoils_no_run():
    class Broken(Strided):
        def __repr__(self):
            raise OSError("repr")

    loader = DataLoader(ArrayDataset(X), sampler=Broken(1))
    assert loader.state_dict()["sampler"].endswith("Broken>")
    assert len(list(loader)) == 3


def test_an_argument_at_its_default_takes_no_part():
    """So that a class may get another argument, and states of before are still its own."""
    assert text_of(onemodel.ShuffledSampler(8, 2)) == "ShuffledSampler(n=8, batch_size=2)"
    assert text_of(onemodel.ShuffledSampler(8, 2, drop_last=False)).endswith("drop_last=False)")


def test_augmentation_and_collator_are_two_fields():
    def state(**options):
        return saved(make_loader(collate=onemodel.ImageBatchCollator(**options)))

    plain = state()
    assert plain["augmentation"] == "None"
    assert plain["collator"] == "ImageBatchCollator()"
    changed = state(augment=onemodel.augment.GainOffset())
    assert [name for name in plain if plain[name] != changed[name]] == ["augmentation"]
    assert state(pool=onemodel.BufferPool()) == plain
    assert state(width_multiple=8)["collator"] == "ImageBatchCollator(width_multiple=8)"


def test_a_collator_s_code_takes_part():
    def one(samples, key):
        return key.indices

    def two(samples, key):
        return key.indices + 1

    two.__qualname__ = one.__qualname__
    with DataLoader(SAMPLES, batch_size=2, collate=one) as loader:
        state = loader.state_dict()
    with (
        DataLoader(SAMPLES, batch_size=2, collate=two) as loader,
        refused(ValueError, "collator", "code"),
    ):
        loader.load_state_dict(state)


# Other processes

SCRIPT = """
import json
import numpy as np
import onemodel as om

TABLE = np.arange(256, dtype=np.uint8)
NAMES = {"crop", "flip", "noise", "blur"}

def helper(batch, names={"crop", "flip", "noise"}):
    return batch

def f(rng, batch, p=0.5, *, names=frozenset(NAMES)):
    if p in {"a", "b", "c", "d"}:
        return helper(batch)
    return TABLE[batch]

class Layer:
    def __init__(self):
        self.table, self.function = TABLE, f
    def __call__(self, rng, batch):
        return f(rng, batch)

def state():
    data = om.ArrayDataset(np.zeros((12, 4, 4, 3), np.uint8))
    transform = om.Compose([om.transforms.RandomCrop(1), f, Layer()])
    return om.DataLoader(data, batch_size=4, transform=transform).state_dict()

if __name__ == "__main__":
    print(json.dumps(state()))
"""


def test_a_file_that_is_run_and_one_that_is_imported_have_one_state(tmp_path, needs_subprocess):
    """Also where strings have other hashes, and a set another order."""
    (tmp_path / "train.py").write_text(SCRIPT)
    path = os.pathsep.join([str(tmp_path), *(each for each in sys.path if each)])
    states = []
    for salt, arguments in enumerate(
        (
            ["train.py"],
            ["-m", "train"],
            ["-c", "import json, train; print(json.dumps(train.state()))"],
        )
    ):
        printed = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            cwd=tmp_path,
            env=dict(os.environ, PYTHONPATH=path, PYTHONHASHSEED=str(salt)),
        ).stdout
        states.append(json.loads(printed))
    assert states[0] == states[1] == states[2]
    assert states[0]["code"].keys() == {"python", "transform"}
