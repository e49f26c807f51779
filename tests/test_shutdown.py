"""Promise: however the loop ends, the workers end after it, and nobody hangs.

They live on for about a second for the next pass, and end at once with the loader. Break, close,
`with`, garbage collection, Ctrl-C, interpreter exit and fork, each in a process of its own with a
time limit: a hang is a failure and not a stuck test run.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("needs_threads", "needs_subprocess")

LIMIT = 60  # seconds; each of these scripts needs a fraction of one
TESTS = Path(__file__).parent

# What every script starts with: a loader of small batches, and ways to see its threads.
PRELUDE = """
import gc, os, signal, sys, threading, weakref
import numpy as np
import onemodel
from onemodel import DataLoader, ImageBatchCollator, Sample, SequentialSampler

# whoever runs the tests in the background may have had Ctrl-C ignored, and children inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

class Lines:
    def __len__(self):
        return 4000
    def __getitem__(self, index):
        return Sample(np.full((1, 4, 3 + index % 9), index, dtype=np.float32), (index,), index)

def make(dataset=None, workers=4, prefetch=4, **options):
    return DataLoader(
        dataset or Lines(),
        sampler=SequentialSampler(4000, 4),
        collate=ImageBatchCollator(),
        workers=workers,
        prefetch=prefetch,
        **options,
    )

def others():
    return [thread for thread in threading.enumerate() if thread is not threading.main_thread()]

def expect_no_threads():
    for thread in others():
        thread.join(20)
        assert not thread.is_alive(), thread
    assert others() == []
"""


def run(script, *, code=0, limit=LIMIT, arguments=()):
    """Run the script after the prelude; return what it printed."""
    environment = dict(os.environ, PYTHONFAULTHANDLER="1")
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, *arguments, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=limit,
        env=environment,
        check=False,
    )
    assert done.returncode == code, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    if code == 0:
        assert done.stderr == ""
    return done.stdout + done.stderr


def test_there_are_threads_to_end():
    """The other tests would pass for a loader that never starts a thread; this one would not."""
    run("""
        loader = make(workers=1)
        stream = loader.steps(0)
        next(stream)
        assert len(others()) == 1
        stream.close()
        expect_no_threads()  # idle ones end by themselves
        native = make([Lines()[index] for index in range(4000)], workers=3)
        stream = native.steps(0)
        next(stream)
        assert len(others()) == 3
        native.close()
        assert others() == []
    """)


def test_exhaustion():
    run("""
        loader = make()
        assert sum(1 for _ in loader.steps(0, 50)) == 50
        expect_no_threads()
    """)


def test_break():
    run("""
        loader = make()
        for batch in loader:
            if batch.step == 3:
                break
        expect_no_threads()
        for batch in loader.steps(0):
            if batch.step == 3:
                break
        expect_no_threads()
    """)


def test_break_hundreds_of_times():
    run("""
        loader = make()
        for turn in range(300):
            for batch in loader.steps(turn):
                break
        expect_no_threads()
    """)


def test_close_of_the_loader():
    run("""
        loader = make()
        first, second = iter(loader), loader.steps(7)
        next(first), next(second)
        loader.close()
        expect_no_threads()
        for stream in (first, second):
            try:
                next(stream)
            except (StopIteration, RuntimeError):
                pass
            else:
                raise AssertionError("a batch after close")
    """)


def test_with():
    run("""
        with make() as loader:
            stream = iter(loader)
            next(stream)
        expect_no_threads()
    """)


def test_with_left_by_an_exception():
    run("""
        try:
            with make() as loader:
                for batch in loader:
                    raise KeyError("on purpose")
        except KeyError as error:
            kept = error  # its traceback keeps the frame, and the frame keeps the iterator
        expect_no_threads()
    """)


def test_garbage_collection_of_the_stream():
    run("""
        loader = make()
        stream = loader.steps(0)
        next(stream)
        del stream
        expect_no_threads()
    """)


def test_garbage_collection_of_the_stream_in_a_cycle():
    run("""
        loader = make()
        class Holder: pass
        holder = Holder()
        holder.itself = holder
        holder.stream = loader.steps(0)
        next(holder.stream)
        del holder
        gc.collect()
        expect_no_threads()
    """)


def test_garbage_collection_of_the_loader():
    """The stream needs the loader's parts, not the loader; without both all threads end."""
    run("""
        loader = make()
        stream = loader.steps(0)
        next(stream)
        seen = weakref.ref(loader.sampler) if hasattr(loader, "sampler") else None
        del loader
        assert next(stream).step == 1
        del stream
        gc.collect()
        expect_no_threads()
        assert seen is None or seen() is None
    """)


def test_an_error_ends_the_workers():
    run("""
        class Broken(Lines):
            def __getitem__(self, index):
                if index == 41:
                    raise ValueError("on purpose")
                return super().__getitem__(index)
        stream = make(Broken()).steps(0)
        try:
            for batch in stream:
                pass
        except ValueError:
            pass
        else:
            raise AssertionError("no error")
        expect_no_threads()
    """)


