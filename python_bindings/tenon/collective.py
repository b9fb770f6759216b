# SPDX-License-Identifier: Apache-2.0
"""Communication between the devices of several processes: all_reduce and its kin.

    id = tenon.collective.create_id("acme")     # in one process; carry it to the others
    with tenon.collective.Communicator("acme", id, rank, size) as comm:
        gradients = comm.all_reduce(gradients, "mean")

This is a group of tenon.distributed for one device, whose ranks meet by an id instead of a launcher. A device
whose plugin has the `collective` group communicates by itself, in order with its stream. For others the data go
through the host, between processes of one machine; that is counted as fallback (`tenon.fallback_report()`; the
policy "deny" forbids it).

Ranks that differ in the call, its reduction or root, or the dtype or number of elements, are an error that
says what both did: through the host always; where a device communicates by itself, for all but send, recv and
exchange while kernels are watched (`tenon.validation`, TENON_VALIDATE=1), on every rank or none.

No call of a communicator has a gradient (those of `tenon.distributed.functional` have), and no program
(`tenon.compile`, `tenon.export`) holds one: tensors that require a gradient are refused while gradients are
recorded, a compiled function that calls one runs as it is, and `export` is an error.
"""

from __future__ import annotations

import tempfile

from tenon import Tensor, _core
from tenon.distributed.group import TALKS, ProcessGroup
from tenon.distributed.host_group import meet_in_folder

__all__ = ["Communicator", "create_id"]

_STAGED = b"tenon-staged "


def create_id(device: _core.device | str | None = None) -> bytes:
    """Bytes that name a new group of ranks. One process makes them, each rank is given them, and they
    serve one communicator."""
    if _core.has_collective(device):
        return _core.comm_id_create(device)
    return _STAGED + tempfile.mkdtemp(prefix="tenon-").encode()


class Communicator(ProcessGroup):
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
        _core.record_effect("Communicator()", TALKS)
        id = bytes(id)
        self._own, self._host, self._parts = {}, None, 0
        self.name, self.ranks, self.rank, self.size = "comm", tuple(range(size)), rank, size
        if _core.has_collective(self.device):
            name = f"{self.device.kind}:{self.device.index}"
            self._own[name] = _core.Communicator(self.device, id, rank, size)
        elif id.startswith(_STAGED):
            self._host = meet_in_folder(id[len(_STAGED) :].decode(), rank, size, timeout)
        else:
            raise ValueError("expected the bytes that create_id() returned for this kind of device")

    def _input(self, x: Tensor) -> Tensor:
        if x.device != self.device:
            raise ValueError(f"expected a tensor on {self.device}, got one on {x.device}")
        return super()._input(x)

    def __repr__(self) -> str:
        return f"<tenon.collective.Communicator on {self.device}, rank {self.rank} of {self.size}>"
