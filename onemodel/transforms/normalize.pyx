"""Normalize: pixels to float32 planes with mean 0 and deviation 1.

Source: docs/transforms.md, section "Normalize".
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from onemodel._common.arguments import check_key, check_numbers
from onemodel._common.configured import Argument
from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of
from onemodel._simd.float_mode import DefaultFloatMode
from onemodel._simd.scale_and_shift import scale_and_shift
from onemodel._simd.dispatch cimport loops
from onemodel._simd.pixels cimport pixel_value
from onemodel.transforms.geometry cimport FlipParameters, RandomHorizontalFlip, flip_draw
from onemodel.transforms.layout import check_layout
from onemodel.transforms.protocol cimport NativeTransform, RowFormat, configure

__all__ = ["Normalize"]


ctypedef struct NormalizeSettings:
    int64_t count               # of means and deviations: 1 serves every channel
    const float *mean
    const float *std
    const float *scale          # of bytes: 1 / (255 * std)
    const float *shift          # of bytes: mean / std


cdef void bytes_to_planes(
    const NormalizeSettings *settings, const RowFormat *format, const uint8_t *source,
    float *target, bint mirrored, bint non_temporal
) noexcept nogil:
    """Bytes [H, W, C], each line from right to left where mirrored, to planes [C, H, W]."""
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


cdef void normalize_planes(
    const NormalizeSettings *settings, const RowFormat *format, const char *source, float *target
) noexcept nogil:
    """Planes [C, H, W] of bytes or floats to planes of floats."""
    cdef int64_t plane = format.height * format.width
    cdef int64_t channel, each, k
    cdef const float *pixels
    cdef float mean, std, centred
    for channel in range(format.channels):
        each = channel if settings.count > 1 else 0
        if format.item_bytes == 1:
            loops.convert(
                target, <const uint8_t *>source, plane, settings.scale[each], settings.shift[each]
            )
        else:
            pixels = <const float *>source
            mean, std = settings.mean[each], settings.std[each]
            for k in range(plane):
                centred = pixels[k] - mean
                target[k] = centred / std
        source += plane * format.item_bytes
        target += plane


cdef void normalize_pixels(
    const NormalizeSettings *settings, const RowFormat *format, const float *source, float *target
) noexcept nogil:
    """Floats [H, W, C] to floats [H, W, C]."""
    cdef int64_t channel, each, _pixel
    cdef float centred
    for _pixel in range(format.height * format.width):
        for channel in range(format.channels):
            each = channel if settings.count > 1 else 0
            centred = source[channel] - settings.mean[each]
            target[channel] = centred / settings.std[each]
        source += format.channels
        target += format.channels


cdef const char *normalize_row(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil:
    cdef const NormalizeSettings *values = <const NormalizeSettings *>settings
    if before.planar:
        normalize_planes(values, before, source, <float *>target)
    elif before.item_bytes == 1:
        bytes_to_planes(
            values, before, <const uint8_t *>source, <float *>target, False, non_temporal
        )
    else:
        normalize_pixels(values, before, <const float *>source, <float *>target)
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


cdef tuple float32_settings(means, deviations, count):
    """mean, std, scale and shift as float32 arrays, one value for each of `count` channels.

    One number for every channel is repeated for three: the loop over pixels of three bytes reads
    as many.
    """
    channels = 3 if count == 1 else count
    scale, shift = scale_and_shift(tuple(means), tuple(deviations), channels)
    with np.errstate(all="ignore"):     # a deviation that is 0 in float32 was refused
        singles = [
            np.array(values if len(values) == channels else channels * values, np.float32)
            for values in (means, deviations)
        ]
    return singles[0], singles[1], scale, shift


cdef const float *floats(array) except NULL:
    cdef Array found
    array_of(array, b"f", 1, CONTIGUOUS, &found)
    return <const float *>found.data


cdef class Normalize(NativeTransform):
    """Images to float32 [C, H, W] with a mean and a deviation for each channel.

    uint8 [H, W, C] are converted in one pass: ``p * (1 / (255 * std)) - mean / std``, the bytes
    of ``image.rgb8_to_planar``. float32 [C, H, W] give ``(x - mean) / std``. Every operation
    rounds to float32. Rows [H, W] come out as [1, H, W] from uint8 and as [H, W] from float32.
    With ``layout="CHW"`` uint8 rows are [C, H, W] and come out so; with ``layout="HWC"`` float32
    rows are [H, W, C] and stay so.

    Draws: none.

    Args:
        mean: finite, in units of pixels in [0, 1]: one number, or one for each channel.
        std: greater than 0, likewise.
        key: which array; None for the first (of a dict: "x" where there is one).
        layout: "HWC" or "CHW", the axes of a row; None for the usual ones of its dtype.

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
    cdef tuple owned            # the arrays that settings points into

    mean = Argument("mean", "One number, or one for each channel.")
    std = Argument("std", "One number, or one for each channel.")

    @cython.embedsignature.format("c")
    def __init__(self, mean, std, key=None, layout=None):
        means, deviations = check_numbers("mean", mean), check_numbers("std", std)
        count = max(len(means), len(deviations))
        if len(means) not in (1, count) or len(deviations) not in (1, count):
            raise ValueError(
                f"mean and std must have as many channels, got {len(means)} and {len(deviations)}"
            )
        with DefaultFloatMode():    # whatever the thread that makes the object was set to
            owned = float32_settings(means, deviations, count)
        configure(self, Normalize, {
            "mean": tuple(means) if hasattr(mean, "__iter__") else means[0],
            "std": tuple(deviations) if hasattr(std, "__iter__") else deviations[0],
            "key": check_key("key", key),
            "layout": check_layout(layout),
        })
        self.owned = owned
        self.settings.count = count
        self.settings.mean, self.settings.std = floats(owned[0]), floats(owned[1])
        self.settings.scale, self.settings.shift = floats(owned[2]), floats(owned[3])
        self.operation.settings = &self.settings
        self.operation.apply = normalize_row

    cdef RowFormat after(self, RowFormat before) except *:
        if self.settings.count not in (1, before.channels):
            raise ValueError(
                f"mean and std must be one number or one for each of the {before.channels} "
                f"channels, got {self.settings.count}"
            )
        if before.item_bytes == 1:
            before.item_bytes, before.planar, before.flat = sizeof(float), True, False
        return before

    cdef NativeTransform merged_with(self, NativeTransform previous, RowFormat before):
        # exactly that class: one made from it may have set another operation
        if before.item_bytes == 1 and not before.planar and type(previous) is RandomHorizontalFlip:
            return FlippedNormalize.of(previous, self)
        return None
