"""Datasets: what the samples and rows of a batch are read from. This module only names them.

It knows arrays and files, and nothing of transforms, augmentations, collation or the loader.
"""

from onemodel.datasets.arrays import ArrayDataset
from onemodel.datasets.columns import Columns
from onemodel.datasets.digits import DigitLines
from onemodel.datasets.image_table import ImageTable

__all__ = ["ArrayDataset", "Columns", "DigitLines", "ImageTable"]
