# SPDX-License-Identifier: Apache-2.0
"""The program's side of a worker process."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import select
import signal
import socket
import struct
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import tenon
import tenon.multiprocessing  # datasets that are spawned cross in shared memory
from tenon.runtime.shared_memory import map_and_close, reserve

from . import arena
from .reading import END, Pass, Reader, Task, add_note
from .worker_process import (
    BATCH,
    ERROR,
    LENGTH,
    NO_MEMORY,
    NOT_BEGUN,
    POSITION,
    RECORD,
    STACK_SIGNAL,
    STATUS_BYTES,
    STREAM_ENDED,
    WANTED,
    main,
    words,
)
from .workers import CLOSE_SECONDS, WorkerError, text_of, timeout_error

# Batches of one worker that a program may keep where they are. Further ones are copied as they are
# taken, so that a program that keeps all batches does not keep all of them in shared memory.
_KEPT_IN_PLACE = 2
_STACK_SECONDS = 1.0  # for a late worker to say where it is
_NO_PASS = -1
_DESCRIPTOR = struct.Struct("i")


# A worker ends when the program's end of its connection is closed everywhere. Forked children inherit
# these ends, workers among them, and close them.
_connections: set[socket.socket] = set()


def _disconnect(connection: socket.socket) -> None:
    _connections.discard(connection)
    connection.close()


def _disconnect_all() -> None:
    for connection in list(_connections):
        _disconnect(connection)


os.register_at_fork(after_in_child=_disconnect_all)


class RemoteTraceback(Exception):
    """The cause of an exception that was raised in a worker process; its text is the traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(f"\n\n{text}")


