from collections.abc import Iterable
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arguments import (
    check_flag,
    check_integer_pair,
    check_number,
    check_numbers,
    check_pair,
    check_probability,
)
from onemodel._common.configured import Argument, Configured
from onemodel._common.integers import check_integer
from onemodel._random.rng import SampleRng

__all__ = [
    "Argument",
    "Chain",
    "CompiledAugmentation",
    "NativeAugmentation",
    "RandomAugmentation",
    "check_flag",
    "check_integer",
    "check_integer_pair",
    "check_number",
    "check_numbers",
    "check_pair",
    "check_probability",
]

class NativeAugmentation(Configured):
    def __call__(self, rng: SampleRng, image: NDArray[np.float32]) -> None: ...

class RandomAugmentation(NativeAugmentation):
    def __init__(self, p: SupportsFloat = ...) -> None: ...
    @property
    def p(self) -> float: ...

class CompiledAugmentation(NativeAugmentation):
    def _edits(self, edit: int) -> None: ...
    def _makes_pixels(
        self, draw: int, drawn_bytes: int, from_bytes: int, from_floats: int
    ) -> None: ...

class Chain(Configured):
    def __init__(self, parts: Iterable[NativeAugmentation]) -> None: ...
    def __call__(
        self,
        rng: SampleRng,
        image: NDArray[np.float32],
        out: NDArray[np.float32] | None = ...,
    ) -> None: ...
    @property
    def parts(self) -> tuple[NativeAugmentation, ...]: ...
