# SPDX-License-Identifier: Apache-2.0
"""Reads any part of a tensor of a checkpoint. Files are mapped: memory is the part and not the tensor."""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

import tenon
from tenon import Tensor
from tenon.io import safetensors
from tenon.io.safetensors import FormatError

from . import manifest as manifests
from .boxes import Box
from .manifest import Stored

DIGESTS = "crc32"  # metadata of a file: of the bytes of each key


class Reader:
    def __init__(self, folder: str | os.PathLike, verify: bool = True) -> None:
        self.folder, self._verify = os.fspath(folder), verify
        self.manifest = manifests.read(self.folder)
        self._files: dict[str, tuple[dict[str, Tensor], dict[str, Any]]] = {}
        self._verified: set[tuple[str, str]] = set()

    def read(self, name: str, box: Box) -> Tensor:
        """A part of a tensor, on the host."""
        entry = self.manifest.tensors[name]
        out = tenon.empty(list(box.size), dtype=getattr(tenon, entry.dtype))
        with tenon.no_grad():
            for piece in entry.pieces:
                both = piece.box.within(box)
                if both.elements or not both.size:
                    source = both.of(self._stored(name, piece), piece.box.offset)
                    both.of(out, box.offset).copy_(source)
        return out

    def _stored(self, name: str, piece: Stored) -> Tensor:
        path = os.path.join(self.folder, piece.file)
        tensors, digests = self._opened(path, piece.file)
        entry = self.manifest.tensors[name]
        found = tensors.get(piece.key)
        if found is None:
            raise FormatError(
                f"{path}: expected {piece.key!r}, which the manifest says is there; the file was damaged or replaced"
            )
        if (found.dtype.name, tuple(found.shape)) != (entry.dtype, piece.box.size):
            raise FormatError(
                f"{path}: expected {piece.key!r} to be {entry.dtype} {piece.box.size}, got {found.dtype.name} "
                f"{tuple(found.shape)}"
            )
        if self._verify and (piece.file, piece.key) not in self._verified:
            if zlib.crc32(safetensors.bytes_of(found)) != digests.get(piece.key):
                raise FormatError(
                    f"{path}: the bytes of {piece.key!r} are not those that were written; the file was damaged"
                )
            self._verified.add((piece.file, piece.key))
        return found

    def _opened(self, path: str, file: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        if file not in self._files:
            try:
                tensors, metadata = safetensors.read(path, memory_map=True)
                digests = json.loads(metadata.get(DIGESTS, "{}"))
            except FileNotFoundError:
                raise FormatError(
                    f"{path}: the file is missing, which {manifests.NAME} names"
                ) from None
            except FormatError:
                raise
            except ValueError as error:
                raise FormatError(f"{path}: its digests cannot be read ({error})") from None
            if not isinstance(digests, dict):
                raise FormatError(f"{path}: its digests cannot be read")
            self._files[file] = (tensors, digests)
        return self._files[file]
