"""``LoaderView``: a loader as a dataset of PyTorch, whose items are the loader's batches.

**In the training process** an iteration is a pass of the loader: its threads build ahead, its state
is the step after the last batch taken.

**In worker processes** of ``torch.utils.data.DataLoader`` worker w of W builds the steps first + w,
first + w + W, ...; torch asks its workers in turn, so the batches arrive in the run's order. Each
worker has a copy of the view, and the training process must learn that a pass was begun, or each
pass would be the same epoch. Nothing of the view is called there, so the batches themselves say
it: each travels in a ``_Delivery``, which tells the view when it is unpickled. Workers that
persist count their passes, and find in shared memory where the view was moved to meanwhile.
``version`` counts those moves, so what is left of an older pass tells nothing.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Iterator
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch.utils.data import IterableDataset, get_worker_info  # type: ignore[import-not-found, unused-ignore]

from onemodel._common.describe import shown
from onemodel.loader import DataLoader
from onemodel.torch.batches import to_tensors

__all__ = ["LoaderView"]

_NAME, _VERSION, _START = 0, 1, 2
_MIDDLE = 2**63  # steps are uint64, and a shared tensor holds int64

_views: weakref.WeakValueDictionary[int, LoaderView] = weakref.WeakValueDictionary()


class LoaderView(IterableDataset[Any]):
    """A loader as an ``IterableDataset`` of whole batches, with tensors in place of arrays.

    Trainers take it as it is, or in ``torch.utils.data.DataLoader(view, batch_size=None)``, also
    with worker processes, though the loader's own threads need no copies between processes. Each
    pass is the next epoch, decided at its first batch; persistent workers decide it at ``iter``.
    Move the view (``set_epoch``, ``load_state_dict``), not its loader.

    Args:
        loader: an ``onemodel.DataLoader``.

    Raises:
        TypeError: if ``loader`` is none.

    >>> import numpy as np
    >>> import onemodel as om
    >>> view = LoaderView(om.DataLoader(om.ArrayDataset(np.arange(4)), batch_size=2))
    >>> [batch.tolist() for batch in torch.utils.data.DataLoader(view, batch_size=None)]
    [[0, 1], [2, 3]]
    >>> view.state_dict()["next_step"], len(view)
    (2, 2)
    """

    def __init__(self, loader: DataLoader) -> None:
        if not isinstance(loader, DataLoader):
            raise TypeError(f"loader must be an onemodel.DataLoader, got {shown(loader)}")
        self._loader = loader
        self._by_workers = False
        self._following: int | None = None  # in a worker: where its next pass begins
        # What persistent workers read: they see nothing else of the training process.
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()
        self._register()

    def _register(self) -> None:
        self._shared[_NAME] = secrets.randbits(63)
        _views[int(self._shared[_NAME])] = self
        self._version = 0
        self._publish()

    def _publish(self) -> None:
        """Tell workers that live on where the next pass begins."""
        self._version += 1
        self._shared[_VERSION] = self._version
        self._shared[_START] = self._loader._position.next_pass()[0] - _MIDDLE

    @property
    def loader(self) -> DataLoader:
        """The loader."""
        return self._loader

    @property
    def sampler(self) -> LoaderView:
        """The view itself: trainers call ``sampler.set_epoch`` where each epoch begins."""
        return self

    @property
    def batch_sampler(self) -> None:
        """None, as items are batches; trainers that see a sampler ask for it."""
        return None

    def __len__(self) -> int:
        """How many batches a whole pass yields."""
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        """Return a pass: the next epoch, or what remains of one after ``load_state_dict``."""
        worker = get_worker_info()
        if worker is None:
            return self._pass()
        # All workers decide now, and alike: whether a batch of theirs is asked for differs.
        if self._following is None:
            # of the copy that the workers were made with
            start, _ = self._loader._position.next_pass()
        elif self._shared[_VERSION] == self._version:
            start = self._following
        else:
            self._version = int(self._shared[_VERSION])
            start = int(self._shared[_START]) + _MIDDLE
        self._following = (start // len(self) + 1) * len(self)
        return self._part(start, self._following, worker.id, worker.num_workers)

    def _pass(self) -> Iterator[Any]:
        begun = False
        for batch in self._loader:
            if not begun:
                begun, self._by_workers = True, False
                self._publish()
            yield to_tensors(batch)

    def _part(self, start: int, stop: int, worker: int, workers: int) -> Iterator[Any]:
        pass_of = int(self._shared[_NAME]), self._version, start // len(self)
        for step in range(start + worker, stop, workers):
            yield _Delivery(to_tensors(self._loader[step]), *pass_of)

    def _arrived(self, version: int, epoch: int) -> None:
        """Count a pass over ``epoch`` as begun: a batch of it came from a worker."""
        if version == self._version and epoch >= self._loader.epoch:
            self._loader._position.leave(epoch)
            self._by_workers = True

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass run over ``epoch``, as ``DataLoader.set_epoch`` of onemodel."""
        self._loader.set_epoch(epoch)
        self._publish()

    def state_dict(self, step: int | None = None) -> dict[str, Any]:
        """Return where the run stands, as ``DataLoader.state_dict`` of onemodel.

        Args:
            step: the last global step that counts as taken; None for the last one that was.

        Raises:
            ValueError: if ``step`` is None and worker processes gave the last batches: they build
                ahead, and what was taken of that is known to torch alone.
        """
        if step is None and self._by_workers and get_worker_info() is None:
            raise ValueError(
                "step must be given where worker processes build the batches: the global step of "
                "the last batch that was trained on, got None"
            )
        return self._loader.state_dict(step)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state: the next pass starts at its next step."""
        self._loader.load_state_dict(state)
        self._by_workers = False
        self._publish()

    def __repr__(self) -> str:
        return f"LoaderView({self._loader!r})"

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if not self._shared.is_shared():  # a copy, and not the same view in a worker
            self._shared.share_memory_()
            self._register()


class _Delivery:
    """A batch on its way from a worker; unpickled, it is the batch."""

    def __init__(self, batch: Any, name: int, version: int, epoch: int) -> None:
        self.content = batch, name, version, epoch

    def __reduce__(self) -> tuple[Any, ...]:
        return _deliver, self.content


def _deliver(batch: Any, name: int, version: int, epoch: int) -> Any:
    view = _views.get(name)
    if view is not None:
        view._arrived(version, epoch)
    return batch
