# SPDX-License-Identifier: Apache-2.0
"""DataLoader: batches from a dataset, read ahead by worker processes or threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import tenon

from .device import copied_ahead
from .reading import END, Pass, Reader, Task, generator_states, restore_generators
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .workers import ThreadWorker, Worker, WorkerError, in_order

Batch = TypeVar("Batch", covariant=True)


class DataLoader(Generic[Batch]):
    """Iterate over batches of `dataset`; each `for` loop is one pass.

    batch_size, drop_last  samples of a batch; whether a smaller last batch is left out.
                           batch_size=None gives single samples, whose arrays become tensors, and
                           collate_fn takes one sample
    shuffle, seed          a new random order for each pass; `seed` fixes it and what samples draw, else
                           tenon.manual_seed decides
    sampler, batch_sampler the indices in the order to read, or lists of them, instead of these
    collate_fn             makes a batch of a list of samples; default_collate by default
    num_workers            how many processes or threads read ahead; 0 reads in the calling thread
    workers                "process": each has a copy of the dataset and an interpreter of its own, and
                           batches come back in shared memory without a copy. "thread": all read the
                           dataset itself, which suits samples that release the interpreter lock
    prefetch_factor        batches that each worker keeps ready; 2 by default
    timeout                seconds to wait for a batch of a worker; 0 waits without limit
    worker_init_fn         called in each worker with its number before it reads
    multiprocessing_context  "fork", "spawn", "forkserver" or a context; Python's default if None
    persistent_workers     keep the processes from pass to pass; close() ends them
    device                 copy the batches' tensors there, ahead and on a stream where it has these
    pin_memory             by way of pinned memory, from which a device such as a GPU copies while the program
                           goes on. It is kept from batch to batch. Changes nothing where the device
                           has no streams, as the CPU, and without `device`, where nothing is copied

    An iterable dataset decides the order itself; with workers it yields to each its share, see
    get_worker_info(). Batches are the same for any number of workers, in processes or threads, if samples
    draw from sample_rng() or sample_seed(). A pass may be resumed: see state_dict(). An exception of a
    sample has a note that names the sample. A worker that ends or takes longer than `timeout` raises
    WorkerError, which names the worker and the samples.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        *,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        workers: str = "process",
        prefetch_factor: int | None = None,
        drop_last: bool = False,
        collate_fn: Callable[[Sequence[Any]], Any] | None = None,
        seed: int | None = None,
        timeout: float = 0.0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        persistent_workers: bool = False,
        device: Any = None,
        pin_memory: bool = False,
    ) -> None:
        if num_workers < 0 or (prefetch_factor is not None and prefetch_factor < 1):
            raise ValueError(
                f"DataLoader: expected num_workers >= 0 and prefetch_factor >= 1, got "
                f"{num_workers} and {prefetch_factor}"
            )
        if workers not in ("process", "thread"):
            raise ValueError(f"DataLoader: expected workers 'process' or 'thread', got {workers!r}")
        if timeout < 0:
            raise ValueError(f"DataLoader: expected timeout >= 0 seconds, got {timeout}")
        processes = num_workers > 0 and workers == "process"
        for name, given, serve in (
            ("prefetch_factor", prefetch_factor is not None, num_workers > 0),
            ("timeout", timeout > 0, num_workers > 0),
            ("worker_init_fn", worker_init_fn is not None, num_workers > 0),
            ("multiprocessing_context", multiprocessing_context is not None, processes),
            ("persistent_workers", persistent_workers, processes),
        ):
            if given and not serve:
                what = "processes" if num_workers else "workers"
                raise ValueError(
                    f"DataLoader: {name} is for {what}, got num_workers={num_workers} and "
                    f"workers={workers!r}; leave it out or change these"
                )
        self.is_iterable = not hasattr(dataset, "__getitem__")
        if self.is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader: an iterable dataset decides the order; leave out shuffle and samplers"
            )
        if (sampler is not None or batch_sampler is not None) and shuffle:
            raise ValueError("DataLoader: a sampler decides the order; leave out shuffle=True")
        if batch_size is None and (drop_last or batch_sampler is not None):
            raise ValueError(
                "DataLoader: batch_size=None gives single samples; leave out drop_last and "
                "batch_sampler"
            )
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"DataLoader: expected batch_size >= 1 or None, got {batch_size}")
        if self.is_iterable:
            batch_sampler = []
        elif batch_sampler is None:
            if sampler is None:
                sampler = RandomSampler(dataset, seed) if shuffle else SequentialSampler(dataset)
            # Single samples are read as batches of one that nothing is made of.
            batch_sampler = BatchSampler(sampler, batch_size or 1, drop_last)
        elif sampler is not None or drop_last or batch_size != 1:
            raise ValueError("DataLoader: batch_sampler replaces sampler, batch_size and drop_last")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.batch_sampler = batch_sampler
        self.num_workers, self.workers = num_workers, workers
        self.prefetch_factor = prefetch_factor or 2
        self.collate_fn, self.worker_init_fn = collate_fn, worker_init_fn
        self.timeout, self.persistent_workers = timeout, persistent_workers
        self.multiprocessing_context = multiprocessing_context
        if processes:
            from .processes import context_of  # imported only where it is needed

            self.multiprocessing_context = context_of(multiprocessing_context)
        self.device, self.seed = device, seed
        self.pin_memory = bool(pin_memory)
        self._epoch = self._batches = 0  # the pass that runs, and how many of its batches are out
        self._resumed: tuple[int, int] | None = None
        self._passes = 0  # begun, also of the same epoch
        self._pool: list[Any] = []  # the processes that persist

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
        self._passes += 1
        seed = self.seed
        if seed is None:
            seed = int(tenon.randint(0, 2**62, [1], dtype=tenon.int64).item())
        batches = self._batches_of(Pass(self._passes, self._epoch, seed), skipped)
        if self.device is not None:
            batches = copied_ahead(batches, self.device, self.pin_memory)
        return self._counted(batches)

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self._batches += 1
            yield batch
        self._epoch, self._batches = self._epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        """The number of the pass and of the batches that it has given out.

        With a `seed` (or a sampler whose order follows from its pass) this is all that another run
        needs to go on with the next batch. With an iterable dataset it needs as many workers, too.
        """
        if self._resumed is not None:
            return {"epoch": self._resumed[0], "batches": self._resumed[1]}
        return {"epoch": self._epoch, "batches": self._batches}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Let the next `for` loop go on after the batches of `state`."""
        self._resumed = (state["epoch"], state["batches"])

    def close(self) -> None:
        """End the processes of persistent_workers."""
        pool, self._pool = self._pool, []
        _close(pool)

    def __del__(self) -> None:
        if getattr(self, "_pool", None):
            self.close()

    def _tasks(self, skipped: int) -> Iterator[Task]:
        """What is to be read. Of an iterable dataset every sample is, those that are skipped too."""
        if self.is_iterable:
            return (Task(number, None) for number in itertools.count())
        order = itertools.islice(iter(self.batch_sampler), skipped, None)  # type: ignore[arg-type]
        return (Task(skipped + number, indices) for number, indices in enumerate(order))

    def _batches_of(self, new: Pass, skipped: int) -> Iterator[Any]:
        tasks = self._tasks(skipped)
        batches = self._worked(new, tasks) if self.num_workers else self._read_here(new, tasks)
        return itertools.islice(batches, skipped, None) if self.is_iterable else batches

    def _read_here(self, new: Pass, tasks: Iterator[Task]) -> Iterator[Any]:
        """Batches as they are requested. With a seed, the shared generators have the state that they
        would have in a process, but only while a batch is read: the program goes on with its own."""
        reader = self._reader()
        reader.begin(new)
        reader.seeds_generators = self.seed is not None and not self.is_iterable
        for task in tasks:
            states = generator_states() if reader.seeds_generators else None
            try:
                batch = reader.read(task)
            finally:
                if states is not None:
                    restore_generators(states)
            if batch is END:
                return
            yield batch

    def _reader(self) -> Reader:
        return Reader(
            self.dataset, self.collate_fn, self.batch_size, self.drop_last, self.is_iterable
        )

    def _worked(self, new: Pass, tasks: Iterator[Task]) -> Iterator[Any]:
        workers = self._pool or self._started(new.seed)
        if self.persistent_workers:
            self._pool = workers
        try:
            for worker in workers:
                worker.begin(new)
            for batch in in_order(workers, tasks, self.prefetch_factor):
                yield batch
                if self.persistent_workers and self._passes != new.number:
                    raise RuntimeError(
                        "DataLoader: another pass has begun, and persistent_workers serve one at a "
                        "time; finish the first loop, or use another DataLoader for the inner one"
                    )
        except WorkerError:
            self._pool = []  # the next pass starts others
            raise
        finally:
            if workers is not self._pool:
                _close(workers)
            elif self._passes == new.number:
                for worker in workers:
                    worker.abandon()

    def _started(self, seed: int) -> list[Any]:
        started: list[Any] = []
        try:
            for worker in range(self.num_workers):
                arguments = (worker, self.num_workers, seed, self.worker_init_fn, self.timeout)
                if self.workers == "thread":
                    started.append(ThreadWorker(self._reader(), *arguments))
                    continue
                from .processes import ProcessWorker  # imported only where it is needed

                context = self.multiprocessing_context
                started.append(ProcessWorker(self._reader(), *arguments, context))
        except BaseException:
            _close(started)
            raise
        return started


def _close(workers: Sequence[Worker]) -> None:
    for worker in workers:  # all of them end at the same time
        worker.stop()
    for worker in workers:
        worker.close()
