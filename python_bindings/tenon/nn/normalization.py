# SPDX-License-Identifier: Apache-2.0
"""Layers that bring activations to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from .module import Module
from .parameter import Buffer, Parameter


def _affine(shape: Sequence[int], wanted: bool, value: float, options: dict) -> Parameter | None:
    return Parameter(tenon.full(list(shape), value, **options)) if wanted else None


class _BatchNorm(Module):
    """In training with the statistics of the batch, otherwise with their running averages."""

    ndims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.weight = _affine([num_features], affine, 1.0, options)
        self.bias = _affine([num_features], affine, 0.0, options)
        self.running_mean = self.running_var = None
        if track_running_stats:
            self.running_mean = Buffer(tenon.zeros([num_features], **options))
            self.running_var = Buffer(tenon.ones([num_features], **options))

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) not in self.ndims or x.shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: expected {' or '.join(map(str, self.ndims))} axes "
                f"with {self.num_features} channels in the second, got shape "
                f"{tuple(x.shape)}"
            )
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training,
            self.momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(_BatchNorm):
    """Normalises every channel of [N, C] or [N, C, L] over the batch."""

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises every channel of [N, C, H, W] over the batch."""

    ndims = (4,)


class LayerNorm(Module):
    """Normalises the last axes, whose extents are `normalized_shape`, together."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        affine: bool = True,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.normalized_shape, self.eps = shape, eps
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.weight = _affine(shape, affine, 1.0, options)
        self.bias = _affine(shape, affine and bias, 0.0, options)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(Module):
    """Normalises the channels of [N, C, ...] in `num_groups` groups."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: expected num_channels divisible by num_groups {num_groups}, "
                f"got {num_channels}"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.weight = _affine([num_channels], affine, 1.0, options)
        self.bias = _affine([num_channels], affine, 0.0, options)

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class RMSNorm(Module):
    """Divides the last axis by its root mean square."""

    def __init__(
        self, features: int, eps: float = 1e-6, *, device: Any = None, dtype: Any = None
    ) -> None:
        self.features, self.eps = features, eps
        self.weight = _affine(
            [features], True, 1.0, {"device": device, "dtype": dtype or tenon.float32}
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.features}, eps={self.eps}"
