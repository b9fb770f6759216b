# SPDX-License-Identifier: Apache-2.0
"""Reading one batch, wherever it is read: in the calling thread, in a thread or in a process."""

from __future__ import annotations

import itertools
import random
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import tenon

from .collate import Allocate, collate_into, convert
from .dataset import reads_batches, stands_for_getitem


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker runs.

    id           0 ... num_workers - 1
    num_workers  how many there are
    seed         differs from worker to worker and from pass to pass
    dataset      the dataset of this worker: a copy in a process, the loader's own in a thread
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any = field(repr=False)


_WORD = 2**64 - 1


class Abandoned(Exception):
    """The loader waits for the batch no longer."""


class _Context(threading.local):
    """What this thread reads at present."""

    info: WorkerInfo | None = None
    asked = False  # whether get_worker_info() was called
    seeds: tuple[int, int] | None = None  # of the loader's pass: (seed, epoch)
    index: Any = None


_context = _Context()


def get_worker_info() -> WorkerInfo | None:
    """The worker that calls this, or None outside of workers.

    An iterable dataset asks it which share of the stream to yield:

        def __iter__(self):
            info = tenon.data.get_worker_info()
            first, step = (info.id, info.num_workers) if info else (0, 1)
            return itertools.islice(self.lines(), first, None, step)
    """
    _context.asked = True
    return _context.info


def sample_seed() -> int:
    """A number of 63 bits that follows from the loader's seed, the pass and the sample's index.

    Randomness made of it is the same for any number of workers, in threads and processes, and after
    resuming: `numpy.random.default_rng(tenon.data.sample_seed())`. In an iterable dataset it follows
    from the worker and the number of the sample in its stream instead of the index.
    Raises RuntimeError where no DataLoader reads a sample.
    """
    if _context.seeds is None:
        raise RuntimeError(
            "sample_seed(): expected to be called while a DataLoader reads a sample, got a call from "
            "elsewhere; call it in __getitem__ or in what that calls"
        )
    return mix(*_context.seeds, _plain(_context.index))


def sample_rng() -> random.Random:
    """A new generator with sample_seed(): `random.Random(sample_seed())`."""
    return random.Random(sample_seed())


def pass_rng() -> random.Random:
    """A generator that is the same in each worker and another one in each pass of the loader. It
    decides what workers must agree on, such as the order of files. Outside of a loader it is seeded
    from tenon.manual_seed."""
    if _context.seeds is None:
        return random.Random(tenon.randint(0, 2**31, [1]).item())
    return random.Random(mix(*_context.seeds, "pass"))


def _plain(index: Any) -> Any:
    """An index whose text does not depend on its type: int, numpy.int64 and others are one."""
    if isinstance(index, tuple):
        return tuple(_plain(part) for part in index)
    return int(index) if hasattr(index, "__index__") else index


def mix(*parts: Any) -> int:
    """63 well-mixed bits of numbers, texts and tuples of them; the same in every process."""
    state = 0
    for part in parts:
        if isinstance(part, tuple):
            part = mix(*part)
        elif not isinstance(part, int):
            part = zlib.crc32(repr(part).encode())
        # SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)
        state = (state ^ (part & _WORD)) + 0x9E3779B97F4A7C15 & _WORD
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _WORD
        state ^= state >> 31
    return state >> 1


def seed_generators(seed: int) -> None:
    """Seed the generators that are shared by all code of the process: Python's, NumPy's, Tenon's."""
    random.seed(seed)
    tenon.random.set_state((seed, 0), "cpu")
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


def generator_states() -> tuple[Any, ...]:
    """What restore_generators() takes."""
    numpy = sys.modules.get("numpy")
    return random.getstate(), tenon.random.get_state("cpu"), numpy and numpy.random.get_state()


def restore_generators(states: tuple[Any, ...]) -> None:
    random.setstate(states[0])
    tenon.random.set_state(states[1], "cpu")
    if states[2] is not None:
        sys.modules["numpy"].random.set_state(states[2])


@dataclass
class Pass:
    """One pass through the dataset. `seed` is the loader's, or was drawn for this pass."""

    number: int
    epoch: int
    seed: int


@dataclass
class Task:
    """One batch: its number within the pass, and its indices (None: the next of the stream)."""

    batch: int
    indices: Sequence[Any] | None


def _always() -> bool:
    return True


END = object()  # the batch after the last one of a stream


