"""The dataset of the golden batches. Source: `tests/golden/README.md`."""

import numpy as np

from .collate import Sample
from .rng import SampleRng, mix


class GoldenLines:
    """`count` ragged images of one channel, each a pure function of its index."""

    def __init__(self, count, height):
        self.count = count
        self.height = height

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = SampleRng(mix(index))
        width = 3 + rng.next_int(9)
        target = tuple(1 + rng.next_int(10) for _ in range(1 + rng.next_int(5)))
        label = rng.next_int(10)
        pixels = [rng.next_single() for _ in range(self.height * width)]
        image = np.array(pixels, dtype=np.float32).reshape(1, self.height, width)
        return Sample(image, target, label)


class FaintLines(GoldenLines):
    """The same images times 2^-135: most of their values are subnormal float32 numbers."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return sample._replace(image=sample.image * np.float32(2.0**-135))


def gain_and_offset(rng, image):
    """The augmentation of the golden batches: two draws, then one pass, in float32."""
    gain = np.float32(0.8) + np.float32(0.4) * np.float32(rng.next_single())
    offset = np.float32(-0.1) + np.float32(0.2) * np.float32(rng.next_single())
    np.multiply(image, gain, out=image)
    np.add(image, offset, out=image)
