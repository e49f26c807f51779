"""Promise: the weighted sampler draws each item by its weight, exactly and alike everywhere.

With replacement an item's probability is its rounded weight over the sum of those; the table that
says so is exact. Without replacement an epoch has each item once at most, drawn one after another.
Both are the twin's, and a loader with workers, shards or a resumed state gives the same.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import weighted as twin
from support import EDGE_WORDS, integers, refused

from onemodel import ArrayDataset, DataLoader, WeightedSampler
from onemodel._builders.native import native_lane
from onemodel._samplers.weighted import exponentials, integer_weights

NUMBERS = st.one_of(
    st.floats(0, 1e3),
    st.integers(0, 5),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1e-9, 1.0, 1 / 3, 1e308, 2.0**53 + 2]),
)
WEIGHTS = st.lists(NUMBERS, min_size=1, max_size=40).filter(any)


def epochs(sampler, seed, count):
    return [
        integers(sampler.batch_indices(seed, epoch, step))
        for epoch in range(count)
        for step in range(sampler.steps_per_epoch)
    ]


@given(WEIGHTS, st.integers(1, 12), st.booleans(), st.booleans(), EDGE_WORDS, EDGE_WORDS)
def test_it_is_the_twins(weights, batch_size, replacement, drop_last, seed, epoch):
    options = {"replacement": replacement, "drop_last": drop_last}
    items = len(weights) if replacement else sum(weight > 0 for weight in weights)
    if drop_last and items < batch_size:
        with refused(ValueError, "batch_size", batch_size):
            WeightedSampler(weights, batch_size, **options)
        options["drop_last"] = False
    sampler = WeightedSampler(weights, batch_size, **options)
    expected = twin.WeightedSampler(weights, batch_size, **options)
    assert sampler.steps_per_epoch == expected.steps_per_epoch
    for step in range(sampler.steps_per_epoch):
        indices = sampler.batch_indices(seed, epoch, step)
        assert indices.dtype == np.int64
        assert indices.tolist() == expected.batch_indices(seed, epoch, step)


@given(WEIGHTS)
def test_the_table_is_exact(weights):
    """Over all columns an item gets its weight's share of the thresholds' range, to the unit."""
    table, total = WeightedSampler(weights, 1).alias_table
    amounts = twin.integer_weights([float(weight) for weight in weights])
    assert integers(integer_weights(np.array(weights, float))) == amounts
    assert [tuple(row) for row in table.tolist()] == twin.alias_table(amounts)
    got = [0] * len(weights)
    for column, (threshold, alias) in enumerate(table.tolist()):
        assert 0 <= threshold <= total
        got[column] += threshold
        got[alias] += total - threshold
    assert got == [amount * len(weights) for amount in amounts]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30))
def test_whole_numbers_are_no_further_rounded(weights):
    amounts = twin.integer_weights([float(weight) for weight in weights])
    shares = {Fraction(amount, weight) for amount, weight in zip(amounts, weights, strict=True)}
    assert len(shares) == 1


def test_a_large_table_is_exact():
    """No sum runs over: the largest weights that n allows."""
    for weights in (np.full(100_000, 0.7), np.r_[np.full(99_999, 1e-30), 1.0]):
        table, total = WeightedSampler(weights, 1).alias_table
        amounts = integer_weights(weights).tolist()
        assert total == sum(amounts) < 2**63
        got = [0] * len(amounts)
        for column, (threshold, alias) in enumerate(table.tolist()):
            got[column] += threshold
            got[alias] += total - threshold
        assert got == [amount * len(amounts) for amount in amounts]


def test_items_come_by_their_weights():
    weights = np.array([0.5, 0.25, 0, 0.2, 0.05])
    draws = 10_000
    sampler = WeightedSampler(weights, 100, steps_per_epoch=draws // 100)
    counts = np.bincount(np.concatenate(epochs(sampler, 42, 1)), minlength=5)
    sigma = (draws * weights * (1 - weights)) ** 0.5
    assert (np.abs(counts - draws * weights) <= 4 * sigma).all()
    assert counts[2] == 0


def test_without_replacement_items_are_drawn_one_after_another():
    """First and second places against the probabilities of drawing by weight from what is left."""
    weights = {0: 1.0, 1: 2.0, 3: 5.0}
    sampler = WeightedSampler([1, 2, 0, 5], 2, replacement=False)
    count = 20_000
    pairs = [tuple(batch) for batch in epochs(sampler, 3, count)]
    total = sum(weights.values())
    for first, second in itertools.permutations(weights, 2):
        chance = weights[first] / total * weights[second] / (total - weights[first])
        sigma = math.sqrt(count * chance * (1 - chance))
        assert abs(pairs.count((first, second)) - count * chance) < 4 * sigma


def test_the_logarithm_is_good_to_a_few_bits():
    uniform = np.r_[2.0**-53, np.random.default_rng(0).random(10_000), 1 - 2.0**-53, 0.0]
    found = exponentials(uniform)
    expected = [-math.log1p(-u) for u in uniform]
    assert found.tolist() == [twin.exponential(u) for u in uniform]
    assert np.allclose(found[:-1], expected[:-1], rtol=1e-13, atol=0)
    assert abs(found[-1]) < 1e-13


def test_an_epoch_without_replacement_holds_each_item_of_weight_once():
    weights = np.arange(50) % 7
    sampler = WeightedSampler(weights, 8, replacement=False, drop_last=False)
    drawable = np.flatnonzero(weights).tolist()
    orders = set()
    for epoch in range(5):
        batches = [integers(sampler.batch_indices(1, epoch, step)) for step in range(6)]
        assert [len(batch) for batch in batches] == [8, 8, 8, 8, 8, 2]
        assert sorted(itertools.chain(*batches)) == drawable
        orders.add(str(batches))
    assert len(orders) == 5


def test_steps_of_an_epoch():
    weights = [1, 0, 3, 1, 1, 1, 0, 1, 1, 1]
    assert WeightedSampler(weights, 4).steps_per_epoch == 2
    assert WeightedSampler(weights, 4, drop_last=False).steps_per_epoch == 3
    assert WeightedSampler(weights, 3, replacement=False).steps_per_epoch == 2
    assert WeightedSampler(weights, 3, replacement=False, drop_last=False).steps_per_epoch == 3
    assert WeightedSampler(weights, 3, replacement=False, steps_per_epoch=1).steps_per_epoch == 1
    # a number of steps given is one of whole batches
    many = WeightedSampler(weights, 4, steps_per_epoch=2**40, drop_last=False)
    assert len(many.batch_indices(0, 0, 2**40 - 1)) == 4
    assert len(WeightedSampler([1], 7, drop_last=False).batch_indices(0, 0, 0)) == 1
    with refused(ValueError, "steps_per_epoch", 3):
        WeightedSampler(weights, 3, replacement=False, steps_per_epoch=3)
    with refused(ValueError, "batch_size", 9):
        WeightedSampler(weights, 9, replacement=False)


def test_only_ratios_count():
    weights = np.array([1.5, 0.25, 3.0, 0.125])
    expected = epochs(WeightedSampler(weights, 4), 1, 20)
    for scaled in (weights * 2.0**-1000, weights * 2.0**900, (weights * 8).astype(np.int8)):
        assert epochs(WeightedSampler(scaled, 4), 1, 20) == expected


def test_the_weights_are_copied():
    weights = np.array([1.0, 2.0, 3.0])
    sampler = WeightedSampler(weights, 2)
    text = repr(sampler)
    weights[:] = 9
    assert sampler.weights.tolist() == [1.0, 2.0, 3.0]
    assert repr(sampler) == text
    assert not sampler.weights.flags.writeable
    assert not sampler.alias_table[0].flags.writeable


def test_the_repr_names_every_argument():
    """A state compares it: other weights are another sampler; a sign of zero is none."""
    text = repr(WeightedSampler([1, 0], 1))
    assert "weights=<2, sha256 " in text
    for word in ("batch_size=1", "replacement=True", "steps_per_epoch=None", "drop_last=True"):
        assert word in text
    assert repr(WeightedSampler([1, -0.0], 1)) == text
    assert repr(WeightedSampler([1, 5e-324], 1)) != text
    assert len(text) < 200


@pytest.mark.parametrize(
    ("weights", "error", "value"),
    [
        ([1, math.nan], ValueError, "nan"),
        ([1, math.inf], ValueError, "inf"),
        ([1, -1], ValueError, "-1.0"),
        ([-5e-324, 1], ValueError, "5e-324"),
        ([0, 0, 0], ValueError, "zeros"),
        ([], ValueError, "0"),
        ([[1, 2]], ValueError, "shape"),
        (3, ValueError, "shape"),
        ([True, False], TypeError, "bool"),
        (["1", "2"], TypeError, "<U1"),
        ("12", TypeError, "12"),
        ([1j], TypeError, "complex128"),
        ([10**400], TypeError, "object"),
        ([None], TypeError, "object"),
        ({1: 2}, ValueError, "shape"),
        (np.ma.masked_array([1, 2], [True, False]), TypeError, "mask"),
    ],
    ids=repr,
)
def test_what_is_no_weight_is_refused(weights, error, value):
    for replacement in (False, True):
        with refused(error, "weights", value):
            WeightedSampler(weights, 1, replacement=replacement)


@pytest.mark.parametrize("name", ["replacement", "drop_last"])
@pytest.mark.parametrize("value", ["False", 0, None])
def test_flags_are_bools(name, value):
    with refused(TypeError, name, repr(value)):
        WeightedSampler([1, 2], 1, **{name: value})


def test_with_replacement_there_is_no_plan():
    with refused(ValueError, "replacement", "True"):
        WeightedSampler([1, 2], 1).plan(0, 0)


def test_numpys_error_state_does_not_matter():
    """A weight far below the smallest normal number is above zero, and none is too large."""
    weights = [1e-310, 0.0, 3e-310]
    expected = epochs(WeightedSampler(weights, 2, drop_last=False), 0, 20)
    assert set(itertools.chain(*expected)) == {0, 2}
    with np.errstate(all="raise"):
        assert epochs(WeightedSampler(weights, 2, drop_last=False), 0, 20) == expected
        for replacement in (False, True):
            epochs(WeightedSampler([1e308, *weights], 2, replacement=replacement), 0, 1)


# Through a loader

N = 41
DATA = ArrayDataset(np.arange(N))


def make_sampler(replacement, drop_last):
    return WeightedSampler(1 + np.arange(N) % 5, 8, replacement=replacement, drop_last=drop_last)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shard", [(0, 1), (3, 4)])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("replacement", [False, True])
def test_the_native_lane_gives_the_samplers_indices(replacement, drop_last, shard, workers):
    sampler = make_sampler(replacement, drop_last)
    rank, world = shard
    expected = []
    for batch in epochs(sampler, 9, 3):
        first, end = rank * len(batch) // world, (rank + 1) * len(batch) // world
        expected.append(batch[first:end])
    options = {"sampler": sampler, "seed": 9, "shard": shard, "workers": workers}
    with DataLoader(DATA, **options) as loader:
        assert native_lane(loader._builder) is not None
        run = loader.steps(0, len(expected))
        given_out = [integers(next(run)) for _ in range(4)]
        state = loader.state_dict()
        assert len(repr(state)) < 400
    with DataLoader(DATA, **options) as loader:
        loader.load_state_dict(state)
        given_out += [integers(batch) for batch in loader.steps(stop=len(expected))]
    assert given_out == expected


def test_a_loader_leaves_nothing_out_with_replacement():
    assert "left out" not in repr(DataLoader(DATA, sampler=make_sampler(True, True)))
    assert "1 left out an epoch" in repr(DataLoader(DATA, sampler=make_sampler(False, True)))


def test_a_state_of_other_weights_is_refused():
    state = DataLoader(DATA, sampler=make_sampler(True, True)).state_dict()
    other = DataLoader(DATA, sampler=WeightedSampler([1] * N, 8))
    with refused(ValueError, "sampler"):
        other.load_state_dict(state)