BLOCKED = """
        released = threading.Event()
        reading = threading.Event()
        class Blocked(Lines):
            def __getitem__(self, index):
                if index >= 40:
                    reading.set()
                    released.wait(200)
                return super().__getitem__(index)
"""

needs_signals = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows delivers no SIGINT to a single process"
)


@needs_signals
def test_interrupt_while_waiting_for_a_batch():
    """The consumer waits for a worker that waits for the disk; Ctrl-C must get through."""
    run(
        BLOCKED
        + """
        loader = make(Blocked())
        def interrupt():
            reading.wait(50)
            os.kill(os.getpid(), signal.SIGINT)
        killer = threading.Thread(target=interrupt)
        killer.start()
        try:
            for batch in loader:
                pass
        except KeyboardInterrupt:
            assert not released.is_set()
        else:
            raise AssertionError("no interrupt")
        released.set()
        killer.join()
        loader.close()
        expect_no_threads()
    """
    )


@needs_signals
def test_interrupt_without_a_handler_ends_the_process():
    run(
        BLOCKED
        + """
        loader = make(Blocked())
        def interrupt():
            reading.wait(50)
            os.kill(os.getpid(), signal.SIGINT)
            released.set()
        threading.Thread(target=interrupt).start()
        for batch in loader:
            pass
        """,
        code=-2,
    )


@needs_signals
def test_interrupt_at_any_moment():
    """Signals at forty moments of a running stream: no hang, no step lost, the loader lives on.

    A signal may also arrive between `next` and the counting of its batch, hence the one step.
    """
    run("""
        loader = make()
        for turn in range(40):
            pause = threading.Event()
            def interrupt():
                pause.wait(0.0005 * turn)  # only moves the moment
                os.kill(os.getpid(), signal.SIGINT)
            killer = threading.Thread(target=interrupt)
            stream = loader.steps(0)
            next(stream)  # the run stands in this pass from its first batch on
            taken = 1
            try:
                killer.start()
                while True:
                    next(stream)
                    taken += 1
            except KeyboardInterrupt:
                pass
            killer.join()
            assert loader.state_dict()["next_step"] - taken in (0, 1)
            stream.close()
        expect_no_threads()
        assert [batch.step for batch in loader.steps(0, 20)] == list(range(20))
    """)


def test_interrupt_at_every_point_of_a_step():
    """One run for each point of `next` at which CPython looks for signals, in the main thread.

    A trace function raises KeyboardInterrupt there, as the handler of a signal would. Whatever the
    point, the stream can be closed, its workers end, and the state says what was taken. The batch
    is ready each time, so that the waiting of `threading` itself, which has gaps of its own, is
    left out.
    """
    run("""
        import dis, functools
        LOOKS = {"RESUME", "JUMP_BACKWARD", "CALL", "CALL_FUNCTION_EX", "CALL_KW", "PRECALL"}

        @functools.cache
        def names(code):
            return {each.offset: each.opname for each in dis.get_instructions(code)}

        def interrupt_at(count):
            last = {}
            def trace(frame, event, argument):
                nonlocal count
                frame.f_trace_opcodes = True
                if event == "call":
                    last[id(frame)] = "RESUME"
                elif event == "opcode":
                    before = last.get(id(frame))
                    last[id(frame)] = names(frame.f_code)[frame.f_lasti]
                    if before in LOOKS and last[id(frame)] != "CALL":
                        if count == 0:
                            raise KeyboardInterrupt
                        count -= 1
                return trace
            return trace

        class Watched(Lines):
            def __getitem__(self, index):
                if index >= 8:
                    second.set()
                return super().__getitem__(index)

        # Python 3.12 traces opcodes only where some frame asked for it before `settrace`.
        sys._getframe().f_trace_opcodes = True
        loader = make(Watched(), workers=1, prefetch=2)
        points = 0
        while True:
            second = threading.Event()
            stream = loader.steps(0)
            next(stream)
            second.wait(30)  # the one worker builds step 2, so step 1 is ready
            taken = 1
            sys.settrace(interrupt_at(points))
            try:
                next(stream)
                taken = 2
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            assert loader.state_dict()["next_step"] == taken, points
            stream.close()
            loader.close()
            assert others() == []
            if taken == 2:
                break
            points += 1
        print(points)
        assert points > 4
    """)


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "stream = None"])
def test_interpreter_exit(ending):
    run(f"""
        loader = make()
        stream = iter(loader)
        next(stream)
        {ending}
    """)


def test_interpreter_exit_by_an_error():
    output = run(
        """
        for batch in make():
            raise KeyError("on purpose")
        """,
        code=1,
    )
    assert "KeyError: 'on purpose'" in output
    assert output.count("Traceback") == 1


def test_interpreter_exit_with_a_full_ring_and_many_streams():
    run("""
        streams = [make(prefetch=1).steps(0) for _ in range(10)]
        batches = [next(stream) for stream in streams]
    """)


