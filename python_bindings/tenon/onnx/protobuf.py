# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers, field by field: what messages of ONNX are made of."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Bytes = bytes | memoryview


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def head(tag: int, size: int) -> bytes:
    """What stands before the `size` bytes of a text or message."""
    return varint(tag << 3 | 2) + varint(size)


def field(tag: int, value: int | float | str | bytes) -> bytes:
    """An integer as varint, a float as four bytes, texts and messages with their length."""
    if isinstance(value, float):
        return varint(tag << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return head(tag, len(data)) + data


def fields(message: Bytes) -> Iterator[tuple[int, int | memoryview]]:
    """(tag, value) of each field in order: an integer, or the bytes of anything else. ValueError: it is no message."""
    data = memoryview(message)
    at = 0
    while at < len(data):
        key, at = _varint_at(data, at)
        tag, wire = key >> 3, key & 7
        if wire == 0:
            number, at = _varint_at(data, at)
            yield tag, number
            continue
        if wire == 2:
            size, at = _varint_at(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"expected a protocol buffer, got wire type {wire} at byte {at}")
        if size > len(data) - at:
            raise ValueError(f"expected {size} bytes at byte {at}, got {len(data) - at}")
        yield tag, data[at : at + size]
        at += size


def text(value: int | memoryview) -> str:
    return bytes(value).decode(errors="replace") if isinstance(value, memoryview) else str(value)


def integers(value: int | memoryview) -> list[int]:
    """Of a repeated field of int64, packed or not."""
    if isinstance(value, int):
        return [_signed(value)]
    found = []
    at = 0
    while at < len(value):
        number, at = _varint_at(value, at)
        found.append(_signed(number))
    return found


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _varint_at(data: memoryview, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & (1 << 64) - 1, at
    raise ValueError(f"expected a number of at most ten bytes before byte {at}")
