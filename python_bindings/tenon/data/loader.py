# SPDX-License-Identifier: Apache-2.0
"""DataLoader: batches from a dataset, fetched ahead by threads.

Workers are threads, not processes: tensors need no copy or shared memory to come back, and Tenon's
operators, NumPy and file reads release the interpreter lock while they work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor

from .sampler import BatchSampler, RandomSampler, SequentialSampler


def default_collate(samples: Sequence[Any]) -> Any:
    """Stack samples.

    Tensors, arrays and numbers become a tensor with one more axis; tuples, lists and dicts are
    stacked element by element; strings become a list.
    """
    first = samples[0]
    if isinstance(first, Tensor):
        return tenon.stack(list(samples))
    if isinstance(first, (bool, int, float)):
        return tenon.tensor(list(samples))
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(column) for column in zip(*samples)))
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise ValueError(
                "default_collate: samples of one batch differ in length; pass collate_fn"
            )
        return [default_collate(column) for column in zip(*samples)]
    if hasattr(first, "__array__") or hasattr(first, "__array_interface__"):
        return tenon.stack([tenon.tensor(sample) for sample in samples])
    raise TypeError(
        "default_collate: expected tensors, arrays, numbers, strings, or tuples, lists and "
        f"dicts of them, got {type(first).__name__}; pass collate_fn"
    )


class DataLoader:
    """Iterate over batches of `dataset`; each `for` loop is one pass.

    shuffle      a new random order for each pass; `seed` fixes it, else tenon.manual_seed decides
    num_workers  threads that fetch batches ahead; 0 fetches in the calling thread
    prefetch     batches that each worker keeps ready
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        prefetch: int = 2,
        drop_last: bool = False,
        collate_fn: Callable[[Sequence[Any]], Any] | None = None,
        seed: int | None = None,
    ) -> None:
        if num_workers < 0 or prefetch < 1:
            raise ValueError(
                f"DataLoader: expected num_workers >= 0 and prefetch >= 1, got "
                f"{num_workers} and {prefetch}"
            )
        if (sampler is not None or batch_sampler is not None) and shuffle:
            raise ValueError("DataLoader: a sampler decides the order; leave out shuffle=True")
        if batch_sampler is None:
            if sampler is None:
                sampler = RandomSampler(dataset, seed) if shuffle else SequentialSampler(dataset)
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        elif sampler is not None or drop_last or batch_size != 1:
            raise ValueError("DataLoader: batch_sampler replaces sampler, batch_size and drop_last")
        self.dataset = dataset
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.prefetch = prefetch
        self.collate_fn = collate_fn

    def __len__(self) -> int:
        return len(self.batch_sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return map(self._fetch, self.batch_sampler)
        return self._prefetched()

    def _fetch(self, indices: Sequence[int]) -> Any:
        if self.collate_fn is None and hasattr(self.dataset, "batch"):
            return self.dataset.batch(indices)
        return (self.collate_fn or default_collate)([self.dataset[index] for index in indices])

    def _prefetched(self) -> Iterator[Any]:
        from concurrent.futures import ThreadPoolExecutor  # only here: not everybody needs it

        with ThreadPoolExecutor(self.num_workers, "tenon-data") as pool:
            pending: deque = deque()
            try:
                for indices in self.batch_sampler:
                    pending.append(pool.submit(self._fetch, indices))
                    if len(pending) > self.num_workers * self.prefetch:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:  # the loop was left early, or a sample failed
                for future in pending:
                    future.cancel()
