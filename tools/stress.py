"""Ends of a run, many times: python tools/stress.py [TURNS].

Each way to end (break, close, garbage collection, Ctrl-C, exit, fork) runs TURNS times (200) with
the native lane and with Python callables, in a process of its own with a time limit. A hang, a
crash or a wrong batch fails; what was counted is printed.
"""

import os
import subprocess
import sys

LIMIT = 300  # seconds for the turns of one way

PRELUDE = """
import gc, os, signal, sys, threading
import numpy as np
from onemodel import DataLoader, ImageBatchCollator, Sample
signal.signal(signal.SIGINT, signal.default_int_handler)
kind, turns = sys.argv[1], int(sys.argv[2])
samples = [Sample(np.full((1, 4, 3 + k % 9), k, np.float32), (k,), k) for k in range(400)]
class Samples:
    def __len__(self):
        return 400
    def __getitem__(self, index):
        return samples[index]
def make(workers=3):
    return DataLoader(
        samples if kind == "native" else Samples(), 4, collate=ImageBatchCollator(),
        workers=workers, prefetch=6,
    )
def check(batch, g):
    assert batch.global_step == g and batch.labels[0] == g % 100 * 4
def take(stream, first, count):
    for g in range(first, first + count):
        check(next(stream), g)
"""

WAYS = {
    "break": """
loader = make()
for turn in range(turns):
    for g, batch in enumerate(loader.steps(turn), turn):
        check(batch, g)
        if g == turn + turn % 9:
            break
""",
    "close": """
loader = make()
for turn in range(turns):
    stream = loader.steps(turn)
    take(stream, turn, 1 + turn % 9)
    (loader if turn % 2 else stream).close()
    if turn % 2:
        assert threading.active_count() == 1
""",
    "collection": """
for turn in range(turns):
    loader = make()
    stream = loader.steps(turn)
    take(stream, turn, 1 + turn % 9)
    if turn % 2:
        del loader, stream
    else:
        loader.itself = stream.loader = loader
        del loader, stream
        gc.collect()
""",
    "interrupt": """
loader = make()
for turn in range(turns):
    pause = threading.Event()
    def interrupt():
        pause.wait(0.0002 * (turn % 50))
        os.kill(os.getpid(), signal.SIGINT)
    killer = threading.Thread(target=interrupt)
    stream, g = loader.steps(0), 0
    try:
        killer.start()
        while True:
            check(next(stream), g)
            g += 1
    except KeyboardInterrupt:
        pass
    killer.join()
    stream.close()
loader.close()
""",
    "fork": """
loader = make()
for turn in range(turns):
    stream = loader.steps(turn)
    take(stream, turn, turn % 9)
    child = os.fork()
    if child == 0:
        status = 9
        try:
            take(loader.steps(turn), turn, 12)
            loader.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, turn
    take(stream, turn + turn % 9, 3)
    stream.close()
""",
    # a process each: forked before any thread, it ends by the interpreter's own way
    "exit": """
for turn in range(turns):
    child = os.fork()
    if child == 0:
        loader = make()
        stream = iter(loader)
        take(stream, 0, 1 + turn % 9)
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, turn
""",
}


def run(way, kind, turns):
    """Return None, or what went wrong with one way to end."""
    environment = dict(os.environ, PYTHONFAULTHANDLER="1")
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE + WAYS[way], kind, str(turns)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT} s"
    if done.returncode or done.stderr:
        return f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return None


def main():
    """Run all ways; the exit status is the number of those that failed."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    failed = 0
    for way in WAYS:
        for kind in ("native", "python"):
            wrong = run(way, kind, turns)
            failed += wrong is not None
            print(f"{way}, {kind}: {turns} turns, {wrong or 'all ended'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
