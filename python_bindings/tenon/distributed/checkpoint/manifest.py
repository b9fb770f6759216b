# SPDX-License-Identifier: Apache-2.0
"""The file that makes a folder a checkpoint: which tensors there are, and which part of them lies in which file.

    manifest.json   {"format": "tenon.distributed.checkpoint", "version": 1, "ranks": 4, "token": "...",
                     "tensors": {"model.weight": {"dtype": "float32", "shape": [8, 4], "pieces": [
                         {"file": "pieces-...-00000.safetensors", "key": "model.weight@0,0", "offset": [0, 0],
                          "size": [4, 4]}, ...]}, ...},
                     "values": {"epoch": 3, ...}, "crc32": ...}

It is written last, under another name, and renamed: a folder has the files of its manifest at every moment. What other
files there are is left of saves that did not end.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

from tenon.io import safetensors
from tenon.io.safetensors import FormatError

from .boxes import Box, overlap, whole

NAME = "manifest.json"
_FORMAT, _VERSION = "tenon.distributed.checkpoint", 1
_FILE = re.compile(r"pieces-[0-9a-f]+-\d+\.safetensors")
_LEFT = re.compile(rf"({_FILE.pattern}|manifest\.json)\..*\.tmp|{_FILE.pattern}|failed-[0-9a-f]+")
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Stored:
    """A part of a tensor in a file."""

    file: str
    key: str
    box: Box


@dataclass
class Entry:
    """A tensor."""

    dtype: str
    shape: tuple[int, ...]
    pieces: list[Stored] = field(default_factory=list)


@dataclass
class Manifest:
    ranks: int
    token: str
    tensors: dict[str, Entry]
    values: dict[str, Any]

    @property
    def files(self) -> set[str]:
        return {piece.file for entry in self.tensors.values() for piece in entry.pieces}


def file_name(token: str, rank: int) -> str:
    return f"pieces-{token}-{rank:05}.safetensors"


def is_file_name(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


def remove_left(folder: str, manifest: Manifest) -> None:
    """Files of checkpoints that were here before, and of saves that did not end."""
    for name in os.listdir(folder):
        if _LEFT.fullmatch(name) and name not in manifest.files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))


def write(folder: str, manifest: Manifest) -> None:
    """The moment at which the folder is this checkpoint."""
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "ranks": manifest.ranks,
        "token": manifest.token,
        "tensors": {
            name: {
                "dtype": entry.dtype,
                "shape": list(entry.shape),
                "pieces": [
                    {
                        "file": piece.file,
                        "key": piece.key,
                        "offset": list(piece.box.offset),
                        "size": list(piece.box.size),
                    }
                    for piece in entry.pieces
                ],
            }
            for name, entry in manifest.tensors.items()
        },
        "values": manifest.values,
    }
    text = json.dumps({**content, "crc32": _digest(content)}, indent=1, ensure_ascii=False)
    safetensors.write_whole(os.path.join(folder, NAME), [text.encode()])


def _digest(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def read(folder: str) -> Manifest:
    path = os.path.join(folder, NAME)
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"expected a checkpoint in {folder}, found no {NAME}: it was never written to its end"
        ) from None
    if len(data) > _MOST_BYTES:
        raise FormatError(f"{path}: expected {_MOST_BYTES} bytes at most")
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: it is not JSON ({error}); it was damaged") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FormatError(f"{path}: expected a manifest of {_FORMAT}")
    if content.get("version") != _VERSION:
        raise FormatError(
            f"{path}: expected version {_VERSION}, got {content.get('version')!r}; read it with a newer Tenon"
        )
    said = content.pop("crc32", None)
    if said != _digest(content):
        raise FormatError(f"{path}: its digest is not that of its text; it was damaged or edited")
    try:
        return _parsed(content)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{path}: a part is missing or of the wrong type ({error!r})") from None


def _parsed(content: dict[str, Any]) -> Manifest:
    tensors = {}
    for name, entry in content["tensors"].items():
        shape = _counts(entry["shape"])
        pieces = []
        for piece in entry["pieces"]:
            box = Box(_counts(piece["offset"]), _counts(piece["size"]))
            # A name only: a manifest from elsewhere must not reach other folders.
            if not is_file_name(piece["file"]):
                raise FormatError(f"{name}: {piece['file']!r} is no name of a file of pieces")
            if len(box.offset) != len(shape) or len(box.size) != len(shape):
                raise FormatError(f"{name}: a piece has other axes than the tensor")
            if box.within(whole(shape)) != box:
                raise FormatError(f"{name}: a piece {box} lies outside of the shape {shape}")
            pieces.append(Stored(piece["file"], str(piece["key"]), box))
        fault = cover_fault(shape, [piece.box for piece in pieces])
        if fault:
            raise FormatError(f"{name}: {fault}")
        tensors[name] = Entry(str(entry["dtype"]), shape, pieces)
    values = content["values"]
    if not isinstance(values, dict):
        raise TypeError("values")
    return Manifest(int(content["ranks"]), str(content["token"]), tensors, values)


def cover_fault(shape: tuple[int, ...], boxes: list[Box]) -> str | None:
    """What is wrong with boxes that should have each element of a tensor once."""
    doubled = overlap(boxes)
    if doubled:
        first, second = doubled
        return f"pieces {_text(first)} and {_text(second)} overlap"
    missing = math.prod(shape) - sum(box.elements for box in boxes)
    if missing:
        return f"pieces leave out {missing} of {math.prod(shape)} elements of shape {tuple(shape)}"
    return None


def _text(box: Box) -> str:
    return f"{list(box.size)} from {list(box.offset)} on"


def _counts(value: Any) -> tuple[int, ...]:
    if type(value) is not list or any(type(n) is not int or not 0 <= n < 1 << 62 for n in value):
        raise TypeError(f"expected a list of sizes, got {value!r:.80}")
    return tuple(value)
