"""Promise: ranks build slices of one process's batches, also after a kill and in other numbers.

Run with plain processes, under torchrun with gloo, and under Ray Train on this machine.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import ranks

HERE = Path(__file__).resolve().parent
KILLED, STOP = 7, 14  # in the second epoch of six steps; the third


def next_step(folder):
    return json.loads((folder / "state.json").read_text())["next_step"]


@pytest.mark.parametrize("face", ranks.FACES)
@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2)], ids=["2 to 4", "4 to 2"])
def test_processes_are_killed_and_go_on_in_another_number(
    face, before, after, tmp_path, needs_subprocess
):
    """Loaders go to the processes as arguments. All die at the step at which the last one does."""
    import multiprocessing

    spawn = multiprocessing.get_context("spawn")

    def run(world, killed_after):
        barrier = spawn.Barrier(world)
        processes = [
            spawn.Process(
                target=train_with_barrier,
                args=(
                    ranks.make_loader(face, (rank, world), workers=1),
                    rank,
                    world,
                    tmp_path,
                    killed_after if rank == world - 1 else None,
                    barrier,
                ),
            )
            for rank in range(world)
        ]
        for process in processes:
            process.start()
        processes[-1].join(120)
        if killed_after is not None:
            for process in processes[:-1]:
                process.kill()
        for process in processes:
            process.join(120)
        return [process.exitcode for process in processes]

    assert run(before, KILLED)[-1] == -9
    reached = next_step(tmp_path)
    assert reached in (KILLED, KILLED + 1)  # rank 0 may have been killed before its state was there
    ranks.check(face, tmp_path, before, range(KILLED + 1))
    assert run(after, None) == [0] * after
    assert next_step(tmp_path) == STOP
    ranks.check(face, tmp_path, after, range(reached, STOP))


def train_with_barrier(loader, rank, world, folder, killed_after, barrier):
    ranks.train(loader, rank, world, folder, STOP, killed_after, barrier.wait)


def needs(*packages):
    """Skip where a package is missing; it is imported by the processes that use it."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {' and '.join(missing)}")


def environment():
    return dict(os.environ, PYTHONPATH=os.pathsep.join([str(HERE), *filter(None, sys.path)]))


@needs("torch")
@pytest.mark.slow
@pytest.mark.parametrize(("face", "before", "after"), [("lines", 2, 4), ("arrays", 4, 2)])
def test_torchrun_is_killed_and_goes_on_in_another_number(
    face, before, after, tmp_path, needs_subprocess
):
    def run(world, killed_after):
        return subprocess.run(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
                *("--nproc-per-node", str(world), "--monitor-interval", "0.1"),
                *(str(HERE / "ranks.py"), face, str(tmp_path), str(STOP), str(killed_after)),
            ],
            env=environment() | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=250,
        )

    assert run(before, KILLED).returncode != 0
    reached = next_step(tmp_path)
    assert reached in (KILLED, KILLED + 1)
    ranks.check(face, tmp_path, before, range(KILLED + 1))
    done = run(after, -1)
    assert done.returncode == 0, done.stderr
    assert next_step(tmp_path) == STOP
    ranks.check(face, tmp_path, after, range(reached, STOP))


RAY = """
import sys
import ray
import ranks
from ray import train
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from torch import distributed

face, folder, world, stop, killed = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])

def each_rank(config):
    rank = train.get_context().get_world_rank()
    killed_after = killed if killed >= 0 else None
    loader = config["loaders"][rank]
    ranks.train(loader, rank, world, folder, stop, killed_after, distributed.barrier)

ray.init(num_cpus=world, include_dashboard=False, log_to_driver=False, object_store_memory=10**8)
loaders = [ranks.make_loader(face, (rank, world), workers=1) for rank in range(world)]
trainer = TorchTrainer(
    each_rank,
    train_loop_config={"loaders": loaders},
    scaling_config=ScalingConfig(num_workers=world),
    run_config=RunConfig(storage_path=folder + "/ray"),
)
try:
    trainer.fit()
finally:
    ray.shutdown()
"""


@needs("ray", "pyarrow", "torch")
@pytest.mark.slow
def test_ray_train_is_killed_and_goes_on_in_another_number(tmp_path, needs_subprocess):
    """Ray sends the loaders to its workers. All of them die: Ray waits long for those that hang."""
    face = "lines"

    def run(world, killed_after):
        arguments = [face, str(tmp_path), str(world), str(STOP), str(killed_after)]
        return subprocess.run(
            [sys.executable, "-c", RAY, *arguments],
            env=environment()
            | {
                "OMP_NUM_THREADS": "1",
                "RAY_AUTH_MODE": "disabled",
                "RAY_TRAIN_V2_ENABLED": "1",
                "RAY_USAGE_STATS_ENABLED": "0",
                "RAY_raylet_start_wait_time_s": "120",
            },
            capture_output=True,
            text=True,
            timeout=280,
        )

    first = run(2, KILLED)
    if "timed out during startup" in first.stderr:
        pytest.skip("Ray's local cluster did not start in time on this machine")
    assert first.returncode != 0, first.stdout
    assert (tmp_path / "state.json").exists(), first.stderr
    reached = next_step(tmp_path)
    assert reached in (KILLED, KILLED + 1)
    ranks.check(face, tmp_path, 2, range(KILLED + 1))
    done = run(1, -1)
    assert done.returncode == 0, done.stderr
    assert next_step(tmp_path) == STOP
    ranks.check(face, tmp_path, 1, range(reached, STOP))
