from typing import Any

__all__ = ["IndexPlan", "are_indices", "index_plan"]

class IndexPlan:
    @property
    def batch_size(self) -> int: ...

def index_plan(sampler: Any, seed: int) -> IndexPlan | None: ...
def are_indices(indices: Any, length: int) -> bool: ...
