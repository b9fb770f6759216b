# SPDX-License-Identifier: Apache-2.0
"""Tensors in several safetensors files, and the index that says which is where.

{"metadata": {"total_size": 24, "key": "text"},
 "weight_map": {"name": "model-00001-of-00002.safetensors", ...}}
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tenon import Tensor
from tenon.io import safetensors
from tenon.io.safetensors import FormatError

_SUFFIX: Final = ".safetensors"
_UNITS: Final = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS_OF_1024: Final = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


def byte_count(size: int | str) -> int:
    """Bytes of a number, or of text such as "5GB" (10**9 each) or "5GiB"."""
    if type(size) is int and size > 0:  # not True, which is an int for isinstance
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
    unit = (_UNITS | _UNITS_OF_1024).get(match[2].upper()) if match else None
    if not match or unit is None or float(match[1]) <= 0:
        raise ValueError(
            f'max_shard_size: expected bytes, or text such as "500MB" or "5GB", got {size!r}'
        )
    return max(int(float(match[1]) * unit), 1)


def write(
    path: str | os.PathLike,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str],
    max_bytes: int,
) -> None:
    """One file if everything fits, else several and, last, the index."""
    path = os.fspath(path)
    shards: list[dict[str, Tensor]] = [{}]
    used = total = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.dtype.itemsize
        if shards[-1] and used + size > max_bytes:
            shards.append({})
            used = 0
        shards[-1][name] = tensor
        used += size
        total += size
    if len(shards) == 1:
        return safetensors.write(path, tensors, metadata)
    stem = path.removesuffix(_SUFFIX)
    weight_map: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        file = f"{stem}-{number:05}-of-{len(shards):05}{_SUFFIX}"
        safetensors.write(file, shard)
        weight_map |= dict.fromkeys(shard, os.path.basename(file))
    index = {"metadata": {**metadata, "total_size": total}, "weight_map": weight_map}
    text = json.dumps(index, indent=2, ensure_ascii=False).encode()
    safetensors.write_whole(f"{stem}{_SUFFIX}.index.json", [text])


def read(path: str, *, memory_map: bool = False) -> tuple[Mapping[str, Tensor], dict[str, str]]:
    """Tensors and metadata of an index. With `memory_map` files are opened when they are needed."""
    shards = Shards(path, memory_map)
    return (shards if memory_map else dict(shards)), shards.metadata


class Shards(Mapping[str, Tensor]):
    """The tensors that an index names. A file is read when one of its tensors is requested."""

    def __init__(self, path: str, memory_map: bool) -> None:
        self._path, self._memory_map = path, memory_map
        with open(path, "rb") as file:
            content = file.read(safetensors.MAX_HEADER + 1)
        try:
            index: Any = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}: the index is not JSON ({error})") from None
        weight_map = index.get("weight_map") if isinstance(index, dict) else None
        metadata = index.get("metadata", {}) if isinstance(index, dict) else None
        if not isinstance(weight_map, dict) or not isinstance(metadata, dict):
            raise FormatError(f'{path}: expected an index with "weight_map", names and files')
        for name, file in weight_map.items():
            # A name only: an index from elsewhere must not reach other folders.
            if not isinstance(file, str) or not re.fullmatch(r"\w[\w.\- ]*", file):
                raise FormatError(
                    f"{path}: expected for {name!r} the name of a file beside it, got {file!r}"
                )
        self.metadata = {k: v for k, v in metadata.items() if isinstance(v, str)}
        self._files: dict[str, str] = weight_map
        self._open: dict[str, dict[str, Tensor]] = {}

    def __getitem__(self, name: str) -> Tensor:
        file = self._files[name]
        if file not in self._open:
            beside = os.path.join(os.path.dirname(self._path), file)
            self._open[file], _ = safetensors.read(beside, memory_map=self._memory_map)
        try:
            return self._open[file][name]
        except KeyError:
            raise FormatError(
                f"{self._path}: expected {name!r} in {file}, which has no tensor of this name"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)
