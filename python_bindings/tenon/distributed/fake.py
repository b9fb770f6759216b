# SPDX-License-Identifier: Apache-2.0
"""One rank of a job whose other ranks are not there: what it keeps and what it would send, on more ranks than machines at
hand can run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tenon
from tenon import Tensor

from . import host_group as host
from .group import ProcessGroup
from .host_group import HostGroup
from .work import Work
from .world import _thread_world

_SUM, _PROD, _MIN, _MAX, _MEAN = range(5)  # TENON_REDUCE_*
_RIDES_ALONG = (
    4 << 10
)  # bytes up to which a reduction sends all of it to all ranks (plugins/collectives/group/calls.cpp)


class CallListener:
    """What hears of every call of a job that is not there. This one hears nothing."""

    def hear(
        self, host: FakeHost, size: int, kind: int, sent: int, received: int, is_async: bool
    ) -> Callable[[], None] | None:
        """Of the bytes that this rank sends and receives in a call of `size` ranks. What it returns is called when the program
        waits for a call that goes on."""
        return None

    def apart(self) -> contextlib.AbstractContextManager:
        """While numbers are made that the other ranks would have sent, which is no work of this rank."""
        return contextlib.nullcontext()


@contextlib.contextmanager
def fake(
    world_size: int, rank: int = 0, listener: CallListener | None = None
) -> Iterator[ProcessGroup]:
    """Inside, this thread is rank `rank` of `world_size` ranks that do not exist. Calls return at once, and count what the
    rank would send and receive, to the byte: `dist.world().counters()`. Tensors have the shapes, and the memory, that they
    would have (tenon.memory.stats()).

        with dist.fake(1024, rank=3) as world:
            optimizer = dist.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=1e-3)
            ...                                  # a step
            print(world.counters()["bytes_sent"], tenon.memory.stats()["peak"])

    **Numbers are not those of the job**: every other rank is taken to send what this one has in its place, so that a sum is
    this rank's number times `world_size`. Messages from one rank to another (send, recv, pipelines) and groups whose members
    only the other ranks know (ProcessGroup.split) are refused. Nothing is said about time: dist.trace_step, which gives a
    `listener`, and dist.predict do that. Tensors may be on the device "meta", where they have shapes and no data.
    """
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(
            f"fake: expected a world_size of 1 or more and a rank below it, got {world_size} and {rank}"
        )
    if getattr(_thread_world, "group", None) is not None:
        raise RuntimeError(
            "fake: expected a thread that is no rank of another job, got one that is; call it outside of dist.local and of "
            "other dist.fake, or in a thread of its own"
        )
    host_of_all = FakeHost(rank, world_size, listener or CallListener())
    group = ProcessGroup(host_of_all, "world", range(world_size), rank)
    _thread_world.group = group
    try:
        yield group
    finally:
        for mesh in getattr(_thread_world, "meshes", ()):
            mesh.close()
        _thread_world.meshes = []
        _thread_world.group = None


class _FakeRanks:
    """What a group asks of its connections."""

    def __init__(self, counters: dict[str, int]) -> None:
        self._counters = counters

    def counters(self) -> dict[str, int]:
        return dict(self._counters)

    def records(self) -> list[dict[str, Any]]:
        return []

    def peers(self) -> list[dict[str, Any]]:
        return []

    def failure(self) -> tuple[int, str]:
        return 0, ""

    def abort(self, text: str) -> None:
        raise RuntimeError(f"a group of ranks that are not there was aborted: {text}")

    def close(self) -> None:
        pass


class FakeHost(HostGroup):
    """The calls of one rank, whose others are not there."""

    has_others = False

    def __init__(self, rank: int, size: int, listener: CallListener) -> None:
        self._listener = listener
        self._counters = {"calls": 0, "bytes_sent": 0, "bytes_received": 0, "waiting_ns": 0}
        super().__init__(_FakeRanks(self._counters), rank, size)  # type: ignore[arg-type]

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
        size, own = self._size, self._rank
        if kind == host.BARRIER:
            sent = received = 0
        elif kind == host.BROADCAST:
            assert x is not None
            sent, received = (x.nbytes * (size - 1), 0) if own == root else (0, x.nbytes)
        elif kind == host.ALL_GATHER:
            assert x is not None
            sent = received = x.nbytes * (size - 1)
        else:
            assert x is not None
            sent, received = self._bytes_of_reduction(kind, x, root)
        finish = self._count(kind, sent, received, async_op)
        if x is not None and out is not None and kind != host.BROADCAST:
            with tenon.no_grad(), self._listener.apart():
                self._write(kind, x, out, reduction)
        return Work(None, result, finish) if async_op else None

    def _write(self, kind: int, x: Tensor, out: Tensor, reduction: int) -> None:
        if x.device.kind == "meta":
            return
        if kind == host.ALL_GATHER:
            rows = out.reshape([self._size, -1])
            rows.copy_(x.reshape([1, -1]).expand([self._size, x.numel()]))
            return
        if kind == host.REDUCE_SCATTER:
            length = x.shape[0] // self._size
            x = x[length * self._rank : length * (self._rank + 1)]
        out.copy_(self._reduced(x, reduction))

    def call_list(
        self,
        kind: int,
        sends: list[tuple[Tensor, int]],
        receives: list[tuple[Tensor, int]],
        root: int = 0,
        result: Any = None,
        async_op: bool = False,
    ) -> Work | None:
        is_ring = bool(sends) and bool(receives)  # all ranks are taken to do the same
        if (
            kind == host.EXCHANGE
            and not is_ring
            and any(peer != self._rank for _, peer in (*sends, *receives))
        ):
            raise NotImplementedError(
                "dist.fake: expected calls of all ranks, got a message between two, whose other end is not there"
            )
        sent = sum(x.nbytes for x, peer in sends if peer != self._rank)
        received = sum(x.nbytes for x, peer in receives if peer != self._rank)
        finish = self._count(kind, sent, received, async_op)
        given: dict[int, list[Tensor]] = {}
        for x, peer in sends:
            given.setdefault(0 if kind == host.EXCHANGE else peer, []).append(x)
        with tenon.no_grad(), self._listener.apart():
            for out, peer in receives:
                if out.device.kind == "meta":
                    continue
                # What goes to a rank is as long as what comes from it, or zeros come.
                queue = given.get(0 if kind == host.EXCHANGE else peer, [])
                source = queue.pop(0) if queue else None
                if source is None or source.numel() != out.numel():
                    out.zero_()
                elif source is not out:
                    out.copy_(source.clone().reshape(out.shape))
        return Work(None, result, finish) if async_op else None

    def part(self, name: str, ranks: list[int]) -> HostGroup | None:
        if self._rank not in ranks:
            return None
        return FakeHost(ranks.index(self._rank), len(ranks), self._listener)

    def check(self) -> None:
        pass

    def _count(
        self, kind: int, sent: int, received: int, is_async: bool
    ) -> Callable[[], None] | None:
        self._counters["calls"] += 1
        self._counters["bytes_sent"] += int(sent)
        self._counters["bytes_received"] += int(received)
        return self._listener.hear(self, self._size, kind, int(sent), int(received), is_async)

    def _bytes_of_reduction(self, kind: int, x: Tensor, root: int) -> tuple[int, int]:
        """As plugins/collectives/group/calls.cpp moves them: small ones whole to each rank that needs the sum, large ones by
        parts to the rank that adds a part, and the sums on."""
        size, own, others = self._size, self._rank, self._size - 1
        is_scatter, is_root = kind == host.REDUCE_SCATTER, own == root
        part = x.nbytes // size if is_scatter else x.nbytes
        if part <= _RIDES_ALONG or size == 1:
            if kind == host.REDUCE:
                return (0, part * others) if is_root else (part, 0)
            return part * others, part * others
        item, count = x.element_size(), x.numel()
        mine = item * (count * (own + 1) // size - count * own // size)
        rest = x.nbytes - mine
        sent, received = rest, mine * others
        if kind == host.ALL_REDUCE:
            return sent + mine * others, received + rest
        if kind == host.REDUCE:
            return (sent, received + rest) if is_root else (sent + mine, received)
        return sent, received

    def _reduced(self, x: Tensor, reduction: int) -> Tensor:
        if reduction == _SUM:
            return x * self._size
        return x**self._size if reduction == _PROD else x
