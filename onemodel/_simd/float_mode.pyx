"""The thread's floating-point mode, for Python code: a context in which it is the default one."""

from libc.stdint cimport uint64_t

__all__ = ["DefaultFloatMode"]


cdef class DefaultFloatMode:
    """A context in which the calling thread rounds to nearest and keeps subnormal numbers.

    On leaving, the mode that was found is put back. One object serves one ``with`` at a time.

    >>> with DefaultFloatMode():
    ...     5e-324 * 0.5 + 5e-324 > 0
    True
    """

    cdef uint64_t found

    def __enter__(self):
        self.found = default_float_mode()
        return self

    def __exit__(self, *exception):
        restore_float_mode(self.found)
