# SPDX-License-Identifier: Apache-2.0
"""Initial values, written in place. Every function returns the tensor it was given."""

from __future__ import annotations

import math

import tenon
from tenon import Tensor


def constant_(tensor: Tensor, value: float) -> Tensor:
    with tenon.no_grad():
        return tenon.full(tensor.shape, value, dtype=tensor.dtype, device=tensor.device, out=tensor)


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def uniform_(tensor: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    with tenon.no_grad():
        return tenon.uniform(
            tensor.shape, low, high, dtype=tensor.dtype, device=tensor.device, out=tensor
        )


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    with tenon.no_grad():
        return tenon.normal(
            tensor.shape, mean, std, dtype=tensor.dtype, device=tensor.device, out=tensor
        )


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Keeps the variance of both activations and gradients (Glorot and Bengio, 2010)."""
    fan_in, fan_out = fans(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    fan_in, fan_out = fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)))


def kaiming_uniform_(
    tensor: Tensor,
    negative_slope: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
) -> Tensor:
    """Keeps the variance of activations behind rectifiers (He et al., 2015)."""
    bound = math.sqrt(3.0) * _kaiming_std(tensor, negative_slope, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Tensor,
    negative_slope: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
) -> Tensor:
    return normal_(tensor, 0.0, _kaiming_std(tensor, negative_slope, mode, nonlinearity))


def calculate_gain(nonlinearity: str, negative_slope: float = 0.01) -> float:
    """By how much weights should be scaled to make up for a nonlinearity."""
    gains = {
        "linear": 1.0,
        "sigmoid": 1.0,
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
        "selu": 0.75,
        "leaky_relu": math.sqrt(2.0 / (1.0 + negative_slope**2)),
    }
    if nonlinearity not in gains:
        raise ValueError(
            f"calculate_gain: expected one of {', '.join(gains)}, got {nonlinearity!r}"
        )
    return gains[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output of a weight [out, in, ...] has, and how many outputs an input."""
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ValueError(f"expected a weight of two axes or more, got shape {shape}")
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _kaiming_std(tensor: Tensor, negative_slope: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming: expected mode 'fan_in' or 'fan_out', got {mode!r}")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, negative_slope) / math.sqrt(fan)