def test_interpreter_exit_inside_a_worker_call():
    """At exit a worker is in the middle of a read; it finishes that read and nothing more."""
    run("""
        reading = threading.Event()
        class Slow(Lines):
            def __getitem__(self, index):
                if index >= 8:
                    reading.set()
                    threading.Event().wait(0.2)
                return super().__getitem__(index)
        stream = iter(make(Slow()))
        next(stream)
        assert reading.wait(30)
    """)


def test_interpreter_exit_with_the_stream_held_by_another_module():
    run("""
        import builtins
        builtins.kept = make().steps(0)
        next(builtins.kept)
    """)


def test_batches_outlive_everything():
    run("""
        loader = make()
        stream = loader.steps(3)
        batch = next(stream)
        images = batch.images
        del loader, stream
        gc.collect()
        expect_no_threads()
        assert images[0, 0, 0, 0] == 12.0
        del batch
        assert images[0, 0, 0, 0] == 12.0
    """)


def test_a_consumer_in_another_thread():
    run("""
        taken = []
        def consume():
            for batch in make().steps(0, 30):
                taken.append(batch.step)
        consumer = threading.Thread(target=consume)
        consumer.start()
        consumer.join(50)
        assert taken == list(range(30))
        expect_no_threads()
    """)


def test_two_consumers_who_both_wait():
    """The step that both wait for comes last: the one who wakes notifies the other."""
    run("""
        first = threading.Event()
        class Gated(Lines):
            def __getitem__(self, index):
                if 4 <= index < 8:
                    first.wait(50)
                return super().__getitem__(index)
        loader = make(Gated(), workers=1)
        stream = loader.steps(0)
        assert next(stream).step == 0
        taken, ring = [], stream._prefetcher.ring
        def consume():
            taken.append(next(stream).step)
        consumers = [threading.Thread(target=consume) for _ in range(2)]
        for consumer in consumers:
            consumer.start()
        while ring.waiting < 2:
            pass
        first.set()
        for consumer in consumers:
            consumer.join(20)
            assert not consumer.is_alive()
        assert sorted(taken) == [1, 2]
        stream.close()
        expect_no_threads()
    """)


def test_the_deepest_ring():
    run("""
        try:
            make(workers=1, prefetch=2**16 + 1)
        except ValueError as error:
            assert "prefetch" in str(error) and "65537" in str(error)
        else:
            raise AssertionError("a ring that takes all memory")
        loader = make(workers=1, prefetch=2**16)
        assert [batch.step for batch in loader.steps(3, 9)] == [3, 4, 5, 6, 7, 8]
        expect_no_threads()
    """)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")

# Python 3.12 and later warn about every fork of a process with threads; that is the point here.
QUIET = ("-W", "ignore::DeprecationWarning")


@needs_fork
def test_fork():
    """The threads stay in the parent: the child's iterator says so, the parent's goes on."""
    output = run(
        """
        loader = make()
        stream = loader.steps(0)
        assert next(stream).step == 0
        child = os.fork()
        if child == 0:
            try:
                while True:
                    next(stream)
            except RuntimeError as error:
                print(error, flush=True)
                os._exit(7)
            os._exit(8)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert [next(stream).step for _ in range(30)] == list(range(1, 31))
        stream.close()
        expect_no_threads()
        """,
        arguments=QUIET,
    )
    assert "fork" in output


@needs_fork
@pytest.mark.parametrize("ending", ["os._exit(0)", "sys.exit(0)"])
def test_fork_and_a_new_stream_in_the_child(ending):
    """A child may start over, may drop what it inherited, and may exit in either way."""
    run(
        f"""
        loader = make()
        expected = [onemodel.digest(batch) for batch in loader.steps(0, 10)]
        stream = loader.steps(0)
        next(stream)
        child = os.fork()
        if child == 0:
            fresh = [onemodel.digest(batch) for batch in loader.steps(0, 10)]
            assert fresh == expected
            del stream
            gc.collect()
            loader.close()
            {ending}
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert next(stream).step == 1
        """,
        arguments=QUIET,
    )


@needs_fork
def test_fork_without_workers_changes_nothing():
    run("""
        stream = make(workers=0).steps(0)
        assert next(stream).step == 0
        child = os.fork()
        if child == 0:
            os._exit(0 if next(stream).step == 1 else 9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert next(stream).step == 1
    """)


@needs_fork
def test_fork_many_times_under_load():
    """A lock that a worker holds at the moment of the fork must not freeze the child.

    Batches that cost nothing and threads that change places all the time make that likely.
    """
    run(
        """
        sys.setswitchinterval(1e-6)
        loader = DataLoader(
            range(4000), sampler=SequentialSampler(4000, 1), collate=lambda samples, key: key,
            workers=4, prefetch=64,
        )
        for turn in range(40):
            stream = loader.steps(0)
            for _ in range(turn):
                next(stream)
            child = os.fork()
            if child == 0:
                try:
                    assert next(stream).step == 0 == turn  # it had not begun
                except RuntimeError:
                    assert turn > 0
                stream.close()
                loader.close()
                assert loader[5].step == 5
                assert next(loader.steps(7)).step == 7
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            stream.close()
        """,
        arguments=QUIET,
    )
