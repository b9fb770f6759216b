# SPDX-License-Identifier: Apache-2.0
"""Reader and writer of the safetensors format, version 1.

    8 bytes     length N of the header, little-endian
    N bytes     JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
                       "__metadata__": {"key": "text"}}; offsets count from the end of the header
    the rest    tensors, row-major, little-endian, back to back

A file comes from anywhere, so the header is believed only after every figure in it was checked.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import mmap
import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import tenon
from tenon import Tensor
from tenon._tensor.dtypes import DTYPES

MAX_HEADER = 100_000_000  # bytes; the reference implementation's limit
MAX_NDIM = 32

_NAMES = {name: row.safetensors for name, row in DTYPES.items() if row.safetensors}
_DTYPES = {code: name for name, code in _NAMES.items()}
# Numbers in a byte: shapes in files count numbers along the last axis.
_PACKED = {code: DTYPES[name].numbers for name, code in _NAMES.items() if DTYPES[name].numbers > 1}


class FormatError(ValueError):
    """The file is not a valid safetensors file."""

    __module__ = "tenon.safetensors"


def write(
    path: str | os.PathLike,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write `path`: a reader sees the old file or the new one."""
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = {str(key): str(value) for key, value in metadata.items()}
    # Widest elements first keeps every tensor aligned to its own element size.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    end = 0
    for name in order:
        tensor = tensors[name]
        kind = _NAMES.get(tensor.dtype.name)
        if name == "__metadata__" or kind is None:
            raise ValueError(
                f"safetensors cannot hold {_short(name)} of dtype {tensor.dtype.name}; "
                + ("rename it" if kind else "convert it first")
            )
        begin, end = end, end + math.prod(tensor.shape) * tensor.dtype.itemsize
        shape = list(tensor.shape)
        if kind in _PACKED:
            if not shape:
                raise ValueError(
                    f"safetensors cannot hold {_short(name)}, a {tensor.dtype.name} without axes: "
                    "sizes in files count numbers, of which it has two; reshape it to [1]"
                )
            shape[-1] *= _PACKED[kind]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)

    size = len(text).to_bytes(8, "little")
    write_whole(path, itertools.chain((size, text), (bytes_of(tensors[name]) for name in order)))


