"""Promise: every draw is the one that the specification names, one at a time or an array at once.

`SampleRng` and `derive` give what the twin gives; element k of an array draw is the k-th scalar
draw; names, sizes and dtypes are NumPy's; what is not a 64-bit unsigned integer is refused.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import items
from reference import rng as twin
from support import EDGE_WORDS, WORDS, assert_same_bytes, refused

import onemodel
from onemodel import SampleRng
from onemodel._random import streams
from onemodel._random.batch_rng import BatchRng

SIZES = st.one_of(
    st.integers(0, 40),
    st.tuples(),
    st.tuples(st.integers(0, 5)),
    st.tuples(st.integers(0, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 3)),
)
FINITE = st.floats(-1e6, 1e6)

# What no argument that stands for a 64-bit word may be, and the error that it meets.
NOT_A_WORD = [
    (-1, ValueError),
    (2**64, ValueError),
    (-(2**70), ValueError),
    (True, TypeError),
    (1.0, TypeError),
    (float("nan"), TypeError),
    ("7", TypeError),
    (None, TypeError),
    (np.float64(3), TypeError),
    (np.bool_(True), TypeError),
]
NUMPY_WORDS = [np.uint64(2**64 - 1), np.int64(5), np.uint8(255), np.int32(7)]


@given(EDGE_WORDS)
def test_mix(x):
    assert onemodel.mix(x) == twin.mix(x)


@given(EDGE_WORDS, EDGE_WORDS, EDGE_WORDS, EDGE_WORDS, EDGE_WORDS)
def test_derive(seed, epoch, step, slot, stream):
    expected = twin.derive(seed, epoch, step, slot, stream)
    assert onemodel.derive(seed, epoch, step, slot, stream) == expected


@given(EDGE_WORDS)
def test_scalar_draws_in_any_mixture(state):
    rng, expected = SampleRng(state), twin.SampleRng(state)
    for name in ("next_u64", "next_single", "next_double", "next_normal", "next_single"):
        drawn = getattr(rng, name)()
        assert drawn == getattr(expected, name)()
        assert type(drawn) is (int if name == "next_u64" else float)
        assert rng.state == expected.state


@given(EDGE_WORDS, st.integers(1, 2**64 - 1) | st.integers(1, 1000) | st.just(2**63 + 1))
def test_next_int(state, n):
    rng, expected = SampleRng(state), twin.SampleRng(state)
    for _ in range(5):
        drawn = rng.next_int(n)
        assert drawn == expected.next_int(n)
        assert type(drawn) is int
        assert 0 <= drawn < n
    assert rng.state == expected.state


def test_next_int_redraws():
    """Half of all words are refused for n = 2**63 + 1, so the loop is really walked."""
    rng = SampleRng(7)
    start = rng.state
    for _ in range(200):
        rng.next_int(2**63 + 1)
    words = (rng.state - start) * pow(twin.GOLDEN_GAMMA, -1, 2**64) % 2**64
    assert 300 < words < 520


@pytest.mark.parametrize("n", [3, 10, 1000])
def test_next_int_is_even(n):
    """Each of ten equal parts of [0, n) is hit within four standard deviations."""
    rng = SampleRng(11)
    draws = 20_000
    parts = [0] * n
    for _ in range(draws):
        parts[rng.next_int(n)] += 1
    if n == 1000:
        parts = [sum(parts[first : first + 100]) for first in range(0, n, 100)]
    share = 1 / len(parts)
    sigma = (draws * share * (1 - share)) ** 0.5
    assert all(abs(count - draws * share) < 4 * sigma for count in parts)


def test_the_state_is_all_there_is():
    """A generator made from the state of another draws what the other would have drawn."""
    rng = SampleRng(1)
    rng.next_normal()
    copy = SampleRng(rng.state)
    assert [copy.next_u64() for _ in range(3)] == [rng.next_u64() for _ in range(3)]
    again = pickle.loads(pickle.dumps(rng))
    assert again.next_u64() == rng.next_u64()


# Arrays


@given(WORDS, SIZES)
def test_random(state, size):
    rng, expected = SampleRng(state), twin.SampleRng(state)
    assert_same_bytes(rng.random(size), expected.random(size))
    assert_same_bytes(rng.random(size, dtype=np.float32), expected.random(size, dtype=np.float32))
    assert_same_bytes(rng.random(size, dtype="float64"), expected.random(size, dtype="float64"))
    assert rng.state == expected.state


@given(WORDS, SIZES, FINITE, FINITE)
def test_uniform(state, size, low, high):
    rng, expected = SampleRng(state), twin.SampleRng(state)
    assert_same_bytes(rng.uniform(low, high, size), expected.uniform(low, high, size))
    assert rng.uniform(low, high) == expected.uniform(low, high)
    assert rng.state == expected.state


@given(
    WORDS,
    SIZES,
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63) + 1, 2**63))
    .map(sorted)
    .filter(lambda bounds: bounds[0] < bounds[1])
    | st.tuples(st.integers(-50, 0), st.integers(1, 50)),
)
def test_integers(state, size, bounds):
    rng, expected = SampleRng(state), twin.SampleRng(state)
    low, high = bounds
    drawn = rng.integers(low, high, size)
    assert_same_bytes(drawn, expected.integers(low, high, size))
    scalar = rng.integers(low, high)
    assert scalar == expected.integers(low, high)
    assert low <= scalar < high
    assert rng.state == expected.state


@given(WORDS, st.integers(1, 2**63), st.integers(0, 20))
def test_integers_with_one_bound_start_at_zero(state, high, size):
    rng, expected = SampleRng(state), twin.SampleRng(state)
    assert_same_bytes(rng.integers(high, size=size), expected.integers(high, size=size))
    assert rng.integers(high) == expected.integers(high)


@given(WORDS, SIZES)
def test_standard_normal(state, size):
    rng, expected = SampleRng(state), twin.SampleRng(state)
    assert_same_bytes(rng.standard_normal(size), expected.standard_normal(size))
    assert rng.state == expected.state


@given(WORDS, st.integers(0, 120))
def test_permutation(state, n):
    rng, expected = SampleRng(state), twin.SampleRng(state)
    order = rng.permutation(n)
    assert_same_bytes(order, expected.permutation(n))
    assert sorted(order.tolist()) == list(range(n))
    assert rng.state == expected.state


@given(WORDS, st.lists(st.integers(0, 9), max_size=6))
def test_an_array_is_the_scalar_draws_however_it_is_cut(state, cuts):
    """Drawing in pieces of any size, with scalar draws between, changes nothing."""
    whole = SampleRng(state)
    expected = whole.random(sum(cuts) + len(cuts))
    rng = SampleRng(state)
    pieces = []
    for cut in cuts:
        pieces += rng.random(cut).tolist()
        pieces.append(rng.next_double())
    assert pieces == expected.tolist()
    assert rng.state == whole.state


def test_no_size_gives_a_python_scalar():
    rng = SampleRng(5)
    assert type(rng.random()) is float
    assert type(rng.random(dtype=np.float32)) is float
    assert type(rng.uniform()) is float
    assert type(rng.standard_normal()) is float
    assert type(rng.integers(10)) is int
    assert type(rng.integers(2**63 - 1, 2**63)) is int


def test_sizes_are_numpys():
    numpy_rng = np.random.default_rng(0)
    rng = SampleRng(5)
    for size in (0, 3, (), (0,), (2, 3), [2, 3], np.int64(4), (np.int32(2), 2)):
        assert rng.random(size).shape == numpy_rng.random(size).shape
        assert rng.integers(9, size=size).shape == numpy_rng.integers(9, size=size).shape
        assert rng.standard_normal(size).shape == numpy_rng.standard_normal(size).shape
    assert rng.random(size=3).shape == rng.uniform(size=3).shape == (3,)


def test_arrays_are_contiguous_and_ones_own():
    array = SampleRng(5).random((4, 5))
    assert array.flags.c_contiguous
    assert array.flags.writeable
    array[:] = 0  # nothing else may see this
    assert SampleRng(5).random() != 0


def test_generator_shares_the_state():
    """NumPy's own methods and the scalar draws take turns on one stream."""
    rng, expected = SampleRng(99), twin.SampleRng(99)
    generator = rng.generator()
    assert isinstance(generator, np.random.Generator)
    for _ in range(3):
        assert generator.random() == expected.next_double()
        assert rng.next_u64() == expected.next_u64()
        whole_word = generator.integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True)
        assert whole_word == expected.next_u64()
        assert rng.state == expected.state


