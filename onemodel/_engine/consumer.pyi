from typing import Any

from onemodel._engine.ring import Ring

__all__ = ["take", "wait_ready"]

def take(ring: Ring, pass_number: int) -> tuple[int, Any, BaseException | None] | None: ...
def wait_ready(ring: Ring, pass_number: int) -> None: ...
