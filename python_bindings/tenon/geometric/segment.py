# SPDX-License-Identifier: Apache-2.0
"""Reductions over the rows that belong together: `index` [count] says to which of `num_segments`
results each row of `x` [count, ...] belongs, in any order. Segments without rows give 0."""

from __future__ import annotations

import tenon
from tenon import Tensor
from tenon.nn.functional._common import from_zero


def segment_sum(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Sums of rows, [num_segments, ...]."""
    return tenon.segment_sum(x, from_zero(index, num_segments), num_segments)


def segment_mean(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Means of rows, [num_segments, ...]."""
    return tenon.segment_mean(x, from_zero(index, num_segments), num_segments)


def segment_max(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Maxima of rows, [num_segments, ...]. The gradient goes to the first of equal maxima."""
    return tenon.segment_max(x, from_zero(index, num_segments), num_segments)


def segment_min(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Minima of rows, [num_segments, ...]. The gradient goes to the first of equal minima."""
    return tenon.segment_min(x, from_zero(index, num_segments), num_segments)


def segment_softmax(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """`exp(x)` divided by its sum over the rows of a segment, in the shape of `x`."""
    with tenon.no_grad():
        largest = segment_max(x.detach(), index, num_segments)
    powers = tenon.exp(x - tenon.index_select(largest, index, 0))
    total = segment_sum(powers, index, num_segments)
    return powers / tenon.index_select(total, index, 0)


_REDUCTIONS = {
    "sum": segment_sum,
    "add": segment_sum,
    "mean": segment_mean,
    "max": segment_max,
    "min": segment_min,
}


def aggregate(x: Tensor, index: Tensor, num_segments: int, reduce: str = "sum") -> Tensor:
    """Rows reduced by 'sum', 'mean', 'max' or 'min'."""
    if reduce not in _REDUCTIONS:
        raise ValueError(
            f"aggregate: expected a reduction of {', '.join(_REDUCTIONS)}, got {reduce!r}"
        )
    return _REDUCTIONS[reduce](x, index, num_segments)
