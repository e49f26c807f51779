"""Datasets: samples, rows and columns by index.

It knows arrays, images, tables and files.
It must not know samplers, augmentations, transforms or the loader.
"""

from onemodel.datasets._items.items import Items
from onemodel.datasets._items.tar import TarItems
from onemodel.datasets.arrays import ArrayDataset
from onemodel.datasets.columns import Columns
from onemodel.datasets.digits import DigitLines
from onemodel.datasets.image_table import ImageTable

__all__ = ["ArrayDataset", "Columns", "DigitLines", "ImageTable", "Items", "TarItems"]
