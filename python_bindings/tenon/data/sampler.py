# SPDX-License-Identifier: Apache-2.0
"""Samplers: in which order a dataset is read."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import tenon


def permutation(count: int, seed: int | None = None) -> list[int]:
    """0 ... count-1 in random order. Without a seed, tenon.manual_seed decides."""
    if seed is None:
        return tenon.randperm(count).tolist()
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def _generator(seed: int | None) -> random.Random:
    """A generator with this seed. Without one, tenon.manual_seed decides."""
    return random.Random(tenon.randint(0, 2**31, [1]).item() if seed is None else seed)


def pass_seed(seed: int | None, number: int) -> int | None:
    """The seed of pass `number`."""
    return None if seed is None else hash((seed, number))


Index = TypeVar("Index", covariant=True)


class Sampler(Generic[Index]):
    """Yields indices; has a length."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__()")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.dataset)))

    def __len__(self) -> int:
        return len(self.dataset)


class RandomSampler(Sampler[int]):
    """Every sample once, in a new random order for each pass.

    With `replacement` every index is drawn by itself, so that one may come several times.
    `num_samples` says how many indices a pass has, the length of the dataset by default; without
    `replacement`, more than that are one random order after another. With a seed, pass number n has
    the same order in every run.
    """

    def __init__(
        self,
        dataset: Any,
        seed: int | None = None,
        *,
        replacement: bool = False,
        num_samples: int | None = None,
    ) -> None:
        if isinstance(seed, bool):
            raise TypeError(
                f"RandomSampler: expected an integer or None as seed, got {seed}; pass "
                f"replacement={seed} by its name"
            )
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"RandomSampler: expected num_samples >= 1, got {num_samples}")
        self.dataset = dataset
        self.seed = seed
        self.replacement, self.num_samples = replacement, num_samples
        self.passes = 0

    def __iter__(self) -> Iterator[int]:
        seed = pass_seed(self.seed, self.passes)
        self.passes += 1
        count, wanted = len(self.dataset), len(self)
        if not count and wanted:
            raise ValueError(
                f"RandomSampler: expected a sample or more to draw {wanted} from, got none"
            )
        if not self.replacement and wanted == count:
            return iter(permutation(count, seed))
        draw = _generator(seed)
        if self.replacement:
            return (draw.randrange(count) for _ in range(wanted))  # there may be very many
        orders = (draw.sample(range(count), count) for _ in range(-(-wanted // count)))
        return itertools.islice(itertools.chain.from_iterable(orders), wanted)

    def __len__(self) -> int:
        return len(self.dataset) if self.num_samples is None else self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], seed: int | None = None) -> None:
        self.indices = list(indices)
        self.order = RandomSampler(self.indices, seed)

    @property
    def passes(self) -> int:
        """The number of the next pass, from which its order follows. A loader that is resumed sets
        it."""
        return self.order.passes

    @passes.setter
    def passes(self, number: int) -> None:
        self.order.passes = number

    def __iter__(self) -> Iterator[int]:
        return (self.indices[row] for row in self.order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
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
        if not possible or min(self.weights) < 0 or not all(map(math.isfinite, self.weights)):
            raise ValueError(
                "WeightedRandomSampler: expected finite weights of at least 0, and one above, got "
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
        draw = _generator(seed)
        indices = range(len(self.weights))
        if self.replacement:
            # Scaled by a power of two, which changes no draw, so that sums neither overflow nor
            # lose digits.
            _, exponent = math.frexp(max(self.weights))
            scaled = [math.ldexp(weight, -exponent) for weight in self.weights]
            return iter(draw.choices(indices, scaled, k=self.num_samples))
        keys = [_key(draw.random(), weight) for weight in self.weights]
        return iter(sorted(indices, key=keys.__getitem__)[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


def _key(u: float, weight: float) -> float:
    """The smallest keys of uniform numbers `u` are a sample by weight. The largest u ** (1 /
    weight) are one (Efraimidis and Spirakis, 2006); this is log(-log) of that, which no scale of
    the weights takes out of range."""
    if not weight:
        return math.inf
    return math.log(-math.log(u or 2.0**-54)) - math.log(weight)


class DistributedSampler(Sampler[int]):
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


class BatchSampler(Sampler[list[int]]):
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
