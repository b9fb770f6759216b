# SPDX-License-Identifier: Apache-2.0
"""paddle.io: Tenon's datasets, samplers and loader with Paddle's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tenon
from tenon import data
from tenon.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    get_worker_info,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ComposeDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "get_worker_info",
    "random_split",
]


def _refuse(name: str, **given: tuple[Any, Any]) -> None:
    """Refuse parameters, each given with its neutral value, that have another one."""
    for parameter, (value, neutral) in given.items():
        if value is not neutral and value != neutral:
            raise NotImplementedError(f"{name}(): expected {parameter}={neutral!r}, got {value!r}")


class TensorDataset(data.TensorDataset):
    """Samples are rows of a list of tensors."""

    def __init__(self, tensors: Sequence[tenon.Tensor]) -> None:
        super().__init__(*tensors)


class ComposeDataset(data.Dataset):
    """Datasets of equal length side by side: a sample has the fields of all of theirs."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        lengths = [len(each) for each in self.datasets]
        if len(set(lengths)) != 1:
            raise ValueError(f"ComposeDataset(): expected datasets of equal length, got {lengths}")

    def __len__(self) -> int:
        return len(self.datasets[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        fields: list[Any] = []
        for each in self.datasets:
            sample = each[index]
            fields.extend(sample if isinstance(sample, list | tuple) else [sample])
        return tuple(fields)


class Sampler(data.Sampler[Any]):
    """Base class of what yields indices of `data_source`."""

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source


class SequenceSampler(data.SequentialSampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Any) -> None:
        super().__init__(data_source)
        self.data_source = data_source


class RandomSampler(data.RandomSampler):
    """Every sample once in a random order, or as many as `num_samples`."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        _refuse("RandomSampler", generator=(generator, None))
        if num_samples is not None and not replacement and num_samples > len(data_source):
            raise ValueError(
                f"RandomSampler(): expected num_samples up to {len(data_source)} without replacement, got {num_samples}"
            )
        super().__init__(data_source, replacement=replacement, num_samples=num_samples)
        self.data_source = data_source


class WeightedRandomSampler(data.WeightedRandomSampler):
    """`num_samples` indices, drawn with probabilities in proportion to `weights`."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True) -> None:
        listed = weights.tolist() if hasattr(weights, "tolist") else weights
        super().__init__(listed, num_samples, replacement)


class BatchSampler(data.BatchSampler):
    """Lists of indices of a dataset, in order or shuffled, or of a sampler. Subclasses may define __iter__ and __len__."""

    def __init__(
        self,
        dataset: Any = None,
        sampler: Iterable[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if (dataset is None) == (sampler is None):
            raise ValueError(
                "BatchSampler(): expected dataset or sampler, got "
                + ("neither" if dataset is None else "both")
            )
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        elif shuffle:
            raise ValueError("BatchSampler(): expected shuffle=False beside a sampler, got True")
        super().__init__(sampler, batch_size, drop_last)


class DistributedBatchSampler(data.BatchSampler):
    """Lists of indices of the part of a dataset that a rank reads. set_epoch() before a pass gives it another order."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise NotImplementedError(
                "DistributedBatchSampler(): expected num_replicas and rank, got None; give the number of ranks and this one"
            )
        self.dataset = dataset
        self.part = data.DistributedSampler(dataset, num_replicas, rank, shuffle)
        super().__init__(self.part, batch_size, drop_last)

    def set_epoch(self, epoch: int) -> None:
        self.part.set_epoch(epoch)


class DataLoader:
    """Batches of a dataset. Samples are stacked as by tenon.data.default_collate, Python's floats as float64.

    Batches are lists where samples are tuples, and tensors on the CPU.
    """

    def __init__(
        self,
        dataset: Any,
        feed_list: Any = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[Sequence[Any]], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        reader_buffer_size: int = 2,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: int = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        persistent_workers: bool = False,
    ) -> None:
        _refuse(
            "DataLoader",
            feed_list=(feed_list, None),
            places=(places, None),
            return_list=(return_list, True),
            use_buffer_reader=(use_buffer_reader, True),
            reader_buffer_size=(reader_buffer_size, 2),
            use_shared_memory=(use_shared_memory, True),
        )
        workers: dict[str, Any] = {"prefetch_factor": prefetch_factor} if num_workers else {}
        if not num_workers:
            _refuse("DataLoader without workers", prefetch_factor=(prefetch_factor, 2))
        self.loader: data.DataLoader[Any] = data.DataLoader(
            dataset,
            batch_size,
            shuffle,
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            drop_last=drop_last,
            collate_fn=collate_fn,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            persistent_workers=persistent_workers,
            **workers,
        )
        self.dataset, self.batch_size, self.batch_sampler = dataset, batch_size, batch_sampler
        self.num_workers = num_workers

    def __iter__(self) -> Iterator[Any]:
        return iter(self.loader)

    def __len__(self) -> int:
        return len(self.loader)

    def __call__(self) -> Iterator[Any]:
        return iter(self)


def random_split(dataset: Any, lengths: Sequence[Any], generator: Any = None) -> list[Subset]:
    """Disjoint random subsets; `lengths` are counts, or fractions that sum to 1."""
    _refuse("random_split", generator=(generator, None))
    return data.random_split(dataset, lengths)
