"""Which loaders have a native lane, and which."""

from __future__ import annotations

from typing import Any

from onemodel._native.lane import Lane

__all__ = ["native_lane"]


def native_lane(builder: Any) -> Lane | None:
    return None
