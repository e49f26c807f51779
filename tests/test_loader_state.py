"""Promise: a run is saved as a small dictionary and taken up at the step that comes next.

The state counts what the consumer took and not what was built ahead. It is plain, the same in every
process, applied once, and refused where it belongs to another run.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from reference.lines import GoldenLines, gain_and_offset
from support import (
    BATCH,
    COUNT,
    STEPS,
    PackageSamples,
    every_count,
    expected_indices,
    indices_of,
    make_loader,
    refused,
    saved,
    take,
)

import onemodel
from onemodel import ImageBatchCollator, ShuffledSampler
from onemodel._common.describe import shown
from onemodel._state.state import FIELDS


@every_count
@pytest.mark.parametrize("taken", [0, 1, 4, STEPS])
def test_state_counts_what_was_taken(workers, taken):
    """Not what was built ahead: with workers the ring holds up to eight batches more."""
    with make_loader(workers=workers) as loader:
        stream, _ = take(loader, taken)
        assert loader.state_dict()["next_step"] == taken
        del stream


def test_state_is_plain_and_names_the_run():
    with make_loader() as loader:
        take(loader, 2)
        state = loader.state_dict()
        assert set(state) == {"version", "next_step", *FIELDS, "code"}
        assert state["version"] == 2
        assert state["seed"] == 7
        assert state["dataset"] == "PackageSamples"
        assert state["dataset_length"] == COUNT
        assert json.loads(json.dumps(state)) == state


def test_state_is_a_copy():
    with make_loader() as loader:
        stream, _ = take(loader, 2)
        state = loader.state_dict()
        next(stream)
        assert state["next_step"] == 2
        state["seed"] = 99
        state["code"]["python"] = "other"
        assert loader.state_dict()["seed"] == 7
        assert loader.state_dict()["code"]["python"] != "other"


@every_count
@pytest.mark.parametrize("taken", [0, 1, 5, STEPS, STEPS + 2, 3 * STEPS])
def test_a_pass_is_resumed_in_its_middle(workers, taken):
    """The next pass gives the rest of the epoch, the one after it the next epoch."""
    with make_loader(workers=workers) as loader:
        for _ in range(taken // STEPS):
            assert len(list(loader)) == STEPS
        if taken % STEPS:
            take(loader, taken % STEPS)
        state = json.loads(json.dumps(loader.state_dict()))
    with make_loader(workers=workers) as fresh:
        fresh.load_state_dict(state)
        end = (taken // STEPS + 1) * STEPS
        assert indices_of(fresh) == expected_indices(range(taken, end))
        assert indices_of(fresh) == expected_indices(range(end, end + STEPS))


STATE_SCRIPT = """
import json
from reference.lines import gain_and_offset
from test_loader_state import make_with_augmentation
print(json.dumps(make_with_augmentation().state_dict()))
"""


def make_with_augmentation():
    lengths = list(range(COUNT))
    return make_loader(
        sampler=onemodel.BucketedSampler(lengths, BATCH, drop_last=False),
        collate=ImageBatchCollator(augment=onemodel.Compose([gain_and_offset])),
    )


def test_the_state_is_the_same_in_another_process(needs_subprocess):
    """A run goes on in a new process: nothing in the state may be an address or a salted hash."""
    printed = subprocess.run(
        [sys.executable, "-c", STATE_SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
    ).stdout
    with make_with_augmentation() as loader:
        assert json.loads(printed) == loader.state_dict()
        loader.load_state_dict(json.loads(printed))


def test_a_state_is_applied_once():
    with make_loader() as loader:
        take(loader, 4)
        state = loader.state_dict()
    with make_loader() as fresh:
        fresh.load_state_dict(state)
        assert indices_of(fresh.steps(stop=6)) == expected_indices(range(4, 6))
        assert indices_of(fresh.steps(0, 2)) == expected_indices(range(2))
    with make_loader() as fresh:
        fresh.load_state_dict(state)
        fresh.load_state_dict(state)
        assert indices_of(fresh) == expected_indices(range(4, 6))


def test_an_explicit_start_wins_over_a_loaded_state_and_its_epoch_keeps_it():
    with make_loader() as loader:
        take(loader, 4)
        state = loader.state_dict()
    with make_loader() as fresh:
        fresh.load_state_dict(state)
        assert indices_of(fresh.steps(1, 3)) == expected_indices(range(1, 3))
    with make_loader() as fresh:
        fresh.load_state_dict(state)
        fresh.set_epoch(0)  # the loaded step lies in it
        assert indices_of(fresh) == expected_indices(range(4, STEPS))


def test_another_epoch_than_the_loaded_step_s_is_refused():
    """Where a state says to go on, `set_epoch` neither loses it nor goes to another place."""
    with make_loader() as loader:
        take(loader, 4)
        state = loader.state_dict()
    with make_loader() as fresh:
        fresh.load_state_dict(state)
        with refused(ValueError, "epoch", 2, 4):
            fresh.set_epoch(2)
        assert indices_of(fresh) == expected_indices(range(4, STEPS))
        fresh.set_epoch(2)  # the state has been applied
        assert indices_of(fresh) == expected_indices(range(2 * STEPS, 3 * STEPS))


def test_a_state_of_a_step_that_the_consumer_names():
    """For a consumer that looks ahead: the last step that counts as taken."""
    with make_loader() as loader:
        take(loader, 5)
        assert loader.state_dict(step=2)["next_step"] == 3
        assert loader.state_dict()["next_step"] == 5
        with refused(ValueError, "step", -1):
            loader.state_dict(step=-1)


def test_state_straight_after_loading():
    with make_loader() as loader:
        take(loader, 4)
        state = loader.state_dict()
    with make_loader() as fresh:
        fresh.load_state_dict(state)
        assert fresh.state_dict() == state


def test_steps_without_start_go_on_where_the_run_stands():
    with make_loader() as loader:
        assert indices_of(loader.steps(stop=2)) == expected_indices(range(2))
        assert indices_of(loader.steps(stop=5)) == expected_indices(range(2, 5))
        assert indices_of(loader.steps(stop=5)) == []
        assert indices_of(loader.steps(0, 1)) == expected_indices(range(1))
        assert indices_of(loader.steps(stop=3)) == expected_indices(range(1, 3))
        loader.set_epoch(3)
        first = 3 * STEPS
        assert indices_of(loader.steps(stop=first + 2)) == expected_indices([first, first + 1])


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("seed", lambda: make_loader(seed=8)),
        ("dataset_length", lambda: make_loader(PackageSamples(GoldenLines(23, 2)))),
        ("sampler", lambda: make_loader(sampler=ShuffledSampler(COUNT, BATCH))),
        ("sampler", lambda: make_loader(sampler=ShuffledSampler(COUNT, 5, drop_last=False))),
        ("sampler", lambda: make_loader(sampler=onemodel.SequentialSampler(COUNT, BATCH))),
        ("collator", lambda: make_loader(collate=ImageBatchCollator(width_multiple=8))),
        (
            "collator",
            lambda: make_loader(collate=ImageBatchCollator(width_multiple=4, pad_value=1.0)),
        ),
    ],
    ids=["seed", "length", "drop_last", "batch_size", "kind", "width_multiple", "pad_value"],
)
def test_a_state_of_another_run_is_refused(field, other):
    state = saved(make_loader())
    theirs = saved(other())
    with make_loader() as loader:
        if field == "dataset_length":  # the sampler of the longer dataset differs as well
            theirs["sampler"] = state["sampler"]
        with refused(ValueError, field, state[field], theirs[field]):
            loader.load_state_dict(theirs)
        assert indices_of(loader) == expected_indices(range(STEPS))


def test_the_sampler_is_recognised_by_its_contents():
    """Same type, same sizes, other lengths or shares: another run."""

    def bucketed(lengths):
        return make_loader(sampler=onemodel.BucketedSampler(lengths, BATCH))

    def mixing(shares):
        return make_loader(sampler=onemodel.MixingSampler([10, 12], shares, BATCH))

    lengths = list(range(COUNT))
    assert saved(bucketed(lengths)) == saved(bucketed(np.array(lengths)))
    assert saved(mixing([0.5, 0.5])) == saved(mixing(np.array([0.5, 0.5])))
    for mine, theirs in (
        (bucketed(lengths), bucketed(lengths[::-1])),
        (mixing([0.5, 0.5]), mixing([0.5, 0.25])),
    ):
        with theirs, mine, refused(ValueError, "sampler"):
            mine.load_state_dict(theirs.state_dict())


# Fields that may differ


def test_a_field_may_differ_where_that_is_meant():
    with make_loader() as loader:
        take(loader, 4)
        state = loader.state_dict()
    with make_loader(seed=8) as other:
        with refused(ValueError, "seed", 7, 8, "load_state_dict(state, allow={'seed'})"):
            other.load_state_dict(state)
        with refused(ValueError, "seed"):
            other.load_state_dict(state, allow={"transform", "collator"})
        other.load_state_dict(state, allow={"seed"})
        assert indices_of(other) == expected_indices(range(4, STEPS), seed=8)
        assert other.state_dict()["seed"] == 8


def test_an_error_names_every_field_that_differs():
    state = saved(make_loader())
    with make_loader(seed=8, collate=ImageBatchCollator(width_multiple=8)) as other:
        with refused(ValueError, "seed", "and so do collator", "allow={'seed', 'collator'}"):
            other.load_state_dict(state)
        with refused(ValueError, "collator", "allow={'seed', 'collator'}"):
            other.load_state_dict(state, allow=["seed"])
        other.load_state_dict(state, allow=("collator", "seed"))


@pytest.mark.parametrize("name", ["next_step", "version", "code", "", "Seed", 5, None], ids=repr)
def test_only_fields_of_the_run_are_allowed(name):
    state = saved(make_loader())
    with make_loader() as loader:
        with refused(ValueError, "allow", repr(name), *FIELDS):
            loader.load_state_dict(state, allow=[name])
        assert indices_of(loader) == expected_indices(range(STEPS))


@pytest.mark.parametrize("allow", ["transform", b"seed", 5, None, [[]]], ids=repr)
def test_allow_is_a_collection_of_names(allow):
    state = saved(make_loader())
    with make_loader() as loader, refused(TypeError, "allow", repr(allow)):
        loader.load_state_dict(state, allow=allow)


def test_another_length_may_be_allowed():
    """The sampler stays: it reaches as many items as before."""

    def loader(count):
        sampler = ShuffledSampler(COUNT, BATCH, drop_last=False)
        return make_loader(PackageSamples(GoldenLines(count, 2)), sampler=sampler)

    state = saved(loader(COUNT))
    with loader(COUNT + 1) as other:
        with refused(ValueError, "dataset_length", COUNT, COUNT + 1):
            other.load_state_dict(state)
        other.load_state_dict(state, allow={"dataset_length"})


# States of version 1


def version_1(next_step=4):
    """As the first version wrote it."""
    return {
        "version": 1,
        "next_step": next_step,
        "seed": 7,
        "dataset_length": COUNT,
        "sampler": f"ShuffledSampler(n={COUNT}, batch_size={BATCH}, drop_last=False)",
        "collator": "ImageBatchCollator(width_multiple=4, pad_value=0.0, augment=None)",
    }


def test_a_state_of_version_1_still_loads():
    with make_loader() as loader:
        loader.load_state_dict(version_1())
        assert indices_of(loader) == expected_indices(range(4, STEPS))
        assert loader.state_dict()["version"] == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [("seed", 8), ("dataset_length", 23), ("sampler", "other"), ("collator", "None")],
)
def test_a_state_of_version_1_is_checked_as_it_was(field, value):
    with make_loader() as loader:
        with refused(ValueError, field, value, version_1()[field]):
            loader.load_state_dict(version_1() | {field: value})
        loader.load_state_dict(version_1() | {field: value}, allow={field})
        with refused(ValueError, "transform"):  # it had no such field
            loader.load_state_dict(version_1() | {"transform": "None"})
        incomplete = version_1()
        del incomplete[field]
        with refused(ValueError, field):
            loader.load_state_dict(incomplete)


# States that are none


@pytest.mark.parametrize("version", [0, 3, 99, -1, 1 << 9000, "1", None, True, 2.0, []], ids=shown)
def test_a_state_of_another_version_is_refused(version):
    state = saved(make_loader()) | {"version": version}
    with make_loader() as loader, refused((ValueError, TypeError), "version"):
        loader.load_state_dict(state)


@pytest.mark.parametrize("field", ["version", "next_step", *FIELDS, "code"])
def test_a_state_with_a_field_missing_is_refused(field):
    state = saved(make_loader())
    del state[field]
    with make_loader() as loader, refused(ValueError, field):
        loader.load_state_dict(state)


def test_a_state_with_a_field_too_many_is_refused():
    state = saved(make_loader()) | {"rank": 3}
    with make_loader() as loader, refused(ValueError, "rank"):
        loader.load_state_dict(state)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [None, 1.5, True, [], {}, b"x", np.zeros(3), "7", 7], ids=repr)
def test_a_field_of_another_type_is_refused(field, value):
    state = saved(make_loader())
    if type(value) is type(state[field]):
        return
    with make_loader() as loader, refused(TypeError, field):
        loader.load_state_dict(state | {field: value}, allow=FIELDS)


@pytest.mark.parametrize("field", ["next_step", "seed", "dataset_length"])
@pytest.mark.parametrize("value", [-1, 2**64 + 1, 10**5000], ids=["-1", "2**64 + 1", "huge"])
def test_a_number_out_of_range_is_refused(field, value):
    state = saved(make_loader())
    with make_loader() as loader, refused(ValueError, field):
        loader.load_state_dict(state | {field: value}, allow=FIELDS)


@pytest.mark.parametrize(
    "code", [None, "x", [], {}, {"python": 3}, {"python": "x", "transform": 1}], ids=repr
)
def test_code_is_a_dict_of_strings(code):
    state = saved(make_loader())
    with make_loader() as loader, refused(TypeError, "code"):
        loader.load_state_dict(state | {"code": code})


def test_numbers_of_numpy_are_numbers():
    """Some formats of checkpoints give them back."""
    state = saved(make_loader())
    state |= {"next_step": np.int64(4), "seed": np.uint64(7), "version": np.int32(2)}
    with make_loader() as loader:
        loader.load_state_dict(state)
        assert indices_of(loader) == expected_indices(range(4, STEPS))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1, ValueError),
        (2**64 + 1, ValueError),
        (1.5, TypeError),
        (True, TypeError),
        ("3", TypeError),
    ],
    ids=repr,
)
def test_next_step_is_checked(value, error):
    state = saved(make_loader()) | {"next_step": value}
    with make_loader() as loader, refused(error, "next_step", value):
        loader.load_state_dict(state)


@pytest.mark.parametrize("state", [None, 5, "state", []], ids=repr)
def test_a_state_is_a_dict(state):
    with make_loader() as loader, pytest.raises(TypeError):
        loader.load_state_dict(state)
