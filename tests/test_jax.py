"""Promise: JAX gets every value or an error, batches as pytrees, few shapes, and global arrays.

What needs several devices or processes runs in processes of its own, for JAX decides both once.
"""

import contextlib
import gc
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from reference.lines import GoldenLines
from support import refused

import onemodel as om
from onemodel import ArrayDataset, DataLoader, ImageBatch, ImageBatchCollator, Sample

jax = pytest.importorskip("jax", reason="jax is not installed")

TESTS = Path(__file__).resolve().parent
GUIDE = TESTS.parent / "docs" / "guides" / "jax.md"
COUNT = 22
SAMPLES = [Sample(*GoldenLines(COUNT, 2)[index]) for index in range(COUNT)]


def make(device="jax", batch_size=8, shard=(0, 1), **form):
    return DataLoader(
        SAMPLES,
        sampler=om.ShuffledSampler(COUNT, batch_size, drop_last=False),
        collate=ImageBatchCollator(targets="padded", **form),
        seed=7,
        shard=shard,
        device=device,
    )


# Values


@pytest.mark.parametrize(
    ("dtype", "fits", "outside"),
    [
        (np.int64, [-(2**31), 2**31 - 1], 2**40 + 5),
        (np.int64, [0], -(2**31) - 1),
        (np.uint64, [2**32 - 1], 2**32),
        (">i8", [1], 2**31),
    ],
)
def test_integers_arrive_or_are_an_error(dtype, fits, outside):
    values = np.array([*fits, outside], dtype)
    with DataLoader(ArrayDataset({"y": values}), 1, device="jax") as loader:
        for step, value in enumerate(fits):
            assert int(loader[step]["y"][0]) == value
        with refused(ValueError, "batch['y']", outside, f"global step {len(fits)}"):
            loader[len(fits)]


def test_integers_stay_where_64_bits_are_on():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        batch = DataLoader(ArrayDataset(np.array([2**40 + 5])), 1, device="jax")[0]
        assert (int(batch[0]), batch.dtype) == (2**40 + 5, np.int64)
        floats = DataLoader(ArrayDataset(np.array([0.1])), 1, device="jax")[0]
        assert (float(floats[0]), floats.dtype) == (0.1, np.float64)
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_float64_is_rounded_to_float32():
    values = np.array([0.1, 1 + 2**-24, 1e300, -1e-50])
    batch = DataLoader(ArrayDataset(values), 4, device="jax")[0]
    with np.errstate(over="ignore"):
        expected = values.astype(np.float32)
    assert batch.dtype == np.float32
    assert np.asarray(batch).tolist() == expected.tolist()


def test_an_image_batch_arrives_whole():
    with make(label_dtype="int64", device="jax") as loader, make(device=None) as plain:
        for batch, expected in zip(loader, plain, strict=True):
            assert isinstance(batch.images, jax.Array)
            assert om.digest(batch) == om.digest(expected)
            assert batch.labels.dtype == np.int32  # all of them fit
            assert (batch.global_step, batch.loss_scale) == (expected.global_step, 1)


def test_the_memory_goes_back_when_jax_is_done_with_it():
    pool = om.BufferPool()
    loader = DataLoader(SAMPLES, 8, collate=ImageBatchCollator(pool=pool), device="jax")
    batch = loader[0]
    images = batch.images
    batch.release()
    expected = DataLoader(SAMPLES, 8, collate=ImageBatchCollator())[0].images
    assert np.asarray(images).tobytes() == expected.tobytes()
    assert pool.stats.returned < pool.stats.rented
    del images
    gc.collect()  # some of its references JAX drops only then
    assert pool.stats.returned == pool.stats.rented


# Pytrees


def test_a_batch_is_a_pytree_of_its_arrays():
    for _ in range(2):  # registered once, however many loaders there are
        batch = make()[2]
    leaves, structure = jax.tree.flatten(batch)
    assert all(leaf is array for leaf, array in zip(leaves, batch.arrays().values(), strict=True))
    rebuilt = jax.tree.unflatten(structure, leaves)
    assert type(rebuilt) is ImageBatch
    assert (rebuilt.global_rows, rebuilt.world, rebuilt.loss_scale) == (6, 1, 1)
    assert rebuilt.epoch is rebuilt.step is rebuilt.global_step is rebuilt.real_columns is None
    assert "images=[6, 1, 2" in repr(rebuilt)
    paths = jax.tree_util.tree_flatten_with_path(batch)[0]
    assert [jax.tree_util.keystr(path) for path, _ in paths] == [f".{n}" for n in batch.FIELDS]
    assert jax.tree.structure(make()[0]) == jax.tree.structure(make()[1])  # not of its step
    assert jax.tree.structure(make()[0]) != structure  # but of its rows


def test_a_step_is_compiled_once_for_each_shape():
    traced = []

    @jax.jit
    def total(batch):
        traced.append(batch.images.shape)
        return batch.images.sum() * batch.loss_scale + batch.targets.sum()

    with make(pad_to=16, target_multiple=8, shard=(1, 2)) as loader:
        for batch in loader.steps(0, 30):
            expected = np.asarray(batch.images).sum() * len(batch) * 2 / batch.global_rows
            expected += np.asarray(batch.targets).sum()
            np.testing.assert_allclose(float(total(batch)), expected, rtol=1e-5)
    assert sorted(traced) == [(3, 1, 2, 16), (4, 1, 2, 16)]  # the whole ones and the short one


