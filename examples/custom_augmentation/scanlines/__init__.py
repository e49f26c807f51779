"""A native augmentation for onemodel, written outside of it."""

from scanlines.scanlines import Scanlines

__all__ = ["Scanlines"]
