# SPDX-License-Identifier: Apache-2.0
"""Collectives with gradients: each returns a new tensor. Every rank calls forward, and backward, in the same order.

The gradient is that of the sum of all ranks' losses, as if they were one program.
"""

from __future__ import annotations

from typing import Any

from tenon import Tensor, autograd

from .group import ProcessGroup
from .world import world

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "reduce_scatter"]


def all_reduce(x: Tensor, op: str = "sum", group: ProcessGroup | None = None) -> Tensor:
    """The sum or mean over all ranks, on each of them."""
    if op not in ("sum", "mean"):
        raise NotImplementedError(
            f"functional.all_reduce: expected op 'sum' or 'mean', got {op!r}, whose gradient is not there; "
            "use tenon.distributed.all_reduce on tensors without gradient"
        )
    return _AllReduce.apply(x, op, group or world())


def all_gather(x: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """All ranks' `x`, joined along the first axis in the order of ranks."""
    return _AllGather.apply(x, group or world())


def reduce_scatter(x: Tensor, op: str = "sum", group: ProcessGroup | None = None) -> Tensor:
    """This rank's part of the sum or mean over all ranks, which is cut along its first axis."""
    if op not in ("sum", "mean"):
        raise NotImplementedError(
            f"functional.reduce_scatter: expected op 'sum' or 'mean', got {op!r}, whose gradient is not there"
        )
    return _ReduceScatter.apply(x, op, group or world())


def all_to_all(x: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """Part r of `x`, which is cut along its first axis, goes to rank r; what the ranks sent, joined."""
    return _AllToAll.apply(x, group or world())


def broadcast(x: Tensor, src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """The `x` of rank `src`, on all of them."""
    group = group or world()
    if src not in group.ranks:
        raise ValueError(f"src: expected one of the ranks {list(group.ranks)}, got {src}")
    return _Broadcast.apply(x, group.ranks.index(src), group)


class _AllReduce(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str, group: ProcessGroup) -> Tensor:
        ctx.op, ctx.group = op, group
        return group.all_reduce(x.detach(), op)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _AllReduce.apply(grad.contiguous(), ctx.op, ctx.group), None, None


class _AllGather(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group, ctx.shape = group, tuple(x.shape)
        return group.all_gather(x.detach())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _ReduceScatter.apply(grad.contiguous(), "sum", ctx.group).reshape(ctx.shape), None


class _ReduceScatter(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str, group: ProcessGroup) -> Tensor:
        ctx.op, ctx.group = op, group
        return group.reduce_scatter(x.detach(), op)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        whole = _AllGather.apply(grad.contiguous(), ctx.group)
        return whole / ctx.group.size if ctx.op == "mean" else whole, None, None


class _AllToAll(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return group.all_to_all(x.detach())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _AllToAll.apply(grad.contiguous(), ctx.group), None


class _Broadcast(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, root: int, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        # A copy, which is overwritten on all ranks but the root.
        return group.broadcast(x.detach().clone().contiguous(), root)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        # The value of the other ranks' x is not used: their gradient is 0.
        total = _AllReduce.apply(grad.contiguous(), "sum", ctx.group)
        return total if ctx.group.rank == ctx.root else total * 0, None, None
