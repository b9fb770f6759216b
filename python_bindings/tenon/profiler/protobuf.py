# SPDX-License-Identifier: Apache-2.0
"""The wire format of protocol buffers, as far as traces need it."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """A number of at least 0."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: int | bytes | str) -> bytes:
    """A field with a whole number, or with bytes, a text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value
