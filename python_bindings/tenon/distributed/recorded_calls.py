# SPDX-License-Identifier: Apache-2.0
"""Collectives as steps of programs: operators that are carried out wherever they stand, in order, and once.

A group is an attribute of them, by a number of this process, so that their programs are not written to files: only
tenon.compile records them, for sharded tensors that move between placements (tenon.distributed.reshards) and for the calls
of tenon.distributed.functional. Those have the gradients; a program that holds its backward pass holds their collectives.
"""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.jit.compiled import is_compiling

from . import host_group as host
from .group import ProcessGroup

_numbers = itertools.count(1)
_groups: weakref.WeakValueDictionary[int, ProcessGroup] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def _number_of(group: ProcessGroup) -> int:
    with _lock:
        number = group.__dict__.get("_number")
        # A group that was split has the attributes of the one that it is a part of.
        if number is None or _groups.get(number) is not group:
            number = group.__dict__["_number"] = next(_numbers)
            _groups[number] = group
        return int(number)


def _group_with(number: int) -> ProcessGroup:
    group = _groups.get(number)
    if group is None:
        raise RuntimeError("a program: expected a group that is in use, got one that was closed")
    return group


_all_reduce = tenon.op(
    "tenon_collective::all_reduce(Tensor x, int group, int reduction) -> Tensor", ordered=True
)(None)
_all_reduce.shape(lambda x, group, reduction: x.shape)


@_all_reduce.kernel("cpu")
def _(x: Tensor, group: int, reduction: int, out: Tensor) -> None:
    _group_with(group)._call(host.ALL_REDUCE, x, out, reduction, 0, out, False)


_all_gather = tenon.op(
    "tenon_collective::all_gather(Tensor x, int group, int size) -> Tensor", ordered=True
)(None)
_all_gather.shape(lambda x, group, size: (x.shape[0] * size, *x.shape[1:]))


@_all_gather.kernel("cpu")
def _(x: Tensor, group: int, size: int, out: Tensor) -> None:
    _group_with(group)._call(host.ALL_GATHER, x, out, 0, 0, out, False)


_reduce_scatter = tenon.op(
    "tenon_collective::reduce_scatter(Tensor x, int group, int size, int reduction) -> Tensor",
    ordered=True,
)(None)
_reduce_scatter.shape(lambda x, group, size, reduction: (x.shape[0] // size, *x.shape[1:]))


@_reduce_scatter.kernel("cpu")
def _(x: Tensor, group: int, size: int, reduction: int, out: Tensor) -> None:
    _group_with(group)._call(host.REDUCE_SCATTER, x, out, reduction, 0, out, False)


_all_to_all = tenon.op(
    "tenon_collective::all_to_all(Tensor x, int group, int[] sends, int[] receives) -> Tensor",
    ordered=True,
)(None)
_all_to_all.shape(lambda x, group, sends, receives: (sum(receives),))


@_all_to_all.kernel("cpu")
def _(x: Tensor, group: int, sends: Sequence[int], receives: Sequence[int], out: Tensor) -> None:
    pieces = [
        [(part, rank) for rank, part in enumerate(tenon.split(whole, list(sizes)))]
        for whole, sizes in ((x, sends), (out, receives))
    ]
    _group_with(group)._lists(host.ALL_TO_ALL, pieces[0], pieces[1], 0, out, False)


_broadcast = tenon.op(
    "tenon_collective::broadcast(Tensor x, int group, int root) -> Tensor", ordered=True
)(None)
_broadcast.shape(lambda x, group, root: x.shape)


@_broadcast.kernel("cpu")
def _(x: Tensor, group: int, root: int, out: Tensor) -> None:
    out.copy_(x)
    _group_with(group)._call(host.BROADCAST, out, out, 0, root, out, False)


_send_recv = tenon.op(
    "tenon_collective::send_recv(Tensor x, int group, int target, int source) -> Tensor",
    ordered=True,
)(None)
_send_recv.shape(lambda x, group, target, source: x.shape)


@_send_recv.kernel("cpu")
def _(x: Tensor, group: int, target: int, source: int, out: Tensor) -> None:
    _group_with(group).send_recv_into(out, x, target, source)


class _Recorded:
    """The calls of a group that have gradients or that movements need, as operators."""

    def __init__(self, group: ProcessGroup) -> None:
        self.rank, self.size, self._number = group.rank, group.size, _number_of(group)
        self._reduction = group._reduction

    def all_reduce(self, x: Tensor, op: str = "sum") -> Tensor:
        return _all_reduce(x.contiguous(), self._number, self._reduction(op, x))

    def all_gather(self, x: Tensor) -> Tensor:
        x = x.contiguous()
        return _all_gather(x if x.ndim else x.reshape([1]), self._number, self.size)

    def reduce_scatter(self, x: Tensor, op: str = "sum") -> Tensor:
        self._expect_equal_parts(x, "reduce_scatter")
        return _reduce_scatter(x.contiguous(), self._number, self.size, self._reduction(op, x))

    def broadcast(self, x: Tensor, root: int = 0) -> Tensor:
        return _broadcast(x.contiguous(), self._number, root)

    def send_recv(self, x: Tensor, target: int, source: int) -> Tensor:
        return _send_recv(x.contiguous(), self._number, target, source)

    def _expect_equal_parts(self, x: Tensor, name: str) -> None:
        if x.ndim == 0 or x.shape[0] % self.size:
            raise ValueError(
                f"{name}: expected a first axis that {self.size} ranks can share, got shape {x.shape}"
            )

    def all_to_all_by_rows(
        self, x: Tensor, sends: Sequence[int], receives: Sequence[int]
    ) -> Tensor:
        """Of lengths along the first axis."""
        row = x.numel() // x.shape[0] if x.shape[0] else math.prod(x.shape[1:])
        sizes = [[length * row for length in lengths] for lengths in (sends, receives)]
        flat = _all_to_all(x.reshape([-1]), self._number, *sizes)
        return flat.reshape([sum(receives), *x.shape[1:]])

    def all_to_all(self, x: Tensor | Sequence[Tensor], out: list[Tensor] | None = None) -> Any:
        if isinstance(x, Tensor):
            self._expect_equal_parts(x, "all_to_all")
            sizes = [x.numel() // self.size] * self.size
            flat = x.contiguous().reshape([-1])
            return _all_to_all(flat, self._number, sizes, sizes).reshape(list(x.shape))
        assert out is not None
        flat = tenon.concat([part.reshape([-1]) for part in x])
        sent, taken = [[part.numel() for part in parts] for parts in (x, out)]
        received = _all_to_all(flat, self._number, sent, taken)
        for rank, part in enumerate(tenon.split(received, taken)):
            out[rank] = part.reshape(list(out[rank].shape))
        return out


def recordable(group: ProcessGroup) -> Any:
    """`group`, or its calls as operators while tenon.compile records what this thread does."""
    return _Recorded(group) if _core.is_recording() and is_compiling() else group
