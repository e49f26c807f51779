"""Promise: `async for` gives the batches of `for`, and lets other tasks run between them."""

import contextlib

from support import (
    STEPS,
    expected_indices,
    integers,
    make_loader,
    workers_0_and_2,
)


def drive(coroutine):
    """Run a coroutine that only ever yields to its event loop, without one."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


@workers_0_and_2
def test_async_for(workers):
    async def consume(loader):
        passed = [integers(batch.indices) async for batch in loader.aiter()]
        return passed, [integers(batch.indices) async for batch in loader.steps(3, 5)]

    with make_loader(workers=workers) as loader:
        passed, some = drive(consume(loader))
        assert loader.epoch == 1
    assert passed == expected_indices(range(STEPS))
    assert some == expected_indices([3, 4])


def test_async_for_lets_others_run_between_batches():
    async def consume(stream, taken):
        async for batch in stream:
            taken.append(batch.step)

    with make_loader() as loader:
        taken, seen = [], []
        coroutine = consume(loader.steps(0, 5), taken)
        with contextlib.suppress(StopIteration):
            while True:
                coroutine.send(None)
                seen.append(len(taken))
    assert taken == list(range(5))
    assert seen == list(range(6))
