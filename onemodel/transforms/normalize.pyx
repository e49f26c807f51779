"""Normalize: pixels to float32 planes with mean 0 and deviation 1.

Source: docs/transforms.md, section "Normalize".
"""

cimport cython
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from onemodel._common.arguments import check_numbers
from onemodel.transforms.geometry cimport FlipParameters, RandomHorizontalFlip, flip_draw
from onemodel.transforms.protocol cimport FLOAT32_CHW, UINT8_HWC, NativeTransform, RowFormat
from onemodel._simd.dispatch cimport loops
from onemodel._simd.pixels cimport pixel_value

__all__ = ["Normalize"]


ctypedef struct NormalizeSettings:
    int64_t count               # of means and deviations: 1 serves every channel
    float *mean
    float *std
    float *scale                # of bytes: 1 / (255 * std)
    float *shift                # of bytes: mean / std


cdef void bytes_to_planes(
    const NormalizeSettings *settings, const RowFormat *format, const uint8_t *source,
    float *target, bint mirrored, bint non_temporal
) noexcept nogil:
    """Bytes [H, W, C], each row from right to left where mirrored, to planes [C, H, W]."""
    cdef int64_t channels = format.channels
    cdef int64_t width = format.width
    cdef int64_t plane = format.height * width
    cdef int64_t channel, y, x, step
    cdef const uint8_t *pixel
    cdef float scale, shift
    if channels == 3:
        loops.planar3(
            target, source, format.height, width, settings.scale, settings.shift, mirrored,
            non_temporal
        )
        return
    step = -channels if mirrored else channels
    for channel in range(channels):
        scale = settings.scale[channel if settings.count > 1 else 0]
        shift = settings.shift[channel if settings.count > 1 else 0]
        if channels == 1 and not mirrored:
            loops.convert(target, source, plane, scale, shift)
            return
        for y in range(format.height):
            pixel = source + y * width * channels + channel
            if mirrored:
                pixel += (width - 1) * channels
            for x in range(width):
                target[x] = pixel_value(pixel[x * step], scale, shift)
            target += width


