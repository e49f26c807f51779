from collections.abc import Sequence
from typing import SupportsFloat, SupportsIndex

from onemodel.transforms.protocol import NativeTransform

__all__ = ["Cutout", "RandomCrop", "RandomHorizontalFlip"]

class RandomHorizontalFlip(NativeTransform):
    def __init__(
        self, p: SupportsFloat = 0.5, key: int | str | None = None, layout: str | None = None
    ) -> None: ...
    @property
    def p(self) -> float: ...

class RandomCrop(NativeTransform):
    def __init__(
        self,
        padding: SupportsIndex = 0,
        size: SupportsIndex | Sequence[SupportsIndex] | None = None,
        key: int | str | None = None,
        layout: str | None = None,
    ) -> None: ...
    @property
    def padding(self) -> int: ...
    @property
    def size(self) -> tuple[int, int] | None: ...

class Cutout(NativeTransform):
    def __init__(
        self, size: SupportsIndex, key: int | str | None = None, layout: str | None = None
    ) -> None: ...
    @property
    def size(self) -> int: ...
