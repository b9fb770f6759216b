# SPDX-License-Identifier: Apache-2.0
"""Reader of GGUF files, versions 2 and 3: metadata and tensors of llama.cpp's models.

    4 bytes  "GGUF"; u32 version; u64 tensors; u64 metadata
    each of metadata: text, u32 type, value; a text is u64 length and UTF-8; an array u32 type, u64 count
    each tensor: text, u32 dimensions, u64 each (the fastest first), u32 type, u64 offset
    padding to `general.alignment` (32); tensors, from there

All are little-endian. A file comes from anywhere: each count is compared with the bytes that are left
before memory is taken for it, and offsets and sizes are whole numbers that cannot wrap.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from dataclasses import dataclass
from typing import Any

import tenon
from tenon import Tensor

MAX_DIMENSIONS = 4
MAX_DEPTH = 4  # arrays in arrays
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_TEXT, _ARRAY = 8, 9
# type: name, numbers of a block, bytes of a block
_READ = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    8: ("Q8_0", 32, 34),
    30: ("BF16", 1, 2),
}
_KNOWN = {
    3: "Q4_1",
    6: "Q5_0",
    7: "Q5_1",
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
}
_KNOWN |= {14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S"}
_KNOWN |= {20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32"}
_KNOWN |= {27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}


class GgufError(ValueError):
    """The file is no valid GGUF file, or has what this reader does not read."""


@dataclass(frozen=True)
class _Place:
    shape: tuple[int, ...]  # the slowest dimension first
    kind: int
    offset: int  # in the file
    size: int  # bytes


class GgufFile:
    """A mapped GGUF file: `metadata` by name; tensors are read when they are requested.

    Threads may read at once. `close()` unmaps the file; tensors that were read are copies.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 24:
                raise GgufError(f"{self.path}: expected a header of 24 bytes, got {size} bytes")
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self._parse()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmaps the file."""
        self._bytes.close()

    def names(self) -> list[str]:
        """The tensors of the file, in its order."""
        return list(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, as NumPy orders it."""
        return self._places[name].shape

    def kind(self, name: str) -> str:
        """The type that a tensor is stored in, such as "Q8_0"."""
        kind = self._places[name].kind
        return _READ[kind][0] if kind in _READ else _KNOWN[kind]

    def read(self, name: str) -> Tensor:
        """A tensor's numbers as float32. Needs NumPy. Types other than F32, F16, BF16, Q8_0 and Q4_0
        are refused by name."""
        if name not in self._places:
            raise KeyError(f"{self.path}: no tensor '{name}'")
        place = self._places[name]
        if place.kind not in _READ:
            readable = ", ".join(kind for kind, *_ in _READ.values())
            raise GgufError(
                f"{self.path}: tensor '{name}': expected one of {readable}, got {self.kind(name)}"
            )
        data = self._bytes[place.offset : place.offset + place.size]
        return tenon.from_numpy(_dequantized(data, self.kind(name)).reshape(place.shape))

    def _parse(self) -> None:
        cursor = _Cursor(self.path, self._bytes)
        magic = cursor.take(4)
        if magic != b"GGUF":
            raise GgufError(f"{self.path}: expected 'GGUF' as its first bytes, got {magic!r}")
        version = cursor.number("<I")
        if version not in (2, 3):
            raise GgufError(f"{self.path}: expected version 2 or 3, little-endian, got {version}")
        # The shortest entries: a name's length and a u32 type, and a byte; or four figures.
        tensors = cursor.count("tensors", 8 + 4 + 4 + 8)
        entries = cursor.count("metadata", 8 + 4 + 1)
        self.metadata: dict[str, Any] = {}
        for _ in range(entries):
            name = cursor.text()
            if name in self.metadata:
                raise GgufError(f"{self.path}: metadata '{name}' is there twice")
            self.metadata[name] = cursor.value(cursor.number("<I"))
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or not 8 <= alignment <= 1 << 20 or alignment % 8:
            raise GgufError(
                f"{self.path}: general.alignment: expected a multiple of 8 up to 2^20, got {alignment!r}"
            )
        found = [self._entry(cursor) for _ in range(tensors)]
        start = -(-cursor.place // alignment) * alignment
        self._places: dict[str, _Place] = {}
        for name, shape, kind, offset in found:
            if name in self._places:
                raise GgufError(f"{self.path}: tensor '{name}' is there twice")
            if offset % alignment:
                raise GgufError(
                    f"{self.path}: tensor '{name}': expected an offset aligned to {alignment}, got {offset}"
                )
            size = 0
            if kind in _READ:
                _, numbers, block = _READ[kind]
                if shape and shape[-1] % numbers:
                    raise GgufError(
                        f"{self.path}: tensor '{name}': expected rows of a multiple of {numbers} "
                        f"numbers, got {shape[-1]}"
                    )
                size = math.prod(shape) // numbers * block
            if start + offset + size > len(self._bytes):
                raise GgufError(
                    f"{self.path}: tensor '{name}': expected its {size} bytes from {start + offset} "
                    f"within the file's {len(self._bytes)}"
                )
            self._places[name] = _Place(shape, kind, start + offset, size)

    def _entry(self, cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
        name = cursor.text()
        dimensions = cursor.number("<I")
        if dimensions > MAX_DIMENSIONS:
            raise GgufError(
                f"{self.path}: tensor '{name}': expected at most {MAX_DIMENSIONS} dimensions, got "
                f"{dimensions}"
            )
        shape = tuple(cursor.number("<Q") for _ in range(dimensions))[::-1]
        if 0 in shape:
            raise GgufError(
                f"{self.path}: tensor '{name}': expected dimensions of at least 1, got {shape}"
            )
        kind = cursor.number("<I")
        if kind not in _READ and kind not in _KNOWN:
            raise GgufError(f"{self.path}: tensor '{name}': unknown type {kind}")
        return name, shape, kind, cursor.number("<Q")


class _Cursor:
    """A place in the file that moves over what it reads, and not beyond the end."""

    def __init__(self, path: str, content: mmap.mmap) -> None:
        self._path, self._content, self.place = path, content, 0

    def take(self, size: int) -> bytes:
        left = len(self._content) - self.place
        if size > left:
            raise GgufError(
                f"{self._path}: expected {size} bytes at {self.place}, got an end after {left}"
            )
        self.place += size
        return self._content[self.place - size : self.place]

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def count(self, what: str, least: int) -> int:
        """A number of things that take at least `least` bytes each."""
        found = self.number("<Q")
        most = (len(self._content) - self.place) // least
        if found > most:
            raise GgufError(
                f"{self._path}: {what}: expected at most {most}, for which there are bytes, got {found}"
            )
        return found

    def text(self) -> str:
        content = self.take(self.number("<Q"))
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise GgufError(f"{self._path}: expected UTF-8 before {self.place}: {error}") from None

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind != _ARRAY:
            raise GgufError(f"{self._path}: unknown type {kind} of metadata before {self.place}")
        if depth == MAX_DEPTH:
            raise GgufError(f"{self._path}: expected at most {MAX_DEPTH} arrays in each other")
        inner = self.number("<I")
        if inner in _SCALARS:
            layout = _SCALARS[inner]
            count = self.count("an array", struct.calcsize(layout))
            content = self.take(count * struct.calcsize(layout))
            return list(struct.unpack(f"<{count}{layout[1]}", content))
        count = self.count("an array", 8 if inner == _TEXT else 12)
        return [self.value(inner, depth + 1) for _ in range(count)]


def _dequantized(data: bytes, kind: str) -> Any:
    import numpy

    if kind == "F32":
        return numpy.frombuffer(data, "<f4").copy()
    if kind == "F16":
        return numpy.frombuffer(data, "<f2").astype(numpy.float32)
    if kind == "BF16":
        return (numpy.frombuffer(data, "<u2").astype(numpy.uint32) << 16).view(numpy.float32)
    # A block is a float16 scale and 32 numbers: bytes, or halves of 16 bytes, low ones first.
    if kind == "Q8_0":
        blocks = numpy.frombuffer(data, [("scale", "<f2"), ("numbers", "i1", 32)])
        numbers = blocks["numbers"].astype(numpy.float32)
    else:
        blocks = numpy.frombuffer(data, [("scale", "<f2"), ("halves", "u1", 16)])
        halves = blocks["halves"]
        numbers = numpy.concatenate([halves & 15, halves >> 4], 1).astype(numpy.float32) - 8
    return (numbers * blocks["scale"].astype(numpy.float32)[:, None]).reshape(-1)
