import numpy as np
from numpy.typing import NDArray

from onemodel.sources import Sources
from onemodel.stages import Program

__all__ = ["collate", "load_image", "store_image", "write_integers"]

def collate(
    sources: Sources,
    images: NDArray[np.float32],
    pad_value: float,
    program: Program,
    streamed: bool,
    seed: int,
    epoch: int,
    step: int,
    first_slot: int,
) -> None: ...
def write_integers(sources: Sources, integers: NDArray[np.int32]) -> None: ...
def load_image(sources: Sources, slot: int, image: NDArray[np.float32]) -> None: ...
def store_image(
    images: NDArray[np.float32], slot: int, image: NDArray[np.float32], pad_value: float
) -> None: ...