@pytest.mark.parametrize("world", [2, 4, 8])
def test_averaged_gradients_are_those_of_one_process(world):
    @jax.jit
    def gradient(weights, batch):
        def loss(weights):
            seen = batch.images.mean(axis=(1, 3)) @ weights  # with the padding
            total = ((seen - batch.labels) ** 2).sum()
            return total / max(len(batch), 1) * batch.loss_scale

        return jax.grad(loss)(weights)

    weights = np.array([0.5, -2], np.float32)
    for g in range(3):  # the last has 6 rows
        expected = gradient(weights, make(pad_to="global")[g])
        parts = [
            gradient(weights, make(pad_to="global", shard=(r, world))[g]) for r in range(world)
        ]
        np.testing.assert_allclose(sum(parts) / world, expected, rtol=1e-5)


# Processes of their own


def run(script, arguments=((),)):
    """Run a script in a process with four devices for each list of arguments; what it prints."""
    variables = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
    }
    with contextlib.ExitStack() as stack:
        files, processes = [], []
        for given in arguments:
            files.append(stack.enter_context(tempfile.TemporaryFile("w+")))
            command = [sys.executable, "-c", script, *given]
            process = subprocess.Popen(command, env=variables, stdout=files[-1], stderr=files[-1])
            processes.append(stack.enter_context(process))
            stack.callback(process.kill)  # one that failed leaves the others waiting
        outputs = []
        for process, file in zip(processes, files, strict=True):
            code = process.wait(timeout=240)
            file.seek(0)
            outputs.append(file.read())
            assert code == 0, outputs[-1]
    return outputs


def test_importing_onemodel_does_not_import_jax(needs_subprocess):
    script = "import sys, onemodel; onemodel.DataLoader([0], 1, collate=len, shard='env'); "
    assert run(f"{script} print('jax' in sys.modules)") == ["False\n"]


def test_the_guide_runs(needs_subprocess):
    if not GUIDE.is_file():
        pytest.skip("the source tree is not here")
    blocks = GUIDE.read_text(encoding="utf-8").split("```python\n")[1:]
    assert len(blocks) == 3
    run("\n".join(block.partition("```")[0] for block in blocks))


DEVICES = """
import gc, jax, numpy as np, onemodel as om
from jax.sharding import NamedSharding, PartitionSpec as P
from test_jax import make, SAMPLES
from support import refused

sharding = NamedSharding(jax.make_mesh((4,), ("data",)), P("data"))
with make(sharding, pad_to="global") as loader, make(None, pad_to="global") as plain:
    for g in (0, 1, 3):
        batch, expected = loader[g], plain[g]
        assert om.digest(batch) == om.digest(expected)
        assert batch.global_step == g
        for array in batch.arrays().values():
            assert array.sharding.is_equivalent_to(sharding, array.ndim)
            assert len(array.addressable_shards) == 4
        assert (batch.world, batch.loss_scale) == (1, 1)
    with refused(ValueError, "batch.images", "global step 2"):
        loader[2]  # 6 rows for four devices
    stream = loader.steps(0, 2)
    total = jax.jit(lambda b: b.images.sum())
    assert np.isclose(float(total(next(stream))), plain[0].images.sum())

y = np.array([1, 2, 3, 4, 5, 6, 7, 2**40 + 5])
data = om.ArrayDataset({"x": np.arange(8.0), "y": y})
loader = om.DataLoader(data, 4, device=sharding)
assert loader[0]["x"].tolist() == [0, 1, 2, 3] and loader[0]["x"].dtype == np.float32
assert loader[0]["y"].tolist() == [1, 2, 3, 4]
with refused(ValueError, "batch['y']", 2**40 + 5, "global step 1"):
    loader[1]

loader = om.DataLoader(SAMPLES, 4, collate=om.ImageBatchCollator(), device=sharding)
with refused(ValueError, "targets", "padded", "global step 0"):
    loader[0]
with refused(ValueError, "rows", "drop_last", 6, "global step 2"):
    make(sharding, shard=(3, 4))[2]

pool = om.BufferPool()
collate = om.ImageBatchCollator(targets="padded", pool=pool)
loader = om.DataLoader(SAMPLES, 4, collate=collate, device=sharding)
digests = []
for batch in loader.steps(0, 5):
    digests.append((batch, om.digest(batch)))
plain = om.DataLoader(SAMPLES, 4, collate=om.ImageBatchCollator(targets="padded"))
for g, (batch, digest) in enumerate(digests):  # nobody wrote over what JAX still holds
    assert om.digest(batch) == digest == plain.digest(g)
del batch, digests
loader.close()
gc.collect()
assert pool.stats.returned == pool.stats.rented
print("done")
"""


def test_a_sharding_makes_global_arrays(needs_subprocess):
    assert run(DEVICES)[0].endswith("done\n")


HOSTS = """
import sys, jax, numpy as np, onemodel as om
jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
from jax.sharding import NamedSharding, PartitionSpec as P
from test_jax import make

sharding = NamedSharding(jax.make_mesh((8,), ("data",)), P("data"))
total = jax.jit(lambda b: (b.images.mean() + b.labels.mean()) * b.loss_scale)
whole = make(None, pad_to="global")
with make(sharding, pad_to="global", shard="env") as loader:
    assert loader.shard == (jax.process_index(), 2) == (int(sys.argv[3]), 2)
    for g in (0, 1, 3):
        batch, expected = loader[g], whole[g]
        assert batch.images.shape == expected.images.shape
        assert batch.targets.shape == expected.targets.shape
        mean = expected.images.mean() + expected.labels.mean()
        assert np.isclose(float(total(batch)), mean, rtol=1e-5)
print("done")
"""


def test_two_hosts_make_one_batch(needs_subprocess):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    for output in run(HOSTS, [(address, "2", str(rank)) for rank in range(2)]):
        assert output.endswith("done\n")
