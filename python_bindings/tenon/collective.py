# SPDX-License-Identifier: Apache-2.0
"""Communication between the devices of several processes: all_reduce and its kin.

    id = tenon.collective.create_id("acme")     # in one process; carry it to the others
    with tenon.collective.Communicator("acme", id, rank, size) as comm:
        gradients = comm.all_reduce(gradients, "mean")

A device whose plugin has the `collective` group communicates by itself, in order with its stream. For
others the data go through the host and a socket, which works between processes of one machine and is
counted as fallback (`tenon.fallback_report()`; the policy "deny" forbids it).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import tenon
from tenon import _core, _fallback
from tenon._mesh import Mesh, make_meeting_point

if TYPE_CHECKING:
    from tenon import Tensor

__all__ = ["Communicator", "create_id"]

_REDUCTIONS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "mean": 4}
_STAGED = b"tenon-staged "
_MESSAGE = struct.Struct("<Q")  # what goes before a message of `exchange`: its bytes
_FOLDER_BYTES = 256  # of the name of a meeting point, padded


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
        id = bytes(id)
        if _core.has_collective(self.device):
            self._impl: _core.Communicator | _Staged = _core.Communicator(
                self.device, id, rank, size
            )
        elif id.startswith(_STAGED):
            folder = id[len(_STAGED) :].decode()
            self._impl = _Staged(self.device, folder, rank, size, timeout)
        else:
            raise ValueError("expected the bytes that create_id() returned for this kind of device")

    def all_reduce(self, x: Tensor, op: str = "sum", out: Tensor | None = None) -> Tensor:
        """The element-wise sum of all ranks' `x`, or their prod, min, max or mean."""
        x, reduction = self._input(x), self._reduction(op, x)
        out = self._output(out, x.shape, x)
        self._impl.all_reduce(x, out, reduction)
        return out

    def all_gather(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """All ranks' `x`, joined along the first axis in the order of ranks."""
        x = self._input(x)
        shape = (self.size * x.shape[0], *x.shape[1:]) if x.ndim else (self.size,)
        out = self._output(out, shape, x)
        self._impl.all_gather(x, out)
        return out

    def reduce_scatter(self, x: Tensor, op: str = "sum", out: Tensor | None = None) -> Tensor:
        """This rank's part of the reduced `x`, which is cut along its first axis."""
        x, reduction = self._input(x), self._reduction(op, x)
        part = self._equal_parts(x, "reduce_scatter")[self.rank]
        out = self._output(out, part.shape, x)
        self._impl.reduce_scatter(x, out, reduction)
        return out

    def broadcast(self, x: Tensor, root: int = 0) -> Tensor:
        """Overwrite `x` with the one of rank `root`; returns `x`."""
        self._output(x, x.shape, x)
        self._impl.broadcast(x, self._other(root, "root"))
        return x

    def send(self, x: Tensor, to: int) -> None:
        """Send `x` to rank `to`, which receives it."""
        if to == self.rank:
            raise ValueError(f"send: rank {to} is this one")
        self._impl.send(self._input(x), self._other(to, "to"))

    def recv(self, out: Tensor, source: int) -> Tensor:
        """Overwrite `out` with what rank `source` sends; returns `out`."""
        if source == self.rank:
            raise ValueError(f"recv: rank {source} is this one")
        self._output(out, out.shape, out)
        self._impl.recv(out, self._other(source, "source"))
        return out

    def reduce(
        self, x: Tensor, root: int = 0, op: str = "sum", out: Tensor | None = None
    ) -> Tensor | None:
        """As all_reduce, on rank `root` alone; None on the others."""
        x, reduction, root = self._input(x), self._reduction(op, x), self._other(root, "root")
        if self.rank != root:
            self._impl.reduce(x, None, reduction, root)
            return None
        out = self._output(out, x.shape, x)
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
        outgoing = [(self._input(x), self._other(to, "sends")) for x, to in sends]
        incoming = [
            (self._output(x, x.shape, x), self._other(source, "receives")) for x, source in receives
        ]
        dtypes = {x.dtype for x, _ in (*outgoing, *incoming)}
        if len(dtypes) > 1:
            names = ", ".join(sorted(str(dtype) for dtype in dtypes))
            raise TypeError(f"exchange: expected tensors of one dtype, got {names}")
        self._impl.transfer(outgoing, incoming)

    def all_to_all(
        self, x: Tensor | Sequence[Tensor], out: Tensor | Sequence[Tensor] | None = None
    ) -> Tensor | Sequence[Tensor]:
        """Part r of `x` goes to rank r; the result is made of the parts that all ranks sent to this one.

        A tensor is cut along its first axis into equal parts. Lists of one tensor for each rank may differ
        in shape; `out` is then needed, because only the sender knows the shapes.
        """
        if isinstance(x, tenon.Tensor):
            source = self._input(x)
            parts: Sequence[Tensor] = self._equal_parts(source, "all_to_all")
            whole: Tensor | Sequence[Tensor] = self._output(out, source.shape, source)
            into: Sequence[Tensor] = self._equal_parts(whole, "all_to_all")
        else:
            if out is None or len(x) != self.size or len(out) != self.size:
                raise ValueError(
                    f"all_to_all: expected lists of {self.size} tensors, to send and to write into, "
                    f"got {len(x)} and {'none' if out is None else len(out)}"
                )
            parts, whole, into = list(x), out, list(out)
        self.exchange(
            [(part, rank) for rank, part in enumerate(parts)],
            [(part, rank) for rank, part in enumerate(into)],
        )
        return whole

    def gather(self, x: Tensor, root: int = 0, out: Tensor | None = None) -> Tensor | None:
        """As all_gather, on rank `root` alone; None on the others."""
        x, root = self._input(x), self._other(root, "root")
        if self.rank != root:
            self.exchange([(x, root)])
            return None
        shape = (self.size * x.shape[0], *x.shape[1:]) if x.ndim else (self.size,)
        out = self._output(out, shape, x)
        parts = self._equal_parts(out, "gather")
        self.exchange([(x, root)], [(part, rank) for rank, part in enumerate(parts)])
        return out

    def scatter(self, x: Tensor | None, root: int = 0, out: Tensor | None = None) -> Tensor:
        """This rank's part of `x`, which rank `root` cuts along its first axis. Other ranks give None, and
        `out`, because they do not know the shape."""
        root = self._other(root, "root")
        if self.rank != root:
            if out is None:
                raise ValueError(
                    f"scatter: expected out=, because rank {self.rank} is not the root"
                )
            self.exchange((), [(out, root)])
            return out
        if x is None:
            raise ValueError(f"scatter: expected a tensor on rank {root}, got None")
        parts = self._equal_parts(self._input(x), "scatter")
        out = self._output(out, parts[0].shape, parts[0])
        self.exchange([(part, rank) for rank, part in enumerate(parts)], [(out, root)])
        return out

    def barrier(self) -> None:
        """Return when every rank has come here, and what was queued before it is done."""
        self.all_reduce(tenon.zeros([1], dtype=tenon.int32, device=self.device)).item()

    def split(self, color: int, key: int | None = None) -> Communicator | None:
        """Communicators of parts of the ranks: those with the same `color` get one together, in the order of
        `key` (by default: of their ranks here). A negative color takes part in none and gets None. Every rank
        calls this, and waits for the others."""
        color, key = int(color), self.rank if key is None else int(key)
        own = tenon.tensor([[color, key]], dtype=tenon.int64).to(self.device)
        told = self.all_gather(own).tolist()
        members = sorted((k, rank) for rank, (c, k) in enumerate(told) if c == color)
        ranks = [rank for _, rank in members]
        if isinstance(self._impl, _Staged):
            part: _core.Communicator | _Staged | None = (
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
        if not out.is_contiguous() or out.requires_grad:
            raise ValueError("expected a contiguous tensor without gradient to write into")
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


class _Staged:
    """The same through the host: copy, exchange over sockets, reduce with the host's operators, copy
    back. Calls block."""

    def __init__(self, device, folder, rank, size, timeout):
        self._device, self._rank, self._size, self._timeout = device, rank, size, timeout
        self._is_host = _core.device_properties(device)["host_memory"]
        self._mesh = Mesh(folder, rank, size, timeout)

    def all_reduce(self, x, out, reduction):
        parts = self._parts(self._to_host("all_reduce", x), reduction)
        self._reduce_ring(parts, reduction)
        self._gather_ring(parts)
        self._from_host(out, _joined(parts))

    def reduce_scatter(self, x, out, reduction):
        parts = self._parts(self._to_host("reduce_scatter", x), reduction)
        self._reduce_ring(parts, reduction)
        self._from_host(out, parts[self._rank])

    def all_gather(self, x, out):
        own = self._to_host("all_gather", x).reshape([-1])
        parts = [own if r == self._rank else tenon.empty_like(own) for r in range(self._size)]
        self._gather_ring(parts)
        self._from_host(out, _joined(parts))

    def broadcast(self, x, root):
        host = self._to_host("broadcast", x)
        # A chain: each rank passes on what it received.
        place = (self._rank - root) % self._size
        if place > 0:
            self._exchange(None, None, (self._rank - 1) % self._size, host)
        if place < self._size - 1:
            self._exchange((self._rank + 1) % self._size, host, None, None)
        if place > 0:
            self._from_host(x, host)

    def send(self, x, to):
        self._exchange(to, self._to_host("send", x), None, None)

    def recv(self, out, source):
        host = self._to_host("recv", out)
        self._exchange(None, None, source, host)
        self._from_host(out, host)

    def reduce(self, x, out, reduction, root):
        parts = self._parts(self._to_host("reduce", x), reduction)
        self._reduce_ring(parts, reduction)
        self._gather_ring(parts)
        if out is not None:
            self._from_host(out, _joined(parts))

    def transfer(self, sends, receives):
        # In step s every rank sends to the one s ranks further on: no two ranks wait for each other.
        for step in range(self._size):
            to, source = (self._rank + step) % self._size, (self._rank - step) % self._size
            outgoing = [self._to_host("exchange", x) for x, rank in sends if rank == to]
            incoming = [x for x, rank in receives if rank == source]
            if step == 0:
                self._copy_to_self(outgoing, incoming)
                continue
            for i in range(max(len(outgoing), len(incoming))):
                out = outgoing[i] if i < len(outgoing) else None
                into = incoming[i] if i < len(incoming) else None
                self._exchange_message(to, out, source, into)

    def split(self, ranks):
        """The same for some of the ranks, of which this is one. `ranks[0]` tells the others where to meet."""
        folder = bytearray(_FOLDER_BYTES)
        if ranks[0] == self._rank:
            name = make_meeting_point().encode()
            folder[: len(name)] = name
            for other in ranks[1:]:
                self._mesh.exchange(other, folder, None, b"")
        else:
            self._mesh.exchange(None, b"", ranks[0], folder)
        name = folder.rstrip(b"\0").decode()
        return _Staged(self._device, name, ranks.index(self._rank), len(ranks), self._timeout)

    def check_error(self):
        self._mesh.check()

    def abort(self):
        self._mesh.abort()

    def close(self):
        self._mesh.close()

    def _to_host(self, op, x):
        if not self._is_host:
            _fallback.count_staged(self._device.kind, op, 2 * x.nbytes, "collective")
        return x.to("cpu", copy=True)

    def _from_host(self, out, host):
        out.copy_(host.reshape(out.shape).to(out.dtype))

    def _parts(self, host, reduction):
        """The elements in as many parts as there are ranks, in a dtype that sums well."""
        flat = host.reshape([-1])
        if flat.dtype.is_floating_point and flat.dtype.itemsize < 4:
            flat = flat.to(tenon.float32)
        if reduction == _REDUCTIONS["mean"]:
            flat = flat / self._size
        bounds = [flat.size * r // self._size for r in range(self._size + 1)]
        return [flat[a:b].contiguous() for a, b in zip(bounds, bounds[1:], strict=False)]

    def _reduce_ring(self, parts, reduction):
        """Afterwards parts[rank] is complete. Part p travels from rank p + 1 once around to rank p."""
        combine = (tenon.add, tenon.multiply, tenon.minimum, tenon.maximum, tenon.add)[reduction]
        for step in range(1, self._size):
            out, into = (self._rank - step) % self._size, (self._rank - step - 1) % self._size
            received = tenon.empty_like(parts[into])
            self._exchange(
                (self._rank + 1) % self._size, parts[out], (self._rank - 1) % self._size, received
            )
            parts[into] = combine(received, parts[into])

    def _gather_ring(self, parts):
        """Rank r has parts[r]; afterwards each rank has all parts."""
        for step in range(self._size - 1):
            out, into = (self._rank - step) % self._size, (self._rank - step - 1) % self._size
            self._exchange(
                (self._rank + 1) % self._size,
                parts[out],
                (self._rank - 1) % self._size,
                parts[into],
            )

    def _copy_to_self(self, outgoing, incoming):
        if [x.size for x in outgoing] != [x.size for x in incoming]:
            raise ValueError(
                f"exchange: rank {self._rank} sends itself tensors of {[x.size for x in outgoing]} "
                f"elements, and receives {[x.size for x in incoming]}"
            )
        for host, out in zip(outgoing, incoming, strict=True):
            self._from_host(out, host)

    def _exchange_message(self, to, out, source, into):
        """One message each way, with its length before it, so that ranks which disagree notice."""
        sent = b"" if out is None else _MESSAGE.pack(out.nbytes)
        heard = bytearray(0 if into is None else _MESSAGE.size)
        self._mesh.exchange(to, sent, source, heard)
        host = None if into is None else self._to_host("exchange", into)
        if host is not None and _MESSAGE.unpack(heard)[0] != host.nbytes:
            self._mesh.abort()
            raise ValueError(
                f"exchange: rank {source} sent {_MESSAGE.unpack(heard)[0]} bytes, and rank {self._rank} "
                f"expected {host.nbytes}; the communicator was aborted"
            )
        self._exchange(to, out, source, host)
        if host is not None:
            self._from_host(into, host)

    def _exchange(self, to, out, source, into):
        def data(tensor):
            return (
                b"" if tensor is None or tensor.size == 0 else memoryview(_core.byte_view(tensor))
            )

        self._mesh.exchange(to, data(out), source, data(into))


def _joined(parts):
    return tenon.concat(parts) if len(parts) > 1 else parts[0]
