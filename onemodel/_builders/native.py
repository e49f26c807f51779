"""Which loaders have a native lane: those whose parts are all the library's own.

A part whose class overrides what the lane passes over is asked, and the loader has no lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from onemodel._builders.array_builder import ArrayBatchBuilder
from onemodel._builders.array_lane import array_lane
from onemodel._builders.image_lane import image_lane
from onemodel._builders.indices import index_plan
from onemodel._builders.lane import Lane
from onemodel._builders.sample_builder import SampleBatchBuilder
from onemodel._builders.step_builder import StepBuilder
from onemodel._collate.collator import ImageBatchCollator
from onemodel._common.overrides import is_own
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.weighted import WeightedSampler

__all__ = ["epoch_planner", "native_lane"]

# Items from which on a plan takes longer than a thread that makes it ahead costs.
MANY_ITEMS = 2**14


def native_lane(builder: StepBuilder) -> Lane | None:
    """Return the lane that builds what ``builder`` builds, or None where Python takes part."""
    made = builder.builder
    if isinstance(made, SampleBatchBuilder):
        return _of_samples(made, builder)
    if isinstance(made, ArrayBatchBuilder):
        return _of_arrays(made, builder)
    return None


def _of_samples(made: SampleBatchBuilder, builder: StepBuilder) -> Lane | None:
    collate = made.collate
    if made.transform is not None or not is_own(
        collate, ImageBatchCollator, "__call__", "from_columns"
    ):
        return None
    if collate.chain is None:
        return None
    plan = index_plan(builder.sampler, builder.seed)
    if plan is None:
        return None
    if made.columns is not None:
        return image_lane(made.columns, None, collate, plan, builder)
    if type(made.dataset) is list:
        return image_lane(None, made.dataset, collate, plan, builder)
    return None


def _of_arrays(made: ArrayBatchBuilder, builder: StepBuilder) -> Lane | None:
    plan = index_plan(builder.sampler, builder.seed) if made.is_native else None
    if plan is None:
        return None
    fields = list(made.dataset.fields())
    names = [name for name, _ in fields]
    chained = names.index(made.plan.field) if made.plan.chain is not None else 0
    return array_lane(
        [array for _, array in fields],
        made.plan.chain,
        chained,
        made.dataset.structured,
        made.pool,
        plan,
        builder,
    )


def epoch_planner(builder: StepBuilder, lane: Lane | None) -> Callable[[int], Any] | None:
    """Return what makes an epoch's plan and keeps it; None where that takes no time."""
    sampler = builder.sampler
    asked = ("batch_indices", "plan")
    if not (
        is_own(sampler, BucketedSampler, *asked)
        or (is_own(sampler, WeightedSampler, *asked) and not sampler.replacement)
    ):
        return None
    if sampler.n < MANY_ITEMS:
        return None
    return partial(sampler.plan, builder.seed) if lane is None else lane.plan.make
