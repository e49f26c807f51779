"""Promise: what a transform or an augmentation was made of is checked, shown, kept and pickled.

Every argument has a range and every value outside of it an error that names both. An object never
changes; one whose __init__ did not run says so, whatever is asked of it; a Python subclass keeps
its class and its attributes through pickle.
"""

import copy
import datetime
import decimal
import fractions
import inspect
import pickle

import numpy as np
import pytest
from support import assert_same_bytes, refused

from onemodel import Compose, Sample, SampleRng, augment, transforms
from onemodel._common import arguments as checks
from onemodel._common.configured import Configured
from onemodel._random.batch_rng import BatchRng
from onemodel.augment.protocol import Chain, NativeAugmentation, RandomAugmentation
from onemodel.transforms.protocol import NativeTransform, RowChain

IMAGE = np.linspace(0, 1, 24, dtype=np.float32).reshape(1, 4, 6)
ROWS = np.arange(72, dtype=np.uint8).reshape(2, 3, 4, 3)

# Every class, with arguments that make one.
MADE = {
    augment.GainOffset: {"gain": (0.5, 1.0), "offset": (0.0, 0.25)},
    augment.Noise: {"sigma": 0.1},
    augment.Invert: {"p": 0.25},
    augment.Erase: {"count": 2, "size": (1, 3), "fill": 0.5},
    augment.HorizontalFlip: {"p": 0.75},
    augment.Shift: {"dx": (-1, 1), "dy": (0, 2), "fill": 1.0},
    augment.Blur: {"p": 1.0},
    augment.StretchWidth: {"low": 0.5, "high": 2.0},
    augment.ResizeHeight: {"height": 7, "keep_aspect": False},
    transforms.RandomHorizontalFlip: {"p": 0.25, "key": 0, "layout": "HWC"},
    transforms.RandomCrop: {"padding": 1, "size": (2, 3), "key": 0, "layout": "HWC"},
    transforms.Cutout: {"size": 2, "key": 0, "layout": "HWC"},
    transforms.Normalize: {"mean": (0.1, 0.2, 0.3), "std": 0.5, "key": 0, "layout": "HWC"},
    transforms.Mixup: {"alpha": 0.5, "block": 4, "key": 0, "label_key": 1},
    transforms.CutMix: {"alpha": 0.5, "block": 4, "key": 0, "label_key": 1, "layout": "HWC"},
    transforms.OneHot: {"classes": 3, "key": 1},
    Compose: {"parts": (augment.Invert(1),)},
    Chain: {"parts": (augment.Invert(1),)},
    RowChain: {
        "parts": (transforms.Cutout(2),),
        "dtype": np.dtype(np.uint8),
        "shape": (3, 4, 3),
    },
}
ABSTRACT = {NativeAugmentation, RandomAugmentation, NativeTransform, Configured}


def input_of(kind):
    """A value that an object of the class is called with, after the generator."""
    if issubclass(kind, (augment.StretchWidth, augment.ResizeHeight)):
        return Sample(IMAGE)
    if issubclass(kind, (NativeAugmentation, Chain, Compose)):
        return IMAGE.copy()
    if issubclass(kind, transforms.Mixup):
        return np.ones((2, 3), np.float32), np.ones((2, 2), np.float32)
    if issubclass(kind, transforms.OneHot):
        return ROWS, np.array([0, 2])
    return ROWS, np.ones((2, 2), np.float32)


def uses_of(made):
    """Yield (name, function) for everything public that an object can be asked for."""
    kind = type(made)
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        if name.startswith("_"):
            continue
        if inspect.isdatadescriptor(found):
            yield name, lambda name=name: getattr(made, name)
    yield "repr", lambda: repr(made)
    yield "pickle", lambda: pickle.dumps(made)
    yield "copy", lambda: copy.copy(made)
    yield "deepcopy", lambda: copy.deepcopy(made)
    if hasattr(kind, "run"):
        yield "run", lambda: made.run(BatchRng(0), ROWS, None, np.empty_like(ROWS))
    if callable(made):
        yield "call", lambda: made(SampleRng(0), input_of(kind))


def test_every_class_is_in_the_table():
    public = {getattr(module, name) for module in (augment, transforms) for name in module.__all__}
    assert public | {Chain, RowChain} == set(MADE) | (ABSTRACT & public)


