"""The contract as checks that any kind of loader can be held to.

A test gives a function that makes a loader from keyword arguments, and the digests that the twin
computed for the first steps of the run.
"""

import random
import threading
import time

import onemodel

WORKERS = (0, 1, 2, 4)
PREFETCH = (1, 2, 8)


class Shaken:
    """A dataset whose reads take random time, so that threads meet in every order.

    The tiny sleeps wait for nothing: they move the moments at which threads run, which is the
    thing under test. What is read does not depend on them.
    """

    def __init__(self, dataset, state=0):
        self.dataset = dataset
        self.random = random.Random(state)
        self.lock = threading.Lock()

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        with self.lock:
            delay = self.random.choice((0, 0, 0, self.random.random() * 0.001))
        if delay:
            time.sleep(delay)
        return self.dataset[index]


def digests_of(batches):
    """The digest of each batch, taken while the consumer holds it."""
    return [onemodel.digest(batch) for batch in batches]


def check_stream(make_loader, expected, *, starts, workers=WORKERS, prefetch=PREFETCH):
    """The stream from any start is the twin's, for every number of workers and every depth."""
    for count in workers:
        for depth in prefetch:
            for start in starts:
                with make_loader(workers=count, prefetch=depth) as loader:
                    stream = digests_of(loader.steps(start, len(expected)))
                assert stream == expected[start:], (
                    f"workers={count}, prefetch={depth}, start={start}"
                )


def check_single_steps(make_loader, expected, *, workers=WORKERS):
    """One step alone, in any order, also while a stream is under way."""
    order = list(range(len(expected)))
    random.Random(0).shuffle(order)
    for count in workers:
        with make_loader(workers=count, prefetch=2) as loader:
            stream = loader.steps(0, len(expected))
            for taken, g in enumerate(order):
                assert loader.digest(g) == expected[g]
                assert onemodel.digest(loader[g]) == expected[g]
                assert onemodel.digest(next(stream)) == expected[taken]


def check_resume(make_loader, expected, *, cuts, workers=WORKERS):
    """A run cut at any step and taken up by a fresh loader continues as if it had not stopped."""
    for count in workers:
        for cut in cuts:
            with make_loader(workers=count, prefetch=3) as loader:
                stream = loader.steps(0)
                before = [onemodel.digest(next(stream)) for _ in range(cut)]
                state = loader.state_dict()
            with make_loader(workers=WORKERS[-1] - count, prefetch=2) as loader:
                loader.load_state_dict(state)
                after = digests_of(loader.steps(stop=len(expected)))
            assert before + after == expected, f"workers={count}, cut={cut}"


def check_shards(make_loader, expected_of_rank, *, ranks, workers=(0, 2)):
    """Rank r of w gives the digests that the twin computed for (r, w)."""
    for count in workers:
        for rank in range(ranks):
            expected = expected_of_rank(rank, ranks)
            with make_loader(workers=count, prefetch=3, shard=(rank, ranks)) as loader:
                stream = digests_of(loader.steps(0, len(expected)))
            assert stream == expected, f"workers={count}, shard=({rank}, {ranks})"
