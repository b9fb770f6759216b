# SPDX-License-Identifier: Apache-2.0
"""Rows of a table by index, one by one or reduced in bags."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor

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


def embedding(
    indices: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Rows of `weight` at `indices`. The row `padding_idx` gets no gradient. With `scale_grad_by_freq` a row's
    gradient is the mean over its occurrences in `indices` instead of the sum."""
    padding_idx = _row_of(padding_idx, weight, "embedding")
    rows = tenon.embedding(weight, indices, padding_idx)
    if not scale_grad_by_freq:
        return rows
    flat = indices.reshape([-1])
    counts = tenon.index_add(
        rows.detach().new_zeros([weight.shape[0]]), flat, rows.detach().new_ones([flat.shape[0]])
    )
    return _DividedGradient.apply(rows, counts[indices].unsqueeze(-1))


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

    `indices` is [bags, length], or a vector in which `offsets` says where each bag begins: from 0,
    in ascending order. With `include_last_offset` the last offset is the end of the last bag;
    entries behind it are in none. Entries equal to `padding_idx` do not count, which may be
    negative to count from the last row; an empty bag gives zeros. `per_sample_weights` multiply the
    rows (mode 'sum' only). With `scale_grad_by_freq` a row's gradient is divided by how often it
    was read.
    """
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
        bag_of = tenon.arange(bags, device=indices.device).repeat(length)
        indices = indices.reshape([-1])
    else:
        if offsets is None:
            raise ValueError("embedding_bag: expected offsets with indices of one axis")
        bags, bag_of = _bags(offsets, indices, include_last_offset)
    rows = embedding(indices, weight, padding_idx, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    counted = None
    if padding_idx is not None:
        indices = tenon.where(indices < 0, indices + weight.shape[0], indices)
        counted = (indices != padding_idx).cast(rows.dtype).unsqueeze(-1)
    # One bag more, for the entries that are in none.
    shape = [bags + 1, weight.shape[1]]
    if mode == "max":
        return _bag_max(rows, bag_of, counted, shape)[:bags]
    if counted is not None:
        rows = rows * counted
    total = tenon.index_add(
        tenon.zeros(shape, dtype=rows.dtype, device=rows.device), bag_of, rows, 0
    )[:bags]
    if mode == "sum":
        return total
    ones = counted if counted is not None else tenon.ones_like(rows[:, :1])
    count = tenon.index_add(
        tenon.zeros([bags + 1, 1], dtype=rows.dtype, device=rows.device), bag_of, ones, 0
    )[:bags]
    return total / tenon.maximum(count, 1.0)


def _row_of(padding_idx: int | None, weight: Tensor, name: str) -> int | None:
    """`padding_idx` counted from the first row."""
    if padding_idx is None:
        return None
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise IndexError(f"{name}: expected padding_idx within {rows} rows, got {padding_idx}")
    return padding_idx % rows


def _bags(offsets: Tensor, indices: Tensor, has_end: bool) -> tuple[int, Tensor]:
    """The number of bags, and the bag of each entry: that number for entries of no bag."""
    if offsets.ndim != 1 or (has_end and offsets.shape[0] == 0):
        least = "at least one offset" if has_end else "offsets"
        raise ValueError(
            f"embedding_bag: expected {least} of one axis, got shape {tuple(offsets.shape)}"
        )
    length, bags = indices.shape[0], offsets.shape[0] - has_end
    if is_readable(offsets) and offsets.shape[0]:
        starts = offsets.tolist()
        if starts[0] != 0 or starts[-1] > length or starts != sorted(starts):
            raise ValueError(
                f"embedding_bag: expected ascending offsets from 0 to at most the {length} indices, "
                f"got {starts if len(starts) <= 10 else [*starts[:5], '...', *starts[-5:]]}"
            )
    order = tenon.arange(length, dtype=offsets.dtype, device=indices.device)
    bag_of = tenon.searchsorted(offsets, order, right=True) - 1
    # Where offsets cannot be read, index_add refuses what lies before the first of them.
    return bags, tenon.where(bag_of < 0, bags + 1, bag_of)


def _bag_max(rows: Tensor, bag_of: Tensor, counted: Tensor | None, shape: list[int]) -> Tensor:
    """The largest row of each bag: rows are laid out as [bags, longest bag, features] first."""
    member = tenon.one_hot(bag_of, shape[0]).cast(tenon.int64)  # [entries, bags]
    rank = tenon.sum(member * (tenon.cumsum(member, 0) - 1), 1)
    longest = max(int(tenon.max(tenon.sum(member, 0)).item()), 1)
    lowest = tenon.full([shape[0] * longest, shape[1]], -float("inf"), dtype=rows.dtype)
    if counted is not None:
        rows = tenon.where(counted > 0, rows, -float("inf"))
    laid_out = tenon.index_put(lowest.to(rows.device), [bag_of * longest + rank], rows)
    best = laid_out.reshape([shape[0], longest, shape[1]]).max(axis=1)
    return tenon.where(best == -float("inf"), 0.0, best)
