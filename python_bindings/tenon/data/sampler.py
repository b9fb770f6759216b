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


def pass_seed(seed: int | None, number: int) -> int | None:
    """The seed of pass `number`."""
    return None if seed is None else hash((seed, number))


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
        seed = pass_seed(self.seed, self.passes)
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


class WeightedRandomSampler(Sampler):
    """`num_samples` indices, drawn with probabilities in proportion to `weights`.

    Without `replacement` no index comes twice. With a seed, pass number n is the same in every run.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        seed: int | None = None,
    ) -> None:
        self.weights = [float(weight) for weight in weights]
        possible = sum(weight > 0 for weight in self.weights)
        if not possible or min(self.weights) < 0:
            raise ValueError(
                "WeightedRandomSampler: expected weights of at least 0, and one above, got "
                f"{self.weights}"
            )
        if num_samples < 1 or not (replacement or num_samples <= possible):
            raise ValueError(
                f"WeightedRandomSampler: expected num_samples from 1 to {possible} without "
                f"replacement, got {num_samples}"
            )
        self.num_samples, self.replacement, self.seed = num_samples, replacement, seed
        self.passes = 0

    def __iter__(self) -> Iterator[int]:
        seed = pass_seed(self.seed, self.passes)
        self.passes += 1
        draw = random.Random(tenon.randint(0, 2**31, [1]).item() if seed is None else seed)
        indices = range(len(self.weights))
        if self.replacement:
            return iter(draw.choices(indices, self.weights, k=self.num_samples))
        # The largest u ** (1 / weight) are a weighted sample (Efraimidis and Spirakis, 2006).
        keys = [draw.random() ** (1.0 / w) if w else -1.0 for w in self.weights]
        return iter(sorted(indices, key=lambda i: -keys[i])[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler):
    """The part of a dataset that the process `rank` of `num_replicas` reads.

    All processes draw the same order from `seed` and the number of the pass, which set_epoch() sets,
    and take every `num_replicas`-th index. Indices from the start make the parts equally long, or
    `drop_last` leaves the last ones out.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int,
        rank: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"DistributedSampler: expected rank from 0 to {num_replicas - 1}, got {rank}"
            )
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.passes = 0

    def set_epoch(self, epoch: int) -> None:
        """The number of the next pass, from which its order follows."""
        self.passes = epoch

    def __iter__(self) -> Iterator[int]:
        count, total = len(self.dataset), len(self) * self.num_replicas
        order = list(range(count))
        if self.shuffle:
            order = permutation(count, pass_seed(self.seed, self.passes))
        while order and len(order) < total:
            order += order[: total - len(order)]
        return iter(order[self.rank : total : self.num_replicas])

    def __len__(self) -> int:
        count, parts = len(self.dataset), self.num_replicas
        return count // parts if self.drop_last else -(-count // parts)


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