def write_whole(path: str | os.PathLike, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file beside `path`, then rename it, so that the name never means half a file."""
    path = os.fspath(path)
    temporary = f"{path}.{os.getpid()}-{threading.get_ident()}.tmp"
    try:
        with open(temporary, "xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())  # or a power cut could leave the name on an empty file
        os.replace(temporary, path)
        sync_folder(os.path.dirname(path) or ".")
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def sync_folder(folder: str) -> None:
    """Wait until names in `folder` are on the disk, where the system can say so."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(
    path: str | os.PathLike, *, memory_map: bool = False
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors (on the host) and metadata of a file."""
    path = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise FormatError(
                f"{path}: expected a header of {length} bytes, but the file has {size}; "
                "it is cut short or not a safetensors file"
            )
        if length > MAX_HEADER:
            raise FormatError(
                f"{path}: the header claims {length} bytes; the limit is {MAX_HEADER}"
            )
        entries, metadata = parse_header(file.read(length), size - 8 - length, path)
        if memory_map:
            data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            start = 8 + length
        else:
            data, start = bytearray(size - 8 - length), 0
            if file.readinto(data) != len(data):
                raise FormatError(f"{path}: the file became shorter while it was read")
    tensors = {}
    for name, (dtype, shape, begin) in entries.items():
        try:
            tensors[name] = tensor_over(data, getattr(tenon, dtype), shape, start + begin)
        except FormatError as error:
            raise FormatError(f"{path}: {_short(name)}: {error}") from None
    return tensors, metadata


def parse_header(
    text: bytes, data_bytes: int, path: str
) -> tuple[dict[str, tuple], dict[str, str]]:
    """Check a header against the number of data bytes that follow it.

    Returns {name: (dtype name, shape, begin)} and the metadata.
    """

    def refuse(reason: str) -> FormatError:
        return FormatError(f"{path}: bad safetensors header: {reason}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise refuse("a key appears twice")
        return result

    def no_constant(name: str) -> Any:
        raise refuse(f"{name} is not JSON")

    def small_int(text: str) -> int:  # int() takes quadratic time
        if len(text) > 20:
            raise refuse(f"a number of {len(text)} digits")
        return int(text)

    if not text.startswith(b"{"):
        raise refuse("expected it to begin with '{'")
    try:
        header = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=unique,
            parse_int=small_int,
            parse_constant=no_constant,
        )
    except FormatError:
        raise
    except UnicodeDecodeError:
        raise refuse("it is not UTF-8") from None
    except ValueError as error:
        raise refuse(f"it is not JSON ({error})") from None
    except RecursionError:
        raise refuse("it is nested too deeply") from None

    metadata = header.pop("__metadata__", {})
    if type(metadata) is not dict or any(type(value) is not str for value in metadata.values()):
        raise refuse("expected __metadata__ to map strings to strings")

    entries: dict[str, tuple] = {}
    ranges = []
    for name, entry in header.items():
        label = _short(name)
        if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise refuse(f"{label}: expected exactly dtype, shape and data_offsets")
        kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if type(kind) is not str or kind not in _DTYPES:
            raise refuse(f"{label}: unknown dtype {_short(kind)}; known are {', '.join(_DTYPES)}")
        if not _is_counts(shape) or len(shape) > MAX_NDIM:
            raise refuse(
                f"{label}: expected at most {MAX_NDIM} sizes >= 0 as shape, got {_short(shape)}"
            )
        # Strides are products of sizes even where one size is 0 and no byte is needed.
        if math.prod(size for size in shape if size) >= 1 << 60:
            raise refuse(f"{label}: shape {_short(shape)} is too large")
        if not _is_counts(offsets) or len(offsets) != 2 or sorted(offsets) != offsets:
            raise refuse(f"{label}: expected data_offsets [begin, end], got {_short(offsets)}")
        if kind in _PACKED:
            if not shape or shape[-1] % _PACKED[kind]:
                raise refuse(
                    f"{label}: expected a last size that is a multiple of {_PACKED[kind]} for "
                    f"{kind}, got shape {_short(shape)}"
                )
            shape = [*shape[:-1], shape[-1] // _PACKED[kind]]
        begin, end = offsets
        if end > data_bytes:
            raise refuse(f"{label}: data_offsets end at {end}, but {data_bytes} bytes follow")
        needed = math.prod(shape) * getattr(tenon, _DTYPES[kind]).itemsize
        if end - begin != needed:
            raise refuse(
                f"{label}: shape {shape} of {kind} needs {needed} bytes, data_offsets give "
                f"{end - begin}"
            )
        entries[name] = (_DTYPES[kind], tuple(shape), begin)
        ranges.append((begin, end, label))

    position = 0
    for begin, end, label in sorted(ranges):
        if begin != position:
            raise refuse(
                f"{label} begins at byte {begin}, expected {position}: tensors must follow "
                "one another without gaps or overlap"
            )
        position = end
    if position != data_bytes:
        raise refuse(f"the tensors end at byte {position}, the file has {data_bytes}")
    return entries, metadata


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."


def _is_counts(value: Any) -> bool:
    # `type is int`: True is an int for isinstance.
    return type(value) is list and all(type(n) is int and 0 <= n < 1 << 62 for n in value)


def bytes_of(tensor: Tensor) -> memoryview:
    host = tensor.detach().to("cpu").contiguous()
    return host._bytes()  # type: ignore[attr-defined]


def tensor_over(data: Any, dtype: Any, shape: tuple, offset: int) -> Tensor:
    content = memoryview(data)[offset : offset + math.prod(shape) * dtype.itemsize]
    if dtype == tenon.bool and bytes(content).translate(None, b"\x00\x01"):
        raise FormatError("expected bools to be the bytes 0 or 1")
    if offset % dtype.itemsize:  # foreign writers need not align; elements must be
        data, offset = bytearray(content), 0
    return tenon.frombuffer(data, dtype, shape, offset)
