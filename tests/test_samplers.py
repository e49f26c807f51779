"""Promise: the indices of a step are a pure function of (seed, epoch, step) and of the sampler's
own arguments.

All samplers give the twin's indices, in any order of asking and from any thread. Sequential,
shuffled and bucketed give every index at most once an epoch (exactly once without drop-last);
mixing holds its shares in expectation; the bucketed plan is built once for an epoch. What the
weighted and the budget sampler promise beside this is in files of their own.
"""

import copy
import itertools
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import samplers as twin
from support import EDGE_WORDS, WORDS, integers, refused

from onemodel import (
    ArrayDataset,
    BucketedSampler,
    BudgetSampler,
    DataLoader,
    MixingSampler,
    Sampler,
    SequentialSampler,
    ShuffledSampler,
    WeightedSampler,
)
from onemodel._builders.native import native_lane

PLAIN = {
    SequentialSampler: twin.SequentialSampler,
    ShuffledSampler: twin.ShuffledSampler,
}


@st.composite
def epoch_shapes(draw, largest=80):
    """(n, batch_size, drop_last) of an epoch that has at least one step."""
    n = draw(st.integers(1, largest))
    drop_last = draw(st.booleans())
    batch_size = draw(st.integers(1, n if drop_last else n + 20))
    return n, batch_size, drop_last


def assert_an_index_array(indices):
    assert isinstance(indices, np.ndarray)
    assert indices.dtype == np.int64
    assert indices.ndim == 1


def all_batches(sampler, seed, epoch):
    return [
        integers(sampler.batch_indices(seed, epoch, step))
        for step in range(sampler.steps_per_epoch)
    ]


# Sequential and shuffled


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
@given(epoch_shapes(), EDGE_WORDS, EDGE_WORDS)
def test_plain_samplers_are_the_twins(kind, shape, seed, epoch):
    n, batch_size, drop_last = shape
    sampler = kind(n, batch_size, drop_last=drop_last)
    expected = PLAIN[kind](n, batch_size, drop_last=drop_last)
    assert sampler.batch_size == batch_size
    assert sampler.steps_per_epoch == expected.steps_per_epoch
    for step in range(sampler.steps_per_epoch):
        indices = sampler.batch_indices(seed, epoch, step)
        assert_an_index_array(indices)
        assert indices.tolist() == expected.batch_indices(seed, epoch, step)


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
@given(epoch_shapes(), WORDS)
def test_plain_samplers_cover_an_epoch(kind, shape, seed):
    n, batch_size, drop_last = shape
    batches = all_batches(kind(n, batch_size, drop_last=drop_last), seed, 3)
    given_out = list(itertools.chain(*batches))
    assert len(set(given_out)) == len(given_out)
    assert set(given_out) <= set(range(n))
    if drop_last:
        assert all(len(batch) == batch_size for batch in batches)
        assert len(given_out) == n // batch_size * batch_size
    else:
        assert len(given_out) == n
        assert all(len(batch) == batch_size for batch in batches[:-1])


def test_sequential_ignores_seed_and_epoch():
    sampler = SequentialSampler(10, 4, drop_last=False)
    assert all_batches(sampler, 0, 0) == all_batches(sampler, 2**64 - 1, 9)
    assert all_batches(sampler, 0, 0) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_shuffled_changes_with_seed_and_epoch():
    sampler = ShuffledSampler(200, 50)
    orders = {str(all_batches(sampler, seed, epoch)) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
def test_nothing_is_built_for_a_huge_dataset(kind):
    """A table of 10**12 indices would not fit; the middle of the epoch is there at once."""
    n, batch_size, step = 10**12, 4, 10**11 + 7
    sampler = kind(n, batch_size)
    expected = PLAIN[kind](n, batch_size)
    assert sampler.steps_per_epoch == 25 * 10**10
    assert sampler.batch_indices(3, 2, step).tolist() == expected.batch_indices(3, 2, step)


# Mixing


@st.composite
def sources(draw):
    """(sizes, shares) with at least one source that takes part."""
    count = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.integers(0, 30), min_size=count, max_size=count))
    shares = draw(
        st.lists(
            st.just(0.0) | st.floats(1e-3, 1e3) | st.sampled_from([0.1, 1.0, 1 / 3]),
            min_size=count,
            max_size=count,
        )
    )
    chosen = draw(st.integers(0, count - 1))
    sizes[chosen] += 1
    shares[chosen] += 1.0
    return sizes, shares


