"""One base for all that is made once from arguments: augmentations, transforms and chains.

It keeps the arguments by name, and gives them, the repr and the pickle from there. So the
arguments have one address, and an object whose __init__ never ran is told from one that has none.
"""

cimport cython

from types import MappingProxyType

__all__ = [
    "Argument", "Configured", "added_attributes", "configure", "mark_made_by_init", "rebuild"
]


cdef class Configured:
    """An object that never changes after the call that made it.

    Its ``__init__`` checks the arguments and hands them to ``configure``. The repr shows every
    argument exactly. A pickle holds the arguments and what a Python subclass keeps in its
    ``__dict__`` or slots; the class of the copy is that of the object.

    Raises:
        TypeError: from every use, if ``__init__`` did not run; and from a second ``__init__``.

    >>> class Crop(Configured):
    ...     size = Argument("size", "The side of the window.")
    ...     def __init__(self, size):
    ...         configure(self, Crop, {"size": size})
    >>> Crop(3), Crop(3).size
    (Crop(size=3), 3)
    """

    @property
    def arguments(self):
        """The arguments by name, read-only."""
        check_initialised(self)
        return self.given

    def __repr__(self):
        check_initialised(self)
        shown = ", ".join([f"{name}={value!r}" for name, value in self.given.items()])
        return f"{type(self).__name__}({shown})"

    def __reduce__(self):
        check_initialised(self)
        return rebuild, (type(self), self.owner, dict(self.given)), self.__getstate__()


cpdef int configure(Configured made, object owner, dict arguments) except -1:
    """Keep the checked arguments of ``made``: the last thing of an __init__ that can fail.

    Args:
        owner: the class whose ``__init__`` takes these arguments by name; a subclass may have
            another one.

    Raises:
        TypeError: if they are there already. A running pass may hold what the first __init__ made.
    """
    if made.given is not None:
        raise TypeError(f"a {type(made).__name__} is made once and cannot be changed; make another")
    made.owner = owner
    made.given = MappingProxyType(arguments)
    return 0


cdef int check_initialised(Configured made) except -1:
    if made.given is None:
        raise TypeError(f"{type(made).__name__} was not initialised: its __init__ must run")
    return 0


@cython.binding(True)
class Argument:
    """The read-only attribute that shows one argument of a ``Configured`` class.

    Args:
        name: the argument's.
        doc: what ``help`` says of the attribute.
    """

    def __init__(self, name, doc):
        self.name = name
        self.__doc__ = doc

    def __get__(self, made, kind=None):
        return self if made is None else made.arguments[self.name]

    def __set__(self, made, value):
        raise AttributeError(f"{self.name} is read-only: make another {type(made).__name__}")

    def __delete__(self, made):
        raise AttributeError(f"{self.name} is read-only: make another {type(made).__name__}")


@cython.binding(True)
class MadeByInit:
    """Stands in a class for an attribute that only ``__init__`` makes, until an object has it.

    An object's own attribute goes before it, so reading one costs nothing more. A ``__getattr__``
    would slow down every attribute of the class.
    """

    def __get__(self, made, kind=None):
        if made is None:
            return self
        raise TypeError(f"{type(made).__name__}.__init__ must call super().__init__ first")


def mark_made_by_init(kind, names):
    """Let reading one of the attributes raise TypeError where the ``__init__`` never ran.

    >>> class Dataset:
    ...     def __init__(self):
    ...         self.length = 3
    >>> mark_made_by_init(Dataset, {"length"})
    >>> Dataset().length
    3
    """
    for name in names:
        if not hasattr(kind, name):
            setattr(kind, name, MadeByInit())


def rebuild(kind, owner, arguments):
    """Return the ``kind`` that the __init__ of ``owner`` makes: how a pickle is read."""
    made = kind.__new__(kind)
    owner.__init__(made, **arguments)
    return made


def added_attributes(made, own):
    """Return what a subclass or a user added to an object beside the names in ``own``, or None.

    As ``object.__getstate__`` gives it, which ``pickle`` sets again: a dict, or with slots a pair.
    """
    state = made.__getstate__()
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    added = {name: value for name, value in (attributes or {}).items() if name not in own}
    return (added, slots) if slots else added or None