def test_generator_outlives_its_source():
    rng = SampleRng(99)
    generator = rng.generator()
    del rng
    assert generator.random() == twin.SampleRng(99).next_double()


def test_generator_has_numpys_full_interface():
    generator = SampleRng(1).generator()
    values = list(range(20))
    generator.shuffle(values)
    assert sorted(values) == list(range(20))
    assert abs(generator.normal(3, 1, 4000).mean() - 3) < 0.1
    assert 0 <= generator.integers(7, dtype=np.uint32) < 7
    assert generator.random(3, dtype=np.float32).dtype == np.float32
    assert generator.choice(5, size=5, replace=False).shape == (5,)


# Refusals


@pytest.mark.parametrize(("value", "error"), NOT_A_WORD, ids=repr)
def test_words_are_checked(value, error):
    with refused(error, "x", value):
        onemodel.mix(value)
    with refused(error, "state", value):
        SampleRng(value)
    names = ("seed", "epoch", "step", "slot", "stream")
    for name in names:
        arguments = dict.fromkeys(names, 0) | {name: value}
        with refused(error, name, value):
            onemodel.derive(**arguments)


@pytest.mark.parametrize("value", NUMPY_WORDS, ids=repr)
def test_numpy_integers_are_words(value):
    assert onemodel.mix(value) == twin.mix(int(value))
    assert SampleRng(value).state == int(value)
    assert onemodel.derive(value, value, value, value, value) == twin.derive(*[int(value)] * 5)
    assert SampleRng(1).next_int(value) == twin.SampleRng(1).next_int(int(value))


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), *[pair for pair in NOT_A_WORD if pair[0] != 1]], ids=repr
)
def test_next_int_checks_n(value, error):
    rng = SampleRng(1)
    with refused(error, "n", value):
        rng.next_int(value)
    assert rng.state == 1


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (5, 5), (5, 4), (-(2**63) - 1, 0), (0, 2**63 + 1)]
)
def test_integers_checks_its_bounds(low, high):
    rng = SampleRng(1)
    for size in (None, 3):
        with refused(ValueError, "high" if low >= -(2**63) else "low"):
            rng.integers(low, high, size)
    assert rng.state == 1


