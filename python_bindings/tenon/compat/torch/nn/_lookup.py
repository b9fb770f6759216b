# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional's rows of a table by index."""

from __future__ import annotations

import tenon
from tenon._core import Tensor
from tenon.nn import functional as _functional

__all__ = "embedding embedding_bag one_hot".split()


def _limit_norms(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows of `weight` that `indices` names, and whose norm is larger than `max_norm`, to it, in place."""
    with tenon.no_grad():
        rows = tenon.unique_values(indices)
        chosen = tenon.index_select(weight, rows, 0)
        norms = tenon.norm(chosen, norm_type, [1], True)
        scale = tenon.where(norms > max_norm, max_norm / (norms + 1e-7), tenon.ones_like(norms))
        weight.copy_(tenon.index_put(weight, [rows], chosen * scale))


def _dense(name: str, sparse: bool) -> None:
    if sparse:
        raise NotImplementedError(f"{name}(): expected sparse=False; gradients are dense")


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` at the indices `input`. With `max_norm`, rows of a larger norm are scaled to it first, in `weight`
    itself."""
    if max_norm is not None:
        _limit_norms(weight, input, max_norm, norm_type)
    return _functional.embedding(input, weight, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sum, mean or maximum of the rows of every bag. With `max_norm`, rows of a larger norm are scaled to it first, in
    `weight` itself."""
    _dense("embedding_bag", sparse)
    if scale_grad_by_freq:
        raise NotImplementedError("embedding_bag(): expected scale_grad_by_freq=False, got True")
    if max_norm is not None:
        _limit_norms(weight, input, max_norm, norm_type)
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    return _functional.embedding_bag(
        input, weight, offsets, mode, per_sample_weights, include_last_offset, padding_idx
    )


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of 0 with 1 at each index, in int64; without `num_classes` up to the largest index."""
    if num_classes < 0:
        if tensor.numel() == 0:
            raise ValueError(
                "one_hot(): expected num_classes for a tensor without elements, got -1"
            )
        num_classes = int(tensor.max().item()) + 1
    return tenon.one_hot(tensor, num_classes).to(tenon.int64)
