# SPDX-License-Identifier: Apache-2.0
"""Calls of one group through the host's memory, for tensors of the host and of devices that do not communicate.

Ranks compare what they call before they use each other's bytes, each dtype travels in its own bytes, and sums are made
in the order of ranks: plugins/collectives.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.host import fallback as _fallback

from . import errors
from .call_site import call_site
from .work import Work

(
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    BROADCAST,
    REDUCE,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    BARRIER,
    EXCHANGE,
) = range(10)  # TENON_CALL_* of services/collectives.h
NAMES = (
    "all_reduce all_gather reduce_scatter broadcast reduce all_to_all gather scatter barrier exchange"
).split()

LOCAL_STORE, FILE_STORE, TCP_STORE = range(3)
NO_SECRET = bytes(16)


def meet_in_folder(folder: str, rank: int, size: int, timeout: float) -> HostGroup:
    """Ranks of one machine that were given the same private folder. It serves once; rank 0 removes it."""
    try:
        store = _core.Store(FILE_STORE, folder, 0, NO_SECRET, timeout)
        return HostGroup(_core.RankGroup(store, "comm", rank, size, timeout), rank, size)
    finally:
        if rank == 0 and os.path.isdir(folder) and os.stat(folder).st_mode & 0o077 == 0:
            shutil.rmtree(folder, ignore_errors=True)


class HostGroup:
    """One rank's end. `turn`, of ranks that are threads of a program which run one at a time, is given away while this
    one waits."""

    has_others = True  # whether the other ranks are there (tenon.distributed.fake)

    def __init__(self, ranks: _core.RankGroup, rank: int, size: int, turn: Any = None) -> None:
        self.ranks, self._rank, self._size, self._turn = ranks, rank, size, turn

    def call(
        self,
        kind: int,
        x: Tensor | None,
        out: Tensor | None,
        reduction: int = 0,
        root: int = 0,
        result: Any = None,
        async_op: bool = False,
    ) -> Work | None:
        """One of the calls that have a source and a destination, or, as a broadcast, one tensor as both."""
        src = None if x is None else self._to_host(kind, x)
        dst = src if out is x else None if out is None else self._room(out)
        if not async_op:
            with self._waiting(self._size):
                self.ranks.run(kind, src, dst, reduction, root, call_site())
            self._back(out, dst)
            return None
        work = self.ranks.start(kind, src, dst, reduction, root, call_site())
        return Work(work, result, lambda: self._back(out, dst), (src, dst), self._turn)

    def call_list(
        self,
        kind: int,
        sends: list[tuple[Tensor, int]],
        receives: list[tuple[Tensor, int]],
        root: int = 0,
        result: Any = None,
        async_op: bool = False,
    ) -> Work | None:
        """One of the calls that are lists of what goes from rank to rank."""
        outgoing = [(self._to_host(kind, x), rank) for x, rank in sends]
        incoming = [(self._room(x), rank) for x, rank in receives]

        def finish() -> None:
            for (x, _), (host, _) in zip(receives, incoming, strict=True):
                self._back(x, host)

        if not async_op:
            with self._waiting(0 if kind == EXCHANGE else self._size):
                self.ranks.run_list(kind, outgoing, incoming, root, call_site())
            finish()
            return None
        work = self.ranks.start_list(kind, outgoing, incoming, root, call_site())
        return Work(work, result, finish, (outgoing, incoming), self._turn)

    def part(self, name: str, ranks: list[int]) -> HostGroup | None:
        """The same for some of the ranks, in this order; None for those that are not in the list."""
        with self._waiting():
            part = self.ranks.part(name, ranks)
        if part is None:
            return None
        return HostGroup(part, ranks.index(self._rank), len(ranks), self._turn)

    def check(self) -> None:
        kind, text = self.ranks.failure()
        if kind:
            raise (
                errors.CollectiveMismatch,
                errors.PeerFailed,
                errors.CollectiveAborted,
                errors.CollectiveTimeout,
            )[kind - 1](text)
        gone = [peer["rank"] for peer in self.ranks.peers() if not peer["is_here"]]
        if gone:
            raise errors.PeerFailed(f"ranks {gone} are gone")

    def _waiting(self, size: int = 0) -> Any:
        return contextlib.nullcontext() if self._turn is None else self._turn.given_away(size)

    def _to_host(self, kind: int, x: Tensor) -> Tensor:
        if x.device.kind == "cpu":
            return x
        if not _core.device_properties(x.device)["host_memory"]:
            _fallback.count_staged(x.device.kind, NAMES[kind], 2 * x.nbytes, "collective")
        return x.to("cpu", copy=True)

    def _room(self, out: Tensor) -> Tensor:
        if out.device.kind == "cpu":
            return out
        return tenon.empty(tuple(out.shape), dtype=out.dtype)

    def _back(self, out: Tensor | None, host: Tensor | None) -> None:
        if out is not None and host is not None and out is not host:
            out.copy_(host)