@pytest.mark.parametrize("value", [1.5, True, "3"], ids=repr)
def test_integers_refuses_other_types(value):
    with refused(TypeError, value):
        SampleRng(1).integers(value)
    with refused(TypeError, value):
        SampleRng(1).integers(0, value)


@pytest.mark.parametrize("size", [-1, (2, -3), (-1,)], ids=repr)
def test_negative_sizes(size):
    rng = SampleRng(1)
    for draw in (rng.random, rng.standard_normal):
        with refused(ValueError, "size"):
            draw(size)
    with refused(ValueError, "size"):
        rng.uniform(0, 1, size)
    with refused(ValueError, "size"):
        rng.integers(5, size=size)
    assert rng.state == 1


@pytest.mark.parametrize("size", [2.0, "3", (2, 1.5)], ids=repr)
def test_sizes_of_another_type(size):
    with refused(TypeError, "size"):
        SampleRng(1).random(size)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, "complex128"], ids=str)
def test_random_checks_its_dtype(dtype):
    with refused(TypeError, "dtype", np.dtype(dtype).name):
        SampleRng(1).random(3, dtype=dtype)


@pytest.mark.parametrize(
    ("value", "error"),
    [(-1, ValueError), (2.0, TypeError), (True, TypeError), (None, TypeError)],
    ids=repr,
)
def test_permutation_checks_n(value, error):
    with refused(error, "n", value):
        SampleRng(1).permutation(value)


HUGE = [2**62, 2**70, 10**100, (2**40, 2**40), (0, 2**70), (1,) * 65]


@pytest.mark.parametrize("size", HUGE, ids=lambda size: str(size)[:20])
def test_sizes_that_no_array_can_have(size):
    rng = SampleRng(1)
    for draw in (
        rng.random,
        rng.standard_normal,
        lambda size: rng.random(size, np.float32),
        lambda size: rng.uniform(size=size),
        lambda size: rng.integers(5, size=size),
    ):
        with refused((ValueError, MemoryError), "size", size):
            draw(size)
    assert rng.state == 1


def test_more_rows_than_memory_holds():
    for draw in (BatchRng(1).row_u64, BatchRng(1).row_random):
        with refused((ValueError, MemoryError), "rows", 2**59):
            draw(2**59)
    rng = SampleRng(1)
    with refused((ValueError, MemoryError), "n", 2**62):
        rng.permutation(2**62)
    assert rng.state == 1


