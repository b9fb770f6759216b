# SPDX-License-Identifier: Apache-2.0
"""Losses that are composed of operators; `reduction` is 'mean', 'sum' or 'none'."""

from __future__ import annotations

import math

import tenon
from tenon import Tensor

from ._common import from_zero, reduced


def kl_div(x: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """`target * (log(target) - x)` for log-probabilities `x`.

    `reduction` may also be 'batchmean', the sum divided by the extent of the first axis, which is
    the mathematical definition.
    """
    if reduction != "batchmean":
        return tenon.kl_div(x, target, reduction, log_target)
    return tenon.kl_div(x, target, "sum", log_target) / x.shape[0]


def poisson_nll_loss(
    x: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """`rate - target * log(rate)`; `x` is the logarithm of the rate, or the rate itself.

    `full` adds Stirling's approximation of `log(target!)`.
    """
    loss = tenon.exp(x) - target * x if log_input else x - target * tenon.log(x + eps)
    if full:
        safe = tenon.maximum(target, 1.0)
        stirling = target * tenon.log(safe) - target + 0.5 * tenon.log(2.0 * math.pi * safe)
        loss = loss + tenon.where(target > 1, stirling, 0.0)
    return reduced(loss, reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    x: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """`0.5 * (log(var) + (x - target)^2 / var)`; `var` is at least `eps`, without a gradient for
    the limit. `full` adds the constant."""
    if isinstance(var, (int, float)):
        var = tenon.full_like(x, var)
    elif var.ndim == x.ndim - 1:
        var = var.unsqueeze(-1)
    limited = var + tenon.maximum(eps - var, 0.0).detach()
    loss = 0.5 * (tenon.log(limited) + tenon.square(x - target) / limited)
    if full:
        loss = loss + 0.5 * math.log(2.0 * math.pi)
    return reduced(loss, reduction, "gaussian_nll_loss")


def square_error_cost(x: Tensor, label: Tensor) -> Tensor:
    """`(x - label)^2`."""
    return tenon.square(x - label)


def log_loss(x: Tensor, label: Tensor, epsilon: float = 1e-4) -> Tensor:
    """Binary cross-entropy of probabilities, element by element."""
    return -label * tenon.log(x + epsilon) - (1.0 - label) * tenon.log(1.0 - x + epsilon)


def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: float = 0.1) -> Tensor:
    """One-hot labels moved by `epsilon` towards a distribution, by default the uniform one."""
    prior = 1.0 / label.shape[-1] if prior_dist is None else prior_dist
    return (1.0 - epsilon) * label + epsilon * prior


def dice_loss(x: Tensor, label: Tensor, epsilon: float = 1e-5) -> Tensor:
    """1 - 2 * overlap / (sum of both), the mean over the batch (Milletari et al., 2016).

    `x` [N, ..., classes] holds probabilities, `label` [N, ..., 1] classes.
    """
    target = tenon.one_hot(label.squeeze(-1), x.shape[-1]).cast(x.dtype)
    axes = tuple(range(1, x.ndim))
    overlap = tenon.sum(x * target, axes)
    total = tenon.sum(x, axes) + tenon.sum(target, axes)
    return (1.0 - 2.0 * overlap / (total + epsilon)).mean()


def npair_loss(anchor: Tensor, positive: Tensor, labels: Tensor, l2_reg: float = 0.002) -> Tensor:
    """N-pair loss of embeddings [N, M] with classes `labels` [N] (Sohn, 2016)."""
    same = (labels.unsqueeze(1) == labels.unsqueeze(0)).cast(anchor.dtype)
    target = same / tenon.sum(same, 1, keepdim=True)
    squares = (
        tenon.sum(tenon.square(anchor), 1).mean() + tenon.sum(tenon.square(positive), 1).mean()
    )
    log_p = tenon.log_softmax(tenon.matmul(anchor, positive.T), 1)
    return tenon.sum(-target * log_p, 1).mean() + 0.25 * l2_reg * squares


def sigmoid_focal_loss(
    logit: Tensor,
    label: Tensor,
    normalizer: Tensor | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
) -> Tensor:
    """Binary cross-entropy that weighs easy examples down (Lin et al., 2017)."""
    p = tenon.sigmoid(logit)
    entropy = tenon.binary_cross_entropy_with_logits(logit, label, reduction="none")
    right = p * label + (1.0 - p) * (1.0 - label)
    loss = entropy * tenon.pow(1.0 - right, gamma)
    if alpha >= 0:
        loss = loss * (alpha * label + (1.0 - alpha) * (1.0 - label))
    if normalizer is not None:
        loss = loss / normalizer
    return reduced(loss, reduction, "sigmoid_focal_loss")


def softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    soft_label: bool = False,
    ignore_index: int = -100,
    axis: int = -1,
) -> Tensor:
    """Cross-entropy of every element, with `axis` kept as one."""
    log_p = tenon.log_softmax(logits, axis)
    if soft_label:
        return -tenon.sum(label * log_p, axis, keepdim=True)
    if label.ndim == logits.ndim - 1:
        label = label.unsqueeze(axis)
    ignored = label == ignore_index
    label = from_zero(tenon.where(ignored, 0, label), logits.shape[axis])
    chosen = tenon.gather(log_p, label, axis)
    return tenon.where(ignored, 0.0, -chosen)
