# SPDX-License-Identifier: Apache-2.0
"""Dropout of whole channels, and dropout that keeps mean and variance (for SELU)."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor

# The value that SELU approaches at minus infinity (Klambauer et al., 2017).
_ALPHA = -1.7580993408473766


def dropout1d(x: Tensor, p: float = 0.5, training: bool = True, *, generator: Any = None) -> Tensor:
    """Zeroes whole channels of `x` [N, C, L] or [C, L]."""
    return _channel_dropout(x, p, training, 1, generator)


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True, *, generator: Any = None) -> Tensor:
    """Zeroes whole channels of `x` [N, C, H, W] or [C, H, W]; elements of [N, C]."""
    return _channel_dropout(x, p, training, 2, generator)


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True, *, generator: Any = None) -> Tensor:
    """Zeroes whole channels of `x` [N, C, D, H, W] or [C, D, H, W]; elements of [N, C]."""
    return _channel_dropout(x, p, training, 3, generator)


def alpha_dropout(
    x: Tensor, p: float = 0.5, training: bool = False, *, generator: Any = None
) -> Tensor:
    """Sets elements to SELU's limit, then scales so that mean and variance stay the same."""
    return _alpha_dropout(x, p, list(x.shape), generator) if training and p else x


def feature_alpha_dropout(
    x: Tensor, p: float = 0.5, training: bool = False, *, generator: Any = None
) -> Tensor:
    """alpha_dropout of whole channels of `x` [N, C, ...]."""
    if not training or not p:
        return x
    return _alpha_dropout(x, p, _channel_shape(x, x.ndim - 2), generator)


def _channel_shape(x: Tensor, spatial: int) -> list[int]:
    return [*x.shape[: x.ndim - spatial], *([1] * spatial)]


def _channel_dropout(x: Tensor, p: float, training: bool, spatial: int, generator: Any) -> Tensor:
    if x.ndim == 2 and spatial > 1:  # channels of one element each
        return tenon.dropout(x, p, training, generator=generator)
    if x.ndim not in (spatial + 1, spatial + 2):
        raise ValueError(
            f"dropout{spatial}d: expected {spatial + 1} or {spatial + 2} axes, got shape "
            f"{tuple(x.shape)}"
        )
    if not training or not p:
        return x
    mask = tenon.ones(_channel_shape(x, spatial), dtype=x.dtype, device=x.device)
    return x * tenon.dropout(mask, p, True, generator=generator)


def _alpha_dropout(x: Tensor, p: float, shape: list[int], generator: Any) -> Tensor:
    keep = 1.0 - p
    if not keep:
        return tenon.zeros_like(x)
    scale = 1.0 / math.sqrt(keep * (1.0 + p * _ALPHA * _ALPHA))
    shift = -scale * _ALPHA * p
    chance = tenon.full(shape, keep, dtype=x.dtype, device=x.device)
    kept = tenon.bernoulli(chance, generator=generator)
    return (x * kept + _ALPHA * (1.0 - kept)) * scale + shift
