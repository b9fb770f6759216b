# SPDX-License-Identifier: Apache-2.0
"""Tables in folders: checkpoints of tenon.distributed.checkpoint, in whose writing each server has a part, and which any
number of servers loads.

    rows.ids, rows.versions, rows.uses, rows.days, rows.values      uses: shows and clicks
    candidates.ids ... .days, removed.ids ... .days                 ids without a row; ids whose row was removed

The manifest's values say what table it is and, of a delta, which save it follows.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.io import safetensors

from ..checkpoint import manifest as manifests
from ..checkpoint.boxes import Box
from ..checkpoint.manifest import Entry, Manifest, Stored
from ..checkpoint.reader import DIGESTS, Reader

PARTS = 64
_FILE_BYTES = 64 << 20
KINDS = ("rows", "candidates", "removed")  # TENON_TABLE_ROW, ...
_FIELDS = {
    "ids": "int64",
    "versions": "int64",
    "uses": "float32",
    "days": "int64",
    "values": "float32",
}


def new_token() -> str:
    return secrets.token_hex(8)


def write_part_files(
    table: _core.Table, width: int, folder: str, token: str, server: int, since: int
) -> list[list[int]]:
    """A server's rows, in files of some parts each, so that memory is that of a file; no push is made meanwhile. The result
    is, for each file, its number and how much of each kind it has."""
    os.makedirs(folder, exist_ok=True)
    written: list[list[int]] = []
    parts: list[dict[str, Tensor]] = []
    for part in range(PARTS):
        found = _part(table, width, part, since)
        if found:
            parts.append(found)
        is_last = part == PARTS - 1
        if parts and (is_last or sum(_bytes(each) for each in parts) >= _FILE_BYTES):
            keys = sorted(set().union(*parts))
            tensors = {
                key: tenon.cat([each[key] for each in parts if key in each], 0) for key in keys
            }
            digests = {key: zlib.crc32(safetensors.bytes_of(x)) for key, x in tensors.items()}
            number = server * PARTS + part
            path = os.path.join(folder, manifests.file_name(token, number))
            safetensors.write(path, tensors, {DIGESTS: json.dumps(digests)})
            counts = [tensors[f"{k}.ids"].numel() if f"{k}.ids" in tensors else 0 for k in KINDS]
            written.append([number, *counts])
            parts = []
    return written


def _bytes(tensors: dict[str, Tensor]) -> int:
    return sum(x.numel() * x.dtype.itemsize for x in tensors.values())


def _part(table: _core.Table, width: int, part: int, since: int) -> dict[str, Tensor]:
    """What a part of a table has of each kind."""
    counts = table.scan_counts(part, since)
    total = sum(counts)
    ids, versions, days = (tenon.empty([total], dtype=tenon.int64) for _ in range(3))
    uses, values = tenon.empty([total, 2]), tenon.empty([counts[0], width])
    table.scan(part, since, ids, versions, uses, days, values)
    tensors: dict[str, Tensor] = {"rows.values": values} if counts[0] else {}
    begin = 0
    for kind, count in zip(KINDS, counts, strict=True):
        if count:
            end = begin + count
            tensors[f"{kind}.ids"], tensors[f"{kind}.versions"] = (
                ids[begin:end],
                versions[begin:end],
            )
            tensors[f"{kind}.uses"], tensors[f"{kind}.days"] = uses[begin:end], days[begin:end]
        begin += count
    return tensors


def commit(
    folder: str,
    token: str,
    servers: int,
    width: int,
    written: list[list[int]],
    values: dict[str, Any],
) -> None:
    """The moment at which the folder is this save. `written`: of all servers."""
    tensors = {}
    for index, kind in enumerate(KINDS):
        total = sum(counts[1 + index] for counts in written)
        for name, dtype in _FIELDS.items():
            rest: tuple[int, ...] = ()
            if name == "uses":
                rest = (2,)
            elif name == "values":
                if kind != "rows":
                    continue
                rest = (width,)
            entry = Entry(dtype, (total, *rest))
            begin = 0
            for number, *counts in written:
                if not counts[index]:
                    continue
                box = Box((begin, *(0 for _ in rest)), (counts[index], *rest))
                key = f"{kind}.{name}"
                entry.pieces.append(Stored(manifests.file_name(token, number), key, box))
                begin += counts[index]
            tensors[f"{kind}.{name}"] = entry
    manifest = Manifest(servers, token, tensors, values)
    for file in sorted(manifest.files):
        if not os.path.exists(os.path.join(folder, file)):
            raise FileNotFoundError(
                f"Table.save: expected {file} in {folder}, which a server wrote; is it a folder that all machines share?"
            )
    manifests.write(folder, manifest)
    manifests.remove_left(folder, manifest)


def open_save(folder: str) -> Reader:
    reader = Reader(folder)
    if reader.manifest.values.get("kind") != "table":
        raise ValueError(
            f"Table.load: expected {folder} to be what Table.save() wrote, got another checkpoint"
        )
    return reader


def read_into(table: _core.Table, reader: Reader, width: int, server: int, servers: int) -> int:
    """Put those rows of a save into a table that belong to this server; the result is the highest version of them."""
    found = reader.manifest.values["width"]
    if found != width:
        raise ValueError(
            f"Table.load: expected rows of {width} floats, which dim and optimizer make, got {found} in {reader.folder}"
        )
    highest = 0
    for index, kind in enumerate(KINDS):
        for piece in reader.manifest.tensors[f"{kind}.ids"].pieces:
            begin, count = piece.box.offset[0], piece.box.size[0]
            ids = reader.read(f"{kind}.ids", piece.box)
            order = tenon.empty([count], dtype=tenon.int64)
            counts = _core._divide_ids(ids, servers, order)
            first = sum(counts[:server])
            own = order[first : first + counts[server]]
            if not counts[server]:
                continue

            def part(name: str, rest: tuple[int, ...] = ()) -> Tensor:
                box = Box((begin, *(0 for _ in rest)), (count, *rest))  # noqa: B023
                return tenon.index_select(reader.read(f"{kind}.{name}", box), own, 0)  # noqa: B023

            versions = part("versions")
            values = part("values", (width,)) if kind == "rows" else None
            table.restore(index, part("ids"), versions, part("uses", (2,)), part("days"), values)
            highest = max(highest, int(versions.max().item()))
    return highest
