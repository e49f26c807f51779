"""The thread's floating-point mode, for kernels: float_mode.h says what it is."""

from libc.stdint cimport uint64_t


cdef extern from "float_mode.h":
    # Set the default mode and return what was found, to be handed to the other one afterwards.
    uint64_t default_float_mode "onemodel_default_float_mode"() noexcept nogil
    void restore_float_mode "onemodel_restore_float_mode"(uint64_t found) noexcept nogil
    float to_single "onemodel_to_single"(double value) noexcept nogil
