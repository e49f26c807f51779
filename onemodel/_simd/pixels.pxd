"""The value of a uint8 pixel, for kernels."""

from libc.stdint cimport uint8_t


cdef extern from "pixel_value.h":
    # p * scale - shift, each operation rounded to float32
    float pixel_value "onemodel_pixel_value"(uint8_t p, float scale, float shift) noexcept nogil