NOT_FINITE_NUMBERS = [
    (10**400, ValueError),
    (float("inf"), ValueError),
    (float("nan"), ValueError),
    ("1.5", TypeError),
    (b"1", TypeError),
    (1j, TypeError),
    (np.complex64(1), TypeError),
    (np.complex128(1), TypeError),
    (None, TypeError),
    (True, TypeError),
    (np.ma.masked, TypeError),
    (np.array([1.0]), TypeError),
    ([1.0], TypeError),
]


@pytest.mark.parametrize(("value", "error"), NOT_FINITE_NUMBERS, ids=lambda each: repr(each)[:20])
def test_uniform_checks_its_bounds(value, error):
    rng = SampleRng(1)
    for size in (None, 3):
        with refused(error, "low"):
            rng.uniform(value, 1.0, size)
        with refused(error, "high"):
            rng.uniform(0.0, value, size)
    assert rng.state == 1


def test_uniform_checks_the_span():
    with refused(ValueError, "high - low", 1.5e308):
        SampleRng(1).uniform(-1.5e308, 1.5e308)


@pytest.mark.parametrize("value", [10**400, 10**5000, -(10**5000)], ids=lambda v: f"{v > 0}")
def test_numbers_too_long_to_print(value):
    rng = SampleRng(1)
    for name, call in {
        "x": onemodel.mix,
        "n": rng.next_int,
        "low": lambda value: rng.integers(value, 5),
        "high": lambda value: rng.integers(0, value),
    }.items():
        with refused(ValueError, f"{name} must be in ["):
            call(value)


@pytest.mark.parametrize("dtype", ["nonsense", "f8,(", 3, "", np.dtype([("a", "f4")])], ids=repr)
def test_random_names_the_dtype(dtype):
    with refused(TypeError, "dtype must be float64 or float32"):
        SampleRng(1).random(3, dtype=dtype)


def test_a_numpy_bool_is_no_integer_whatever_numpy_says(monkeypatch):
    """Older NumPy gives bools an index: the type decides, not the method."""
    monkeypatch.setattr("operator.index", int)
    with refused(TypeError, "x must be an integer"):
        onemodel.mix(np.True_)


def test_a_subclass_that_forgets_init_is_a_generator_of_state_zero():
    class Forgetful(SampleRng):
        def __init__(self):
            pass

    class ForgetfulRows(BatchRng):
        def __init__(self):
            pass

    assert Forgetful().next_u64() == SampleRng(0).next_u64()
    assert Forgetful().random(3).tolist() == SampleRng(0).random(3).tolist()
    assert Forgetful().generator().random() == SampleRng(0).next_double()
    rows = ForgetfulRows()
    assert rows.row_u64(3).shape == rows.row_random(3).shape == (3,)
    assert rows.rent(3, np.float32).shape == (3,)
    assert rows.next_u64() == SampleRng(0).next_u64()
    repr(rows), pickle.dumps(rows.__reduce__())


def test_the_streams_are_those_of_the_specification():
    """The numbers of the twin, which holds them by itself, and nothing else."""
    assert {name: getattr(streams, name) for name in streams.__all__} == {
        "TRANSFORM_STREAM": twin.STREAM_TRANSFORM,
        "AUGMENTATION_STREAM": twin.STREAM_AUGMENTATION,
        "ROW_STREAM": 2,
        "ITEM_STREAM": items.ITEM_STREAM,
        "SUBSTITUTE_STREAM": items.SUBSTITUTE_STREAM,
        "DIGIT_LINES_STREAM": 7,
        "ORDER_STREAM": twin.STREAM_EPOCH_ORDER,
        "MIXING_STREAM": twin.STREAM_MIXING,
        "POOL_STREAM": twin.STREAM_BUCKET_SHUFFLE,
        "PLACE_STREAM": twin.STREAM_BUCKET_PLACEMENT,
        "SLOT_STREAM": twin.STREAM_BUCKET_SLOTS,
        "WEIGHTED_STREAM": twin.STREAM_WEIGHTED,
        "WEIGHTED_ORDER_STREAM": twin.STREAM_WEIGHTED_ORDER,
        "GROUP_STREAM": twin.STREAM_BUDGET_GROUP,
        "BUDGET_PLACE_STREAM": twin.STREAM_BUDGET_PLACEMENT,
    }
