# SPDX-License-Identifier: Apache-2.0
"""torch.utils.data: tenon.data by PyTorch's signatures, where a generator decides what a seed does in Tenon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tenon
from tenon import data, distributed

__all__ = [
    "DataLoader",
    "DistributedSampler",
    "RandomSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "random_split",
]


def _seed(generator: Any) -> int | None:
    """A number from the generator; without one tenon.manual_seed decides."""
    if generator is None:
        return None
    with generator:
        return int(tenon.randint(0, 2**62, [1]).item())


class DataLoader(data.DataLoader):
    """tenon.data.DataLoader."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[..., Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if not in_order:
            raise NotImplementedError("DataLoader(): expected in_order=True, got False")
        super().__init__(
            dataset,
            batch_size,
            bool(shuffle),
            sampler=sampler,
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            collate_fn=collate_fn,
            pin_memory=pin_memory,
            drop_last=drop_last,
            timeout=timeout,
            worker_init_fn=worker_init_fn
            if num_workers
            else None,  # without workers nothing calls it
            multiprocessing_context=multiprocessing_context,
            seed=_seed(generator),
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
        )


class RandomSampler(data.RandomSampler):
    """tenon.data.RandomSampler."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        super().__init__(
            data_source, _seed(generator), replacement=replacement, num_samples=num_samples
        )


class SubsetRandomSampler(data.SubsetRandomSampler):
    """tenon.data.SubsetRandomSampler."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        super().__init__(indices, seed=_seed(generator))


class WeightedRandomSampler(data.WeightedRandomSampler):
    """tenon.data.WeightedRandomSampler."""

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        super().__init__(weights, num_samples, replacement, seed=_seed(generator))


class DistributedSampler(data.DistributedSampler):
    """tenon.data.DistributedSampler, by default of the ranks of the job."""

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        own = distributed.get_rank() if rank is None else rank
        super().__init__(dataset, replicas, own, shuffle, seed, drop_last)

    @property
    def epoch(self) -> int:
        return self.passes

    @property
    def num_samples(self) -> int:
        return len(self)

    @property
    def total_size(self) -> int:
        return len(self) * self.num_replicas


def random_split(dataset: Any, lengths: Sequence[Any], generator: Any = None) -> list[Any]:
    """tenon.data.random_split."""
    return list(data.random_split(dataset, lengths, _seed(generator)))
