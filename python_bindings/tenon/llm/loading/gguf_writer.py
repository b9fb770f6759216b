# SPDX-License-Identifier: Apache-2.0
"""Writer of GGUF files, version 3."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenon.io.safetensors import write_whole
from tenon.llm.loading.gguf import TYPES, size_of

ALIGNMENT = 32
_U32, _I32, _F32, _BOOL, _TEXT, _ARRAY, _U64 = 4, 5, 6, 7, 8, 9, 10


@dataclass(frozen=True)
class Entry:
    """A tensor of a file that is to be written: `content` makes its bytes when they are needed."""

    name: str
    shape: tuple[int, ...]  # the slowest dimension first
    kind: str  # such as "Q8_0"
    content: Callable[[], bytes | memoryview]


def write_gguf(
    path: str | os.PathLike[str], metadata: Mapping[str, Any], entries: Sequence[Entry]
) -> None:
    """Write `path`: a reader sees the old file or the new one. One tensor is in memory at a time."""
    write_whole(path, _parts(metadata, entries))


def _parts(metadata: Mapping[str, Any], entries: Sequence[Entry]) -> Iterator[bytes | memoryview]:
    head = [b"GGUF", struct.pack("<IQQ", 3, len(entries), len(metadata))]
    for name, value in metadata.items():
        kind, content = _packed(name, value)
        head += [_text(name), struct.pack("<I", kind), content]
    offset, sizes = 0, []
    for entry in entries:
        kind = TYPES[entry.kind]
        sizes.append(size_of(kind, entry.shape))
        head.append(_text(entry.name))
        head.append(
            struct.pack(
                f"<I{len(entry.shape)}QIQ", len(entry.shape), *entry.shape[::-1], kind, offset
            )
        )
        offset += -(-sizes[-1] // ALIGNMENT) * ALIGNMENT
    whole = b"".join(head)
    yield whole + bytes(-len(whole) % ALIGNMENT)
    for entry, size in zip(entries, sizes):
        data = entry.content()
        if len(data) != size:
            raise ValueError(f"tensor '{entry.name}': expected {size} bytes, got {len(data)}")
        yield data
        yield bytes(-size % ALIGNMENT)


def _text(value: str) -> bytes:
    content = value.encode("utf-8")
    return struct.pack("<Q", len(content)) + content


def _packed(name: str, value: Any) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return _BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        is_short = 0 <= value < 1 << 32
        return (_U32 if is_short else _U64), struct.pack("<I" if is_short else "<Q", value)
    if isinstance(value, float):
        return _F32, struct.pack("<f", value)
    if isinstance(value, str):
        return _TEXT, _text(value)
    if isinstance(value, list):  # an empty one is of texts
        head = struct.pack("<Q", len(value))
        if all(isinstance(each, str) for each in value):
            return _ARRAY, struct.pack("<I", _TEXT) + head + b"".join(map(_text, value))
        kind, layout = (_F32, "f") if isinstance(value[0], float) else (_I32, "i")
        packed = struct.pack(f"<{len(value)}{layout}", *value)
        return _ARRAY, struct.pack("<I", kind) + head + packed
    raise ValueError(f"metadata '{name}': expected a number, a text or a list, got {value!r:.60}")
