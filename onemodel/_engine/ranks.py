"""``shard="env"``: which rank this process is, and of how many, as its launcher says."""

from __future__ import annotations

import os
import re
import sys

from onemodel._common.describe import shown

__all__ = ["rank_and_world"]

# The variables of rank and world, in the order in which they are asked. SLURM is the last: the
# others also run inside of its allocations, whose variables say nothing of them.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),  # torchrun
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"),  # launch scripts; JAX itself does not read them
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def rank_and_world() -> tuple[int, int]:
    """Return (rank, world) as JAX or the environment says, and (0, 1) where nothing does.

    A ``jax.distributed`` that was initialised counts first, then the first pair of variables of
    which one is set. ``SLURM_NTASKS`` alone says nothing: an allocation has it before its tasks
    are started. JAX is never imported here.

    Raises:
        ValueError: naming the variable and its value, if one of a pair is missing or is no number
            in its range.

    >>> rank, world = rank_and_world()
    >>> 0 <= rank < world
    True
    """
    found = _of_jax()
    if found is not None:
        return found
    for rank_name, world_name in LAUNCHERS:
        given = {rank_name, world_name} & os.environ.keys()
        if given and given != {"SLURM_NTASKS"}:
            world = _number(world_name, 1, 2**31, rank_name)
            return _number(rank_name, 0, world, world_name), world
    return 0, 1


def _number(name: str, low: int, high: int, other: str) -> int:
    text = os.environ.get(name)
    if text is None:
        raise ValueError(
            f"{name} must be set for shard='env', for {other} is {shown(os.environ[other])}"
        )
    if not re.fullmatch("[0-9]{1,10}", text) or not low <= int(text) < high:
        raise ValueError(f"{name} must be in [{low}, {high}) for shard='env', got {shown(text)}")
    return int(text)


def _of_jax() -> tuple[int, int] | None:
    """Return what an initialised ``jax.distributed`` says, or None."""
    jax = sys.modules.get("jax")
    is_initialized = getattr(getattr(jax, "distributed", None), "is_initialized", None)
    if jax is None or is_initialized is None or not is_initialized():
        return None
    return int(jax.process_index()), int(jax.process_count())
