# SPDX-License-Identifier: Apache-2.0
"""Reductions over the rows that belong together: `index` [count] says to which of `num_segments`
results each row of `x` [count, ...] belongs, in any order. Segments without rows give 0."""

from __future__ import annotations

import tenon
from tenon import Tensor
from tenon.nn.functional._common import from_zero


def segment_sum(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Sums of rows, [num_segments, ...]."""
    zeros = tenon.zeros([num_segments, *x.shape[1:]], dtype=x.dtype, device=x.device)
    return tenon.index_add(zeros, from_zero(index, num_segments), x, 0)


def segment_mean(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Means of rows, [num_segments, ...]."""
    ones = tenon.ones([x.shape[0]], dtype=x.dtype, device=x.device)
    count = tenon.clip(segment_sum(ones, index, num_segments), 1.0, None)
    return segment_sum(x, index, num_segments) / count.reshape([-1, *[1] * (x.ndim - 1)])


def segment_max(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Maxima of rows, [num_segments, ...]. The gradient goes to one of equal maxima."""
    if not x.shape[0]:
        return tenon.zeros([num_segments, *x.shape[1:]], dtype=x.dtype, device=x.device)
    low, high = index.min().item(), index.max().item()
    if low < 0 or high >= num_segments:
        raise IndexError(
            f"segment_max: expected segments from 0 to {num_segments - 1}, got {low} to {high}"
        )
    with tenon.no_grad():
        row = _row_of_maximum(x.detach(), index, num_segments)
    columns = x.reshape([x.shape[0], -1])
    row = row.reshape([num_segments, -1])
    found = tenon.gather(columns, tenon.clip(row, 0, None), 0)
    result = tenon.where(row < 0, tenon.zeros_like(found), found)
    return result.reshape([num_segments, *x.shape[1:]])


def _row_of_maximum(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """In which row each segment has its maximum; -1 for segments without rows.

    Rows in the order of their segments are compared at distances 1, 2, 4, ...: then the last row of
    a segment has seen all others.
    """
    segments, order = tenon.sort_with_indices(index, 0)
    numbers = tenon.arange(num_segments + 1, device=x.device)
    start = tenon.searchsorted(segments, numbers)
    size = start[1:] - start[:-1]
    longest = int(size.max().item())
    columns = x.reshape([x.shape[0], -1])
    best = tenon.index_select(columns, order, 0)
    row = tenon.expand(order.unsqueeze(-1), best.shape).contiguous()
    distance = 1
    while distance < longest:
        same = (segments[distance:] == segments[:-distance]).unsqueeze(-1)
        better = same & (best[:-distance] > best[distance:])
        best = tenon.concat(
            [best[:distance], tenon.where(better, best[:-distance], best[distance:])]
        )
        row = tenon.concat([row[:distance], tenon.where(better, row[:-distance], row[distance:])])
        distance *= 2
    found = tenon.index_select(row, tenon.clip(start[1:] - 1, 0, None), 0)
    return tenon.where((size == 0).unsqueeze(-1), -1, found)


def segment_softmax(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """`exp(x)` divided by its sum over the rows of a segment, in the shape of `x`."""
    with tenon.no_grad():
        largest = segment_max(x.detach(), index, num_segments)
    powers = tenon.exp(x - tenon.index_select(largest, index, 0))
    total = segment_sum(powers, index, num_segments)
    return powers / tenon.index_select(total, index, 0)


_REDUCTIONS = {"sum": segment_sum, "add": segment_sum, "mean": segment_mean, "max": segment_max}


def aggregate(x: Tensor, index: Tensor, num_segments: int, reduce: str = "sum") -> Tensor:
    """Rows reduced by 'sum', 'mean' or 'max'."""
    if reduce not in _REDUCTIONS:
        raise ValueError(
            f"aggregate: expected a reduction of {', '.join(_REDUCTIONS)}, got {reduce!r}"
        )
    return _REDUCTIONS[reduce](x, index, num_segments)
