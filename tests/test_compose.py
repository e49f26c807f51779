"""Promise: Compose calls its parts in order, and an override wins.

A nested Compose is replaced by its parts only where that is what calling it would do; ``is_own`` is
the one function that tells.
"""

import pytest
from support import refused

from onemodel import Compose, SampleRng
from onemodel._common.overrides import is_own
from onemodel.augment import Invert
from onemodel.augment.protocol import NativeAugmentation
from onemodel.transforms import OneHot, RandomHorizontalFlip
from onemodel.transforms.protocol import NativeTransform


def add(rng, value):
    return value + 1


def double(rng, value):
    return value * 2


class Doubling(Compose):
    """Its call does more than its parts."""

    def __call__(self, rng, value):
        return 2 * super().__call__(rng, value)


def test_parts_are_called_in_order():
    assert Compose([add, double])(SampleRng(0), 3) == 8
    assert Compose([])(SampleRng(0), 3) == 3


def test_a_part_that_returns_none_has_edited_its_value():
    seen = []
    Compose([lambda rng, value: value.append(1), lambda rng, value: value.append(2)])(None, seen)
    assert seen == [1, 2]


def test_a_nested_compose_is_replaced_by_its_parts():
    class Named(Compose):
        name = "a subclass that overrides nothing"

    for kind in (Compose, Named):
        assert Compose([kind([add, double]), add]).parts == (add, double, add)


def test_a_nested_compose_with_a_call_of_its_own_is_called():
    inner = Doubling([add])
    outer = Compose([inner, add])
    assert outer.parts == (inner, add)
    assert outer(SampleRng(0), 3) == 9


def test_a_nested_compose_with_parts_of_its_own_is_called():
    class Reversed(Compose):
        @property
        def parts(self):
            return super().parts[::-1]

    inner = Reversed([add, double])
    assert Compose([inner]).parts == (inner,)
    assert Compose([inner])(SampleRng(0), 3) == inner(SampleRng(0), 3) == 7


def test_a_wrapper_that_delegates_is_called():
    class Wrapper:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        @property
        def __class__(self):
            return Compose

        def __call__(self, rng, value):
            return -self.inner(rng, value)

    outer = Compose([Wrapper(Compose([add]))])
    assert outer(SampleRng(0), 3) == -4


def test_parts_are_checked():
    for wrong in (3, None, [3], [add, "add"], "add"):
        with refused(TypeError, "parts"):
            Compose(wrong)


# is_own


class Dynamic(Compose):
    def __getattr__(self, name):
        raise AttributeError(name)


class Watched(Compose):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class Mixin:
    def __call__(self, rng, value):
        return value


class Mixed(Mixin, Compose):
    pass


class Behind(Compose, Mixin):
    pass


@pytest.mark.parametrize(
    ("kind", "own"),
    [(Compose, True), (Behind, True), (Doubling, False), (Mixed, False), (Dynamic, False),
     (Watched, False)],
)  # fmt: skip
def test_what_a_class_takes_from_ours(kind, own):
    assert is_own(kind([add]), Compose, "__call__", "parts") is own


def test_an_attribute_of_the_object_counts():
    made = Compose([add])
    made.note = "no method"
    assert is_own(made, Compose, "__call__")
    made.__call__ = double
    assert not is_own(made, Compose, "__call__")


def test_only_our_class_is_ours():
    assert not is_own(add, Compose, "__call__")
    assert not is_own(Compose, Compose, "__call__")
    assert is_own([], list, "__getitem__", "__len__")


def override(base):
    class Own(base):
        calls = 0

        def __call__(self, rng, value):
            Own.calls += 1
            return value

    return Own


@pytest.mark.parametrize(
    ("base", "root", "arguments"),
    [
        (Invert, NativeAugmentation, ()),
        (RandomHorizontalFlip, NativeTransform, ()),
        (OneHot, OneHot, (3,)),
    ],
)
def test_an_override_of_a_native_class_is_called(base, root, arguments):
    class Same(base):
        pass

    assert is_own(base(*arguments), root, "__call__")
    assert is_own(Same(*arguments), root, "__call__")
    own = override(base)
    assert not is_own(own(*arguments), root, "__call__")
    assert Compose([own(*arguments)])(SampleRng(0), 3) == 3
    assert own.calls == 1
