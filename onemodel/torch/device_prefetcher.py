"""``DevicePrefetcher``: the next batch is copied to its device while one is trained on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

from onemodel._batch.structure import map_leaves
from onemodel._common.describe import shown
from onemodel.torch.batches import to_device, to_tensors

__all__ = ["DevicePrefetcher"]

MOST_COPIES = 2  # that may run at once: the host must not go on without end


class DevicePrefetcher:
    """Batches on their device: each is copied on a side stream while the one before is used.

    A batch on the host is held until the event behind its copy has fired, so its buffer goes back
    to the pool no sooner. Copies run beside the host only from pinned memory (``pinned_pool``).
    On the CPU batches are handed through as tensors.

    It takes one batch ahead. ``state_dict`` does not count that one: it is the state after the last
    batch that was handed out.

    Args:
        batches: a loader, a ``LoaderView`` or any iterable of batches.
        device: "cuda", "cuda:1", "cpu" or a ``torch.device``.

    Raises:
        TypeError, ValueError: if ``batches`` cannot be iterated, or ``device`` is no device of
            torch.

    >>> import numpy as np
    >>> import onemodel as om
    >>> loader = om.DataLoader(om.ArrayDataset(np.arange(4)), batch_size=2)
    >>> [batch.tolist() for batch in DevicePrefetcher(loader, "cpu")]
    [[0, 1], [2, 3]]
    """

    def __init__(self, batches: Iterable[Any], device: str | torch.device) -> None:
        if not hasattr(type(batches), "__iter__"):
            raise TypeError(f"batches must be an iterable, got {shown(batches)}")
        try:
            self._device = torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"device must be a device of torch, got {shown(device)}: {error}"
            ) from None
        self._batches = batches
        self._state: dict[str, Any] | None = None

    @property
    def device(self) -> torch.device:
        """Where the batches go."""
        return self._device

    def __len__(self) -> int:
        """How many batches a whole pass yields, where what it iterates says so."""
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        """Return a pass over the batches, on the device."""
        if self._device.type == "cpu":
            return map(to_tensors, self._batches)
        return self._pass(_SideStream(self._device))

    def _pass(self, side: _SideStream) -> Iterator[Any]:
        keeps_state = hasattr(self._batches, "state_dict")
        copying: deque[tuple[Any, Any]] = deque()  # (event, batch on the host), in stream order
        ahead: tuple[Any, Any, Any] | None = None
        try:
            for batch in self._batches:
                state = self._batches.state_dict() if keeps_state else None  # type: ignore[attr-defined]
                moved, event = side.copy(batch)
                copying.append((event, batch))
                del batch
                while copying and (len(copying) > MOST_COPIES or copying[0][0].query()):
                    copying[0][0].synchronize()
                    copying.popleft()
                if ahead is not None:
                    yield self._hand_out(side, *ahead)
                ahead = moved, event, state
            if ahead is not None:
                yield self._hand_out(side, *ahead)
        finally:
            while copying:
                copying[0][0].synchronize()
                copying.popleft()

    def _hand_out(self, side: _SideStream, moved: Any, event: Any, state: Any) -> Any:
        side.wait(moved, event)
        self._state = state
        return moved

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass run over ``epoch``."""
        self._batches.set_epoch(epoch)  # type: ignore[attr-defined]
        self._state = None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of ``batches`` after the last batch that was handed out."""
        found: dict[str, Any] = (
            self._batches.state_dict() if self._state is None else self._state  # type: ignore[attr-defined]
        )
        return found

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state: the next pass starts there."""
        self._batches.load_state_dict(state)  # type: ignore[attr-defined]
        self._state = None


class _SideStream:
    """A stream of copies beside the stream that computes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)

    def copy(self, batch: Any) -> tuple[Any, Any]:
        """Begin the copy; return what it makes, and an event that fires when it is done."""
        with torch.cuda.stream(self.stream):
            moved = to_device(batch, self.device, non_blocking=True)
            return moved, self.stream.record_event()

    def wait(self, moved: Any, event: Any) -> None:
        """Let the stream that computes wait for the copy, and own the tensors as well."""
        current = torch.cuda.current_stream(self.device)
        current.wait_event(event)

        def own(leaf: Any, _name: str) -> Any:
            if isinstance(leaf, torch.Tensor) and leaf.is_cuda:
                leaf.record_stream(current)
            return leaf

        map_leaves(moved, own)
