# SPDX-License-Identifier: Apache-2.0
"""Datasets, samplers and the DataLoader."""

from .dataset import ConcatDataset, Dataset, Subset, TensorDataset, random_split
from .loader import DataLoader, default_collate
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "default_collate",
    "random_split",
]
