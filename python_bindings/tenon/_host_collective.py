# SPDX-License-Identifier: Apache-2.0
"""Collectives of devices that do not communicate by themselves: through the host and sockets.

Before the data of a call ranks tell each other what they are about to do. Ranks that differ would
otherwise take each other's bytes for what they expect.
"""

from __future__ import annotations

import tenon
from tenon import _core
from tenon._mesh import Mesh, make_meeting_point
from tenon.host import fallback as _fallback

_MEAN = 4  # number of the reduction
_FOLDER_BYTES = 256  # of the name of a meeting point, padded
_FRAME_BYTES = 96


def described(x):
    """Of a tensor, what all ranks of a call have to agree on."""
    return f"{x.numel()} elements of {x.dtype.name}"


def frame_of(call):
    """The text of a call, as ranks send it to each other."""
    return call.encode()[:_FRAME_BYTES].ljust(_FRAME_BYTES, b"\0")


def text_of(frame):
    """A frame as a text again; what is none, as data of a rank that sends no frames, is said to be so."""
    text = bytes(frame).rstrip(b"\0").decode("ascii", "replace")
    return text if text.isprintable() else "data instead of the name of a call"


class HostCollective:
    """The same through the host: copy, exchange over sockets, reduce with the host's operators, copy
    back. Calls block."""

    def __init__(self, device, folder, rank, size, timeout):
        self._device, self._rank, self._size, self._timeout = device, rank, size, timeout
        self._is_host = _core.device_properties(device)["host_memory"]
        self._mesh = Mesh(folder, rank, size, timeout)

    def hear(self, frame):
        """What the rank before this one says about the call that it is in, as this one tells the next."""
        heard = bytearray(len(frame))
        after, before = (self._rank + 1) % self._size, (self._rank - 1) % self._size
        self._mesh.exchange(after, frame, before, heard)
        return before, bytes(heard)

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
        self._mesh.exchange(to, frame_of(f"send() of {described(x)}"), None, b"")
        self._exchange(to, self._to_host("send", x), None, None)

    def recv(self, out, source):
        self._hear_message(source, frame_of(f"send() of {described(out)}"))
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
        return HostCollective(
            self._device, name, ranks.index(self._rank), len(ranks), self._timeout
        )

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
        if reduction == _MEAN:
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
        """One message each way, with what it is before it, so that ranks which disagree notice."""
        sent = b"" if out is None else frame_of(f"exchange() of {described(out)}")
        if into is None:
            self._mesh.exchange(to, sent, None, b"")
            self._exchange(to, out, None, None)
            return
        self._hear_message(source, frame_of(f"exchange() of {described(into)}"), to, sent)
        host = self._to_host("exchange", into)
        self._exchange(to, out, source, host)
        self._from_host(into, host)

    def _hear_message(self, source, expected, to=None, sent=b""):
        heard = bytearray(len(expected))
        self._mesh.exchange(to, sent, source, heard)
        if heard != expected:
            self._mesh.abort()
            raise ValueError(
                f"rank {self._rank} expected {text_of(expected)} by rank {source}, got "
                f"{text_of(heard)}; both sides have to name as many elements of one dtype, in the same "
                "order; the communicator was aborted"
            )

    def _exchange(self, to, out, source, into):
        def data(tensor):
            return (
                b"" if tensor is None or tensor.size == 0 else memoryview(_core.byte_view(tensor))
            )

        self._mesh.exchange(to, data(out), source, data(into))


def _joined(parts):
    return tenon.concat(parts) if len(parts) > 1 else parts[0]
