from typing import Any

__all__ = ["IndexPlan", "index_plan"]

class IndexPlan:
    @property
    def batch_size(self) -> int: ...

def index_plan(sampler: Any, seed: int) -> IndexPlan | None: ...
