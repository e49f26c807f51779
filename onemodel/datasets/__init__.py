"""Datasets: what `dataset[i]` can stand on. This module only names them."""

from onemodel.datasets.arrays import ArrayDataset
from onemodel.datasets.digits import DigitLines
from onemodel.datasets.image_table import ImageTable

__all__ = ["ArrayDataset", "DigitLines", "ImageTable"]