cdef const char *normalize_row(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil:
    cdef const NormalizeSettings *values = <const NormalizeSettings *>settings
    cdef const float *pixels = <const float *>source
    cdef float *result = <float *>target
    cdef int64_t plane = before.height * before.width
    cdef int64_t channel, k
    cdef float mean, std, centred
    if before.kind == UINT8_HWC:
        bytes_to_planes(values, before, <const uint8_t *>source, result, False, non_temporal)
        return target
    for channel in range(before.channels):
        mean = values.mean[channel if values.count > 1 else 0]
        std = values.std[channel if values.count > 1 else 0]
        for k in range(plane):
            centred = pixels[k] - mean
            result[k] = centred / std
        pixels += plane
        result += plane
    return target


# A flip directly before Normalize costs nothing when the pixels are read from right to left.
ctypedef struct FlippedSettings:
    const void *flip
    const NormalizeSettings *normalize


cdef void flipped_draw(
    const void *settings, uint64_t *state, const RowFormat *before, void *parameters
) noexcept nogil:
    flip_draw((<const FlippedSettings *>settings).flip, state, before, parameters)


cdef const char *flipped_row(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil:
    bytes_to_planes(
        (<const FlippedSettings *>settings).normalize, before, <const uint8_t *>source,
        <float *>target, (<const FlipParameters *>parameters).mirrored, non_temporal
    )
    return target


cdef class FlippedNormalize(NativeTransform):
    """A flip and then Normalize, of bytes, in a single pass."""

    cdef FlippedSettings settings
    cdef RandomHorizontalFlip flip
    cdef Normalize normalize

    @staticmethod
    cdef FlippedNormalize of(RandomHorizontalFlip flip, Normalize normalize):
        cdef FlippedNormalize merged = FlippedNormalize.__new__(FlippedNormalize)
        merged.flip = flip
        merged.normalize = normalize
        merged.settings.flip = flip.operation.settings
        merged.settings.normalize = &normalize.settings
        merged.operation.settings = &merged.settings
        merged.operation.parameter_bytes = sizeof(FlipParameters)
        merged.operation.draw = flipped_draw
        merged.operation.apply = flipped_row
        return merged


cdef class Normalize(NativeTransform):
    """Images to float32 [C, H, W] with a mean and a deviation for each channel.

    uint8 [H, W, C] are converted in one pass: ``p * (1 / (255 * std)) - mean / std``, the bytes
    of ``image.rgb8_to_planar``. float32 [C, H, W] give ``(x - mean) / std``. Every operation
    rounds to float32. Rows [H, W] come out as [1, H, W] from uint8 and as [H, W] from float32.

    Draws: none.

    Args:
        mean: finite, in units of pixels in [0, 1]: one number, or one for each channel.
        std: greater than 0, likewise.
        key: which array; None for the first (of a dict: "x" where there is one).

    Raises:
        TypeError, ValueError: if mean or std is out of range, or of another number than the
            channels of the images.

    >>> import numpy as np
    >>> from onemodel._random.rng import SampleRng
    >>> images = np.full((2, 4, 4, 3), 255, np.uint8)
    >>> planes = Normalize(mean=0.5, std=0.25)(SampleRng(0), images)
    >>> planes.shape, planes.dtype.name, planes[0, 0, 0, 0].item()
    ((2, 3, 4, 4), 'float32', 2.0)
    """

    cdef NormalizeSettings settings
    cdef float *memory
    cdef readonly object mean
    cdef readonly object std

    @cython.embedsignature.format("c")
    def __init__(self, mean, std, key=None):
        means = check_numbers("mean", mean)
        deviations = check_numbers("std", std)
        cdef int64_t count = max(len(means), len(deviations))
        cdef int64_t k
        for values in (means, deviations):
            if len(values) not in (1, count):
                raise ValueError(
                    f"mean and std must have as many channels, got {len(means)} and "
                    f"{len(deviations)}"
                )
        if self.memory != NULL:
            raise TypeError("a Normalize is made once")
        # three channels are the common case: one number for all is spread over them too
        cdef int64_t room = max(count, 3)
        self.memory = <float *>malloc(4 * room * sizeof(float))
        if self.memory == NULL:
            raise MemoryError(f"no memory for {count} channels")
        self.settings.count = count
        self.settings.mean = self.memory
        self.settings.std = self.memory + room
        self.settings.scale = self.memory + 2 * room
        self.settings.shift = self.memory + 3 * room
        cdef float mean_value, std_value, product
        for k in range(room):
            mean_value = means[k if len(means) > 1 and k < count else 0]
            std_value = deviations[k if len(deviations) > 1 and k < count else 0]
            product = <float>255.0 * std_value
            self.settings.mean[k] = mean_value
            self.settings.std[k] = std_value
            self.settings.scale[k] = <float>1.0 / product
            self.settings.shift[k] = mean_value / std_value
            if not (
                std_value > 0
                and isfinite(product)
                and isfinite(self.settings.scale[k])
                and isfinite(self.settings.shift[k])
            ):
                raise ValueError(
                    "std must be > 0, and 1 / (255 * std) and mean / std must be finite in "
                    f"float32, got mean {mean} and std {std}"
                )
        self.mean = tuple(means) if hasattr(mean, "__iter__") else means[0]
        self.std = tuple(deviations) if hasattr(std, "__iter__") else deviations[0]
        self.key = key
        self.arguments = {"mean": self.mean, "std": self.std, "key": key}
        self.operation.settings = &self.settings
        self.operation.apply = normalize_row

    def __dealloc__(self):
        free(self.memory)

    cdef RowFormat after(self, RowFormat before) except *:
        if self.settings.count not in (1, before.channels):
            raise ValueError(
                f"mean and std must be one number or one for each of the {before.channels} "
                f"channels, got {self.settings.count}"
            )
        if before.kind == UINT8_HWC:
            before.kind = FLOAT32_CHW
            before.flat = False
        return before

    cdef NativeTransform merged_with(self, NativeTransform previous, RowFormat before):
        if before.kind == UINT8_HWC and type(previous) is RandomHorizontalFlip:
            return FlippedNormalize.of(previous, self)
        return None
