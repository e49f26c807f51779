"""One base for datasets: made once, pickled by what they were made of."""

from __future__ import annotations

from typing import Any, ClassVar

from onemodel._common.configured import added_attributes, mark_made_by_init

__all__ = ["MadeOnce", "remake"]


class MadeOnce:
    """A dataset that its first ``__init__`` decides.

    A class names its private attributes in ``_own`` and says in ``_recipe`` how it is made again.
    A pickle holds the recipe and what a subclass or a user added; the class of the copy is that of
    the object.

    Raises:
        TypeError: from a second ``__init__``, and from every use if ``__init__`` never ran.
    """

    _own: ClassVar[frozenset[str]] = frozenset()

    def _begin(self) -> None:
        """Refuse a second ``__init__``: a running pass reads what the first one made."""
        if not self._own.isdisjoint(self.__dict__):
            raise TypeError(f"{type(self).__name__} cannot be changed; make another")

    def _recipe(self) -> tuple[Any, ...]:
        """Return a method of the class and the arguments with which it fills a new object."""
        raise NotImplementedError

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        mark_made_by_init(cls, cls._own)

    def _added(self) -> Any:
        """Return what a subclass or a user added, as `object.__getstate__` would."""
        return added_attributes(self, self._own)

    def __reduce__(self) -> tuple[Any, ...]:
        recipe = self._recipe()
        return remake, (type(self), *recipe), self._added()


def remake(kind: Any, fill: Any, *arguments: Any) -> Any:
    """Return the ``kind`` that ``fill(made, *arguments)`` makes: how a pickle is read."""
    made = kind.__new__(kind)
    fill(made, *arguments)
    return made
