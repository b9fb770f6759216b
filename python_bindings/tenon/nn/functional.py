# SPDX-License-Identifier: Apache-2.0
"""Layers without state. Most are operators of `tenon` under the name that one looks for here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import (  # noqa: F401  (re-exported)
    Tensor,
    adaptive_avg_pool2d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    celu,
    conv1d,
    conv2d,
    conv_transpose2d,
    cross_entropy,
    dropout,
    elu,
    gelu,
    glu,
    group_norm,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    huber_loss,
    kl_div,
    l1_loss,
    leaky_relu,
    linear,
    log_sigmoid,
    log_softmax,
    max_pool1d,
    max_pool2d,
    mish,
    mse_loss,
    nll_loss,
    normalize,
    one_hot,
    prelu,
    relu,
    relu6,
    rms_norm,
    scaled_dot_product_attention,
    selu,
    sigmoid,
    silu,
    smooth_l1_loss,
    softmax,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
)


def embedding(indices: Tensor, weight: Tensor, padding_index: int | None = None) -> Tensor:
    """Rows of `weight` at `indices`. The row `padding_index` gets no gradient."""
    return tenon.embedding(weight, indices, padding_index)


def layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Bring the last axes of `x`, which must be `normalized_shape`, to mean 0 and variance 1."""
    shape = tuple(normalized_shape)
    if tuple(x.shape)[-len(shape) :] != shape:
        raise ValueError(
            f"layer_norm: expected the last axes of x to be {shape}, got shape {tuple(x.shape)}"
        )
    return tenon.layer_norm(x, weight, bias, len(shape), eps)


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Bring every channel of `x` [N, C, ...] to mean 0 and variance 1.

    In training the statistics are those of the batch, and the running ones move towards them by
    `momentum`; otherwise the running ones are used.
    """
    if not training and running_mean is not None and running_var is not None:
        return tenon.batch_norm_inference(x, running_mean, running_var, weight, bias, eps)
    out, mean, var = tenon.batch_norm(x, weight, bias, eps)
    if training and running_mean is not None and running_var is not None:
        count = _numel(x.shape) // x.shape[1]
        if count < 2:
            raise ValueError(
                f"batch_norm: expected more than one value per channel in training, got "
                f"shape {tuple(x.shape)}; use a larger batch or eval()"
            )
        with tenon.no_grad():
            tenon.lerp(running_mean, mean, momentum, out=running_mean)
            # Running averages hold the sample variance, the forward pass the population's.
            tenon.lerp(running_var, var * (count / (count - 1)), momentum, out=running_var)
    return out


def flatten(x: Tensor, start: int = 1, stop: int = -1) -> Tensor:
    """Join axes `start` to `stop`; by default all but the batch."""
    return tenon.flatten(x, start, stop)


def _numel(shape: Any) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
