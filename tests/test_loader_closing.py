"""Promise: loader, stream and batch can be closed at any time, again, and by `with`."""

import pytest
from support import BATCH, expected_indices, indices_of, make_loader, workers_0_and_2


@workers_0_and_2
def test_close_may_be_called_again(workers):
    loader = make_loader(workers=workers)
    stream = iter(loader)
    next(stream)
    loader.close()
    loader.close()


@workers_0_and_2
def test_closing_a_stream_ends_it(workers):
    with make_loader(workers=workers) as loader:
        stream = loader.steps(0)
        next(stream)
        stream.close()
        stream.close()
        with pytest.raises(StopIteration):
            next(stream)
        assert indices_of(loader.steps(0, 2)) == expected_indices(range(2))


@workers_0_and_2
def test_with_returns_the_loader(workers):
    loader = make_loader(workers=workers)
    with loader as same:
        assert same is loader
        assert indices_of(loader.steps(0, 2)) == expected_indices(range(2))


def test_a_batch_can_be_released_by_with():
    with make_loader() as loader, loader[0] as batch:
        assert len(batch.indices) == BATCH
