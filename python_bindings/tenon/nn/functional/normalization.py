# SPDX-License-Identifier: Apache-2.0
"""Normalisation over features, batches, instances and neighbouring channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor


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
    count = math.prod(x.shape) // max(x.shape[1], 1)
    if training and count < 2:
        raise ValueError(
            f"batch_norm: expected more than one value per channel in training, got "
            f"shape {tuple(x.shape)}; use a larger batch or eval()"
        )
    out, mean, var = tenon.batch_norm(x, weight, bias, eps)
    if training and running_mean is not None and running_var is not None:
        with tenon.no_grad():
            tenon.lerp(running_mean, mean, momentum, out=running_mean)
            # Running averages hold the sample variance, the forward pass the population's.
            tenon.lerp(running_var, var * (count / (count - 1)), momentum, out=running_var)
    return out


def batch_norm_act(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    activation: str = "relu",
    residual: Tensor | None = None,
) -> Tensor:
    """batch_norm, then `residual` added, then an activation by its name in `tenon`: a program joins the last two."""
    function = getattr(tenon, activation, None) if activation.isidentifier() else None
    if function is None or activation not in (
        "relu",
        "sigmoid",
        "tanh",
        "gelu",
        "silu",
        "leaky_relu",
        "relu6",
    ):
        raise ValueError(
            f"batch_norm_act: expected the name of an activation, such as 'relu', got {activation!r}"
        )
    out = batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    return function(out if residual is None else out + residual)


def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Bring every channel of every sample of `x` [N, C, ...] to mean 0 and variance 1.

    With running statistics, their averages over the batch move by `momentum`; they are used
    instead of those of the sample if `use_input_stats` is false.
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ValueError("instance_norm: expected running statistics if use_input_stats=False")
        return tenon.batch_norm_inference(x, running_mean, running_var, weight, bias, eps)
    if math.prod(x.shape[2:]) < 2:
        raise ValueError(
            f"instance_norm: expected more than one value per channel of a sample, got shape "
            f"{tuple(x.shape)}"
        )
    if running_mean is not None and running_var is not None:
        axes = tuple(range(2, x.ndim))
        with tenon.no_grad():
            mean = tenon.mean(x, axes).mean(axis=0)
            var = tenon.var(x, axes, correction=1.0).mean(axis=0)
            tenon.lerp(running_mean, mean, momentum, out=running_mean)
            tenon.lerp(running_var, var, momentum, out=running_var)
    return tenon.group_norm(x, x.shape[1], weight, bias, eps)


def local_response_norm(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by the mean square of `size` neighbouring channels (Krizhevsky et al., 2012)."""
    if x.ndim < 3:
        raise ValueError(f"local_response_norm: expected three axes or more, got {tuple(x.shape)}")
    margins = [0, 0, size // 2, (size - 1) // 2, *([0, 0] * (x.ndim - 2))]
    squares = tenon.pad(tenon.square(x), margins)
    mean = tenon.sliding_window(squares, 1, size).mean(axis=-1)
    return x / tenon.pow(mean * alpha + k, beta)