@given(sources(), st.integers(1, 12), EDGE_WORDS, EDGE_WORDS, st.integers(0, 4))
def test_mixing_is_the_twins(mixture, batch_size, seed, epoch, step):
    sizes, shares = mixture
    sampler = MixingSampler(sizes, shares, batch_size, steps_per_epoch=5)
    expected = twin.MixingSampler(sizes, shares, batch_size, steps_per_epoch=5)
    assert sampler.batch_size == batch_size
    assert sampler.steps_per_epoch == 5
    indices = sampler.batch_indices(seed, epoch, step)
    assert_an_index_array(indices)
    assert indices.tolist() == expected.batch_indices(seed, epoch, step)


def test_a_long_batch_is_mixed_as_short_ones_are():
    """A slot's draw depends on nothing but its key, also where the GIL is released."""
    sizes, shares = [5, 0, 70, 3], [0.2, 1.0, 0.5, 0.3]
    long = MixingSampler(sizes, shares, 10_000, steps_per_epoch=3).batch_indices(1, 2, 1)
    short = twin.MixingSampler(sizes, shares, 300, steps_per_epoch=3).batch_indices(1, 2, 1)
    assert long[:300].tolist() == short
    for batch_size in (1023, 1365, 4095, 4096):  # about where it is
        sampler = MixingSampler(sizes, shares, batch_size, steps_per_epoch=3)
        assert sampler.batch_indices(1, 2, 1).tolist() == long[:batch_size].tolist()


def test_mixing_sums_its_shares_in_order():
    """Ten shares of 0.1 sum to less than one in order, to one when the rounding is carried along.

    Over 100,000 slots no other rule of summing gives the same sources.
    """
    sizes, shares = [1] * 10, [0.1] * 10
    sampler = MixingSampler(sizes, shares, 1000, steps_per_epoch=3)
    expected = twin.MixingSampler(sizes, shares, 1000, steps_per_epoch=3)
    for step in range(3):
        assert integers(sampler.batch_indices(1, 0, step)) == expected.batch_indices(1, 0, step)


