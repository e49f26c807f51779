"""The training data loader whose every batch can be replayed, anywhere."""

from onemodel import augment, datasets, image, transforms
from onemodel.bucketing import BucketedSampler
from onemodel.collators import ImageBatch, ImageBatchCollator
from onemodel.datasets import ArrayDataset
from onemodel.digests import digest
from onemodel.keys import BatchKey
from onemodel.loader import DataLoader
from onemodel.permutation import KeyedPermutation
from onemodel.pool import BufferPool
from onemodel.rng import SampleRng, derive, mix
from onemodel.sample import Sample
from onemodel.samplers import MixingSampler, Sampler, SequentialSampler, ShuffledSampler
from onemodel.transforms import Compose

__all__ = [
    "ArrayDataset",
    "BatchKey",
    "BucketedSampler",
    "BufferPool",
    "Compose",
    "DataLoader",
    "ImageBatch",
    "ImageBatchCollator",
    "KeyedPermutation",
    "MixingSampler",
    "Sample",
    "SampleRng",
    "Sampler",
    "SequentialSampler",
    "ShuffledSampler",
    "augment",
    "datasets",
    "derive",
    "digest",
    "image",
    "mix",
    "transforms",
]

__version__ = "0.1.0"
