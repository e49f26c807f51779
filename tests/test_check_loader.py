"""Promise: `check_loader` passes what is pure, and of what is not names the first global step,
slot, index, field, value, part and draws that differ, in which comparison, with a probable cause.
"""

import pickle
import random
import threading

import numpy as np
import pipelines
import pytest
from support import refused

from onemodel import check_loader
from onemodel._checks import purity
from onemodel._checks.targets import find_function
from onemodel._engine.prefetch import call_on_threads


def check(make_loader, **options):
    return check_loader(make_loader, **{"steps": 4, "processes": False, **options})


@pytest.mark.parametrize("make_loader", pipelines.PURE)
def test_pure_pipelines_pass(make_loader, needs_threads):
    report = check(make_loader)
    assert report.is_pure, str(report)
    assert report.compared == ("order", "made again", "threads", "workers")
    assert report.skipped == {"process": "processes=False"}


@pytest.mark.parametrize("make_loader", [pipelines.pure_samples, pipelines.pure_native_arrays])
def test_pure_pipelines_pass_in_other_processes(make_loader, needs_subprocess):
    report = check(make_loader, processes=True)
    assert report.is_pure, str(report)
    assert report.compared[-1] == "process"


@pytest.mark.parametrize(
    ("make_loader", "kind", "part"),
    [
        (pipelines.global_numpy, "global generator", "transform pipelines.numpy_noise"),
        (pipelines.global_python, "global generator", "transform pipelines.python_noise"),
        (pipelines.global_entropy, "global generator", "transform pipelines.fresh_noise"),
        (pipelines.clock, "clock", "transform pipelines.stamp"),
        (pipelines.changing, "changing dataset", "dataset Growing"),
        (pipelines.counter, "state", "transform pipelines.counter.<locals>.step_size"),
        (pipelines.made_unlike, "state", "transform pipelines.made_unlike.<locals>.<lambda>"),
        (pipelines.thread, "thread", "transform pipelines.by_thread_name"),
        (pipelines.sampler, "sampler", "sampler Wandering"),
        (pipelines.sometimes, "changing dataset", None),
        (pipelines.widths, "state", "transform pipelines.widths.<locals>.widen"),
    ],
)
def test_the_cause_and_the_part_are_named(make_loader, kind, part, needs_threads):
    report = check(make_loader)
    assert not report.is_pure
    found = report.differences[0]
    assert (found.kind, found.step) == (kind, 0), str(report)
    if part is not None:
        assert found.part == part


def test_a_transform_that_edits_the_datasets_memory_is_named():
    report = check(pipelines.edited)
    found = report.differences[0]
    assert (found.kind, found.comparison, found.step) == ("edited dataset", "order", 0)
    assert "transform pipelines.double edits" in found.hint
    assert found.part == "dataset Views"  # which gives other rows the second time


def test_an_augmentation_is_named_with_its_collator():
    found = check(pipelines.global_augment).differences[0]
    assert found.field == "batch.images"
    assert found.kind == "global generator"
    assert "shake" in found.hint


def test_place_and_values_are_those_of_the_batches():
    report = check(pipelines.counter)
    found = report.differences[0]
    loader = pipelines.counter()
    batch = loader[0]
    # in order, the first call of the counter; it went on counting since
    assert found.field == "batch.images"
    assert (found.comparison, found.slot, found.index) == ("order", 0, int(batch.indices[0]))
    assert found.expected == batch.images[found.position]
    assert found.found != found.expected
    assert found.draws == (0, 0)


def test_the_slot_of_an_array_row():
    """Slot 2 of step 1 differs, and nothing else."""

    def make_loader():
        count = [0]

        def touch(rng, batch):
            if batch["x"][2, 0] == expected[2, 0]:
                count[0] += 1
                batch["x"][2, 4] += count[0]

        return pipelines.arrays(touch)

    expected = pipelines.arrays()[1]["x"]
    index = pipelines.arrays().explain(1)["slots"][2]["index"]
    found = check(make_loader).differences[0]
    assert (found.step, found.slot, found.index) == (1, 2, index)
    assert (found.field, found.position) == ("batch['x']", (2, 4))
    assert found.found == found.expected + 1


def test_the_draws_of_a_part_are_counted():
    def make_loader():
        more = [0]

        def draw(rng, sample):
            more[0] += 1
            numbers = [rng.next_u64() for _ in range(2 + (more[0] > 4 * 6))]
            return pipelines.with_image(sample, sample.image + np.float32(numbers[-1] % 7))

        return pipelines.samples(draw)

    found = check(make_loader).differences[0]
    assert found.draws == (2, 3)
    assert "3 draws of its generator, and 2 in order" in str(found)


