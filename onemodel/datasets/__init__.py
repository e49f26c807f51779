"""Datasets: what `dataset[i]` can stand on. This module only names them."""

from onemodel.datasets.digits import DigitLines

__all__ = ["DigitLines"]
