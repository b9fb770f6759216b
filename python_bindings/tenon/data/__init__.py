# SPDX-License-Identifier: Apache-2.0
"""Datasets, samplers and the DataLoader."""

from .arrow import ArrowDataset, ParquetDataset
from .collate import default_collate
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .frozen import FrozenList
from .images import ImageFolder
from .loader import DataLoader
from .numpy_files import NumpyDataset
from .reading import WorkerInfo, get_worker_info, pass_rng, sample_rng, sample_seed
from .sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .webdataset import WebDataset
from .workers import WorkerError

__all__ = [
    "ArrowDataset",
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "FrozenList",
    "ImageFolder",
    "IterableDataset",
    "NumpyDataset",
    "ParquetDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WebDataset",
    "WeightedRandomSampler",
    "WorkerError",
    "WorkerInfo",
    "default_collate",
    "get_worker_info",
    "pass_rng",
    "random_split",
    "sample_rng",
    "sample_seed",
]
