# SPDX-License-Identifier: Apache-2.0
"""Datasets: things with a length that are indexed by an integer."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import tenon
from tenon import Tensor

from .collate import default_collate
from .sampler import permutation

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Subclasses define __len__ and __getitem__.

    A dataset that can fetch many samples faster than one by one also defines `batch(indices)`,
    which returns them already collated. The DataLoader prefers it, but not where a subclass has
    overridden __getitem__ alone: then `batch` would not read what __getitem__ does.
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__()")

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__()")


class IterableDataset(Generic[Sample]):
    """Samples that come one after another, without a length or an index. Subclasses define __iter__."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


class ChainDataset(IterableDataset):
    """Iterable datasets one after another."""

    def __init__(self, datasets: Iterable[Iterable[Any]]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class TensorDataset(Dataset):
    """Samples are rows of tensors: `dataset[i] == (a[i], b[i], ...)`."""

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors or len({len(tensor) for tensor in tensors}) != 1:
            raise ValueError(
                "TensorDataset: expected tensors of equal length, got lengths "
                f"{[len(tensor) for tensor in tensors]}"
            )
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def batch(self, indices: Sequence[int]) -> list[Tensor]:
        rows = tenon.tensor(list(indices), dtype=tenon.int64)
        return [tenon.index_select(tensor, rows.to(tensor.device), 0) for tensor in self.tensors]


class Subset(Dataset):
    """Some samples of another dataset, in the given order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = list(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def batch(self, indices: Sequence[int]) -> Any:
        """Several samples, collated."""
        if reads_batches(self):
            return self.dataset.batch([self.indices[index] for index in indices])
        return default_collate([self[index] for index in indices])


class StackDataset(Dataset):
    """Datasets of equal length side by side: a sample is a tuple, or a dict if they have names."""

    def __init__(self, *datasets: Any, **named: Any) -> None:
        if bool(datasets) == bool(named):
            raise ValueError("StackDataset: expected datasets, or named datasets, and not both")
        self.datasets: Any = named or datasets
        lengths = [len(each) for each in self._all()]
        if len(set(lengths)) != 1:
            raise ValueError(f"StackDataset: expected datasets of equal length, got {lengths}")

    def _all(self) -> Iterable[Any]:
        named = isinstance(self.datasets, Mapping)
        return self.datasets.values() if named else self.datasets

    def __len__(self) -> int:
        return len(next(iter(self._all())))

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, Mapping):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)


class ConcatDataset(Dataset):
    """Datasets one after another."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        self.ends = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"ConcatDataset: index {index} is out of range for {len(self)} samples"
            )
        index %= len(self)
        which = bisect.bisect_right(self.ends, index)
        return self.datasets[which][index - (self.ends[which - 1] if which else 0)]


def stands_for_getitem(dataset: Any, method: str) -> bool:
    """Whether the class of `dataset` defines `method`, and no class derived from that one has
    overridden __getitem__ since. Only classes are asked: an attribute of the object of that name is
    something else."""
    for each in type(dataset).__mro__:
        if method in vars(each):
            return callable(getattr(each, method))
        if "__getitem__" in vars(each):
            return False
    return False


def reads_batches(dataset: Any) -> bool:
    """Whether `dataset.batch(indices)` reads in one go what __getitem__ would. `batch` is a common
    name, so that only a Dataset of this package is trusted with it."""
    if not isinstance(dataset, Dataset) or not stands_for_getitem(dataset, "batch"):
        return False
    if type(dataset).batch is Subset.batch:  # type: ignore[attr-defined]
        return reads_batches(dataset.dataset)  # type: ignore[attr-defined]
    return "batch" not in getattr(dataset, "__dict__", {})


def random_split(
    dataset: Any, lengths: Sequence[int | float], seed: int | None = None
) -> list[Subset]:
    """Disjoint random subsets; `lengths` are counts, or fractions that sum to 1.

    Without a seed, tenon.manual_seed decides.
    """
    count = len(dataset)
    if all(isinstance(length, float) for length in lengths):
        if abs(sum(lengths) - 1.0) > 1e-6:
            raise ValueError(f"random_split: expected fractions that sum to 1, got {sum(lengths)}")
        sizes = [int(count * length) for length in lengths]
        for i in range(count - sum(sizes)):  # what rounding left over
            sizes[i % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != count or min(sizes, default=0) < 0:
        raise ValueError(f"random_split: expected lengths that sum to {count}, got {list(lengths)}")
    order = permutation(count, seed)
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends)]
