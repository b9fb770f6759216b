# SPDX-License-Identifier: Apache-2.0
"""Writer of TensorBoard's event files, without a dependency.

A file is a sequence of records (the framing of TFRecord):

    8 bytes  length N, little-endian    4 bytes  masked CRC32C of the length
    N bytes  an Event message           4 bytes  masked CRC32C of the message

Of the protocol buffers, these fields are needed: Event {double wall_time = 1; int64 step = 2;
string file_version = 3; Summary summary = 5}, Summary {repeated Value value = 1}, and Value
{string tag = 1; float simple_value = 2}.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import BinaryIO

_POLYNOMIAL = 0x82F63B78  # CRC32C (Castagnoli), bits reversed


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum, as iSCSI has it (RFC 3720)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """Rotated and shifted, so that a checksum of data with checksums is no special case."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative int64 takes ten bytes
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _event(step: int | None, content: bytes) -> bytes:
    event = _varint(1 << 3 | 1) + struct.pack("<d", time.time())
    if step is not None:
        event += _varint(2 << 3) + _varint(step)
    return event + content


class EventWriter:
    """Appends events to a new file in `folder`. As a context manager it closes the file."""

    _count = 0  # tells apart the files of one process and second

    def __init__(self, folder: str | os.PathLike) -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self.path = os.path.join(os.fspath(folder), f"{name}.{EventWriter._count}")
        EventWriter._count += 1
        self._file: BinaryIO = open(self.path, "xb")
        self._write(_event(None, _field(3, b"brain.Event:2")))
        self.flush()

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """One point of the curve `tag`."""
        number = _varint(2 << 3 | 5) + struct.pack("<f", value)
        self._write(_event(step, _field(5, _field(1, _field(1, tag.encode()) + number))))

    def flush(self) -> None:
        """Let readers see all events so far."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _write(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        self._file.write(length + struct.pack("<I", masked_crc32c(length)))
        self._file.write(event + struct.pack("<I", masked_crc32c(event)))
