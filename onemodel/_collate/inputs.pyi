from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._common.batch_key import BatchKey
from onemodel.datasets.sample import Sample

__all__ = ["CollateInputs", "Columns", "from_columns", "from_samples", "gather_samples"]

class Columns:
    def __init__(
        self,
        pixels: NDArray[Any],
        offsets: NDArray[np.int64],
        widths: NDArray[np.int64],
        targets: NDArray[np.int32],
        target_offsets: NDArray[np.int64],
        labels: NDArray[np.int32],
        channels: int,
        height: int,
        scale: NDArray[np.float32],
        shift: NDArray[np.float32],
    ) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def height(self) -> int: ...

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

def gather_samples(dataset: list[Any], key: BatchKey) -> list[Any]: ...
def from_samples(samples: Iterable[Sample], key: BatchKey) -> CollateInputs: ...
def from_columns(columns: Columns, key: BatchKey) -> CollateInputs: ...
