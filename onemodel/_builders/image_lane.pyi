from typing import Any

from onemodel._builders.indices import IndexPlan
from onemodel._builders.lane import Lane

__all__ = ["image_lane"]

def image_lane(
    columns: Any, samples: list[Any] | None, collate: Any, plan: IndexPlan, builder: Any
) -> Lane: ...
