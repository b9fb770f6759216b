# SPDX-License-Identifier: Apache-2.0
"""Saves of several ranks: who writes what, and the moment at which it counts."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
import zlib
from dataclasses import dataclass
from typing import Any

import tenon
from tenon import Tensor
from tenon.io import safetensors

from ..calls import all_gather_object, broadcast_object
from ..group import ProcessGroup
from . import manifest as manifests
from .boxes import Box
from .manifest import Entry, Manifest, Stored
from .reader import DIGESTS
from .states import Found

_POLL = 0.02  # seconds


@dataclass
class Plan:
    """The same on all ranks."""

    manifest: Manifest
    writers: dict[tuple[str, Box], int]


def make_plan(found: Found, failure: str | None, group: ProcessGroup | None) -> Plan:
    """What every rank has is told to all, and each piece is given to one of those who have it. `failure` is why this
    rank has nothing; then all raise it."""
    own = {
        name: (piece.tensor.dtype.name, piece.shape, piece.box)
        for name, piece in found.pieces.items()
    }
    digests: dict[str, int] = {}
    if group is not None and group.size > 1 and failure is None:
        digests = {name: _digest(found.pieces[name].tensor) for name in sorted(found.alike)}
    told = (own, found.values, found.first, digests, secrets.token_hex(8), failure)
    all_told = [told] if group is None else all_gather_object(told, group)
    for rank, (*_, text) in enumerate(all_told):
        if text is not None:
            raise ValueError(f"checkpoint: rank {rank} could not begin to save: {text}")
    token = all_told[0][4]
    known_digests: dict[tuple[str, Box], tuple[int, int]] = {}
    values: dict[str, Any] = {}
    holders: dict[str, dict[Box, list[int]]] = {}
    kinds: dict[str, tuple[str, tuple[int, ...], int]] = {}
    first: set[str] = set()
    for rank, (pieces, rank_values, rank_first, rank_digests, *_) in enumerate(all_told):
        first |= rank_first
        for name, value in rank_values.items():
            if name in values and repr(values[name]) != repr(value):
                raise ValueError(
                    f"checkpoint: expected {name!r} to be the same on all ranks, got {value!r:.100} on rank {rank} and "
                    f"{values[name]!r:.100} before"
                )
            values[name] = value
        for name, (dtype, shape, box) in pieces.items():
            known = kinds.setdefault(name, (dtype, tuple(shape), rank))
            if known[:2] != (dtype, tuple(shape)):
                raise ValueError(
                    f"checkpoint: expected {name!r} to be of one dtype and shape, got {dtype} {tuple(shape)} on rank "
                    f"{rank} and {known[0]} {known[1]} on rank {known[2]}"
                )
            holders.setdefault(name, {}).setdefault(Box(*box), []).append(rank)
            if name in rank_digests:
                before = known_digests.setdefault((name, Box(*box)), (rank_digests[name], rank))
                if before[0] != rank_digests[name]:
                    raise ValueError(
                        f"checkpoint: expected {name!r} to be the same on all ranks, got other numbers on rank {rank} than on "
                        f"rank {before[1]}; give the model or the optimizer itself in the place of its state_dict(), or a Piece "
                        "that says where in the whole a part lies"
                    )
    both = sorted(values.keys() & kinds.keys())
    if both:
        raise ValueError(f"checkpoint: {both[0]!r} is a tensor on some ranks and a value on others")
    loads = [0] * len(all_told)
    tensors, writers = {}, {}
    for name in sorted(holders):
        dtype, shape, _ = kinds[name]
        boxes = sorted(box for box in holders[name] if box.elements)
        fault = manifests.cover_fault(shape, boxes)
        if fault:
            raise ValueError(f"checkpoint: {name!r}: {fault}")
        entry = Entry(dtype, shape)
        for box in boxes:
            who = holders[name][box]
            writer = who[0] if name in first else min(who, key=lambda rank: (loads[rank], rank))
            loads[writer] += box.elements * getattr(tenon, dtype).itemsize
            writers[name, box] = writer
            is_whole = box.size == shape
            key = name if is_whole else f"{name}@{','.join(map(str, box.offset))}"
            entry.pieces.append(Stored(manifests.file_name(token, writer), key, box))
        tensors[name] = entry
    return Plan(Manifest(len(all_told), token, tensors, values), writers)


def own_tensors(plan: Plan, found: Found, rank: int) -> dict[str, Tensor]:
    """What this rank writes, by key."""
    tensors = {}
    for name, entry in plan.manifest.tensors.items():
        for piece in entry.pieces:
            if plan.writers[name, piece.box] == rank:
                tensors[piece.key] = found.pieces[name].tensor
    return tensors


def _digest(tensor: Tensor) -> int:
    return zlib.crc32(safetensors.bytes_of(tensor))


def write_own(folder: str, plan: Plan, tensors: dict[str, Tensor], rank: int) -> None:
    os.makedirs(folder, exist_ok=True)
    if not tensors:
        return
    path = os.path.join(folder, manifests.file_name(plan.manifest.token, rank))
    digests = {key: _digest(x) for key, x in tensors.items()}
    safetensors.write(path, tensors, {DIGESTS: json.dumps(digests)})


def commit(folder: str, manifest: Manifest) -> None:
    """Of rank 0, when all have written."""
    missing = [
        file for file in sorted(manifest.files) if not os.path.exists(os.path.join(folder, file))
    ]
    if missing:
        raise FileNotFoundError(
            f"checkpoint: expected {missing[0]} in {folder}, which another rank wrote; is it a folder that all machines "
            "share?"
        )
    manifests.write(folder, manifest)
    manifests.remove_left(folder, manifest)


def save_now(
    folder: str, plan: Plan, tensors: dict[str, Tensor], group: ProcessGroup | None
) -> None:
    """Returns when the checkpoint is there; what a rank raised, all raise."""
    rank = 0 if group is None else group.rank

    def attempt(action: Any) -> str | None:
        try:
            action()
            return None
        except Exception as error:
            return f"rank {rank}: {type(error).__name__}: {error}"

    failure = attempt(lambda: write_own(folder, plan, tensors, rank))
    failures = [failure] if group is None else all_gather_object(failure, group)
    failed = next((text for text in failures if text is not None), None)
    if failed is None and rank == 0:
        failed = attempt(lambda: commit(folder, plan.manifest))
    if group is not None:
        failed = broadcast_object(failed, group.ranks[0], group)
    if failed is not None:
        raise OSError(f"checkpoint: expected to write {folder}, which stays as it was; {failed}")


def waiting(group: ProcessGroup | None) -> Any:
    """While this rank waits for others without a call: one that is a thread lets them run."""
    through_host = None if group is None else group._host
    return contextlib.nullcontext() if through_host is None else through_host._waiting()


class _Told(Exception):
    """What all ranks know of a save that failed."""


class Pending:
    """A save that a thread carries out. Tensors may change meanwhile: they were copied. `wait` returns when the checkpoint
    is there, and raises what went wrong, on every rank. Ranks see each other's files, and need no call for it."""

    def __init__(
        self,
        folder: str,
        plan: Plan,
        tensors: dict[str, Tensor],
        group: ProcessGroup | None,
        timeout: float,
    ) -> None:
        self._folder, self._plan, self._group, self._timeout = folder, plan, group, timeout
        self._rank = 0 if group is None else group.rank
        self._error: BaseException | None = None
        self._is_told = False
        copies = {key: _copied(x) for key, x in tensors.items()}
        self._thread = threading.Thread(
            target=self._run, args=(copies,), name="tenon-checkpoint", daemon=False
        )
        self._thread.start()

    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        with waiting(self._group):
            self._thread.join()
        if self._error is not None and not self._is_told:
            self._is_told = True
            raise self._error

    def _run(self, tensors: dict[str, Tensor]) -> None:
        token = self._plan.manifest.token
        mark = os.path.join(self._folder, f"failed-{token}")
        try:
            try:
                write_own(self._folder, self._plan, tensors, self._rank)
                tensors.clear()
                if self._rank == 0:
                    self._until(self._all_are_written, mark)
                    commit(self._folder, self._plan.manifest)
                else:
                    self._until(self._is_committed, mark)
            except _Told as error:
                raise OSError(str(error)) from None
            except Exception as error:
                raise OSError(self._tell(mark, error)) from error
        except BaseException as error:
            self._error = error

    def _all_are_written(self) -> bool:
        return all(
            os.path.exists(os.path.join(self._folder, file)) for file in self._plan.manifest.files
        )

    def _is_committed(self) -> bool:
        try:
            return manifests.read(self._folder).token == self._plan.manifest.token
        except (FileNotFoundError, ValueError):
            return False

    def _until(self, is_true: Any, mark: str) -> None:
        limit = time.monotonic() + self._timeout
        while not is_true():
            gone = [] if self._group is None else self._gone()
            # A rank that leaves because of another one has said so before.
            if os.path.exists(mark):
                with open(mark, encoding="utf-8") as file:
                    raise _Told(file.read())
            if gone:
                raise _Told(
                    self._say(
                        mark,
                        f"checkpoint: {self._folder} stays as it was: ranks {gone} are gone, before it was written",
                    )
                )
            if time.monotonic() > limit:
                raise _Told(
                    f"checkpoint: {self._folder} stays as it was: waited {self._timeout:g} s for the other ranks to write"
                )
            time.sleep(_POLL)

    def _gone(self) -> list[int]:
        assert self._group is not None
        with contextlib.suppress(Exception):  # the group was closed, or goes not through the host
            members = set(self._group.ranks)
            return [
                peer["rank"]
                for peer in self._group.peers()
                if not peer["is_here"] and peer["rank"] in members
            ]
        return []

    def _tell(self, mark: str, error: BaseException) -> str:
        text = (
            f"checkpoint: expected to write {self._folder}, which stays as it was; rank {self._rank}: "
            f"{type(error).__name__}: {error}"
        )
        return self._say(mark, text)

    def _say(self, mark: str, text: str) -> str:
        """To the other ranks."""
        with contextlib.suppress(OSError):
            if not os.path.exists(mark):
                safetensors.write_whole(mark, [text.encode()])
        return text


def _copied(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor.clone() if tensor.device.kind == "cpu" else tensor.cpu()
