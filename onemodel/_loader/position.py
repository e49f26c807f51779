"""Where a run stands: the epoch of the next pass, a loaded state, the pass that was begun last."""

from __future__ import annotations

from onemodel._common.integers import TWO_64, check_integer
from onemodel._engine.prefetch import Cursor, Pass

__all__ = ["Position"]


class Position:
    """The next step of a run, which passes move on.

    Args:
        steps_per_epoch: of the run.

    Attributes:
        epoch: the one that the next pass runs over.

    >>> position = Position(steps_per_epoch=10)
    >>> position.go_on_at(13)
    >>> position.next_pass()
    (13, 20)
    """

    def __init__(self, steps_per_epoch: int) -> None:
        self._steps_per_epoch = steps_per_epoch
        self.epoch = 0
        self._loaded: int | None = None  # a state's next step, until a pass starts there
        self._cursor: Cursor | None = None

    @property
    def next_step(self) -> int:
        """The step after the last batch that was taken, or the one that was loaded."""
        if self._loaded is not None:
            return self._loaded
        return self._first_step if self._cursor is None else self._cursor.next_step

    @property
    def inside_epoch(self) -> int | None:
        """The next step; None where that is the first one of ``epoch``."""
        if self._loaded is not None or self._cursor is None:
            return self._loaded
        next_step = self._cursor.next_step
        return None if next_step == self._first_step else next_step

    @property
    def _first_step(self) -> int:
        return self.epoch * self._steps_per_epoch

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass run over ``epoch``; a loaded step inside it stays.

        Raises:
            ValueError: if the loaded step lies in another epoch.
        """
        epoch = check_integer("epoch", epoch, 0, TWO_64 // self._steps_per_epoch)
        if self._loaded is not None:
            loaded = self._loaded // self._steps_per_epoch
            if epoch != loaded:
                raise ValueError(
                    f"epoch must be {loaded}, in which the loaded state's next step "
                    f"{self._loaded} lies, got {epoch}"
                )
            return
        if epoch != self.epoch:
            self.epoch = epoch
            self._cursor = None

    def next_pass(self, at: int | None = None) -> tuple[int, int]:
        """Return the first step of the next pass, or ``at``, and the one after its last."""
        start = self._loaded if at is None else at
        if start is None:
            start = check_integer("the pass's first step", self._first_step, 0, TWO_64)
        return start, min((start // self._steps_per_epoch + 1) * self._steps_per_epoch, TWO_64)

    def go_on_at(self, next_step: int) -> None:
        """Let the next pass, or ``steps()``, start at ``next_step``."""
        self.epoch = next_step // self._steps_per_epoch
        self._loaded = next_step
        self._cursor = Cursor(next_step)

    def follow(self, run: Pass) -> None:
        """Move on with a pass that has begun."""
        self._loaded = None
        self._cursor = run.cursor

    def leave(self, epoch: int) -> None:
        """Count a pass over ``epoch`` as begun elsewhere: in processes that hold copies of it."""
        self.epoch, self._loaded, self._cursor = epoch + 1, None, None
