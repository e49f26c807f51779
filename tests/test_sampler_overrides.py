"""A subclass of a sampler that overrides what a native plan reads: the plan isn't used."""

import numpy as np
import pytest

import onemodel as om
from onemodel._builders.indices import index_plan

N = 37
SAMPLERS = [
    (om.SequentialSampler, (N, 4)),
    (om.ShuffledSampler, (N, 4)),
    (om.MixingSampler, ([10, 27], [0.5, 0.5], 4)),
    (om.BucketedSampler, (np.arange(N), 4)),
    (om.BudgetSampler, (np.arange(N), 80)),
    (om.WeightedSampler, (np.arange(N), 4)),
]
OVERRIDES = [("n", 10), ("n", 0), ("batch_size", 2), ("batch_size", 64)]
OVERRIDES += [("steps_per_epoch", 1), ("steps_per_epoch", 3), ("steps_per_epoch", 2**40)]


@pytest.mark.parametrize(("base", "arguments"), SAMPLERS)
def test_a_subclass_that_changes_nothing_keeps_the_plan(base, arguments):
    named = type("Named", (base,), {"describe": lambda self: "mine"})
    assert index_plan(base(*arguments), 0) is not None
    assert index_plan(named(*arguments), 0) is not None


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("name", "value"), OVERRIDES)
@pytest.mark.parametrize(("base", "arguments"), SAMPLERS)
def test_a_size_overridden_gives_the_batches_of_the_reference(
    base, arguments, name, value, workers
):
    changed = type("Changed", (base,), {name: property(lambda self: value)})
    assert index_plan(changed(*arguments), 0) is None
    with om.DataLoader(
        om.ArrayDataset(np.arange(N)), sampler=changed(*arguments), workers=workers
    ) as loader:
        for start in (0, max(0, loader.steps_per_epoch - 2)):
            passing = loader.steps(start)
            for g in range(start, start + 5):
                expected = outcome(lambda g=g: loader.digest(g))
                assert outcome(lambda passing=passing: om.digest(next(passing))) == expected
                if expected is ValueError:
                    break


def outcome(call):
    """What the call returns, or ValueError where sizes that contradict each other are refused."""
    try:
        return call()
    except ValueError:
        return ValueError
