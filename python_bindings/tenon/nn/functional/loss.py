# SPDX-License-Identifier: Apache-2.0
"""Losses whose arguments have other names here than the operators behind them; `reduction` is 'mean', 'sum' or 'none'."""

from __future__ import annotations

import tenon
from tenon import Tensor


def kl_div(x: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """`target * (log(target) - x)` for log-probabilities `x`.

    `reduction` may also be 'batchmean', the sum divided by the extent of the first axis, which is
    the mathematical definition.
    """
    if reduction != "batchmean":
        return tenon.kl_div(x, target, reduction, log_target)
    return tenon.kl_div(x, target, "sum", log_target) / x.shape[0]


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
    variance = tenon.full_like(x, var) if isinstance(var, (int, float)) else var
    return tenon.gaussian_nll_loss(x, target, variance, full, eps, reduction)


def square_error_cost(x: Tensor, label: Tensor) -> Tensor:
    """`(x - label)^2`."""
    return tenon.mse_loss(x, label, "none")


def log_loss(x: Tensor, label: Tensor, epsilon: float = 1e-4) -> Tensor:
    """Binary cross-entropy of probabilities, element by element."""
    return tenon.log_loss(x, label, epsilon)


def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: float = 0.1) -> Tensor:
    """One-hot labels moved by `epsilon` towards a distribution, by default the uniform one."""
    prior = 1.0 / label.shape[-1] if prior_dist is None else prior_dist
    return (1.0 - epsilon) * label + epsilon * prior


def dice_loss(x: Tensor, label: Tensor, epsilon: float = 1e-5) -> Tensor:
    """1 - 2 * overlap / (sum of both), the mean over the batch (Milletari et al., 2016).

    `x` [N, ..., classes] holds probabilities, `label` [N, ..., 1] classes.
    """
    return tenon.dice_loss(x, label, epsilon)


def npair_loss(anchor: Tensor, positive: Tensor, labels: Tensor, l2_reg: float = 0.002) -> Tensor:
    """N-pair loss of embeddings [N, M] with classes `labels` [N] (Sohn, 2016)."""
    return tenon.npair_loss(anchor, positive, labels, l2_reg)


def sigmoid_focal_loss(
    logit: Tensor,
    label: Tensor,
    normalizer: Tensor | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
) -> Tensor:
    """Binary cross-entropy that weighs easy examples down (Lin et al., 2017)."""
    return tenon.sigmoid_focal_loss(logit, label, normalizer, alpha, gamma, reduction)


def softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    soft_label: bool = False,
    ignore_index: int = -100,
    axis: int = -1,
) -> Tensor:
    """Cross-entropy of every element, with `axis` kept as one."""
    return tenon.softmax_with_cross_entropy(logits, label, soft_label, ignore_index, axis)