class Reader:
    """Reads batches of a dataset, or single samples if `batch_size` is None. Each worker has one.

    position          receives the place of the sample that is being read within its batch
    is_wanted         whether the loader still waits for the batch
    allocate          gives memory for the tensors of a batch
    seeds_generators  whether Python's, NumPy's and Tenon's generators are seeded for each batch
    """

    def __init__(
        self,
        dataset: Any,
        collate_fn: Callable[[Sequence[Any]], Any] | None,
        batch_size: int | None,
        drop_last: bool,
        is_iterable: bool,
    ) -> None:
        self.dataset, self.collate_fn = dataset, collate_fn
        self.batch_size, self.drop_last, self.is_iterable = batch_size, drop_last, is_iterable
        self.position: Any = [0]
        self.is_wanted: Callable[[], bool] = _always
        self.allocate: Allocate | None = None
        self.seeds_generators = False  # threads must not: all of them share the generators
        self._stream: Iterator[Any] | None = None
        self._count = 0  # samples that the stream has given
        self._pass = Pass(0, 0, 0)
        self._worker = (0, 0)  # id, number of workers; (0, 0): none
        self._shares = False  # whether worker_init_fn called get_worker_info()

    def become_worker(
        self, worker: int, workers: int, seed: int, init: Callable[[int], Any] | None
    ) -> None:
        """Let this thread be a worker: get_worker_info() answers, and `init` is called."""
        self._worker = (worker, workers)
        _context.info = WorkerInfo(worker, workers, mix(seed, "worker", worker), self.dataset)
        _context.asked = False
        if init is not None:
            init(worker)
        self._shares = _context.asked

    def begin(self, new: Pass) -> None:
        """Begin another pass."""
        self._pass, self._stream, self._count = new, None, 0
        if self._worker[1]:
            worker, workers = self._worker
            seed = mix(new.seed, new.epoch, "worker", worker)
            _context.info = WorkerInfo(worker, workers, seed, self.dataset)

    def _seed_generators(self, task: Task) -> None:
        """For each batch, and for each stream once, because a stream goes on from batch to batch."""
        if task.indices is not None:
            seed_generators(mix(self._pass.seed, self._pass.epoch, "batch", task.batch))
        elif self._stream is None:
            seed_generators(mix(self._pass.seed, self._pass.epoch, "stream", self._worker[0]))

    def read(self, task: Task) -> Any:
        """The batch, or END. An exception of a sample has a note that names the sample."""
        if self.seeds_generators:
            self._seed_generators(task)
        outer = _context.seeds, _context.index  # of a loader whose dataset reads from this one
        _context.seeds = (self._pass.seed, self._pass.epoch)
        try:
            if task.indices is None:
                return self._read_stream()
            return self._read_indices(task.indices)
        finally:
            _context.seeds, _context.index = outer

    def _read_indices(self, indices: Sequence[Any]) -> Any:
        dataset = self.dataset
        self.position[0] = -1  # the batch as a whole
        _context.index = tuple(indices)
        if self.batch_size is not None:
            if self.collate_fn is None and reads_batches(dataset):
                return dataset.batch(indices)
            if stands_for_getitem(dataset, "__getitems__"):
                return self._collate(dataset.__getitems__(indices))
        samples = []
        for place, index in enumerate(indices):
            self.position[0] = place
            _context.index = index
            if not self.is_wanted():
                raise Abandoned
            try:
                samples.append(dataset[index])
            except Exception as error:
                add_note(error, f"DataLoader: while reading sample {index!r} of the dataset")
                raise
        self.position[0] = -1
        return self._collate(samples)

    def _read_stream(self) -> Any:
        worker, workers = self._worker
        if self._stream is None:
            _context.asked = self._shares
            self._stream = iter(self.dataset)
        wanted = self.batch_size or 1
        samples = list(itertools.islice(self._numbered(self._stream), wanted))
        if workers > 1 and samples and not _context.asked:
            raise ValueError(
                f"DataLoader: expected the iterable dataset {type(self.dataset).__name__} to yield a "
                f"share of its samples to each of {workers} workers, got all of them in worker "
                f"{worker}; let __iter__ ask tenon.data.get_worker_info() for id and num_workers, or "
                "pass num_workers=1"
            )
        if not samples or (len(samples) < wanted and self.drop_last):
            return END
        return self._collate(samples)

    def _numbered(self, stream: Iterator[Any]) -> Iterator[Any]:
        while True:
            self.position[0] = self._count
            _context.index = ("worker", self._worker[0], self._count)
            if not self.is_wanted():
                raise Abandoned
            try:
                sample = next(stream)
            except StopIteration:
                return
            except Exception as error:
                add_note(error, f"DataLoader: while reading sample {self._count} of the stream")
                raise
            self._count += 1
            yield sample

    def _collate(self, samples: Sequence[Any]) -> Any:
        if self.batch_size is None:
            return (self.collate_fn or convert)(samples[0])
        if self.collate_fn is not None:
            return self.collate_fn(samples)
        return collate_into(samples, self.allocate)


def add_note(error: BaseException, text: str) -> None:
    """error.add_note(), which is there from Python 3.11 on."""
    if hasattr(error, "add_note"):
        error.add_note(text)
