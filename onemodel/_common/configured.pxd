"""What an object keeps of the call that made it: see configured.pyx."""


cdef class Configured:
    cdef object given           # the arguments by name, read-only; None until __init__ ran
    cdef object owner           # the class whose __init__ took them


cpdef int configure(Configured made, object owner, dict arguments) except -1

cdef int check_initialised(Configured made) except -1
