# SPDX-License-Identifier: Apache-2.0
"""Samplers: in which order a dataset is read."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tenon


def permutation(count: int, seed: int | None = None) -> list[int]:
    """0 ... count-1 in random order. Without a seed, tenon.manual_seed decides."""
    if seed is None:
        return tenon.randperm(count).tolist()
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


class Sampler:
    """Yields indices; has a length."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__()")


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.dataset)))

    def __len__(self) -> int:
        return len(self.dataset)


class RandomSampler(Sampler):
    """Every sample once, in a new random order for each pass.

    With a seed, pass number n has the same order in every run.
    """

    def __init__(self, dataset: Any, seed: int | None = None) -> None:
        self.dataset = dataset
        self.seed = seed
        self.passes = 0

    def __iter__(self) -> Iterator[int]:
        seed = None if self.seed is None else hash((self.seed, self.passes))
        self.passes += 1
        return iter(permutation(len(self.dataset), seed))

    def __len__(self) -> int:
        return len(self.dataset)


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], seed: int | None = None) -> None:
        self.indices = list(indices)
        self.order = RandomSampler(self.indices, seed)

    def __iter__(self) -> Iterator[int]:
        return (self.indices[row] for row in self.order)

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        if batch_size < 1:
            raise ValueError(f"BatchSampler: expected batch_size >= 1, got {batch_size}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
