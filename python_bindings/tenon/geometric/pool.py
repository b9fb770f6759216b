# SPDX-License-Identifier: Apache-2.0
"""Reductions over the nodes of each graph of a batch."""

from __future__ import annotations

from tenon import Tensor

from .segment import segment_max, segment_mean, segment_sum


def _size(batch: Tensor, size: int | None) -> int:
    return int(batch.max().item()) + 1 if size is None else size


def global_add_pool(x: Tensor, batch: Tensor, size: int | None = None) -> Tensor:
    """Sums of the rows of `x` [n, ...] of each graph `batch` [n] names: [graphs, ...]."""
    return segment_sum(x, batch, _size(batch, size))


def global_mean_pool(x: Tensor, batch: Tensor, size: int | None = None) -> Tensor:
    """Means of the rows of `x` [n, ...] of each graph `batch` [n] names: [graphs, ...]."""
    return segment_mean(x, batch, _size(batch, size))


def global_max_pool(x: Tensor, batch: Tensor, size: int | None = None) -> Tensor:
    """Maxima of the rows of `x` [n, ...] of each graph `batch` [n] names: [graphs, ...]."""
    return segment_max(x, batch, _size(batch, size))
