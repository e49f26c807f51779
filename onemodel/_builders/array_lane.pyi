from collections.abc import Callable
from typing import Any

from onemodel._builders.indices import IndexPlan
from onemodel._builders.lane import Lane
from onemodel._memory.pool import BufferPool
from onemodel.transforms.protocol import RowChain

__all__ = ["array_lane"]

def array_lane(
    arrays: list[Any],
    chain: RowChain | None,
    chained: int,
    rebuild: Callable[[list[Any]], Any],
    pool: BufferPool,
    plan: IndexPlan,
    builder: Any,
) -> Lane | None: ...