def test_mixing_holds_its_shares():
    """The test of the normative text: counts within four standard deviations over 10,000 draws."""
    sizes, shares = [500, 20, 0, 80, 7], [0.5, 0.25, 9.0, 0.2, 0.05]
    draws, batch_size = 10_000, 100
    sampler = MixingSampler(sizes, shares, batch_size, steps_per_epoch=draws // batch_size)
    drawn = np.concatenate(
        [sampler.batch_indices(42, 0, step) for step in range(sampler.steps_per_epoch)]
    )
    assert len(drawn) == draws
    starts = np.cumsum([0, *sizes])
    for source, share in ((0, 0.5), (1, 0.25), (3, 0.2), (4, 0.05)):
        inside = (drawn >= starts[source]) & (drawn < starts[source + 1])
        sigma = (draws * share * (1 - share)) ** 0.5
        assert abs(inside.sum() - draws * share) < 4 * sigma


def test_mixing_draws_evenly_within_a_source():
    draws = 10_000
    sampler = MixingSampler([10], [1.0], 100, steps_per_epoch=100)
    drawn = np.concatenate([sampler.batch_indices(1, 0, step) for step in range(100)])
    sigma = (draws * 0.1 * 0.9) ** 0.5
    assert np.abs(np.bincount(drawn, minlength=10) - draws / 10).max() < 4 * sigma


def test_mixing_without_steps_counts_the_items():
    assert MixingSampler([10, 0, 15], [1, 1, 1], 4).steps_per_epoch == 25 // 4


def test_mixing_takes_arrays_and_keeps_its_own_copy():
    sizes, shares = np.array([4, 9]), np.array([0.5, 0.5], dtype=np.float32)
    sampler = MixingSampler(sizes, shares, 6, steps_per_epoch=2)
    before = all_batches(sampler, 1, 0)
    sizes[:] = 1
    shares[:] = 0
    assert all_batches(sampler, 1, 0) == before
    assert before == all_batches(MixingSampler([4, 9], [0.5, 0.5], 6, steps_per_epoch=2), 1, 0)


# Bucketed

LENGTHS = [(index * 37) % 101 for index in range(97)]

BUCKETED = st.tuples(
    epoch_shapes(), st.integers(1, 6), st.integers(0, 30), st.integers(0, 2**32 - 1), st.booleans()
)


def lengths_for(n, spread, base, tied):
    rng = np.random.default_rng(base)
    lengths = rng.integers(base, min(base + spread, 2**32 - 1) + 1, size=n)
    return [base] * n if tied else lengths.tolist()


@given(BUCKETED, EDGE_WORDS, EDGE_WORDS)
def test_bucketed_is_the_twins(arguments, seed, epoch):
    (n, batch_size, drop_last), pool_batches, spread, base, tied = arguments
    lengths = lengths_for(n, spread, base, tied)
    options = {"pool_batches": pool_batches, "drop_last": drop_last}
    sampler = BucketedSampler(lengths, batch_size, **options)
    expected = twin.BucketedSampler(lengths, batch_size, **options)
    assert sampler.batch_size == batch_size
    assert sampler.steps_per_epoch == expected.steps_per_epoch
    for step, batch in enumerate(expected.plan(seed, epoch)):
        indices = sampler.batch_indices(seed, epoch, step)
        assert_an_index_array(indices)
        assert indices.tolist() == batch


@given(BUCKETED, WORDS)
def test_bucketed_plan(arguments, seed):
    """At most once each; batches ascending by (length, index); sizes as drop-last says."""
    (n, batch_size, drop_last), pool_batches, spread, base, tied = arguments
    lengths = lengths_for(n, spread, base, tied)
    sampler = BucketedSampler(lengths, batch_size, pool_batches=pool_batches, drop_last=drop_last)
    batches = all_batches(sampler, seed, 1)
    given_out = list(itertools.chain(*batches))
    assert len(set(given_out)) == len(given_out)
    for batch in batches:
        assert batch == sorted(batch, key=lambda index: (lengths[index], index))
    sizes = sorted(len(batch) for batch in batches)
    if drop_last:
        assert sizes == [batch_size] * (n // batch_size)
    else:
        assert sorted(given_out) == list(range(n))
        assert sizes[1:] == [batch_size] * (len(sizes) - 1)
        assert sizes[0] == (n % batch_size or batch_size)


@given(BUCKETED, EDGE_WORDS, EDGE_WORDS)
def test_shuffled_slots_are_the_twins(arguments, seed, epoch):
    (n, batch_size, drop_last), pool_batches, spread, base, tied = arguments
    lengths = lengths_for(n, spread, base, tied)
    options = {"pool_batches": pool_batches, "drop_last": drop_last, "shuffle_slots": True}
    sampler = BucketedSampler(lengths, batch_size, **options)
    for step, batch in enumerate(
        twin.BucketedSampler(lengths, batch_size, **options).plan(seed, epoch)
    ):
        indices = sampler.batch_indices(seed, epoch, step)
        assert_an_index_array(indices)
        assert indices.tolist() == batch


SHUFFLED_SLOTS = [
    ((0, 0, 0), [20, 26, 23, 56, 4, 53, 45, 50]),
    ((42, 1, 7), [54, 16, 90, 57, 79, 46, 76, 59]),
    ((2**64 - 1, 3, 12), [11, 22, 47, 41, 77, 74, 14, 58]),
]


@pytest.mark.parametrize("kind", [BucketedSampler, twin.BucketedSampler], ids=["ours", "twin"])
@pytest.mark.parametrize(("key", "expected"), SHUFFLED_SLOTS)
def test_shuffled_slots_vectors(kind, key, expected):
    sampler = kind(LENGTHS, 8, pool_batches=3, drop_last=False, shuffle_slots=True)
    assert integers(sampler.batch_indices(*key)) == expected


@pytest.mark.parametrize("drop_last", [False, True])
def test_the_native_plan_shuffles_slots_as_the_sampler_does(drop_last):
    """The indices that the native lane reads, through a loader that has one."""
    sampler = BucketedSampler(LENGTHS, 8, pool_batches=3, drop_last=drop_last, shuffle_slots=True)
    for shard in ((0, 1), (3, 4)):
        loader = DataLoader(ArrayDataset(np.arange(97)), sampler=sampler, seed=9, shard=shard)
        assert native_lane(loader._builder) is not None
        for g, batch in enumerate(loader.steps(0, 3 * sampler.steps_per_epoch)):
            epoch, step = divmod(g, sampler.steps_per_epoch)
            whole = integers(sampler.batch_indices(9, epoch, step))
            rank, world = shard
            first, end = rank * len(whole) // world, (rank + 1) * len(whole) // world
            assert batch.tolist() == whole[first:end]


def test_shuffled_slots_hold_the_same_batches():
    plain = all_batches(BucketedSampler(LENGTHS, 8, pool_batches=3), 5, 2)
    shuffled = all_batches(BucketedSampler(LENGTHS, 8, pool_batches=3, shuffle_slots=True), 5, 2)
    assert [sorted(batch) for batch in plain] == [sorted(batch) for batch in shuffled]
    assert plain != shuffled


def spread_over_ranks(shuffle_slots):
    """The largest of eight ranks' mean padded widths over the smallest, in one epoch."""
    lengths = np.random.default_rng(0).integers(64, 1025, size=16_384)
    sampler = BucketedSampler(lengths, 64, pool_batches=1, shuffle_slots=shuffle_slots)
    batches = np.array(all_batches(sampler, 1, 0))
    means = lengths[batches].reshape(-1, 8, 8).max(axis=2).mean(axis=0)
    return means.max() / means.min()


def test_shuffled_slots_make_ranks_alike():
    assert spread_over_ranks(False) > 1.2
    assert spread_over_ranks(True) < 1.1


@pytest.mark.parametrize("workers", [0, 2])
def test_every_rank_gets_some_of_the_widest(workers):
    """The 256 widest of 8,192 items over 8 ranks: without the option rank 0 never has one."""
    lengths = np.random.default_rng(0).permutation(8192)
    data = ArrayDataset(lengths)

    def widest(shuffle_slots):
        counts = []
        for rank in range(8):
            sampler = BucketedSampler(lengths, 64, shuffle_slots=shuffle_slots, pool_batches=1)
            options = {"sampler": sampler, "shard": (rank, 8), "workers": workers}
            with DataLoader(data, **options) as loader:
                counts.append(sum(int((batch >= 8192 - 256).sum()) for batch in loader))
        return counts

    plain, shuffled = widest(False), widest(True)
    assert sum(plain) == sum(shuffled) == 256
    assert plain[:4] == [0, 0, 0, 0]
    sigma = (256 * 1 / 8 * 7 / 8) ** 0.5
    assert all(abs(count - 32) < 4 * sigma for count in shuffled)


def test_a_state_without_the_option_does_not_load_with_it():
    data = ArrayDataset(np.arange(97))
    loaders = [
        DataLoader(data, sampler=BucketedSampler(LENGTHS, 8, shuffle_slots=option))
        for option in (False, True)
    ]
    with refused(ValueError, "sampler", "shuffle_slots"):
        loaders[1].load_state_dict(loaders[0].state_dict())
    loaders[1].load_state_dict(loaders[1].state_dict())


def test_the_default_keeps_its_repr():
    """A saved state holds the repr: those of before the option are taken."""
    assert "shuffle_slots" not in repr(BucketedSampler([1, 2], 1))
    assert repr(BucketedSampler([1, 2], 1, shuffle_slots=True)).endswith(", shuffle_slots=True)")


def test_bucketed_short_batch_moves_about():
    """Decision 5: the second permutation places the short batch like any other."""
    sampler = BucketedSampler([5] * 41, 4, pool_batches=2, drop_last=False)
    places = {
        [len(batch) for batch in all_batches(sampler, 0, epoch)].index(1) for epoch in range(40)
    }
    assert len(places) > 5


def test_bucketed_pads_less():
    """What buckets are for: the columns lost to padding fall well below the shuffled sampler's."""
    lengths = np.random.default_rng(0).integers(64, 257, size=1024)

    def waste(sampler):
        padded = sum(
            len(batch) * lengths[batch].max() for batch in map(list, all_batches(sampler, 0, 0))
        )
        return 1 - lengths.sum() / padded

    assert waste(BucketedSampler(lengths, 32, pool_batches=8)) < 0.35 * waste(
        ShuffledSampler(1024, 32)
    )


def test_bucketed_takes_arrays_and_keeps_its_own_copy():
    lengths = np.arange(20, dtype=np.uint32)[::-1]
    sampler = BucketedSampler(lengths, 4, pool_batches=2)
    before = all_batches(sampler, 1, 0)
    lengths[:] = 1
    assert all_batches(sampler, 1, 5) != before
    fresh = BucketedSampler(list(range(19, -1, -1)), 4, pool_batches=2)
    assert all_batches(fresh, 1, 0) == before
    assert all_batches(fresh, 1, 5) == all_batches(sampler, 1, 5)


class Counting(BucketedSampler):
    """Counts the plans that are built; the one place where a test looks inside."""

    def __init__(self, *arguments, **options):
        self.built = []
        super().__init__(*arguments, **options)

    def _build(self, seed, epoch):
        self.built.append((seed, epoch))
        return super()._build(seed, epoch)


def test_two_plans_are_kept():
    """The current epoch and the one before it, as a run that crosses epochs asks for them.

    The one before goes when the next one is begun, so that no third is ever in memory.
    """
    sampler = Counting(list(range(40)), 4)
    for epoch, step in ((0, 0), (0, 9), (1, 0), (0, 5), (1, 3), (2, 0), (1, 9), (2, 1)):
        sampler.batch_indices(7, epoch, step)
    assert sampler.built == [(7, 0), (7, 1), (7, 2)]
    sampler.batch_indices(8, 2, 0)
    assert sampler.built[-1] == (8, 2)


def test_a_plan_is_built_once_when_threads_ask_together(needs_threads):
    entered, answers = threading.Barrier(8), []

    class Slow(Counting):
        def _build(self, seed, epoch):
            plan = super()._build(seed, epoch)
            waiting.wait(0.05)  # time for those who come too early
            return plan

    waiting = threading.Event()
    sampler = Slow(list(range(40)), 4)

    def ask():
        entered.wait(60)
        answers.append(integers(sampler.batch_indices(3, 0, 2)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sampler.built == [(3, 0)]
    assert answers == [twin.BucketedSampler(list(range(40)), 4).batch_indices(3, 0, 2)] * 8


def test_a_plan_whose_building_failed_is_built_again():
    class Failing(Counting):
        def _build(self, seed, epoch):
            if len(self.built) == 0:
                self.built.append("failed")
                raise MemoryError("on purpose")
            return super()._build(seed, epoch)

    sampler = Failing(list(range(40)), 4)
    with pytest.raises(MemoryError):
        sampler.batch_indices(3, 0, 2)
    expected = twin.BucketedSampler(list(range(40)), 4).batch_indices(3, 0, 2)
    assert integers(sampler.batch_indices(3, 0, 2)) == expected


# All of them


def make_samplers():
    return [
        SequentialSampler(97, 8, drop_last=False),
        ShuffledSampler(97, 8, drop_last=False),
        MixingSampler([40, 57], [0.3, 0.7], 8),
        BucketedSampler(LENGTHS, 8, pool_batches=3, drop_last=False),
        BucketedSampler(LENGTHS, 8, pool_batches=3, drop_last=False, shuffle_slots=True),
        WeightedSampler(WEIGHTS, 8, drop_last=False),
        WeightedSampler(WEIGHTS, 8, drop_last=False, replacement=False),
        BudgetSampler(LENGTHS, 500, pool_batches=2),
    ]


WEIGHTS = [1 + (index * 29) % 53 for index in range(97)]
NAMES = ["sequential", "shuffled", "mixing", "bucketed", "shuffled slots"]
NAMES += ["weighted", "weighted order", "budget"]

every_sampler = pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)


@every_sampler
def test_the_order_of_asking_does_not_matter(number):
    questions = [(seed, epoch, step) for seed in (1, 9) for epoch in range(4) for step in range(12)]
    sampler, other = make_samplers()[number], make_samplers()[number]
    forwards = {question: integers(sampler.batch_indices(*question)) for question in questions}
    np.random.default_rng(0).shuffle(questions)
    assert {q: integers(other.batch_indices(*q)) for q in questions} == forwards


@every_sampler
def test_a_caller_may_keep_and_change_the_answer(number):
    sampler = make_samplers()[number]
    first = sampler.batch_indices(1, 0, 2)
    kept = first.tolist()
    first[:] = -1
    assert sampler.batch_indices(1, 0, 2).tolist() == kept


@every_sampler
def test_many_threads_ask_together(number, needs_threads):
    """Eight threads start at one barrier and walk the same epochs in different orders."""
    sampler, expected = make_samplers()[number], make_samplers()[number]
    questions = [(7, epoch, step) for epoch in range(6) for step in range(12)]
    answers = {question: integers(expected.batch_indices(*question)) for question in questions}
    barrier = threading.Barrier(8)
    wrong, failures = [], []

    def ask(shift):
        try:
            barrier.wait(60)
            for question in questions[shift:] + questions[:shift]:
                if integers(sampler.batch_indices(*question)) != answers[question]:
                    wrong.append(question)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=ask, args=(shift * 9,)) for shift in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []
    assert wrong == []


# What was configured stays


@every_sampler
def test_attributes_are_read_only(number):
    sampler = make_samplers()[number]
    public = [name for name in dir(type(sampler)) if not name.startswith("_")]
    values = [name for name in public if not callable(getattr(sampler, name))]
    assert {"n", "batch_size", "steps_per_epoch"} <= set(values)
    for name in values:
        with pytest.raises(AttributeError):
            setattr(sampler, name, 3)
        value = getattr(sampler, name)
        for array in value if isinstance(value, tuple) else [value]:
            assert not isinstance(array, np.ndarray) or not array.flags.writeable


@every_sampler
def test_a_second_init_is_refused_and_changes_nothing(number):
    sampler = make_samplers()[number]
    before, text = all_batches(sampler, 1, 5), repr(sampler)
    arguments = {
        MixingSampler: ([1, 1], [1, 1], 1),
        BucketedSampler: ([9, 9, 9], 1),
        BudgetSampler: ([9, 9, 9], 9),
        WeightedSampler: ([9, 9, 9], 1),
    }.get(type(sampler), (3, 1))
    with refused(TypeError, type(sampler).__name__, "another"):
        sampler.__init__(*arguments)
    assert (all_batches(sampler, 1, 5), repr(sampler)) == (before, text)


KINDS = [SequentialSampler, ShuffledSampler, MixingSampler, BucketedSampler]
KINDS += [BudgetSampler, WeightedSampler]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_subclass_that_forgets_super_says_so(kind):
    class Forgetful(kind):
        def __init__(self):
            pass

    sampler = Forgetful()
    uses = [lambda name=name: getattr(sampler, name) for name in dir(kind) if name[0] != "_"]
    uses = [use for use in uses if not callable(getattr(kind, use.__defaults__[0]))]
    uses += [
        lambda: sampler.batch_indices(0, 0, 0),
        lambda: repr(sampler),
        lambda: pickle.dumps(sampler),
        lambda: copy.copy(sampler),
        lambda: DataLoader(ArrayDataset(np.arange(4)), sampler=sampler),
    ]
    if hasattr(kind, "plan"):
        uses.append(lambda: sampler.plan(0, 0))
    for use in uses:
        with refused(TypeError, "Forgetful", "__init__"):
            use()
    assert not hasattr(sampler, "another")


@every_sampler
def test_pickles_keep_class_and_attributes_and_drop_locks(number):
    sampler = make_samplers()[number]
    sampler.batch_indices(1, 0, 0)  # a bucketed one has a plan now, and a lock
    sampler.note = "kept"
    for other in (pickle.loads(pickle.dumps(sampler)), copy.copy(sampler), copy.deepcopy(sampler)):
        assert type(other) is type(sampler)
        assert other.note == "kept"
        assert repr(other) == repr(sampler)
        assert all_batches(other, 1, 5) == all_batches(sampler, 1, 5)
        assert getattr(other, "_lock", None) is None or other._lock is not sampler._lock
        for value in other.arguments.values():
            assert not isinstance(value, np.ndarray) or not value.flags.writeable


class FromPairs(BucketedSampler):
    """A subclass with a constructor of its own; at the top so that it can be pickled."""

    def __init__(self, pairs):
        super().__init__([second for _, second in pairs], 2)
        self.first = [first for first, _ in pairs]


def test_a_subclass_with_another_constructor_is_pickled():
    sampler = FromPairs([("a", 3), ("b", 1), ("c", 2), ("d", 5)])
    other = pickle.loads(pickle.dumps(sampler))
    assert type(other) is FromPairs
    assert other.first == ["a", "b", "c", "d"]
    assert all_batches(other, 0, 0) == all_batches(sampler, 0, 0)


@every_sampler
def test_a_subclass_may_claim_more_steps_than_there_are(number):
    """Its further batches are empty. The reference builds them: a plan would read past its end."""
    sampler = make_samplers()[number]
    if isinstance(sampler, MixingSampler) or getattr(sampler, "replacement", False):
        pytest.skip("it draws with replacement")
    kind = type(sampler)
    longer = type("Longer", (kind,), {"steps_per_epoch": property(lambda self: 40)})
    claiming = longer.__new__(longer)
    kind.__init__(claiming, **sampler.arguments)
    loader = DataLoader(ArrayDataset(np.arange(97)), sampler=claiming, seed=1)
    assert native_lane(loader._builder) is None
    expected = [integers(claiming.batch_indices(1, 0, step)) for step in range(40)]
    assert [integers(batch) for batch in loader] == expected
    assert sorted(itertools.chain(*expected)) == list(range(97))


@every_sampler
def test_all_are_samplers(number):
    assert isinstance(make_samplers()[number], Sampler)


# Refusals

NOT_A_COUNT = [(0, ValueError), (-3, ValueError), (2.0, TypeError), (True, TypeError)]


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("value", "error"), NOT_A_COUNT, ids=repr)
def test_plain_samplers_check_their_arguments(kind, value, error):
    with refused(error, "n", value):
        kind(value, 4)
    with refused(error, "batch_size", value):
        kind(10, value)


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
def test_an_epoch_without_steps_is_refused(kind):
    with refused(ValueError, "batch_size", 11, 10):
        kind(10, 11)
    with refused(ValueError, "batch_size", 11, 10):
        BucketedSampler([1] * 10, 11)
    assert kind(10, 11, drop_last=False).steps_per_epoch == 1
    assert BucketedSampler([1] * 10, 11, drop_last=False).steps_per_epoch == 1


@pytest.mark.parametrize(("value", "error"), NOT_A_COUNT, ids=repr)
def test_mixing_and_bucketed_check_their_counts(value, error):
    with refused(error, "batch_size", value):
        MixingSampler([5, 5], [1, 1], value)
    with refused(error, "steps_per_epoch", value):
        MixingSampler([5, 5], [1, 1], 2, steps_per_epoch=value)
    with refused(error, "batch_size", value):
        BucketedSampler([1] * 10, value)
    with refused(error, "pool_batches", value):
        BucketedSampler([1] * 10, 2, pool_batches=value)


@pytest.mark.parametrize(
    ("shares", "value"),
    [
        ([1.0, -0.5], -0.5),
        ([1.0, float("nan")], "nan"),
        ([1.0, float("inf")], "inf"),
        ([0.0, 0.0], 0.0),
        ([1.0], 1),
        ([1.0, 1.0, 1.0], 3),
    ],
    ids=repr,
)
def test_mixing_checks_its_shares(shares, value):
    with refused(ValueError, "shares", value):
        MixingSampler([5, 5], shares, 2)


def test_mixing_checks_its_sizes():
    with refused(ValueError, "sizes", -1):
        MixingSampler([5, -1], [1, 1], 2)
    with refused(TypeError, "sizes", 2.5):
        MixingSampler([5, 2.5], [1, 1], 2)
    with refused(ValueError, "shares"):
        MixingSampler([], [], 2, steps_per_epoch=1)
    with refused(ValueError, "batch_size", 2):
        MixingSampler([], [], 2)


def test_mixing_needs_a_source_that_takes_part():
    """Shares stand on an empty source only, so nothing could ever be drawn."""
    with refused(ValueError, "shares"):
        MixingSampler([0, 5], [1.0, 0.0], 2)


def test_mixing_without_steps_is_refused():
    with refused(ValueError, "batch_size", 11):
        MixingSampler([5, 5], [1, 1], 11)


def test_bucketed_checks_its_lengths():
    with refused(ValueError, "lengths", -1):
        BucketedSampler([3, -1, 4], 2)
    with refused(ValueError, "lengths", 2**32):
        BucketedSampler([3, 2**32, 4], 2)
    with refused(TypeError, "lengths"):
        BucketedSampler([3.5, 1.0, 4.0], 2)
    with refused(ValueError, "lengths"):
        BucketedSampler(np.ones((2, 3), dtype=np.int64), 2)
    with refused(ValueError, "lengths"):
        BucketedSampler([], 2)


NOT_A_FLAG = ["False", 0, 1, None, [], np.array(True), np.array([True])]


@pytest.mark.parametrize("value", NOT_A_FLAG, ids=repr)
def test_flags_are_true_or_false(value):
    for kind in PLAIN:
        with refused(TypeError, "drop_last"):
            kind(10, 2, drop_last=value)
    for name in ("drop_last", "shuffle_slots"):
        with refused(TypeError, name):
            BucketedSampler([1, 2], 1, **{name: value})


def test_numpys_flags_are_flags():
    assert not SequentialSampler(10, 4, drop_last=np.False_).drop_last
    assert BucketedSampler([1, 2], 1, shuffle_slots=np.True_).shuffle_slots


@pytest.mark.parametrize("value", ["4", b"4", np.True_, np.float64(4), 4j, None, [4]], ids=repr)
def test_counts_are_integers(value):
    for kind in PLAIN:
        with refused(TypeError, "n"):
            kind(value, 4)
        with refused(TypeError, "batch_size"):
            kind(10, value)
    with refused(TypeError, "sizes"):
        MixingSampler([value], [1], 1)
    with refused(TypeError, "pool_batches"):
        BucketedSampler([1, 2], 1, pool_batches=value)


@pytest.mark.parametrize("value", ["1", b"1", True, np.True_, 1j, None, [1], np.ones(2)], ids=repr)
def test_shares_are_numbers(value):
    with refused(TypeError, "shares[1]"):
        MixingSampler([5, 5], [1, value], 2)


@pytest.mark.parametrize(
    "lengths",
    [None, 3, "12", [[1], [1, 2]], [1, "2"], [None], [1j], [2**70], [True], {1: 2},
     np.ma.masked_array([1, 2], [True, False]), np.array(["2026-01-01"], "M8[D]")],
    ids=repr,
)  # fmt: skip
def test_lengths_are_integers(lengths):
    with refused((TypeError, ValueError), "lengths"):
        BucketedSampler(lengths, 1)


@every_sampler
@pytest.mark.parametrize(
    ("value", "error"),
    [(-1, ValueError), (2**64, ValueError), (1.0, TypeError), (True, TypeError)],
    ids=repr,
)
def test_seed_and_epoch_are_checked(number, value, error):
    sampler = make_samplers()[number]
    with refused(error, "seed", value):
        sampler.batch_indices(value, 0, 0)
    with refused(error, "epoch", value):
        sampler.batch_indices(0, value, 0)


@every_sampler
@pytest.mark.parametrize("step", [-1, 13, 2**40], ids=str)
def test_a_step_outside_the_epoch(number, step):
    sampler = make_samplers()[number]
    with refused((IndexError, ValueError), "step", step):
        sampler.batch_indices(0, 0, step)


@every_sampler
def test_numpy_integers_are_taken(number):
    sampler = make_samplers()[number]
    expected = integers(sampler.batch_indices(5, 1, 2))
    assert integers(sampler.batch_indices(np.uint64(5), np.int32(1), np.int64(2))) == expected


@every_sampler
def test_repr_names_the_arguments(number):
    text = repr(make_samplers()[number])
    assert type(make_samplers()[number]).__name__ in text
    assert "8" in text
