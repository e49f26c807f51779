from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel.datasets.columns import Columns
from onemodel.datasets.sample import Sample

__all__ = ["CollateInputs", "from_columns", "from_samples", "pick"]

class CollateInputs:
    @property
    def count(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def widest(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def symbols(self) -> int: ...

def pick(dataset: list[Any], indices: NDArray[np.int64], first_slot: int) -> list[Any]: ...
def from_samples(
    samples: Iterable[Sample], indices: NDArray[np.int64], first_slot: int
) -> CollateInputs: ...
def from_columns(
    columns: Columns, indices: NDArray[np.int64], first_slot: int
) -> CollateInputs: ...
