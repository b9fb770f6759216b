# SPDX-License-Identifier: Apache-2.0
"""Workers as the loader sees them: something that takes tasks and gives their batches in order."""

from __future__ import annotations

import queue
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from .reading import END, Abandoned, Pass, Reader, Task

CLOSE_SECONDS = (
    5.0  # how long a worker may take to end; then it is killed, or left alone if it is a thread
)


class Worker(Protocol):
    """Gives the batches of its tasks in the order of the tasks."""

    def begin(self, new: Pass) -> None:
        """Begin a pass. What is left of an earlier one is dropped."""

    def send(self, task: Task) -> None:
        """Queue a task."""

    def receive(self) -> Any:
        """The batch of the oldest task, or END. Raises what the dataset raised, or WorkerError."""

    def abandon(self) -> None:
        """Drop the tasks that are queued."""

    def stop(self) -> None:
        """Let the worker end."""

    def close(self) -> None:
        """Wait until it has ended, at most CLOSE_SECONDS."""


class WorkerError(RuntimeError):
    """A worker ended, or took longer than the timeout. Has the fields `worker` (its id) and `samples`."""

    def __init__(
        self, message: str, worker: int = -1, samples: Sequence[Any] | None = None
    ) -> None:
        super().__init__(message)
        self.worker, self.samples = worker, samples


def in_order(workers: Sequence[Worker], tasks: Iterator[Task], prefetch: int) -> Iterator[Any]:
    """The batches of tasks, in their order. Each worker has up to `prefetch` of them queued.

    Workers take turns, and a worker's next task is sent as its oldest batch is taken. A worker whose
    stream has ended gets no more.
    """
    pending: deque[Worker] = deque()
    for _, worker in ((turn, worker) for turn in range(prefetch) for worker in workers):
        task = next(tasks, None)
        if task is None:
            break
        worker.send(task)
        pending.append(worker)
    while pending:
        worker = pending.popleft()
        batch = worker.receive()
        if batch is END:
            continue
        task = next(tasks, None)
        if task is not None:
            worker.send(task)
            pending.append(worker)
        yield batch


def text_of(samples: Sequence[Any] | None) -> str:
    """Some indices, in words."""
    if samples is None:
        return "the next samples of its stream"
    listed = ", ".join(repr(sample) for sample in samples[:8])
    return f"samples {listed}" + (f" ... ({len(samples)} samples)" if len(samples) > 8 else "")


def timeout_error(
    worker: int, where: str, samples: Any, timeout: float, stack: str = ""
) -> WorkerError:
    """`stack` says where the worker is, if that is known."""
    return WorkerError(
        f"DataLoader: expected a batch from worker {worker}{where} within {timeout:g} s, got none; "
        f"it was to read {text_of(samples)}; raise timeout=, or see why they take so long"
        + (f"\nThe worker is here:\n{stack}" if stack else ""),
        worker,
        samples,
    )


class ThreadWorker:
    """A thread that reads the loader's own dataset."""

    def __init__(
        self,
        reader: Reader,
        worker: int,
        workers: int,
        seed: int,
        init: Callable[[int], Any] | None,
        timeout: float,
    ) -> None:
        self._reader, self._worker, self._timeout = reader, worker, timeout
        self._tasks: queue.SimpleQueue[tuple[Pass, Task] | None] = queue.SimpleQueue()
        self._batches: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._pending: deque[Task] = deque()
        self._pass = Pass(0, 0, 0)
        reader.is_wanted = lambda: not self._is_closed
        self._is_closed = self._is_late = False
        # A daemon, because a sample that never ends must not keep the program from ending.
        self._thread = threading.Thread(
            target=self._serve, args=(worker, workers, seed, init), name="tenon-data", daemon=True
        )
        self._thread.start()

    def _serve(self, worker: int, workers: int, seed: int, init: Any) -> None:
        failure: BaseException | None = None
        try:
            self._reader.become_worker(worker, workers, seed, init)
        except BaseException as error:
            failure = error
        begun = None
        while (message := self._tasks.get()) is not None:
            new, task = message
            if new is not begun:
                begun = new
                self._reader.begin(new)
            try:
                if failure is not None:
                    raise failure
                self._batches.put((self._reader.read(task), None))
            except Abandoned:
                continue
            except BaseException as error:  # noqa: B036  the loop raises it, whatever it is
                self._batches.put((None, error))

    def begin(self, new: Pass) -> None:
        self._pass = new

    def send(self, task: Task) -> None:
        self._pending.append(task)
        self._tasks.put((self._pass, task))

    def receive(self) -> Any:
        try:
            batch, error = self._batches.get(timeout=self._timeout or None)
        except queue.Empty:
            self._is_late = True
            raise timeout_error(
                self._worker, " (a thread)", self._pending[0].indices, self._timeout, self._stack()
            ) from None
        self._pending.popleft()
        if error is not None:
            raise error
        return batch

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)).rstrip() if frame else ""

    def abandon(self) -> None:
        self._is_closed = True

    def stop(self) -> None:
        self.abandon()
        self._tasks.put(None)

    def close(self) -> None:
        if not self._is_late:
            self._thread.join(CLOSE_SECONDS)
