# SPDX-License-Identifier: Apache-2.0
"""What a server has taken, on the disk before it is acknowledged.

    record      32 bytes (_HEAD), 8 bytes for the length of each frame, the text, the frames

Threads that wait for the disk wait for one write of all: the first of them syncs what everyone has appended.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterator
from typing import Any

from tenon.io import safetensors

from ..rpc.values import Packer, Unpacker

_HEAD = struct.Struct(
    "<4sIQQII"
)  # mark, frames, bytes of text, of frames, CRC-32 of what follows, of this
_OWN = _HEAD.size - 4  # bytes of a head that its digest is of
_MARK = b"TnLg"
_MOST_BUFFERS = 512
_packer = Packer(False, lambda value: None)
_unpacker = Unpacker(False, lambda words: None)


class LogDamaged(ValueError):
    """A record in the middle of a log is not what was written."""


class Log:
    """Appends in one order; `wait(number)` returns when the record is on the disk."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        safetensors.sync_folder(os.path.dirname(path))
        self.bytes = os.fstat(self._descriptor).st_size
        self._written = self._durable = 0
        self._is_syncing = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def append(self, content: Any) -> int:
        """The number of the record. The caller sees to the order."""
        packed = _packer.pack(content)
        lengths = struct.pack(f"<{len(packed.frames)}Q", *(f.nbytes for f in packed.frames))
        crc = zlib.crc32(packed.text, zlib.crc32(lengths))
        for frame in packed.frames:
            crc = zlib.crc32(frame, crc)
        total = sum(f.nbytes for f in packed.frames)
        head = _HEAD.pack(_MARK, len(packed.frames), len(packed.text), total, crc, 0)[:_OWN]
        head += zlib.crc32(head).to_bytes(4, "little")
        buffers = [
            memoryview(head + lengths + packed.text),
            *(f for f in packed.frames if f.nbytes),
        ]
        self._check()
        try:
            while buffers:
                done = os.writev(self._descriptor, buffers[:_MOST_BUFFERS])
                self.bytes += done
                while buffers and done >= buffers[0].nbytes:
                    done -= buffers.pop(0).nbytes
                if done:
                    buffers[0] = buffers[0][done:]
        except OSError as error:
            self._fail(error)
            self._check()
        with self._changed:
            self._written += 1
            return self._written

    def wait(self, number: int) -> None:
        with self._changed:
            while self._durable < number:
                self._check()
                if self._is_syncing:
                    self._changed.wait()
                    continue
                self._is_syncing = True
                target = self._written
                self._changed.release()
                try:
                    os.fdatasync(self._descriptor)
                except OSError as error:
                    self._error = error
                finally:
                    self._changed.acquire()
                    self._is_syncing = False
                    if self._error is None:
                        self._durable = max(self._durable, target)
                    self._changed.notify_all()

    @property
    def written(self) -> int:
        return self._written

    def wait_for_all(self) -> None:
        self.wait(self._written)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _check(self) -> None:
        # After an error the file may end with a part of a record: nothing may follow it.
        if self._error is not None:
            raise OSError(
                f"the log of a server cannot be written: {self._error}; nothing is acknowledged any more"
            )

    def finish(self) -> None:
        """Close it: what it has is on the disk in another way, and who waits for it waits no longer."""
        with self._changed:
            while self._is_syncing:
                self._changed.wait()
            self._durable = self._written
            self._changed.notify_all()
            os.close(self._descriptor)


def read(path: str) -> Iterator[Any]:
    """The records. What is cut short at the end was never acknowledged, and is cut off."""
    with open(path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        at = 0
        while at < size:
            record = _record(file, size - at)
            if record is None:
                file.truncate(at)
                return
            text, frames, length = record
            if text is None:
                raise LogDamaged(
                    f"{path}: the record at byte {at} is not what was written; restore the server's folder, or load a "
                    "checkpoint into a new one"
                )
            at += length
            yield _unpacker.unpack(text, frames)


def _record(file: Any, left: int) -> tuple[bytes | None, list[bytearray], int] | None:
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    mark, count, text_bytes, total, crc, own = _HEAD.unpack(head)
    length = _HEAD.size + 8 * count + text_bytes + total
    if mark != _MARK or own != zlib.crc32(head[:_OWN]):
        return None, [], _HEAD.size
    if length > left:
        return None
    lengths_bytes = file.read(8 * count)
    lengths = struct.unpack(f"<{count}Q", lengths_bytes)
    text = file.read(text_bytes)
    said = zlib.crc32(text, zlib.crc32(lengths_bytes))
    if sum(lengths) != total:
        return None, [], length
    frames = []
    for each in lengths:
        frame = bytearray(each)
        file.readinto(frame)
        said = zlib.crc32(frame, said)
        frames.append(frame)
    return (text if said == crc else None), frames, length
