# SPDX-License-Identifier: Apache-2.0
"""Reader of `.pt2` files without PyTorch: a ZIP archive of JSON, schema version 8, and of the bytes of weights."""

from __future__ import annotations

import ast
import json
import math
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

import tenon
from tenon._core import Tensor

SCHEMA: Final = 8
DTYPES: Final = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
}
_STRIDED: Final = 7
_MOST_JSON: Final = 1 << 28  # bytes
_PARTS: Final = (KeyError, TypeError, IndexError, AttributeError, RecursionError, struct.error)
# What zipfile raises where an archive is damaged: offsets before its beginning, streams that are none, passwords.
_ZIP: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class Archive:
    """The graph of a file, and its weights by name."""

    def __init__(self, path: str) -> None:
        """ValueError: there is no exported program of this version; NotImplementedError: parts that only PyTorch can read."""
        self.name = os.path.basename(path)
        with open(path, "rb") as file:
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
                self._zip = zipfile.ZipFile(path)
            except _ZIP as error:
                raise ValueError(
                    f"torch.load: {self.name}: expected a ZIP archive, as torch.export.save writes: {error}"
                ) from None
        try:
            self._read()
        except (*_PARTS, UnicodeDecodeError) as error:
            raise ValueError(
                f"torch.load: {self.name}: expected an exported program, found a part that is none: {error!r}"
            ) from None

    def _read(self) -> None:
        models = [name for name in self._zip.namelist() if name.endswith("/models/model.json")]
        if len(models) != 1:
            raise ValueError(
                f"torch.load: {self.name}: expected one exported program in it, got {len(models)}"
            )
        self._folder = models[0].removesuffix("models/model.json")
        if self._text("byteorder", "little").strip() != "little":
            raise NotImplementedError(f"torch.load: {self.name}: its weights are big-endian")
        self.content = self._json("models/model.json")
        version = self.content["schema_version"]
        if version["major"] != SCHEMA:
            raise ValueError(
                f"torch.load: {self.name}: expected schema version {SCHEMA}, got {version['major']}.{version['minor']}; "
                f"export the model with PyTorch 2.11 or newer"
            )
        self.module = self.content["graph_module"]
        self.graph = self.module["graph"]
        self.weights: dict[str, Tensor] = {}
        for kind in ("weights", "constants"):
            config = self._json(f"data/{kind}/model_{kind}_config.json")["config"]
            known: dict[tuple[Any, ...], Tensor] = {}
            for name, entry in config.items():
                meta = entry["tensor_meta"]
                if entry.get("use_pickle") or meta is None:
                    raise NotImplementedError(
                        f"torch.load: {self.name}: `{name}` is a Python object, which only PyTorch reads"
                    )
                key = (entry["path_name"], json.dumps(meta, sort_keys=True))
                if key not in known:  # weights that are tied are one
                    known[key] = self._weight(f"data/{kind}/{entry['path_name']}", name, meta)
                self.weights[name] = known[key]

    def _text(self, name: str, default: str) -> str:
        try:
            return self._unpacked(self._zip.getinfo(self._folder + name)).decode()
        except KeyError:
            return default

    def _unpacked(self, info: zipfile.ZipInfo) -> bytes:
        try:
            return self._zip.read(info)
        except _ZIP as error:
            raise ValueError(
                f"torch.load: {self.name}: {info.filename} cannot be unpacked: {error}"
            ) from None

    def _json(self, name: str) -> Any:
        info = self._zip.getinfo(self._folder + name)
        if info.file_size > _MOST_JSON:
            raise ValueError(f"torch.load: {self.name}: {name} has more than {_MOST_JSON} bytes")
        text = self._unpacked(info)
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"torch.load: {self.name}: {name}: expected JSON, {error}") from None

    def _weight(self, name: str, shown: str, meta: Any) -> Tensor:
        sizes, strides, offset = type_of(meta)
        dtype: tenon.dtype = getattr(tenon, dtype_of(meta))
        data = self._bytes(name)
        if len(data) % dtype.itemsize or any(size < 0 for size in sizes):
            raise ValueError(f"torch.load: {self.name}: expected whole elements of `{shown}`")
        count = len(data) // dtype.itemsize
        last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        if 0 in sizes:
            return tenon.zeros(sizes, dtype=dtype)
        if offset < 0 or min(strides, default=0) < 0 or last >= count:
            raise ValueError(
                f"torch.load: {self.name}: `{shown}` is {list(sizes)} and its file has {count} elements"
            )
        flat = tenon.frombuffer(data, dtype, (count,))
        if math.prod(sizes) == count and strides == _row_major(sizes):
            return tenon.reshape(flat, sizes)
        return tenon.as_strided(flat, sizes, strides, offset)

    def _bytes(self, name: str) -> Any:
        """In the mapped file where the archive holds them as they are, at a multiple of eight bytes."""
        info = self._zip.getinfo(self._folder + name)
        if info.compress_type != zipfile.ZIP_STORED:
            return memoryview(bytearray(self._unpacked(info)))
        names, more = struct.unpack_from("<HH", self._data, info.header_offset + 26)
        begin = info.header_offset + 30 + names + more
        if begin + info.file_size > len(self._data):
            raise ValueError(f"torch.load: {self.name}: it ends within {name}")
        part = memoryview(self._data)[begin : begin + info.file_size]
        return part if begin % 8 == 0 else memoryview(bytearray(part))


