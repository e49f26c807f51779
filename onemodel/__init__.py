"""The training data loader whose every batch can be replayed, anywhere."""

from onemodel._common import require_compiled

require_compiled()  # before anything asks for a compiled module

from onemodel import augment, datasets, image, transforms
from onemodel._batch.digest import digest
from onemodel._batch.key import BatchKey
from onemodel._checks.ctc import check_ctc
from onemodel._checks.inspection import inspect_loader
from onemodel._checks.purity import check_loader
from onemodel._collate.collator import ImageBatchCollator
from onemodel._collate.image_batch import ImageBatch
from onemodel._memory.pool import BufferPool
from onemodel._random.permutation import KeyedPermutation
from onemodel._random.rng import SampleRng, derive, mix
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.budget import BudgetSampler
from onemodel._samplers.samplers import MixingSampler, Sampler, SequentialSampler, ShuffledSampler
from onemodel._samplers.weighted import WeightedSampler
from onemodel.datasets import ArrayDataset
from onemodel.datasets.sample import Sample
from onemodel.loader import DataLoader
from onemodel.transforms import Compose

__all__ = [
    "ArrayDataset",
    "BatchKey",
    "BucketedSampler",
    "BudgetSampler",
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
    "WeightedSampler",
    "augment",
    "check_ctc",
    "check_loader",
    "datasets",
    "derive",
    "digest",
    "image",
    "inspect_loader",
    "mix",
    "transforms",
]

__version__ = "0.1.0"
