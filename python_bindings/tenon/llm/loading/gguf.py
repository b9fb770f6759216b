# SPDX-License-Identifier: Apache-2.0
"""Reader of GGUF files, versions 2 and 3: metadata and tensors of llama.cpp's models.

    4 bytes  "GGUF"; u32 version; u64 tensors; u64 metadata
    each of metadata: text, u32 type, value; a text is u64 length and UTF-8; an array u32 type, u64 count
    each tensor: text, u32 dimensions, u64 each (the fastest first), u32 type, u64 offset
    padding to `general.alignment` (32); tensors, from there

All are little-endian. A file comes from anywhere: each count is compared with the bytes that are left
before memory is taken for it, offsets and sizes are whole numbers that cannot wrap, and no two tensors
share bytes, so that what a file makes is bounded by its size.
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
from tenon.llm.models.blocks import FORMATS, BlockWeight

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
# type: its name, for numbers one by one, and bytes of a number
_PLAIN = {0: ("F32", 4), 1: ("F16", 2), 30: ("BF16", 2)}
_PLAIN_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
# type: the format of its blocks
_BLOCKS = {
    2: "q4_0",
    3: "q4_1",
    6: "q5_0",
    7: "q5_1",
    8: "q8_0",
    10: "q2_K",
    11: "q3_K",
    12: "q4_K",
    13: "q5_K",
    14: "q6_K",
    20: "iq4_nl",
    23: "iq4_xs",
    39: "mxfp4",
}
_OTHERS = {
    9: "Q8_1",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    21: "IQ3_S",
    22: "IQ2_S",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
    34: "TQ1_0",
    35: "TQ2_0",
    40: "NVFP4",
}
_NAMES = {
    **{kind: name for kind, (name, _) in _PLAIN.items()},
    **{kind: form.upper() for kind, form in _BLOCKS.items()},
    **_OTHERS,
}
TYPES = {name: kind for kind, name in _NAMES.items() if kind not in _OTHERS}


class GgufError(ValueError):
    """The file is no valid GGUF file, or has what this reader does not read."""


def size_of(kind: int, shape: tuple[int, ...]) -> int:
    """The bytes of a tensor of `shape`, the slowest dimension first. Raises ValueError if its rows are
    no whole blocks."""
    if kind in _PLAIN:
        return math.prod(shape) * _PLAIN[kind][1]
    numbers, size = FORMATS[_BLOCKS[kind]]
    last = shape[-1] if shape else 1
    if last % numbers:
        raise ValueError(f"expected rows of a multiple of {numbers} numbers, got {last}")
    return math.prod(shape) // numbers * size


@dataclass(frozen=True)
class _Place:
    shape: tuple[int, ...]  # the slowest dimension first
    kind: int
    offset: int  # in the file
    size: int  # bytes; 0 for types that are not read


class GgufFile:
    """A mapped GGUF file: `metadata` by name; tensors are read when they are requested.

    Threads may read at once. The mapping ends with `close()`, or with the last tensor that is left of
    those that `tensor()` gave.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            self.size = os.fstat(file.fileno()).st_size
            if self.size < 24:
                raise GgufError(
                    f"{self.path}: expected a header of 24 bytes, got {self.size} bytes"
                )
            # Private: tensors are views that could be written to, and the file must not be.
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
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
        """Unmaps the file, or lets tensors that are views of it do so."""
        try:
            self._bytes.close()
        except BufferError:  # the mapping goes when they do
            pass

    def names(self) -> list[str]:
        """The tensors of the file, in its order."""
        return list(self._places)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, as NumPy orders it."""
        return self._place(name).shape

    def kind(self, name: str) -> str:
        """The type that a tensor is stored in, such as "Q8_0"."""
        return _NAMES[self._place(name).kind]

    def tensor(self, name: str) -> Tensor | BlockWeight:
        """A tensor, mapped from the file: float32, float16 or bfloat16, or blocks. It copies
        nothing; what is written to it is not written to the file."""
        place = self._place(name)
        if place.kind in _PLAIN:
            dtype = getattr(tenon, _PLAIN_DTYPES[_NAMES[place.kind]])
            return tenon.frombuffer(self._bytes, dtype, place.shape, place.offset)
        if place.kind not in _BLOCKS:
            raise GgufError(
                f"{self.path}: tensor '{name}': expected one of {', '.join(TYPES)}, got "
                f"{self.kind(name)}"
            )
        form = _BLOCKS[place.kind]
        numbers, size = FORMATS[form]
        shape = (*place.shape[:-1], place.shape[-1] // numbers * size)
        return BlockWeight(tenon.frombuffer(self._bytes, tenon.uint8, shape, place.offset), form)

    def read(self, name: str) -> Tensor:
        """A copy of a tensor's numbers as float32. Types that are not read are refused by name."""
        found = self.tensor(name)
        if isinstance(found, BlockWeight):
            return found.dequantized()
        return found.clone() if found.dtype == tenon.float32 else found.to(tenon.float32)

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            raise KeyError(f"{self.path}: no tensor '{name}'")
        return self._places[name]

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
            try:
                size = 0 if kind in _OTHERS else size_of(kind, shape)
            except ValueError as error:
                raise GgufError(f"{self.path}: tensor '{name}': {error}") from None
            if start + offset + size > self.size:
                raise GgufError(
                    f"{self.path}: tensor '{name}': expected its {size} bytes from {start + offset} "
                    f"within the file's {self.size}"
                )
            self._places[name] = _Place(shape, kind, start + offset, size)
        self._check_overlaps()

    def _check_overlaps(self) -> None:
        end, before = 0, ""
        for name, place in sorted(self._places.items(), key=lambda item: item[1].offset):
            if place.size and place.offset < end:
                raise GgufError(
                    f"{self.path}: tensor '{name}': expected bytes of its own from {place.offset}, "
                    f"which belong to '{before}'"
                )
            if place.size:
                end, before = place.offset + place.size, name

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
        if kind not in _NAMES:
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
