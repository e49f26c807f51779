from collections.abc import Iterable
from typing import SupportsFloat

from onemodel.transforms.protocol import NativeTransform

__all__ = ["Normalize"]

class Normalize(NativeTransform):
    def __init__(
        self,
        mean: SupportsFloat | Iterable[SupportsFloat],
        std: SupportsFloat | Iterable[SupportsFloat],
        key: int | str | None = None,
        layout: str | None = None,
    ) -> None: ...
    @property
    def mean(self) -> float | tuple[float, ...]: ...
    @property
    def std(self) -> float | tuple[float, ...]: ...
