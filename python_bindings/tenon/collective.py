# SPDX-License-Identifier: Apache-2.0
"""Communication between the devices of several processes: all_reduce and its kin.

    id = tenon.collective.create_id("acme")     # in one process; carry it to the others
    with tenon.collective.Communicator("acme", id, rank, size) as comm:
        gradients = comm.all_reduce(gradients, "mean")

A device whose plugin has the `collective` group communicates by itself, in order with its stream. For
others the data go through the host and a socket, which works between processes of one machine and is
counted as fallback (`tenon.fallback_report()`; the policy "deny" forbids it).

Ranks that differ in the call, its reduction or root, or the dtype or number of elements, are an error that
says what both did: through the host always; where a device communicates by itself, for all but send, recv and
exchange while kernels are watched (`tenon.validation`, TENON_VALIDATE=1), on every rank or none.

No collective has a gradient, and no program (`tenon.compile`, `tenon.export`) holds one: tensors that require a
gradient are refused while gradients are recorded, a compiled function that calls one runs as it is, and `export`
is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import tenon
from tenon import _core
from tenon._host_collective import HostCollective, described, frame_of, text_of
from tenon._mesh import make_meeting_point
from tenon.host import validation as _validation

if TYPE_CHECKING:
    from tenon import Tensor

__all__ = ["Communicator", "create_id"]

_REDUCTIONS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "mean": 4}
_STAGED = b"tenon-staged "
# Why no program holds a collective, and what to do; behind the line of the caller's program.
_TALKS = (
    " talks to other ranks, and a program does not: it would go on with what they sent while it was "
    "recorded; make programs of what comes before and behind it, and call it between them"
)


def create_id(device: _core.device | str | None = None) -> bytes:
    """Bytes that name a new group of ranks. One process makes them, each rank is given them, and they
    serve one communicator."""
    if _core.has_collective(device):
        return _core.comm_id_create(device)
    return _STAGED + make_meeting_point().encode()


class Communicator:
    """One rank's end of a group of `size` ranks. Making it waits until all of them do.

    Every rank makes the same calls in the same order, with tensors of equal shape and dtype on
    `device`. One thread at a time uses a communicator; `abort` may be called from any. `timeout`, in
    seconds, is for going through the host; devices that communicate by themselves have their own.
    """

    def __init__(
        self, device: _core.device | str, id: bytes, rank: int, size: int, timeout: float = 300.0
    ) -> None:
        rank, size = int(rank), int(size)
        if not 0 <= rank < size:
            raise ValueError(f"expected a rank from 0 to {size - 1}, got {rank}")
        self.device = _core.device(device)
        self.rank, self.size = rank, size
        _core.record_effect("Communicator()", _TALKS)
        id = bytes(id)
        if _core.has_collective(self.device):
            self._impl: _core.Communicator | HostCollective = _core.Communicator(
                self.device, id, rank, size
            )
        elif id.startswith(_STAGED):
            folder = id[len(_STAGED) :].decode()
            self._impl = HostCollective(self.device, folder, rank, size, timeout)
        else:
            raise ValueError("expected the bytes that create_id() returned for this kind of device")

    def all_reduce(self, x: Tensor, op: str = "sum", out: Tensor | None = None) -> Tensor:
        """The element-wise sum of all ranks' `x`, or their prod, min, max or mean."""
        self._begin("all_reduce", x, out)
        x, reduction = self._input(x), self._reduction(op, x)
        out = self._output(out, x.shape, x)
        self._agree(f"all_reduce({op!r}) of {described(x)}")
        self._impl.all_reduce(x, out, reduction)
        return out

    def all_gather(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """All ranks' `x`, joined along the first axis in the order of ranks."""
        self._begin("all_gather", x, out)
        x = self._input(x)
        shape = (self.size * x.shape[0], *x.shape[1:]) if x.ndim else (self.size,)
        out = self._output(out, shape, x)
        self._agree(f"all_gather() of {described(x)}")
        self._impl.all_gather(x, out)
        return out

    def reduce_scatter(self, x: Tensor, op: str = "sum", out: Tensor | None = None) -> Tensor:
        """This rank's part of the reduced `x`, which is cut along its first axis."""
        self._begin("reduce_scatter", x, out)
        x, reduction = self._input(x), self._reduction(op, x)
        part = self._equal_parts(x, "reduce_scatter")[self.rank]
        out = self._output(out, part.shape, x)
        self._agree(f"reduce_scatter({op!r}) of {described(x)}")
        self._impl.reduce_scatter(x, out, reduction)
        return out

    def broadcast(self, x: Tensor, root: int = 0) -> Tensor:
        """Overwrite `x` with the one of rank `root`; returns `x`."""
        self._begin("broadcast", x)
        self._output(x, x.shape, x)
        root = self._other(root, "root")
        self._agree(f"broadcast(root={root}) of {described(x)}")
        self._impl.broadcast(x, root)
        return x

    def send(self, x: Tensor, to: int) -> None:
        """Send `x` to rank `to`, which receives it."""
        self._begin("send", x)
        if to == self.rank:
            raise ValueError(f"send: rank {to} is this one")
        self._impl.send(self._input(x), self._other(to, "to"))

    def recv(self, out: Tensor, source: int) -> Tensor:
        """Overwrite `out` with what rank `source` sends; returns `out`."""
        self._begin("recv", out)
        if source == self.rank:
            raise ValueError(f"recv: rank {source} is this one")
        self._output(out, out.shape, out)
        self._impl.recv(out, self._other(source, "source"))
        return out

    def reduce(
        self, x: Tensor, root: int = 0, op: str = "sum", out: Tensor | None = None
    ) -> Tensor | None:
        """As all_reduce, on rank `root` alone; None on the others."""
        self._begin("reduce", x, out)
        x, reduction, root = self._input(x), self._reduction(op, x), self._other(root, "root")
        call = f"reduce({op!r}, root={root}) of {described(x)}"
        if self.rank != root:
            self._agree(call)
            self._impl.reduce(x, None, reduction, root)
            return None
        out = self._output(out, x.shape, x)
        self._agree(call)
        self._impl.reduce(x, out, reduction, root)
        return out

    def exchange(
        self,
        sends: Iterable[tuple[Tensor, int]] = (),
        receives: Iterable[tuple[Tensor, int]] = (),
    ) -> None:
        """Send each tensor of `sends` to its rank and overwrite each of `receives` with what its rank sends.

        All of them make progress together, so ranks may send to each other, and to themselves. Between two
        ranks messages keep their order. A rank receives as many elements as the other sends, of the one
        dtype that all tensors of a call have.
        """
        sends, receives = list(sends), list(receives)
        self._begin("exchange", *(x for x, _ in sends), *(x for x, _ in receives))
        self._exchange(sends, receives)

    def all_to_all(
        self, x: Tensor | Sequence[Tensor], out: Tensor | Sequence[Tensor] | None = None
    ) -> Tensor | Sequence[Tensor]:
        """Part r of `x` goes to rank r; the result is made of the parts that all ranks sent to this one.

        A tensor is cut along its first axis into equal parts. Lists of one tensor for each rank may differ
        in shape; `out` is then needed, because only the sender knows the shapes.
        """
        given = [each for each in (x, out) if each is not None]
        tensors = [[each] if isinstance(each, tenon.Tensor) else each for each in given]
        self._begin("all_to_all", *(tensor for each in tensors for tensor in each))
        if isinstance(x, tenon.Tensor):
            source = self._input(x)
            parts: Sequence[Tensor] = self._equal_parts(source, "all_to_all")
            whole: Tensor | Sequence[Tensor] = self._output(out, source.shape, source)
            into: Sequence[Tensor] = self._equal_parts(whole, "all_to_all")
            call = f"all_to_all() of {described(source)}"
        else:
            if out is None or len(x) != self.size or len(out) != self.size:
                raise ValueError(
                    f"all_to_all: expected lists of {self.size} tensors, to send and to write into, "
                    f"got {len(x)} and {'none' if out is None else len(out)}"
                )
            parts, whole, into = list(x), out, list(out)
            call = "all_to_all() of lists"
        self._agree(call)
        self._exchange(
            [(part, rank) for rank, part in enumerate(parts)],
            [(part, rank) for rank, part in enumerate(into)],
        )
        return whole

    def gather(self, x: Tensor, root: int = 0, out: Tensor | None = None) -> Tensor | None:
        """As all_gather, on rank `root` alone; None on the others."""
        self._begin("gather", x, out)
        x, root = self._input(x), self._other(root, "root")
        call = f"gather(root={root}) of {described(x)}"
        if self.rank != root:
            self._agree(call)
            self._exchange([(x, root)])
            return None
        shape = (self.size * x.shape[0], *x.shape[1:]) if x.ndim else (self.size,)
        out = self._output(out, shape, x)
        parts = self._equal_parts(out, "gather")
        self._agree(call)
        self._exchange([(x, root)], [(part, rank) for rank, part in enumerate(parts)])
        return out

    def scatter(self, x: Tensor | None, root: int = 0, out: Tensor | None = None) -> Tensor:
        """This rank's part of `x`, which rank `root` cuts along its first axis. Other ranks give None, and
        `out`, because they do not know the shape."""
        self._begin("scatter", x, out)
        root = self._other(root, "root")
        if self.rank != root:
            if out is None:
                raise ValueError(
                    f"scatter: expected out=, because rank {self.rank} is not the root"
                )
            self._agree(f"scatter(root={root}) of parts of {described(out)}")
            self._exchange((), [(out, root)])
            return out
        if x is None:
            raise ValueError(f"scatter: expected a tensor on rank {root}, got None")
        parts = self._equal_parts(self._input(x), "scatter")
        out = self._output(out, parts[0].shape, parts[0])
        self._agree(f"scatter(root={root}) of parts of {described(out)}")
        self._exchange([(part, rank) for rank, part in enumerate(parts)], [(out, root)])
        return out

    def barrier(self) -> None:
        """Return when every rank has come here, and what was queued before it is done."""
        self._begin("barrier")
        self._agree("barrier()")
        token = tenon.zeros([1], dtype=tenon.int32, device=self.device)
        self._impl.all_reduce(token, token, _REDUCTIONS["sum"])
        token.item()

    def split(self, color: int, key: int | None = None) -> Communicator | None:
        """Communicators of parts of the ranks: those with the same `color` get one together, in the order of
        `key` (by default: of their ranks here). A negative color takes part in none and gets None. Every rank
        calls this, and waits for the others."""
        self._begin("split")
        self._agree("split()")
        color, key = int(color), self.rank if key is None else int(key)
        own = tenon.tensor([[color, key]], dtype=tenon.int64).to(self.device)
        gathered = tenon.empty((self.size, 2), dtype=own.dtype, device=self.device)
        self._impl.all_gather(own, gathered)
        told = gathered.tolist()
        members = sorted((k, rank) for rank, (c, k) in enumerate(told) if c == color)
        ranks = [rank for _, rank in members]
        if isinstance(self._impl, HostCollective):
            part: _core.Communicator | HostCollective | None = (
                self._impl.split(ranks) if color >= 0 else None
            )
        else:
            part = self._impl.split(color, key)
        if part is None:
            return None
        made = object.__new__(Communicator)
        made.device, made._impl = self.device, part
        made.rank, made.size = ranks.index(self.rank), len(ranks)
        return made

    def check(self) -> None:
        """Raise what ended this communicator, such as a rank that was lost; do not wait."""
        self._begin("check")
        self._impl.check_error()

    def abort(self) -> None:
        """From any thread: make every call that waits on this communicator fail."""
        self._impl.abort()

    def close(self) -> None:
        """Leave the group, once queued work is done."""
        self._impl.close()

    def __copy__(self) -> Communicator:
        return self

    def __deepcopy__(self, memo: object) -> Communicator:
        """Itself: a copy of a module talks to the same ranks."""
        return self

    def __reduce__(self) -> str:
        raise TypeError(
            "a Communicator cannot be pickled, because it is one rank's end of its connections; save "
            "state_dict() of what holds it"
        )

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None:
            self.abort()
        self.close()

    def __repr__(self) -> str:
        return f"<tenon.collective.Communicator on {self.device}, rank {self.rank} of {self.size}>"

    def _begin(self, call, *tensors):
        """What neither programs nor gradients may miss in silence."""
        _core.record_effect(f"Communicator.{call}()", _TALKS)
        if not tenon.is_grad_enabled():
            return
        if any(x is not None and x.requires_grad for x in tensors):
            raise ValueError(
                f"Communicator.{call}(): expected tensors without gradient, because no gradient passes "
                "through a collective, got one that requires it; pass x.detach(), or call it under "
                "tenon.no_grad()"
            )

    def _agree(self, call):
        """An error unless the other ranks are in the same call: through the host the one before this one, which
        tells of its call; on devices, while kernels are watched, all of them."""
        own = frame_of(call)
        if self.size == 1:
            return
        if isinstance(self._impl, HostCollective):
            heard = dict([self._impl.hear(own)])
        elif _validation.is_on():
            frames = tenon.empty((self.size, len(own)), dtype=tenon.uint8, device=self.device)
            told = tenon.tensor([list(own)], dtype=tenon.uint8).to(self.device)
            self._impl.all_gather(told, frames)
            heard = {rank: bytes(frame) for rank, frame in enumerate(frames.tolist())}
        else:
            return
        for rank, frame in heard.items():
            if frame == own:
                continue
            end = ""
            if isinstance(self._impl, HostCollective):  # not every rank has heard of it
                self.abort()
                end = "; the communicator was aborted"
            raise ValueError(
                "expected all ranks to make the same calls in the same order, with tensors of equal shape "
                f"and dtype, got {call} on rank {self.rank} and {text_of(frame)} on rank {rank}{end}"
            )

    def _exchange(self, sends=(), receives=()):
        outgoing = [(self._input(x), self._other(to, "sends")) for x, to in sends]
        incoming = [
            (self._output(x, x.shape, x), self._other(source, "receives")) for x, source in receives
        ]
        dtypes = {x.dtype for x, _ in (*outgoing, *incoming)}
        if len(dtypes) > 1:
            names = ", ".join(sorted(str(dtype) for dtype in dtypes))
            raise TypeError(f"exchange: expected tensors of one dtype, got {names}")
        self._impl.transfer(outgoing, incoming)

    def _input(self, x):
        if x.device != self.device:
            raise ValueError(f"expected a tensor on {self.device}, got one on {x.device}")
        return x.detach().contiguous()

    def _output(self, out, shape, x):
        shape = tuple(shape)
        if out is None:
            return tenon.empty(shape, dtype=x.dtype, device=self.device)
        if out.shape != shape or out.dtype != x.dtype or out.device != self.device:
            raise ValueError(
                f"expected room for {x.dtype} {shape} on {self.device}, got {out.dtype} {out.shape} on "
                f"{out.device}"
            )
        if not out.is_contiguous():
            raise ValueError("expected a contiguous tensor to write into; use .contiguous()")
        return out

    def _equal_parts(self, x, name):
        if x.ndim == 0 or x.shape[0] % self.size:
            raise ValueError(
                f"{name}: expected a first axis that {self.size} ranks can share, got shape {x.shape}"
            )
        length = x.shape[0] // self.size
        return [x[length * rank : length * (rank + 1)] for rank in range(self.size)]

    def _reduction(self, op, x):
        if op not in _REDUCTIONS:
            raise ValueError(f"expected a reduction out of {', '.join(_REDUCTIONS)}, got {op!r}")
        if x.dtype == _core.bool or (x.dtype.is_complex and op in ("min", "max")):
            raise TypeError(f"{op} of {x.dtype} has no meaning; convert the tensor first")
        if op == "mean" and not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise TypeError(f"the mean of {x.dtype} is no {x.dtype}; convert the tensor first")
        return _REDUCTIONS[op]

    def _other(self, rank, name):
        if not 0 <= rank < self.size:
            raise ValueError(f"{name}: expected a rank from 0 to {self.size - 1}, got {rank}")
        return rank
