from typing import SupportsFloat, SupportsIndex

from onemodel.augment.protocol import NativeAugmentation, RandomAugmentation

__all__ = ["Blur", "HorizontalFlip", "Shift"]

class HorizontalFlip(RandomAugmentation): ...

class Shift(NativeAugmentation):
    def __init__(
        self,
        dx: tuple[SupportsIndex, SupportsIndex] = ...,
        dy: tuple[SupportsIndex, SupportsIndex] = ...,
        fill: SupportsFloat = ...,
    ) -> None: ...
    @property
    def dx(self) -> tuple[int, int]: ...
    @property
    def dy(self) -> tuple[int, int]: ...
    @property
    def fill(self) -> float: ...

class Blur(RandomAugmentation): ...