def test_a_target_belongs_to_its_slot():
    def make_loader():
        calls = [0]

        def spell(rng, sample):
            calls[0] += 1
            last = 9 if calls[0] > 24 and sample.label == third else 1
            return pipelines.om.Sample(sample.image, [*sample.target, last], sample.label)

        return pipelines.samples(spell)

    third = pipelines.samples().explain(0)["slots"][2]["index"]
    found = check(make_loader).differences[0]
    assert (found.step, found.slot, found.index) == (0, 2, third)
    assert (found.field, found.position, found.found) == ("batch.targets", (8,), 9)


def test_another_shape_is_shown():
    found = check(pipelines.widths).differences[0]
    assert found.position is None
    assert found.field == "batch.images"
    assert found.expected.startswith("float32 [4, 1, 2,")


def test_a_process_of_another_hash_seed(needs_subprocess):
    report = check(pipelines.hash_seed, processes=True)
    (found,) = report.differences
    assert (found.comparison, found.kind) == ("process", "hash seed")
    assert found.part == "transform pipelines.by_set"
    assert "PYTHONHASHSEED" in found.hint


def test_a_process_id(needs_subprocess):
    (found,) = check(pipelines.process, processes=True).differences
    assert (found.comparison, found.kind) == ("process", "process")
    assert found.part == "transform pipelines.by_process"


def test_a_function_without_a_name_is_not_compared_in_processes(needs_subprocess):
    report = check_loader(lambda: pipelines.pure_arrays(), steps=2)
    assert report.is_pure
    assert "cannot be imported by its name" in report.skipped["process"]
    assert "cannot be imported by its name" in str(report)


def test_an_error_that_always_comes_is_raised():
    with refused(OSError, "no such file", "global step 0"):
        check(pipelines.broken)


def test_steps():
    assert check(pipelines.pure_arrays, steps=3).steps == (0, 1, 2, 9, 10)
    assert check(pipelines.pure_arrays, steps=[7, 2, 7]).steps == (2, 7)
    assert "2, 7" in str(check(pipelines.pure_arrays, steps=[7, 2, 7]))
    for steps in (0, -1, [], [-1], 2**70):
        with refused(ValueError, "steps"):
            check(pipelines.pure_arrays, steps=steps)
    for steps in ("3", 1.5, True, [0.5]):
        with refused(TypeError, "steps"):
            check(pipelines.pure_arrays, steps=steps)


def test_what_is_no_loader():
    with refused(TypeError, "make_loader", "DataLoader", 3):
        check(pipelines.no_loader)
    with refused(TypeError, "make_loader", "callable"):
        check(3)
    with refused(TypeError, "processes"):
        check(pipelines.pure_arrays, processes="no")


def test_a_check_leaves_no_trace():
    random.seed(1)
    before = random.getstate(), threading.get_ident, len(threading.enumerate())
    check(pipelines.global_python)
    check(pipelines.thread)
    assert threading.get_ident is before[1]
    assert len([t for t in threading.enumerate() if t.name.startswith("onemodel-call")]) == 0


def test_a_report_pickles_and_reads():
    report = check(pipelines.global_numpy)
    assert pickle.loads(pickle.dumps(report)) == report
    text = str(report)
    assert "order       DIFFERENT" in text
    assert "first part that differs: transform pipelines.numpy_noise" in text
    assert "draws from np.random" in text
    assert check(pipelines.pure_arrays).differences == ()


def test_without_threads_and_processes_the_rest_is_compared(monkeypatch):
    monkeypatch.setattr(purity, "can_start_threads", lambda: False)
    monkeypatch.setattr(purity, "can_start_processes", lambda: False)
    report = check(pipelines.pure_samples, processes=True)
    assert report.compared == ("order", "made again")
    assert report.skipped == {
        "threads": "this platform has no threads",
        "workers": "this platform has no threads",
        "process": "this platform has no processes",
    }
    assert check(pipelines.global_numpy).differences[0].kind == "global generator"


def test_a_process_that_fails_is_told(needs_subprocess, tmp_path, monkeypatch):
    place = tmp_path / "only_here.py"
    place.write_text(
        "import os\n"
        "os.environ['ONLY_HERE_OF_A_TEST']\n"
        "from pipelines import pure_arrays\n"
        "def make_loader():\n    return pure_arrays()\n"
    )
    monkeypatch.setenv("ONLY_HERE_OF_A_TEST", "1")
    make_loader = find_function(f"{place}:make_loader")
    monkeypatch.delenv("ONLY_HERE_OF_A_TEST")
    report = check(make_loader, processes=True)
    assert report.is_pure
    assert "could not build" in report.skipped["process"]
    assert "KeyError" in report.skipped["process"]


def test_threads_are_called_all_at_once_and_raise_the_first_error(needs_threads):
    meeting = threading.Barrier(3, timeout=60)
    assert call_on_threads([meeting.wait] * 3) is not None

    def fail(number):
        raise ValueError(number)

    with refused(ValueError, "1"):
        call_on_threads([lambda: 0, lambda: fail(1), lambda: fail(2)])
