from typing import SupportsFloat, SupportsIndex

from onemodel.augment.protocol import NativeAugmentation, RandomAugmentation

__all__ = ["Erase", "GainOffset", "Invert", "Noise"]

class GainOffset(NativeAugmentation):
    def __init__(
        self,
        gain: tuple[SupportsFloat, SupportsFloat] = ...,
        offset: tuple[SupportsFloat, SupportsFloat] = ...,
    ) -> None: ...
    @property
    def gain(self) -> tuple[float, float]: ...
    @property
    def offset(self) -> tuple[float, float]: ...

class Noise(NativeAugmentation):
    def __init__(self, sigma: SupportsFloat = ...) -> None: ...
    @property
    def sigma(self) -> float: ...

class Invert(RandomAugmentation): ...

class Erase(NativeAugmentation):
    def __init__(
        self,
        count: SupportsIndex = ...,
        size: tuple[SupportsIndex, SupportsIndex] = ...,
        fill: SupportsFloat = ...,
    ) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def fill(self) -> float: ...
