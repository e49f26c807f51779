from typing import Self

__all__ = ["DefaultFloatMode"]

class DefaultFloatMode:
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
