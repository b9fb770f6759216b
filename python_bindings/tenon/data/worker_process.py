# SPDX-License-Identifier: Apache-2.0
"""What runs in a worker process: it reads batches and puts them into shared memory."""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import signal
import socket
import struct
import threading
import traceback
from collections.abc import Callable
from typing import Any

import tenon
from tenon.runtime.shared_memory import NoMemoryError, map_and_close

from . import arena
from .reading import END, Abandoned, Pass, Reader, Task, add_note, mix, seed_generators

# pass, batch, kind, slot, bytes of the slot (0: the program has mapped it), offset of the pickle, bytes used
RECORD = struct.Struct("<qqiiQQQ")
BATCH, ERROR, STREAM_ENDED, NO_MEMORY = range(4)
LENGTH = struct.Struct("<Q")  # before each pickle that the program sends

# The words of a block that both sides map.
WANTED = 0  # the pass whose batches the program waits for; work for others is dropped
POSITION = 1  # the place in its batch of the sample that is being read; -1: none; or NOT_BEGUN
NOT_BEGUN = -2
STATUS_BYTES = 4096
STACK_SIGNAL = signal.SIGUSR2  # a worker answers with its stacks, even inside of native code


def words(block: tenon.Tensor) -> memoryview:
    """The integers of the block that both sides map."""
    return memoryview(block).cast("q")  # type: ignore[arg-type]


def receive_exactly(connection: socket.socket, bytes: int) -> bytearray | None:
    """So many bytes, or None if the other side has ended."""
    received = bytearray(bytes)
    view = memoryview(received)
    while view:
        count = connection.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return received


def main(
    connection: socket.socket,
    reader: Reader,
    worker: int,
    workers: int,
    seed: int,
    init: Callable[[int], Any] | None,
) -> None:
    """Serve the program until it closes its end of the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program is interrupted too, and ends this
    threading.Thread(target=_end_with_the_program, args=(connection,), daemon=True).start()
    tenon.set_num_threads(1)  # the workers are the threads
    try:
        _Worker(connection, reader).serve(worker, workers, seed, init)
    except (ConnectionError, BrokenPipeError):
        pass  # the program has ended, or waits no longer


def _end_with_the_program(connection: socket.socket) -> None:
    """End this process when the program has ended, even during a sample that never does."""
    poll = select.poll()
    poll.register(connection, 0)  # no events: what remains is POLLHUP
    poll.poll()
    os._exit(1)


class _Worker:
    def __init__(self, connection: socket.socket, reader: Reader) -> None:
        self._connection = connection
        _, (descriptor, stacks), _, _ = socket.recv_fds(connection, 1, 2)
        faulthandler.register(STACK_SIGNAL, stacks)
        self._status = words(map_and_close(descriptor, STATUS_BYTES))
        self._arena = arena.Arena()
        self._pass = Pass(0, 0, 0)
        self._reader = reader
        reader.position = self._status[POSITION : POSITION + 1]
        reader.is_wanted = lambda: self._status[WANTED] == self._pass.number
        reader.allocate = self._arena.allocate
        reader.seeds_generators = True

    def serve(
        self, worker: int, workers: int, seed: int, init: Callable[[int], Any] | None
    ) -> None:
        failure: Exception | None = None
        try:
            seed_generators(mix(seed, "worker", worker))
            self._reader.become_worker(worker, workers, seed, init)
        except Exception as error:
            add_note(error, f"DataLoader: in worker_init_fn of worker {worker}")
            failure = error
        while (message := self._receive()) is not None:
            if isinstance(message, Pass):
                self._pass = message
                self._reader.begin(message)
                continue
            freed, task = message
            self._arena.give_back(freed)
            if not self._reader.is_wanted():
                continue
            try:
                self._send_batch(task, failure)
            except Abandoned:
                continue

    def _receive(self) -> Any:
        length = receive_exactly(self._connection, LENGTH.size)
        text = length and receive_exactly(self._connection, LENGTH.unpack(length)[0])
        return text and pickle.loads(text)

    def _send_batch(self, task: Task, failure: Exception | None) -> None:
        self._arena.begin()
        kind = BATCH
        try:
            if failure is not None:
                raise failure
            batch = self._reader.read(task)
            if batch is END:
                self._send(task, STREAM_ENDED)
                return
            sent = self._arena.write(batch)
        except Abandoned:
            raise
        except NoMemoryError as error:
            self._send(task, NO_MEMORY, used=error.bytes)
            return
        except Exception as error:
            kind = ERROR
            self._arena.begin()
            try:
                sent = self._arena.write(_portable(error))
            except NoMemoryError as full:
                self._send(task, NO_MEMORY, used=full.bytes)
                return
        self._send(task, kind, sent.slot, sent.is_new, sent.pickle_offset, sent.bytes)

    def _send(
        self,
        task: Task,
        kind: int,
        slot: arena.Slot | None = None,
        is_new: bool = False,
        pickle_offset: int = 0,
        used: int = 0,
    ) -> None:
        number, bytes = (slot.number, slot.bytes if is_new else 0) if slot else (0, 0)
        record = RECORD.pack(
            self._pass.number, task.batch, kind, number, bytes, pickle_offset, used
        )
        if slot is None or not is_new:
            self._connection.sendall(record)
            return
        socket.send_fds(self._connection, [record], [slot.descriptor])
        os.close(slot.descriptor)


def _portable(error: Exception) -> tuple[BaseException, str]:
    """The exception, or one in its place if it cannot be pickled, and its traceback as text."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    portable: BaseException = error.with_traceback(None)
    portable.__cause__ = portable.__context__ = None  # they are in the text
    try:
        pickle.loads(pickle.dumps(portable))
    except Exception:
        portable = RuntimeError(f"{type(error).__name__}: {error}")
    return portable, text