# Without __init__

UNINITIALISED = [*MADE, *sorted(ABSTRACT, key=str)]


@pytest.mark.parametrize("kind", UNINITIALISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("how", ["new", "forgetful", "failed"])
def test_without_init_every_use_says_so(kind, how):
    class Forgetful(kind):
        def __init__(self):
            pass

    if how == "forgetful":
        made, name = Forgetful(), "Forgetful"
    else:
        made, name = kind.__new__(kind), kind.__name__
    if how == "failed" and kind not in ABSTRACT:
        with pytest.raises(TypeError):
            made.__init__(1, 2, 3, 4, 5, 6)
    used = [use for use, _ in uses_of(made)]
    assert {"arguments", "repr", "pickle"} <= set(used)
    assert set(MADE.get(kind, ())) <= set(used)
    for use, ask in uses_of(made):
        with pytest.raises(TypeError) as caught:
            ask()
        assert name in str(caught.value), use
        assert "__init__ must run" in str(caught.value), use


def test_an_augmentation_without_operation_is_refused():
    with refused(TypeError, "RandomAugmentation", "initialised"):
        RandomAugmentation(0.5)(SampleRng(0), IMAGE.copy())
    for kind, make_chain in (
        (augment.Blur, lambda part: Chain([part])),
        (transforms.Cutout, lambda part: RowChain([part], np.uint8, (3, 4, 3))),
    ):
        with refused(TypeError, kind.__name__, "initialised"):
            make_chain(kind.__new__(kind))
        with refused(TypeError, "parts"):
            make_chain(print)


def test_normalize_asks_the_flip_before_it_nothing():
    """A flip that was not initialised is not merged with what follows."""
    flip = transforms.RandomHorizontalFlip.__new__(transforms.RandomHorizontalFlip)
    with refused(TypeError, "RandomHorizontalFlip", "initialised"):
        RowChain([flip, transforms.Normalize(0.5, 0.5)], np.uint8, (3, 4, 3))


# Once made, never changed


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
def test_a_second_init_is_refused(kind):
    made = kind(**MADE[kind])
    shown = repr(made)
    with refused(TypeError, kind.__name__, "once"):
        made.__init__(**MADE[kind])
    assert repr(made) == shown
    made(SampleRng(0), input_of(kind)) if callable(made) else None


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
def test_arguments_are_shown_and_read_only(kind):
    made = kind(**MADE[kind])
    assert dict(made.arguments) == MADE[kind]
    with pytest.raises(TypeError):
        made.arguments["p"] = 1
    for name, value in MADE[kind].items():
        if kind is not RowChain:  # its attributes are those of the rows that come out
            assert getattr(made, name) == value
        assert getattr(kind, name).__doc__
        if kind is not Compose:
            assert f"{name}={value!r}" in repr(made)
        for change in (lambda name=name: setattr(made, name, 1), lambda n=name: delattr(made, n)):
            with pytest.raises(AttributeError):
                change()
    with pytest.raises(AttributeError):
        made.arguments = {}


def test_arrays_that_came_in_are_copied():
    mean, size = np.array([0.1, 0.2, 0.3]), [2, 3]
    normalize, crop = transforms.Normalize(mean, 0.5), transforms.RandomCrop(1, size)
    expected = normalize(BatchRng(0), ROWS)
    mean[:], size[:] = 9, [99, 99]
    assert normalize.mean == (0.1, 0.2, 0.3)
    assert crop.size == (2, 3)
    assert_same_bytes(normalize(BatchRng(0), ROWS), expected)


# Pickle


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_the_same_again(kind, protocol):
    made = kind(**MADE[kind])
    for again in (
        pickle.loads(pickle.dumps(made, protocol)),
        copy.copy(made),
        copy.deepcopy(made),
    ):
        assert type(again) is kind
        assert repr(again) == repr(made)
        assert list(again.arguments) == list(made.arguments)


class OwnInit(augment.Invert):
    def __init__(self, name):
        super().__init__(0.5)
        self.name = name


class WithSlots(transforms.Normalize):
    __slots__ = ("note",)


class Plain(transforms.OneHot):
    pass


class OwnCompose(Compose):
    def __init__(self):
        super().__init__([augment.Invert(0), augment.Blur(1)])
        self.name = "both"


def test_a_python_subclass_survives_pickle_with_its_attributes():
    slots = WithSlots(0.5, std=0.25)
    slots.note = ["a", 1]
    plain = Plain(5)
    plain.extra = 3
    for made, name in (
        (OwnInit("mine"), "name"),
        (slots, "note"),
        (plain, "extra"),
        (OwnCompose(), "name"),
    ):
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            assert type(again) is type(made)
            assert getattr(again, name) == getattr(made, name)
            assert repr(again) == repr(made)
            assert dict(again.arguments).keys() == dict(made.arguments).keys()
    assert repr(slots) == "WithSlots(mean=0.5, std=0.25, key=None, layout=None)"


# Values out of every range

THREE_NUMBERS = [(1, 2, 3), range(1, 4), np.array([1, 2, 3])]
ODD = [
    "12", "False", b"1", bytearray(b"1"), float("nan"), float("inf"), -float("inf"), 1j,
    np.complex64(1), True, np.True_, object(), {}, {"a": 1}, {1, 2}, [], [[1, 2], [3]],
    np.ma.masked, np.ma.array([1, 2], mask=[0, 1]), np.ma.array(1.0, mask=True), np.array("1"),
    np.array([True, False]), np.datetime64("2020-01-01"), np.timedelta64(5),
    datetime.datetime(2020, 1, 1), datetime.timedelta(1), print, ("1", "2"), (None, 1),
    (1j, 2), (float("nan"), 1), 10**400, -(10**400), (0, 10**400), decimal.Decimal("NaN"),
    decimal.Decimal("sNaN"), memoryview(b"12"), *THREE_NUMBERS,
]  # fmt: skip
PARAMETERS = [
    (kind, name)
    for kind, arguments in MADE.items()
    if not issubclass(kind, (Compose, Chain, RowChain))
    for name in arguments
]


@pytest.mark.parametrize(
    ("kind", "name"), PARAMETERS, ids=[f"{kind.__name__}-{name}" for kind, name in PARAMETERS]
)
@pytest.mark.filterwarnings("error")
def test_an_odd_value_is_refused_by_name(kind, name):
    odd = [value for value in ODD if not is_in_range(name, value)]
    assert len(odd) > 30
    for value in odd:
        with refused((TypeError, ValueError), name):
            kind(**{**MADE[kind], name: value})


def is_in_range(name, value):
    """Whether an odd value is a good one for this argument after all."""
    if name == "keep_aspect":
        return isinstance(value, (bool, np.bool_))
    if name in ("key", "label_key"):
        return type(value) in (str, int)
    # three numbers may be a mean
    return name in ("mean", "std") and any(value is three for three in THREE_NUMBERS)


def test_numbers_as_text_are_no_channels():
    with refused(TypeError, "mean", "'12'"):
        transforms.Normalize("12", "34")
    with refused(TypeError, "keep_aspect", "'False'"):
        augment.ResizeHeight(8, keep_aspect="False")


@pytest.mark.parametrize(
    "number",
    [1, 1.0, np.float32(1), np.int8(1), np.array(1.0), fractions.Fraction(1), decimal.Decimal(1)],
    ids=lambda number: type(number).__name__,
)
def test_every_kind_of_number_is_one(number):
    assert checks.check_number("sigma", number) == 1.0
    assert repr(augment.Noise(number)) == "Noise(sigma=1.0)"
    assert transforms.Normalize([number], number).mean == (1.0,)


def test_a_flag_is_a_bool():
    assert checks.check_flag("flag", np.bool_(True)) is True
    for wrong in (0, 1, "False", None, np.array(True), [], 1.0):
        with refused(TypeError, "flag"):
            checks.check_flag("flag", wrong)


def test_errors_show_any_value():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no repr")

    with refused(TypeError, "sigma", "Broken"):
        augment.Noise(Broken())
    with refused(ValueError, "sigma"):
        augment.Noise(10**5000)
    with refused(TypeError, "sigma") as caught:
        augment.Noise("x" * 10**5)
    assert len(str(caught.value)) < 300
    with refused(TypeError, "parts", "Broken"):
        Compose([Broken()])
    with refused(TypeError, "parts"):
        Compose(3)
