from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns"]

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
    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]: ...

def remake(
    kind: type[Columns], arrays: Mapping[str, Any], channels: int, height: int
) -> Columns: ...
