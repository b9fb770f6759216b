# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional's losses of differences, whose elements may have weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor

__all__ = "huber_loss l1_loss linear_cross_entropy mse_loss".split()


def _weighted(
    name: str, losses: Tensor, weight: Tensor, reduction: str, mean: Callable[[Tensor], Tensor]
) -> Tensor:
    if tuple(weight.shape) != tuple(losses.shape):
        raise ValueError(
            f"{name}(): expected weight of shape {tuple(losses.shape)}, got {tuple(weight.shape)}"
        )
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"{name}(): expected reduction 'none', 'mean' or 'sum', got {reduction!r}")
    losses = losses * weight
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else mean(losses)


def mse_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Squares of the differences; the mean is divided by the sum of the weights."""
    if weight is None:
        return tenon.mse_loss(input, target, reduction)
    losses = tenon.mse_loss(input, target, "none")
    return _weighted("mse_loss", losses, weight, reduction, lambda x: x.sum() / weight.sum())


def l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Magnitudes of the differences; the mean is divided by the sum of the weights."""
    if weight is None:
        return tenon.l1_loss(input, target, reduction)
    losses = tenon.l1_loss(input, target, "none")
    return _weighted("l1_loss", losses, weight, reduction, lambda x: x.sum() / weight.sum())


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Squares of small differences, and magnitudes of those above `delta`; the mean is divided by the number of
    elements, whatever their weights."""
    if weight is None:
        return tenon.huber_loss(input, target, reduction, delta)
    losses = tenon.huber_loss(input, target, "none", delta)
    return _weighted("huber_loss", losses, weight, reduction, lambda x: x.mean())


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target, ...). `options` are PyTorch's for computing it in
    parts, and must be None."""
    if options is not None:
        raise NotImplementedError(
            f"linear_cross_entropy(): expected options=None, got {options!r}; it is not computed in parts"
        )
    classes, *inner, features = linear_weight.shape
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = tenon.linear(input, linear_weight.reshape([-1, features]), bias)
    logits = logits.reshape([*input.shape[:-1], classes, *inner])
    named: dict[str, Any] = {} if ignore_index is None else {"ignore_index": ignore_index}
    return tenon.cross_entropy(
        logits, target, weight, reduction=reduction, label_smoothing=label_smoothing, **named
    )
