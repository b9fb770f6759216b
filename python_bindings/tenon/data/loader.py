# SPDX-License-Identifier: Apache-2.0
"""DataLoader: batches from a dataset, fetched ahead by threads.

Workers are threads, not processes: tensors need no copy or shared memory to come back, and Tenon's
operators, NumPy and file reads release the interpreter lock while they work.
"""

from __future__ import annotations

import itertools
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

    An iterable dataset decides the order itself; it is read in the calling thread. A pass may be
    resumed: see state_dict(). An exception of a sample has a note that names the sample.
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
        self.is_iterable = not hasattr(dataset, "__getitem__")
        if self.is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader: an iterable dataset decides the order; leave out shuffle and samplers"
            )
        if self.is_iterable and num_workers:
            raise ValueError("DataLoader: expected num_workers 0 with an iterable dataset")
        if (sampler is not None or batch_sampler is not None) and shuffle:
            raise ValueError("DataLoader: a sampler decides the order; leave out shuffle=True")
        if self.is_iterable:
            batch_sampler = []
        elif batch_sampler is None:
            if sampler is None:
                sampler = RandomSampler(dataset, seed) if shuffle else SequentialSampler(dataset)
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        elif sampler is not None or drop_last or batch_size != 1:
            raise ValueError("DataLoader: batch_sampler replaces sampler, batch_size and drop_last")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.prefetch = prefetch
        self.collate_fn = collate_fn
        self._epoch = self._batches = 0  # the pass that runs, and how many of its batches are out
        self._resumed: tuple[int, int] | None = None

    def __len__(self) -> int:
        if self.is_iterable:
            raise TypeError("DataLoader: an iterable dataset has no length")
        return len(self.batch_sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        skipped = 0
        sampler = getattr(self.batch_sampler, "sampler", self.batch_sampler)
        if self._resumed is not None:
            epoch, skipped = self._resumed
            self._resumed = None
            if hasattr(sampler, "passes"):
                sampler.passes = epoch
            self._epoch = epoch
        else:
            self._epoch = getattr(sampler, "passes", self._epoch)
        self._batches = skipped
        return self._counted(self._batch_iterator(skipped))

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self._batches += 1
            yield batch
        self._epoch, self._batches = self._epoch + 1, 0

    def _batch_iterator(self, skipped: int) -> Iterator[Any]:
        if self.is_iterable:
            return itertools.islice(self._collected(), skipped, None)
        order = itertools.islice(iter(self.batch_sampler), skipped, None)
        return self._prefetched(order) if self.num_workers else map(self._fetch, order)

    def _collected(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield (self.collate_fn or default_collate)(batch)

    def state_dict(self) -> dict[str, int]:
        """The number of the pass and of the batches that it has given out.

        With a `seed` (or a sampler whose order follows from its pass) this is all that another run
        needs to go on with the next batch.
        """
        if self._resumed is not None:
            return {"epoch": self._resumed[0], "batches": self._resumed[1]}
        return {"epoch": self._epoch, "batches": self._batches}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Let the next `for` loop go on after the batches of `state`."""
        self._resumed = (state["epoch"], state["batches"])

    def _fetch(self, indices: Sequence[int]) -> Any:
        if self.collate_fn is None and hasattr(self.dataset, "batch"):
            return self.dataset.batch(indices)
        return (self.collate_fn or default_collate)([self._sample(index) for index in indices])

    def _sample(self, index: int) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            if hasattr(error, "add_note"):  # from Python 3.11 on
                error.add_note(f"DataLoader: while reading sample {index} of the dataset")
            raise

    def _prefetched(self, order: Iterator[Sequence[int]]) -> Iterator[Any]:
        from concurrent.futures import ThreadPoolExecutor  # imported only where it is needed

        with ThreadPoolExecutor(self.num_workers, "tenon-data") as pool:
            pending: deque = deque()
            try:
                for indices in order:
                    pending.append(pool.submit(self._fetch, indices))
                    if len(pending) > self.num_workers * self.prefetch:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:  # the loop was left early, or a sample failed
                for future in pending:
                    future.cancel()
