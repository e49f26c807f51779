"""Promise: `shard="env"` is the rank that the launcher gave this process, or the only one.

One launcher decides, in a documented order; what is half set or no rank is an error that names the
variable and its value. JAX is asked only where it was imported and initialised before.
"""

import os
import sys
import types

import numpy as np
import pytest
from support import refused

import onemodel as om
from onemodel._engine.ranks import LAUNCHERS

PAIRS = pytest.mark.parametrize(("rank_name", "world_name"), LAUNCHERS)


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch):
    """The tests themselves may run under one."""
    for pair in LAUNCHERS:
        for name in pair:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "jax", raising=False)


def shard_of_env(batch_size=12):
    return om.DataLoader(om.ArrayDataset(np.arange(24)), batch_size, shard="env").shard


def test_where_nothing_is_set_there_is_one_process():
    assert shard_of_env() == (0, 1)
    assert "jax" not in sys.modules


@PAIRS
def test_each_launcher(rank_name, world_name, monkeypatch):
    monkeypatch.setenv(world_name, "4")
    for rank in range(4):
        monkeypatch.setenv(rank_name, str(rank))
        assert shard_of_env() == (rank, 4)


def test_the_batches_are_those_of_the_pair(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    data = om.ArrayDataset(np.arange(12))
    read, given = (om.DataLoader(data, 6, shard=shard) for shard in ("env", (1, 3)))
    assert [batch.tolist() for batch in read] == [batch.tolist() for batch in given]
    monkeypatch.setenv("RANK", "2")  # what was read stays
    assert read.shard == (1, 3)


def test_the_first_launcher_of_the_list_decides(monkeypatch):
    """From the last to the first, each hides those after it."""
    for world, (rank_name, world_name) in enumerate(reversed(LAUNCHERS), 2):
        monkeypatch.setenv(rank_name, str(world - 1))
        monkeypatch.setenv(world_name, str(world))
        assert shard_of_env(world) == (world - 1, world)


def test_the_order_is_the_guide_s():
    page = os.path.join(os.path.dirname(__file__), "..", "docs", "guides", "sharding.md")
    if not os.path.isfile(page):
        pytest.skip("the source tree is not here")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    places = [text.index(f"| `{rank}` | `{world}` |") for rank, world in LAUNCHERS]
    assert places == sorted(places)


@PAIRS
@pytest.mark.parametrize("value", ["-1", "4", "", "one", "1.0", "+1", "0x1", "9" * 5000])
def test_a_rank_that_is_none_is_named(rank_name, world_name, value, monkeypatch):
    monkeypatch.setenv(world_name, "4")
    monkeypatch.setenv(rank_name, value)
    with refused(ValueError, rank_name, "[0, 4)", repr(value)[:50]) as caught:
        shard_of_env()
    assert len(str(caught.value)) < 400


@PAIRS
@pytest.mark.parametrize("value", ["0", "-2", "", "two", "2147483648"])
def test_a_world_that_is_none_is_named(rank_name, world_name, value, monkeypatch):
    monkeypatch.setenv(world_name, value)
    monkeypatch.setenv(rank_name, "0")
    with refused(ValueError, world_name, "[1, 2147483648)", repr(value)):
        shard_of_env()


@PAIRS
def test_half_a_pair_is_an_error(rank_name, world_name, monkeypatch):
    """A rank that took itself for the only one would train on everything, in silence."""
    monkeypatch.setenv(rank_name, "3")
    with refused(ValueError, world_name, rank_name, "'3'"):
        shard_of_env()
    monkeypatch.delenv(rank_name)
    monkeypatch.setenv(world_name, "5")
    if world_name == "SLURM_NTASKS":  # an allocation, of which no task was started
        assert shard_of_env() == (0, 1)
    else:
        with refused(ValueError, rank_name, world_name, "'5'"):
            shard_of_env()


def fake_jax(initialised):
    jax = types.ModuleType("jax")
    jax.distributed = types.SimpleNamespace(is_initialized=lambda: initialised)
    jax.process_index, jax.process_count = lambda: 2, lambda: 6
    return jax


def test_jax_decides_once_it_is_initialised(monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "3")
    monkeypatch.setitem(sys.modules, "jax", fake_jax(initialised=False))
    assert shard_of_env() == (1, 3)
    monkeypatch.setitem(sys.modules, "jax", fake_jax(initialised=True))
    assert shard_of_env() == (2, 6)


@pytest.mark.parametrize("module", [None, types.ModuleType("jax")])
def test_a_jax_that_is_none(module, monkeypatch):
    """Blocked, or without what is asked for."""
    monkeypatch.setitem(sys.modules, "jax", module)
    assert shard_of_env() == (0, 1)


@pytest.mark.parametrize("shard", ["ENV", "", "01", b"env", None, 3])
def test_other_texts(shard):
    with refused(TypeError, "shard", "'env'", repr(shard)):
        om.DataLoader(om.ArrayDataset(np.arange(4)), 2, shard=shard)


def test_the_batch_size_must_be_divisible(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "5")
    with refused(ValueError, "batch_size", "(1, 5)", 12):
        shard_of_env()
