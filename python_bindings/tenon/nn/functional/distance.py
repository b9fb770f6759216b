# SPDX-License-Identifier: Apache-2.0
"""Similarities and distances of vectors."""

from __future__ import annotations

import tenon
from tenon import Tensor


def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `axis` of what `x1` and `x2` broadcast to; norms are at
    least `eps`."""
    if x1.shape != x2.shape:  # an axis of length 1 counts in a norm as often as it repeats
        x1, x2 = tenon.broadcast_tensors([x1, x2])
    norm1 = tenon.maximum(tenon.norm(x1, 2.0, axis), eps)
    norm2 = tenon.maximum(tenon.norm(x2, 2.0, axis), eps)
    return tenon.sum(x1 * x2, axis) / (norm1 * norm2)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of `x1 - x2 + eps` along the last axis."""
    return tenon.norm(x1 - x2 + eps, p, -1, keepdim)


def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """Distances of all pairs of rows of `x` [N, M], as a vector of N * (N - 1) / 2."""
    count = x.shape[0]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    first = tenon.tensor([i for i, _ in pairs], dtype=tenon.int64, device=x.device)
    second = tenon.tensor([j for _, j in pairs], dtype=tenon.int64, device=x.device)
    difference = tenon.index_select(x, first, 0) - tenon.index_select(x, second, 0)
    return tenon.norm(difference, p, -1)


def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x1 @ weight[o] @ x2 + bias[o]`: [..., I1] and [..., I2] with [O, I1, I2] to [..., O]."""
    out, inputs, more = weight.shape
    rows = tenon.matmul(x1, weight.permute([1, 0, 2]).reshape([inputs, out * more]))
    rows = rows.reshape([*x1.shape[:-1], out, more])
    result = tenon.sum(rows * x2.unsqueeze(-2), -1)
    return result if bias is None else result + bias
