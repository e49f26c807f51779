from typing import Any

from onemodel._native.indices import IndexPlan
from onemodel._native.lane import Lane

__all__ = ["image_lane"]

def image_lane(
    columns: Any, samples: list[Any] | None, collate: Any, plan: IndexPlan, builder: Any
) -> Lane: ...
