from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sample"]

class Sample:
    def __init__(
        self,
        image: NDArray[np.float32],
        target: Sequence[int] | NDArray[np.integer[Any]] = (),
        label: int = 0,
    ) -> None: ...
    @property
    def image(self) -> NDArray[np.float32]: ...
    @property
    def target(self) -> Sequence[int] | NDArray[np.integer[Any]]: ...
    @property
    def label(self) -> int: ...

def remake(kind: type[Sample], image: Any, target: Any, label: Any) -> Sample: ...
