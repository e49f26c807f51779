"""Plain C loops, compiled at run time: what this machine can do with the same bytes as output."""

from benchmarks.ceiling.build import CeilingMissingError, library
from benchmarks.ceiling.jobs import ArraysCeiling, LinesCeiling, permutation_take

__all__ = ["ArraysCeiling", "CeilingMissingError", "LinesCeiling", "library", "permutation_take"]
