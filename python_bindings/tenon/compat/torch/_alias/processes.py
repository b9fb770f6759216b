# SPDX-License-Identifier: Apache-2.0
"""torch.multiprocessing beside what tenon.multiprocessing has: one function in several processes."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any

from tenon import multiprocessing

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_MOST_TEXT = 8192  # characters of an error: a pipe takes no more bytes than 64 Ki before it is read
_GRACE = 30.0  # seconds between asking a process to end and ending it


class ProcessException(Exception):
    """A process ended otherwise than by returning."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """Its function raised."""


class ProcessExitedException(ProcessException):
    """It exited, or a signal ended it."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _run(fn: Callable[..., Any], index: int, args: Sequence[Any], errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:  # the program that started this process got it, too
        pass
    except Exception:
        errors.put(traceback.format_exc()[-_MOST_TEXT:])
        sys.exit(1)


class ProcessContext:
    """Processes that run one function."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self._errors = processes, errors
        self._running = {each.sentinel: index for index, each in enumerate(processes)}

    def pids(self) -> list[int]:
        return [each.pid for each in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until a process has ended. True: all have. If one did not return, the others are ended and this raises."""
        for sentinel in connection.wait(list(self._running), timeout):
            index = self._running.pop(sentinel)  # type: ignore[call-overload]
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                self._end_others(_GRACE if grace_period is None else grace_period)
                raise self._failure(index)
        return not self._running

    def _end_others(self, grace: float) -> None:
        for each in self.processes:
            each.terminate()
        for each in self.processes:
            each.join(grace)
            each.kill()
            each.join()

    def _failure(self, index: int) -> ProcessException:
        process = self.processes[index]
        if not self._errors[index].empty():
            text = f"process {index} ended by an error:\n{self._errors[index].get()}"
            return ProcessRaisedException(text, index, process.pid)
        code, name = process.exitcode, None
        if code < 0:
            name = signal.Signals(-code).name
        text = f"process {index} ended {f'by {name}' if name else f'with exit code {code}'}"
        return ProcessExitedException(text, index, process.pid, code, name)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    numa_options: Any = None,
    duplicate_stdout_filters: Any = None,
    duplicate_stderr_filters: Any = None,
) -> ProcessContext | None:
    """Runs `fn(i, *args)` in `nprocs` processes, i from 0. With `join` it waits for all, and raises what one raised."""
    for name, value in (
        ("numa_options", numa_options),
        ("duplicate_stdout_filters", duplicate_stdout_filters),
        ("duplicate_stderr_filters", duplicate_stderr_filters),
    ):
        if value is not None:
            raise NotImplementedError(
                f"start_processes(): expected {name} to be left out, got {value!r}"
            )
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for index in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, index, args, queue), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(queue)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """start_processes() with processes that begin anew."""
    if start_method != "spawn":
        raise NotImplementedError(
            f"spawn(): expected start_method='spawn', got {start_method!r}; use start_processes()"
        )
    return start_processes(fn, args, nprocs, join, daemon)


def get_all_sharing_strategies() -> set[str]:
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Large tensors cross by descriptors of memory without a name."""
    if new_strategy != "file_descriptor":
        raise NotImplementedError(
            f"set_sharing_strategy(): expected 'file_descriptor', got {new_strategy!r}; tensors of less than 1 MiB cross "
            "without a descriptor"
        )
