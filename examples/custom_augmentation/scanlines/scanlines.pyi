from onemodel.augment.protocol import NativeAugmentation

class Scanlines(NativeAugmentation):
    def __init__(
        self, period: tuple[int, int] = (3, 6), gain: tuple[float, float] = (0.5, 0.9)
    ) -> None: ...
    @property
    def period(self) -> tuple[int, int]: ...
    @property
    def gain(self) -> tuple[float, float]: ...