def _row_major(sizes: list[int]) -> list[int]:
    return [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]


def dtype_of(meta: Any) -> str:
    if meta["layout"] != _STRIDED:
        raise NotImplementedError("torch.load: only strided tensors can be told")
    if meta["dtype"] not in DTYPES:
        raise NotImplementedError(
            f"torch.load: dtype number {meta['dtype']} is none of {', '.join(DTYPES.values())}"
        )
    return DTYPES[meta["dtype"]]


def type_of(meta: Any) -> tuple[list[int], list[int], int]:
    """Sizes, strides and offset of a weight, which are numbers."""
    if meta["device"]["type"] != "cpu":
        raise ValueError(
            "torch.load: expected weights on the CPU; move the model with model.cpu() before it is exported"
        )
    sizes, strides = ([int(each["as_int"]) for each in meta[kind]] for kind in ("sizes", "strides"))
    if len(sizes) > 32 or len(sizes) != len(strides):
        raise ValueError("torch.load: expected a size and a stride for each of at most 32 axes")
    return sizes, strides, int(meta["storage_offset"]["as_int"])


def size_at(size: Any, sizes: Mapping[str, int]) -> int | None:
    """A size of the file, where its symbols are known; None: an expression that is not known here."""
    if "as_int" in size:
        return int(size["as_int"])
    try:
        return _value(ast.parse(size["as_expr"]["expr_str"], mode="eval").body, sizes)
    except (SyntaxError, _Unknown, ZeroDivisionError, ValueError):
        return None


def symbol_of(size: Any) -> str | None:
    """The name of a size that is a symbol alone."""
    text = size.get("as_expr", {}).get("expr_str", "")
    return text.split("'")[1] if text.startswith("Symbol('") and text.count("(") == 1 else None


class _Unknown(Exception):
    pass


def _value(node: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, sizes)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _Unknown
    name = node.func.id
    if name == "Symbol":
        (symbol,) = node.args
        if not isinstance(symbol, ast.Constant) or symbol.value not in sizes:
            raise _Unknown
        return sizes[str(symbol.value)]
    values = [_value(each, sizes) for each in node.args]
    if name == "Integer":
        return values[0]
    if name == "Mul":
        return math.prod(values)
    if name == "Add":
        return sum(values)
    if name == "FloorDiv":
        return values[0] // values[1]
    if name in ("Mod", "PythonMod"):
        return values[0] % values[1]
    if name in ("Max", "Min"):
        return (max if name == "Max" else min)(values)
    raise _Unknown
