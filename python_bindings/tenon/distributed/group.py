# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks, and what they say to each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.host import validation as _validation

from . import host_group as host
from .errors import CollectiveMismatch
from .host_group import HostGroup
from .work import Work

REDUCTIONS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "mean": 4}
# Why no program holds a collective, and what to do; behind the line of the caller's program.
TALKS = (
    " talks to other ranks, and a program does not: it would go on with what they sent while it was "
    "recorded; make programs of what comes before and behind it, and call it between them (tenon.compile takes the calls of "
    "tenon.distributed.functional)"
)


class ProcessGroup:
    """One rank's end of a group. Every rank makes the same calls in the same order, with tensors of equal shape and
    dtype.

    Tensors of the host, and of devices that do not communicate by themselves, go through shared memory or TCP; those of
    other devices through their own library, in order with their stream. One thread at a time uses a group; `abort` may
    be called from any. With `async_op=True` a call returns a Work, and a thread of the group carries it out; on devices
    with a stream it is queued there. Calls made later wait for their turn.
    """

    def __init__(self, through_host: HostGroup, name: str, ranks: Sequence[int], rank: int) -> None:
        self._host: HostGroup | None = through_host
        self._own: dict[str, _core.Communicator] = {}  # of devices that communicate by themselves
        self.name, self.ranks = name, tuple(ranks)  # the ranks of the whole job, in order
        self.rank, self.size = rank, len(self.ranks)
        self._parts = 0

    # -- collectives

    def all_reduce(
        self, x: Tensor, op: str = "sum", out: Tensor | None = None, async_op: bool = False
    ) -> Any:
        """The element-wise sum of all ranks' `x`, or their prod, min, max or mean, made in the order of ranks: the same
        bits on all of them, whatever their number of elements."""
        self._begin("all_reduce", x, out)
        x, reduction = self._input(x), self._reduction(op, x)
        out = self._output(out, x.shape, x)
        return self._call(host.ALL_REDUCE, x, out, reduction, 0, out, async_op)

    def all_gather(self, x: Tensor, out: Tensor | None = None, async_op: bool = False) -> Any:
        """All ranks' `x`, joined along the first axis in the order of ranks."""
        self._begin("all_gather", x, out)
        x = self._input(x)
        shape = (self.size * x.shape[0], *x.shape[1:]) if x.ndim else (self.size,)
        out = self._output(out, shape, x)
        return self._call(host.ALL_GATHER, x, out, 0, 0, out, async_op)

    def reduce_scatter(
        self, x: Tensor, op: str = "sum", out: Tensor | None = None, async_op: bool = False
    ) -> Any:
        """This rank's part of the reduced `x`, which is cut along its first axis."""
        self._begin("reduce_scatter", x, out)
        x, reduction = self._input(x), self._reduction(op, x)
        part = self._equal_parts(x, "reduce_scatter")[self.rank]
        out = self._output(out, part.shape, x)
        return self._call(host.REDUCE_SCATTER, x, out, reduction, 0, out, async_op)

    def broadcast(self, x: Tensor, root: int = 0, async_op: bool = False) -> Any:
        """Overwrite `x` with the one of rank `root`; returns `x`."""
        self._begin("broadcast", x)
        self._output(x, x.shape, x)
        root = self._other(root, "root")
        return self._call(host.BROADCAST, x, x, 0, root, x, async_op)

    def reduce(
        self,
        x: Tensor,
        root: int = 0,
        op: str = "sum",
        out: Tensor | None = None,
        async_op: bool = False,
    ) -> Any:
        """As all_reduce, on rank `root` alone; None on the others."""
        self._begin("reduce", x, out)
        x, reduction, root = self._input(x), self._reduction(op, x), self._other(root, "root")
        if self.rank != root:
            return self._call(host.REDUCE, x, None, reduction, root, None, async_op)
        out = self._output(out, x.shape, x)
        return self._call(host.REDUCE, x, out, reduction, root, out, async_op)

    def all_to_all(
        self,
        x: Tensor | Sequence[Tensor],
        out: Tensor | Sequence[Tensor] | None = None,
        async_op: bool = False,
    ) -> Any:
        """Part r of `x` goes to rank r; the result is made of the parts that all ranks sent to this one.

        A tensor is cut along its first axis into equal parts. Lists of one tensor for each rank may differ
        in shape; `out` is then needed, because only the sender knows the shapes.
        """
        given = [each for each in (x, out) if each is not None]
        tensors = [[each] if isinstance(each, Tensor) else each for each in given]
        self._begin("all_to_all", *(tensor for each in tensors for tensor in each))
        parts: Sequence[Tensor]
        into: Sequence[Tensor]
        whole: Any
        if isinstance(x, Tensor):
            source = self._input(x)
            parts = self._equal_parts(source, "all_to_all")
            if out is not None and not isinstance(out, Tensor):
                raise TypeError("all_to_all: expected a tensor as out, as x is one, got a list")
            whole = self._output(out, source.shape, source)
            into = self._equal_parts(whole, "all_to_all")
        else:
            if out is None or len(x) != self.size or len(out) != self.size:
                raise ValueError(
                    f"all_to_all: expected lists of {self.size} tensors, to send and to write into, "
                    f"got {len(x)} and {'none' if out is None else len(out)}"
                )
            parts, whole, into = list(x), out, list(out)
        return self._lists(
            host.ALL_TO_ALL,
            [(part, rank) for rank, part in enumerate(parts)],
            [(part, rank) for rank, part in enumerate(into)],
            0,
            whole,
            async_op,
        )

    def gather(
        self, x: Tensor, root: int = 0, out: Tensor | None = None, async_op: bool = False
    ) -> Any:
        """As all_gather, on rank `root` alone; None on the others."""
        self._begin("gather", x, out)
        x, root = self._input(x), self._other(root, "root")
        if self.rank != root:
            return self._lists(host.GATHER, [(x, root)], [], root, None, async_op)
        shape = (self.size * x.shape[0], *x.shape[1:]) if x.ndim else (self.size,)
        out = self._output(out, shape, x)
        parts = [(part, rank) for rank, part in enumerate(self._equal_parts(out, "gather"))]
        return self._lists(host.GATHER, [(x, root)], parts, root, out, async_op)

    def scatter(
        self,
        x: Tensor | None,
        root: int = 0,
        out: Tensor | None = None,
        async_op: bool = False,
    ) -> Any:
        """This rank's part of `x`, which rank `root` cuts along its first axis. Other ranks give None, and
        `out`, because they do not know the shape."""
        self._begin("scatter", x, out)
        root = self._other(root, "root")
        if self.rank != root:
            if out is None:
                raise ValueError(
                    f"scatter: expected out=, because rank {self.rank} is not the root"
                )
            return self._lists(host.SCATTER, [], [(out, root)], root, out, async_op)
        if x is None:
            raise ValueError(f"scatter: expected a tensor on rank {root}, got None")
        parts = self._equal_parts(self._input(x), "scatter")
        out = self._output(out, parts[0].shape, parts[0])
        sends = [(part, rank) for rank, part in enumerate(parts)]
        return self._lists(host.SCATTER, sends, [(out, root)], root, out, async_op)

    def barrier(self, async_op: bool = False) -> Any:
        """Return when every rank has come here, and what was queued before it is done."""
        self._begin("barrier")
        for communicator in self._own.values():
            self._meet_on(communicator)
        if self._host is None:
            return Work(None) if async_op else None
        return self._host.call(host.BARRIER, None, None, async_op=async_op)

    # -- between two ranks

    def send(self, x: Tensor, to: int, async_op: bool = False) -> Any:
        """Send `x` to rank `to`, which receives it."""
        self._begin("send", x)
        if to == self.rank:
            raise ValueError(f"send: rank {to} is this one")
        x, to = self._input(x), self._other(to, "to")
        own = self._communicator(x)
        if own is not None:
            own.send(x, to)
            return Work(None) if async_op else None
        return self._lists(host.EXCHANGE, [(x, to)], [], 0, None, async_op)

    def recv(self, out: Tensor, source: int, async_op: bool = False) -> Any:
        """Overwrite `out` with what rank `source` sends; returns `out`."""
        self._begin("recv", out)
        if source == self.rank:
            raise ValueError(f"recv: rank {source} is this one")
        self._output(out, out.shape, out)
        source = self._other(source, "source")
        own = self._communicator(out)
        if own is not None:
            own.recv(out, source)
            return Work(None, out) if async_op else out
        return self._lists(host.EXCHANGE, [], [(out, source)], 0, out, async_op)

    def exchange(
        self,
        sends: Iterable[tuple[Tensor, int]] = (),
        receives: Iterable[tuple[Tensor, int]] = (),
        async_op: bool = False,
    ) -> Any:
        """Send each tensor of `sends` to its rank and overwrite each of `receives` with what its rank sends.

        All of them make progress together, so ranks may send to each other, and to themselves. Between two
        ranks messages keep their order. A rank receives as many elements as the other sends, of the one
        dtype that all tensors of a call have.
        """
        sends, receives = list(sends), list(receives)
        self._begin("exchange", *(x for x, _ in sends), *(x for x, _ in receives))
        return self._lists(host.EXCHANGE, sends, receives, 0, None, async_op)

    def send_recv(self, x: Tensor, target: int, source: int) -> Tensor:
        """Send `x` to rank `target` of this group and return what rank `source` sends; -1: no rank, and zeros come."""
        self._begin("send_recv", x)
        x = self._input(x)
        out = tenon.empty(x.shape, dtype=x.dtype, device=x.device)
        self.send_recv_into(out, x, target, source)
        return out

    def send_recv_into(self, out: Tensor, x: Tensor, target: int, source: int) -> None:
        """As send_recv, for what is known to be right."""
        sends = [] if target < 0 else [(x, target)]
        receives = [] if source < 0 else [(out, source)]
        if source < 0:
            out.zero_()
        self._lists(host.EXCHANGE, sends, receives, 0, None, False)

    # -- groups

    def split(
        self, color: int, key: int | None = None, name: str | None = None
    ) -> ProcessGroup | None:
        """Groups of parts of the ranks: those with the same `color` get one together, in the order of
        `key` (by default: of their ranks here). A negative color takes part in none and gets None. Every rank
        calls this, and waits for the others."""
        self._begin("split")
        if self._is_fake():
            raise NotImplementedError(
                "dist.fake: expected groups that are made of known ranks, as part(ranks) and meshes make them, got split(), "
                "which asks the other ranks"
            )
        color, key = int(color), self.rank if key is None else int(key)
        members = sorted(
            (k, rank) for rank, (c, k) in enumerate(self._tell_all([color, key])) if c == color
        )
        return self._part([rank for _, rank in members] if color >= 0 else [], name, color, key)

    def part(self, ranks: Sequence[int], name: str | None = None) -> ProcessGroup | None:
        """A group of `ranks`, which are those of this one, in that order. Every rank calls this with the same list;
        who is not in it gets None. The same list twice makes two groups."""
        self._begin("part")
        ranks = [self._other(rank, "ranks") for rank in ranks]
        if len(set(ranks)) != len(ranks) or not ranks:
            raise ValueError(f"ranks: expected different ones, and one at least, got {ranks}")
        text = ",".join(map(str, ranks))
        digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")
        told = self._tell_all([digest, len(ranks)])
        if any(each != told[self.rank] for each in told):
            others = [rank for rank, each in enumerate(told) if each != told[self.rank]]
            text = (
                f"expected all ranks of {self.name} to name the same ranks for a new group, got {ranks} on "
                f"rank {self.rank}, and others on ranks {others}; the group was aborted"
            )
            self.abort(text)
            raise CollectiveMismatch(text)
        color = 0 if self.rank in ranks else -1
        return self._part(ranks, name, color, ranks.index(self.rank) if color == 0 else 0)

    def _part(
        self, ranks: list[int], name: str | None, color: int, key: int
    ) -> ProcessGroup | None:
        self._parts += 1
        name = name or f"{self.name}.{self._parts}"
        through_host = self._host.part(name, ranks) if self._host is not None else None
        own = {
            device: part
            for device, each in self._own.items()
            if (part := each.split(color, key)) is not None
        }
        if not ranks or self.rank not in ranks:
            return None
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._host, made._own, made._parts = through_host, own, 0
        made.name, made.ranks = name, tuple(self.ranks[rank] for rank in ranks)
        made.rank, made.size = ranks.index(self.rank), len(ranks)
        return made

    def _tell_all(self, numbers: list[int]) -> list[list[int]]:
        """What every rank says, by rank."""
        if self._host is None:
            own = next(iter(self._own.values()))
            device = self.__dict__["device"]
            told = tenon.tensor([numbers], dtype=tenon.int64).to(device)
            all_told = tenon.empty((self.size, len(numbers)), dtype=tenon.int64, device=device)
            own.all_gather(told, all_told)
            return all_told.tolist()
        told = tenon.tensor([numbers], dtype=tenon.int64, device="cpu")
        all_told = tenon.empty((self.size, len(numbers)), dtype=tenon.int64, device="cpu")
        self._host.call(host.ALL_GATHER, told, all_told)
        return all_told.tolist()

    # -- its life

    def check(self) -> None:
        """Raise what ended this group, such as a rank that was lost; do not wait."""
        self._begin("check")
        if self._host is not None:
            self._host.check()
        for own in self._own.values():
            own.check_error()

    def abort(self, text: str = "the communicator was aborted") -> None:
        """From any thread: make every call that waits fail, here and on all ranks, in this group and all others
        that were made from the same one."""
        if self._host is not None:
            self._host.ranks.abort(text)
        for own in self._own.values():
            own.abort()

    def close(self) -> None:
        """Leave the group, once queued work is done."""
        for own in self._own.values():
            own.close()
        if self._host is not None:
            self._host.ranks.close()

    def counters(self) -> dict[str, int]:
        """Of this rank, through the host: calls, bytes_sent, bytes_received, waiting_ns."""
        return self._through_host().ranks.counters()

    def records(self) -> list[dict[str, Any]]:
        """The last 2,048 calls of this rank in this group and all others made from the same one, oldest first."""
        return self._through_host().ranks.records()

    def peers(self) -> list[dict[str, Any]]:
        """Of the other ranks of the job: whether they are here, when they were heard of, and in which call."""
        return self._through_host().ranks.peers()

    def _through_host(self) -> HostGroup:
        if self._host is None:
            raise NotImplementedError(
                f"expected a group that goes through the host, got {self}, whose device communicates by itself "
                "and counts nothing"
            )
        return self._host

    def __copy__(self) -> ProcessGroup:
        return self

    def __deepcopy__(self, memo: object) -> ProcessGroup:
        """Itself: a copy of a module talks to the same ranks."""
        return self

    def __reduce__(self) -> str:
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled, because it is one rank's end of its connections; save "
            "state_dict() of what holds it"
        )

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None:
            self.abort(f"rank {self.rank} left its group: {exception[1]!r}")
        self.close()

    def __repr__(self) -> str:
        return f"<tenon.distributed.ProcessGroup {self.name}, rank {self.rank} of {self.size}>"

    # -- how

    def _begin(self, call: str, *tensors: Tensor | None) -> None:
        """What neither programs nor gradients may miss in silence."""
        _core.record_effect(f"{type(self).__name__}.{call}()", TALKS)
        if any(x is not None and x.layout == "sharded" for x in tensors):
            raise TypeError(
                f"{type(self).__name__}.{call}(): expected plain tensors, got one of layout sharded; pass x.to_local(), "
                "or call x.redistribute()"
            )
        if not tenon.is_grad_enabled():
            return
        if any(x is not None and x.requires_grad for x in tensors):
            raise ValueError(
                f"{type(self).__name__}.{call}(): expected tensors without gradient, because no gradient passes "
                "through this call, got one that requires it; pass x.detach(), call it under tenon.no_grad(), or "
                "use tenon.distributed.functional, whose calls have gradients"
            )

    def _call(
        self,
        kind: int,
        x: Tensor,
        out: Tensor | None,
        reduction: int,
        root: int,
        result: Any,
        async_op: bool,
    ) -> Any:
        own = self._communicator(x)
        if own is None:
            assert self._host is not None
            work = self._host.call(kind, x, out, reduction, root, result, async_op)
            return work if async_op else result
        self._agree(own, kind, x, reduction, root)
        if kind == host.ALL_REDUCE:
            own.all_reduce(x, out, reduction)  # type: ignore[arg-type]
        elif kind == host.ALL_GATHER:
            own.all_gather(x, out)  # type: ignore[arg-type]
        elif kind == host.REDUCE_SCATTER:
            own.reduce_scatter(x, out, reduction)  # type: ignore[arg-type]
        elif kind == host.BROADCAST:
            own.broadcast(x, root)
        else:
            own.reduce(x, out, reduction, root)
        return Work(None, result) if async_op else result

    def _lists(
        self,
        kind: int,
        sends: Sequence[tuple[Tensor, int]],
        receives: Sequence[tuple[Tensor, int]],
        root: int,
        result: Any,
        async_op: bool,
    ) -> Any:
        outgoing = [(self._input(x), self._other(to, "sends")) for x, to in sends]
        incoming = [
            (self._output(x, x.shape, x), self._other(source, "receives")) for x, source in receives
        ]
        tensors = [x for x, _ in (*outgoing, *incoming)]
        dtypes = {x.dtype for x in tensors}
        if len(dtypes) > 1:
            names = ", ".join(sorted(str(dtype) for dtype in dtypes))
            raise TypeError(f"exchange: expected tensors of one dtype, got {names}")
        if not tensors:
            return Work(None, result) if async_op else result
        own = self._communicator(tensors[0])
        if own is None:
            assert self._host is not None
            work = self._host.call_list(kind, outgoing, incoming, root, result, async_op)
            return work if async_op else result
        if kind != host.EXCHANGE:
            self._agree(own, kind, tensors[0], 0, root)
        own.transfer(outgoing, incoming)
        return Work(None, result) if async_op else result

    def _communicator(self, x: Tensor) -> _core.Communicator | None:
        """Of a device that communicates by itself; made by all ranks at their first call with tensors of it."""
        kind = x.device.kind
        if kind == "cpu" or self._is_fake():
            return None
        name = f"{kind}:{x.device.index}"
        if name in self._own:
            return self._own[name]
        if self._host is None or not _core.has_collective(x.device):
            return None
        id = _core.comm_id_create(x.device) if self.rank == 0 else bytes(128)
        shared = tenon.tensor(list(id), dtype=tenon.uint8, device="cpu")
        self._host.call(host.BROADCAST, shared, shared)
        self._own[name] = _core.Communicator(x.device, bytes(shared.tolist()), self.rank, self.size)
        return self._own[name]

    def _agree(
        self, own: _core.Communicator, kind: int, x: Tensor, reduction: int, root: int
    ) -> None:
        """An error unless the other ranks are in the same call: through the host that is always compared, on devices
        while kernels are watched."""
        if self.size == 1 or not _validation.is_on():
            return
        call = f"{host.NAMES[kind]}({_argument(kind, reduction, root)}) of {x.numel()} elements of {x.dtype.name}"
        told = call.encode()[:96].ljust(96, b"\0")
        frames = tenon.empty((self.size, len(told)), dtype=tenon.uint8, device=x.device)
        own.all_gather(tenon.tensor([list(told)], dtype=tenon.uint8).to(x.device), frames)
        for rank, frame in enumerate(frames.tolist()):
            if bytes(frame) != told:
                other = bytes(frame).rstrip(b"\0").decode("ascii", "replace")
                raise CollectiveMismatch(
                    "expected all ranks to make the same calls in the same order, with tensors of equal shape "
                    f"and dtype, got {call} on rank {self.rank} and {other} on rank {rank}"
                )

    def _meet_on(self, own: _core.Communicator) -> None:
        device = next(name for name, each in self._own.items() if each is own)
        token = tenon.zeros([1], dtype=tenon.int32, device=device)
        own.all_reduce(token, token, REDUCTIONS["sum"])
        token.item()

    def _is_fake(self) -> bool:
        """Whether the other ranks are not there (tenon.distributed.fake), so that no data is needed."""
        return self._host is not None and not self._host.has_others

    def _input(self, x: Tensor) -> Tensor:
        if x.device.kind == "meta" and not self._is_fake():
            raise ValueError("expected a tensor with data, got one on meta")
        return x.detach().contiguous()

    def _output(self, out: Tensor | None, shape: Any, x: Tensor) -> Tensor:
        shape = tuple(shape)
        if out is None:
            return tenon.empty(shape, dtype=x.dtype, device=x.device)
        if out.shape != shape or out.dtype != x.dtype or out.device != x.device:
            raise ValueError(
                f"expected room for {x.dtype} {shape} on {x.device}, got {out.dtype} {out.shape} on "
                f"{out.device}"
            )
        if not out.is_contiguous():
            raise ValueError("expected a contiguous tensor to write into; use .contiguous()")
        return out

    def _equal_parts(self, x: Tensor, name: str) -> list[Tensor]:
        if x.ndim == 0 or x.shape[0] % self.size:
            raise ValueError(
                f"{name}: expected a first axis that {self.size} ranks can share, got shape {x.shape}"
            )
        length = x.shape[0] // self.size
        return [x[length * rank : length * (rank + 1)] for rank in range(self.size)]

    def _reduction(self, op: str, x: Tensor) -> int:
        if op not in REDUCTIONS:
            raise ValueError(f"expected a reduction out of {', '.join(REDUCTIONS)}, got {op!r}")
        if x.dtype.name == "bool" or (x.dtype.is_complex and op in ("min", "max")):
            raise TypeError(f"{op} of {x.dtype} has no meaning; convert the tensor first")
        if op == "mean" and not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise TypeError(f"the mean of {x.dtype} is no {x.dtype}; convert the tensor first")
        return REDUCTIONS[op]

    def _other(self, rank: int, name: str) -> int:
        if not 0 <= rank < self.size:
            raise ValueError(f"{name}: expected a rank from 0 to {self.size - 1}, got {rank}")
        return rank


def _argument(kind: int, reduction: int, root: int) -> str:
    name = repr(list(REDUCTIONS)[reduction])
    if kind in (host.ALL_REDUCE, host.REDUCE_SCATTER):
        return name
    if kind == host.REDUCE:
        return f"{name}, root={root}"
    return f"root={root}" if kind in (host.BROADCAST, host.GATHER, host.SCATTER) else ""
