# SPDX-License-Identifier: Apache-2.0
"""Collectives with gradients: each returns a new tensor. Every rank calls forward, and backward, in the same order.

The gradient is that of the sum of all ranks' losses, as if they were one program. Functions that tenon.compile records may
call them: each rank's program then has them as steps, forward and backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, autograd

from .group import ProcessGroup
from .recorded_calls import recordable
from .world import world

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "identity",
    "mean",
    "reduce_scatter",
    "send_recv",
]


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


def all_to_all(
    x: Tensor,
    group: ProcessGroup | None = None,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
) -> Tensor:
    """Part r of `x`, which is cut along its first axis, goes to rank r; what the ranks sent, joined. Parts are equal, or
    have `input_split_sizes` rows by the rank that gets them, and `output_split_sizes` by the one that sends them."""
    group = group or world()
    if (output_split_sizes is None) != (input_split_sizes is None):
        raise ValueError(
            "functional.all_to_all: expected output_split_sizes and input_split_sizes, or none of them, got one"
        )
    if output_split_sizes is None or input_split_sizes is None:
        return _AllToAll.apply(x, group)
    for name, sizes in (("output", output_split_sizes), ("input", input_split_sizes)):
        if len(sizes) != group.size or min(sizes) < 0:
            raise ValueError(
                f"functional.all_to_all: expected {group.size} {name}_split_sizes of 0 or more, got {list(sizes)}"
            )
    if x.ndim == 0 or sum(input_split_sizes) != x.shape[0]:
        raise ValueError(
            f"functional.all_to_all: expected input_split_sizes whose sum is the length of the first axis, got "
            f"{list(input_split_sizes)} and shape {tuple(x.shape)}"
        )
    return _AllToAllBySizes.apply(x, group, list(output_split_sizes), list(input_split_sizes))


def broadcast(x: Tensor, src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """The `x` of rank `src`, on all of them."""
    group = group or world()
    if src not in group.ranks:
        raise ValueError(f"src: expected one of the ranks {list(group.ranks)}, got {src}")
    return _Broadcast.apply(x, group.ranks.index(src), group)


def send_recv(
    x: Tensor, dst: int | None, src: int | None, group: ProcessGroup | None = None
) -> Tensor:
    """Send `x` to rank `dst`, and return what rank `src` sends, which has the shape and dtype of `x`. None: no rank, and
    zeros come. Ranks name each other: who is the `dst` of a rank has that as `src`. Gradients go the other way round."""
    group = group or world()
    for name, rank in (("dst", dst), ("src", src)):
        if rank is not None and rank not in group.ranks:
            raise ValueError(
                f"functional.send_recv: expected {name} to be one of the ranks {list(group.ranks)} or None, got {rank}"
            )
    target, source = (-1 if rank is None else group.ranks.index(rank) for rank in (dst, src))
    return _SendRecv.apply(x, target, source, group)


def identity(x: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """`x`, whose gradient is the sum over all ranks: what enters layers that are cut over ranks, where each has the gradient of its part."""
    return _Identity.apply(x, group or world())


def mean(x: Tensor, weights: Tensor | None = None, group: ProcessGroup | None = None) -> Tensor:
    """The mean of the elements of all ranks' `x`, which may be differently many: a loss whose tokens are divided over
    ranks. With `weights` (of the shape of `x`; 0 and 1 for tokens that do not count and that do) the weighted mean.

    Every rank has the same value. Gradients that are averaged over the ranks of the group, as DistributedDataParallel
    does, are then those of this mean: a rank with more tokens counts for more.
    """
    group = group or world()
    if weights is not None and weights.shape != x.shape:
        raise ValueError(
            f"functional.mean: expected weights of shape {tuple(x.shape)}, got {tuple(weights.shape)}"
        )
    if not x.dtype.is_floating_point:
        raise TypeError(f"functional.mean: expected floating-point numbers, got {x.dtype}")
    wide = x.to(tenon.float32) if x.dtype.itemsize < 4 else x
    if weights is None:
        total = wide.sum()
        count = tenon.tensor([float(x.numel())], dtype=wide.dtype, device=x.device)
    else:
        own = weights.detach().to(wide.dtype)
        total, count = (wide * own).sum(), own.sum().reshape([1])
    with tenon.no_grad():
        count = recordable(group).all_reduce(count)
    return (all_reduce(total.reshape([1]), "sum", group) / count).reshape([])


class _AllReduce(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str, group: ProcessGroup) -> Tensor:
        ctx.op, ctx.group = op, group
        return recordable(group).all_reduce(x.detach(), op)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _AllReduce.apply(grad.contiguous(), ctx.op, ctx.group), None, None


class _Identity(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return x.detach().clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _AllReduce.apply(grad.contiguous(), "sum", ctx.group), None


class _AllGather(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group, ctx.shape = group, tuple(x.shape)
        return recordable(group).all_gather(x.detach())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _ReduceScatter.apply(grad.contiguous(), "sum", ctx.group).reshape(ctx.shape), None


class _ReduceScatter(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str, group: ProcessGroup) -> Tensor:
        ctx.op, ctx.group = op, group
        return recordable(group).reduce_scatter(x.detach(), op)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        whole = _AllGather.apply(grad.contiguous(), ctx.group)
        return whole / ctx.group.size if ctx.op == "mean" else whole, None, None


class _AllToAll(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return recordable(group).all_to_all(x.detach())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _AllToAll.apply(grad.contiguous(), ctx.group), None


class _AllToAllBySizes(autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, group: ProcessGroup, out_sizes: list[int], in_sizes: list[int]
    ) -> Tensor:
        ctx.group, ctx.sizes = group, (out_sizes, in_sizes)
        source = x.detach().contiguous()
        shape = (sum(out_sizes), *x.shape[1:])
        caller = recordable(group)
        if caller is not group:
            return caller.all_to_all_by_rows(source, in_sizes, out_sizes)
        out = tenon.empty(shape, dtype=x.dtype, device=x.device)
        group.all_to_all(_parts(source, in_sizes), _parts(out, out_sizes))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        out_sizes, in_sizes = ctx.sizes
        return _AllToAllBySizes.apply(grad, ctx.group, in_sizes, out_sizes), None, None, None


def _parts(x: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    parts, start = [], 0
    for size in sizes:
        parts.append(x[start : start + size])
        start += size
    return parts


class _Broadcast(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, root: int, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        # A copy, which is overwritten on all ranks but the root.
        return recordable(group).broadcast(x.detach().clone().contiguous(), root)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        # The value of the other ranks' x is not used: their gradient is 0.
        total = _AllReduce.apply(grad.contiguous(), "sum", ctx.group)
        return total if ctx.group.rank == ctx.root else total * 0, None, None


class _SendRecv(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, target: int, source: int, group: ProcessGroup) -> Tensor:
        ctx.target, ctx.source, ctx.group = target, source, group
        return recordable(group).send_recv(x.detach(), target, source)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return (
            _SendRecv.apply(grad.contiguous(), ctx.source, ctx.target, ctx.group),
            None,
            None,
            None,
        )
