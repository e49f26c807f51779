"""Promise: passes that several threads begin at once never share a ring."""

import threading

from support import make_loader


def test_a_ring_is_given_to_one_of_the_threads_that_ask_at_once(needs_threads):
    with make_loader() as loader:
        prefetchers = loader._prefetchers
        kept = prefetchers.acquire()
        prefetchers.release(kept)
        for _ in range(200):
            barrier, got = threading.Barrier(4), []

            def ask():
                barrier.wait(60)  # noqa: B023
                got.append(prefetchers.acquire())  # noqa: B023

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert len(set(map(id, got))) == 4
            for prefetcher in got:
                prefetchers.release(prefetcher)
        assert prefetchers.all == [kept]


def test_what_is_claimed_cannot_be_claimed_again():
    with make_loader() as loader:
        prefetcher = loader._prefetchers.acquire()
        assert prefetcher.busy
        assert not prefetcher.claim()
        prefetcher.free()
        assert not prefetcher.busy
        assert prefetcher.claim()


def test_a_ring_that_was_closed_is_nobody_s():
    """A thread that was about to take it finds it taken."""
    with make_loader() as loader:
        prefetchers = loader._prefetchers
        kept, other = prefetchers.acquire(), prefetchers.acquire()
        prefetchers.release(other)
        assert not other.claim()
        prefetchers.release(kept)
        assert prefetchers.all == [kept]


def test_what_rings_counted_stays_when_several_threads_drop_them(needs_threads):
    with make_loader() as loader:
        passes = [loader.steps(0, 3) for _ in range(8)]
        for batches in passes:
            next(batches)
        threads = [threading.Thread(target=list, args=(batches,)) for batches in passes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert loader.stats.batches == 8 * 3
