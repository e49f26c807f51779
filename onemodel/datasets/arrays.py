"""Arrays as a dataset."""

from __future__ import annotations

from typing import Any

__all__ = ["ArrayDataset"]


class ArrayDataset:
    """Arrays of equal first dimension."""

    def __init__(self, *arrays: Any) -> None:
        self._arrays = arrays[0] if isinstance(arrays[0], dict) else arrays

    def __len__(self) -> int:
        arrays = self._arrays
        return len(next(iter(arrays.values())) if isinstance(arrays, dict) else arrays[0])

    def __getitem__(self, i: Any) -> Any:
        if isinstance(self._arrays, dict):
            return {k: a[i] for k, a in self._arrays.items()}
        rows = tuple(a[i] for a in self._arrays)
        return rows if len(rows) > 1 else rows[0]