class ProcessWorker:
    """A process that reads a copy of the dataset, and gives its batches in shared memory."""

    def __init__(
        self,
        reader: Reader,
        worker: int,
        workers: int,
        seed: int,
        init: Callable[[int], Any] | None,
        timeout: float,
        context: Any,
    ) -> None:
        self._worker, self._timeout, self._is_late = worker, timeout, False
        self._owner: int | None = os.getpid()  # a forked child inherits this object, not the worker
        self._pending: deque[tuple[int, Task]] = deque()
        self._freed: deque[int] = deque()
        self._slots: dict[int, tenon.Tensor] = {}
        self._arrived: deque[tuple[bytes, list[Any]]] = deque()  # records that are to be taken
        self._kept: dict[int, weakref.ref[memoryview]] = {}
        self._connection, theirs = socket.socketpair()
        _connections.add(self._connection)
        self._finalizer = weakref.finalize(self, _disconnect, self._connection)
        self._finalizer.atexit = False
        descriptor = reserve(STATUS_BYTES)
        self._stacks = open(os.memfd_create("tenon-stacks", os.MFD_CLOEXEC), "r+b", buffering=0)
        socket.send_fds(self._connection, [b"\0"], [descriptor, self._stacks.fileno()])
        self._status = words(map_and_close(descriptor, STATUS_BYTES))
        self._status[POSITION] = NOT_BEGUN
        self._process = context.Process(
            target=main,
            args=(theirs, reader, worker, workers, seed, init),
            name=f"tenon-data-{worker}",
            daemon=True,
        )
        try:
            self._process.start()
        finally:
            theirs.close()

    def begin(self, new: Pass) -> None:
        self._pending.clear()
        self._status[WANTED] = new.number
        self._write(new)

    def send(self, task: Task) -> None:
        freed = [self._freed.popleft() for _ in range(len(self._freed))]
        self._pending.append((self._status[WANTED], task))
        self._write((freed, task))

    def _write(self, message: Any) -> None:
        text = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        left = memoryview(LENGTH.pack(len(text)) + text)
        while left:
            try:
                left = left[self._connection.send(left, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                self._make_room()
            except ConnectionError:
                return  # the worker has ended; what it delivered before is still to be taken

    def _make_room(self) -> None:
        """Wait until the worker takes what was sent. It may be waiting itself for records to be taken."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN | select.POLLOUT)
        if not poll.poll(self._timeout * 1000 or None):
            raise self._late()
        received = self._received()
        if received is not None and received[0]:
            self._arrived.append(received)

    def receive(self) -> Any:
        number, task = self._pending[0]
        while True:
            pass_, batch, kind, slot, bytes, pickle_offset, used, descriptor = self._record()
            if descriptor is not None:
                self._slots[slot] = map_and_close(descriptor, bytes)
            if (pass_, batch) == (number, task.batch):
                break
            if kind in (BATCH, ERROR):  # of a pass that was left early
                self._freed.append(slot)
        self._pending.popleft()
        if kind == STREAM_ENDED:
            return END
        if kind == NO_MEMORY:
            raise self._no_memory(task, used)
        content = self._content(slot, pickle_offset, used)
        if kind == BATCH:
            return content
        error, text = content
        add_note(error, f"DataLoader: in worker {self._worker} (process {self._process.pid})")
        raise error from RemoteTraceback(text)

    def _content(self, slot: int, pickle_offset: int, used: int) -> Any:
        if len(self._kept) >= _KEPT_IN_PLACE:
            copy = tenon.empty([used], dtype=tenon.uint8)
            copy.copy_(self._slots[slot][:used])
            self._freed.append(slot)
            return arena.read(memoryview(copy), pickle_offset, used)  # type: ignore[arg-type]
        memory = memoryview(self._slots[slot])  # type: ignore[arg-type]
        freed, kept = self._freed, self._kept

        def give_back(_: object) -> None:  # on whatever thread the last tensor dies
            del kept[slot]
            freed.append(slot)

        kept[slot] = weakref.ref(memory, give_back)
        return arena.read(memory, pickle_offset, used)

    def _record(self) -> tuple[Any, ...]:
        """The next record, and the descriptor that came with it."""
        until = time.monotonic() + self._timeout if self._timeout else None
        received = self._arrived.popleft() if self._arrived else self._received()
        while received is None:
            self._wait(until)
            received = self._received()
        record, attached = received
        if len(record) != RECORD.size:
            raise self._ended()
        descriptor = _DESCRIPTOR.unpack(attached[0][2])[0] if attached else None
        return (*RECORD.unpack(record), descriptor)

    def _received(self) -> tuple[bytes, list[Any]] | None:
        """What has arrived: None if nothing has, no bytes if the worker has ended."""
        space = socket.CMSG_SPACE(_DESCRIPTOR.size)
        flags = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
        try:  # socket.recv_fds() ignores its flags on Python 3.11
            return self._connection.recvmsg(RECORD.size, space, flags)[:2]
        except BlockingIOError:
            return None
        except ConnectionError:
            return b"", []

    def _wait(self, until: float | None) -> None:
        left = None if until is None else max(0.0, until - time.monotonic())
        ready = multiprocessing.connection.wait([self._connection, self._process.sentinel], left)
        if not ready:
            raise self._late()
        if self._connection not in ready:
            raise self._ended()

    def _samples(self) -> tuple[Sequence[Any] | None, str]:
        """The oldest task's samples, and in words what the worker was at."""
        indices = self._pending[0][1].indices if self._pending else None
        place = self._status[POSITION]
        if place == NOT_BEGUN:
            return indices, f"before it read its first batch, {text_of(indices)}"
        if indices is None:
            return None, f"while it read sample {place} of its stream"
        if 0 <= place < len(indices):
            return indices, f"while it read sample {indices[place]!r} of {text_of(indices)}"
        return indices, f"while it read {text_of(indices)}"

    def _late(self) -> WorkerError:
        self._is_late = True  # and is not waited for again
        samples, _ = self._samples()
        where = f" (process {self._process.pid})"
        return timeout_error(self._worker, where, samples, self._timeout, self._stack())

    def _stack(self) -> str:
        """Where the worker's threads are; nothing if it does not say so in time, as one that has not begun."""
        if self._process.pid is None or self._status[POSITION] == NOT_BEGUN:
            return "before its first batch"  # the signal could end it
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, STACK_SIGNAL)
        size, until = 0, time.monotonic() + _STACK_SECONDS
        while time.monotonic() < until:
            time.sleep(0.02)
            before, size = size, os.fstat(self._stacks.fileno()).st_size
            if size and size == before:
                break
        return os.pread(self._stacks.fileno(), size, 0).decode(errors="replace").rstrip()

    def _ended(self) -> WorkerError:
        self._process.join(CLOSE_SECONDS)
        status = self._process.exitcode
        samples, what = self._samples()
        if status is not None and status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        else:
            how = f"ended with exit status {status}"
        advice = "what it printed may say why"
        if status == -signal.SIGKILL:
            advice = "where memory runs out the system does this, and its log (dmesg) says so"
        return WorkerError(
            f"DataLoader: worker {self._worker} (process {self._process.pid}) {how} {what}; {advice}",
            self._worker,
            samples,
        )

    def _no_memory(self, task: Task, bytes: int) -> MemoryError:
        return tenon.OutOfMemoryError(
            f"DataLoader: worker {self._worker} expected {bytes} bytes of shared memory for the batch "
            f"of {text_of(task.indices)}, got none from the system; use smaller batches, fewer "
            "workers, or a lower prefetch_factor"
        )

    def abandon(self) -> None:
        if self._owner != os.getpid():
            return
        self._status[WANTED] = _NO_PASS
        self._pending.clear()

    def stop(self) -> None:
        if self._owner != os.getpid():
            return
        self.abandon()
        with contextlib.suppress(OSError):  # the worker has ended
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        if self._owner != os.getpid():
            return
        self._owner = None
        self._process.join(0 if self._is_late else CLOSE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()
        self._stacks.close()
        self._finalizer()


def context_of(method: Any) -> Any:
    """A multiprocessing context from its name, None (Python's default) or itself."""
    if method is None or isinstance(method, str):
        known = multiprocessing.get_all_start_methods()
        if method is not None and method not in known:
            raise ValueError(
                f"DataLoader: expected multiprocessing_context to be one of {known}, got {method!r}"
            )
        return multiprocessing.get_context(method)
    return method
