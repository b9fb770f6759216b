# SPDX-License-Identifier: Apache-2.0
"""Rows of a table by index, one by one or reduced in bags."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, _core

from ._common import is_readable


class _DividedGradient(tenon.autograd.Function):
    """Its argument, whose gradient is divided by `divisor`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, divisor: Tensor) -> Tensor:
        ctx.save_for_backward(divisor)
        return x.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (divisor,) = ctx.saved_tensors
        return grad / divisor, None


class _SparseLookup(tenon.autograd.Function):
    """The rows of a table at `indices`; its gradient has layout 'coo' and stores those rows alone."""

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, indices: Tensor, padding_idx: int | None, is_mean: bool
    ) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.shape, ctx.padding_idx, ctx.is_mean = tuple(weight.shape), padding_idx, is_mean
        return tenon.embedding(weight, indices)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        rows, features = ctx.shape[0], list(ctx.shape[1:])
        index = ctx.saved_tensors[0].reshape([-1]).to(tenon.int64)
        index = tenon.where(index < 0, index + rows, index)
        values = grad.reshape([index.shape[0], *features])
        if ctx.padding_idx is not None:
            is_kept = index != ctx.padding_idx
            index, values = index[is_kept], values[is_kept]
        if ctx.is_mean:
            _, inverse, counts = tenon.unique(index, return_inverse=True, return_counts=True)
            shape = [index.shape[0], *[1] * len(features)]
            values = values / counts[inverse].to(values.dtype).reshape(shape)
        gradient = _core.compose("coo", ctx.shape, [index.unsqueeze(0), values])
        return gradient, None, None, None


def embedding(
    indices: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` at `indices`. The row `padding_idx` gets no gradient. With `scale_grad_by_freq` a row's
    gradient is the mean over its occurrences in `indices` instead of the sum. With `sparse` the gradient of `weight`
    has layout 'coo' and consists of the rows that were read (docs/sparse.md)."""
    padding_idx = _row_of(padding_idx, weight, "embedding")
    if sparse:
        return _SparseLookup.apply(weight, indices, padding_idx, scale_grad_by_freq)
    if scale_grad_by_freq:
        weight = _with_mean_gradient(weight, indices)
    return tenon.embedding(weight, indices, padding_idx)


def _with_mean_gradient(weight: Tensor, indices: Tensor) -> Tensor:
    """`weight`, of which each row's gradient is divided by how often it is in `indices`."""
    flat = indices.reshape([-1])
    ones = weight.detach().new_ones([flat.shape[0]])
    counts = tenon.index_add(ones.new_zeros([weight.shape[0]]), flat, ones)
    return _DividedGradient.apply(weight, tenon.clip(counts, 1.0).unsqueeze(-1))


def embedding_bag(
    indices: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    mode: str = "mean",
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Sum, mean or maximum of the rows of every bag; the result is [bags, features].

    `indices` is [bags, length], of layout 'ragged', whose rows are the bags, or a vector in which
    `offsets` says where each bag begins: from 0, in ascending order. With `include_last_offset` the last offset is the end of the last bag;
    entries behind it are in none. Entries equal to `padding_idx` do not count, which may be
    negative to count from the last row; an empty bag gives zeros. `per_sample_weights` multiply the
    rows (mode 'sum' only). With `scale_grad_by_freq` a row's gradient is divided by how often it
    was read.
    """
    if indices.layout == "ragged":
        if offsets is not None or indices.ndim != 2:
            raise ValueError(
                "embedding_bag: expected no offsets with indices of layout ragged, which are [bags, "
                f"longest], got shape {tuple(indices.shape)}"
            )
        if per_sample_weights is not None and per_sample_weights.layout == "ragged":
            per_sample_weights = per_sample_weights.values()
        offsets, indices, include_last_offset = indices.offsets(), indices.values(), True
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: expected mode 'sum', 'mean' or 'max', got {mode!r}")
    if per_sample_weights is not None:
        if mode != "sum":
            raise ValueError(f"embedding_bag: per_sample_weights need mode 'sum', got {mode!r}")
        if per_sample_weights.shape != indices.shape:
            raise ValueError(
                f"embedding_bag: expected per_sample_weights of the shape {tuple(indices.shape)} of "
                f"the indices, got {tuple(per_sample_weights.shape)}"
            )
        per_sample_weights = per_sample_weights.reshape([-1])
    padding_idx = _row_of(padding_idx, weight, "embedding_bag")
    if indices.ndim == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: expected no offsets with indices of two axes")
        bags, length = indices.shape
        starts = tenon.arange(bags + 1, device=indices.device) * length
        indices = indices.reshape([-1])
    else:
        if offsets is None:
            raise ValueError("embedding_bag: expected offsets with indices of one axis")
        starts = _starts(offsets, indices, include_last_offset)
    if scale_grad_by_freq:
        weight = _with_mean_gradient(weight, indices)
    return tenon.embedding_bag(weight, indices, starts, per_sample_weights, mode, padding_idx)


def _row_of(padding_idx: int | None, weight: Tensor, name: str) -> int | None:
    """`padding_idx` counted from the first row."""
    if padding_idx is None:
        return None
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise IndexError(f"{name}: expected padding_idx within {rows} rows, got {padding_idx}")
    return padding_idx % rows


def _starts(offsets: Tensor, indices: Tensor, has_end: bool) -> Tensor:
    """Where each bag begins, and behind the last one where it ends."""
    if offsets.ndim != 1 or (has_end and offsets.shape[0] == 0):
        least = "at least one offset" if has_end else "offsets"
        raise ValueError(
            f"embedding_bag: expected {least} of one axis, got shape {tuple(offsets.shape)}"
        )
    if offsets.device.kind != "cpu" and is_readable(offsets):
        _check_ascending(offsets.tolist(), indices.shape[0])  # there is no kernel that does
    if has_end:
        return offsets
    return tenon.concat([offsets, tenon.full_like(offsets[:1], indices.shape[0])])


def _check_ascending(starts: list[int], length: int) -> None:
    if starts and (starts[0] != 0 or starts[-1] > length or starts != sorted(starts)):
        raise ValueError(
            f"embedding_bag: expected ascending offsets from 0 to at most the {length} indices, "
            f"got {starts if len(starts) <= 10 else [*starts[:5], '...', *starts[-5:]]}"
        )
