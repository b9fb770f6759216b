# SPDX-License-Identifier: Apache-2.0
"""Layers of sites; see functional.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, _core, nn

from .. import rows
from . import functional as F

Sizes = int | Sequence[int]


class _Convolution(nn.Module):
    """Weights and names of parameters are those of the dense layer."""

    axes = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = F._each(type(self).__name__, "kernel_size", kernel_size, self.axes)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        fan_in = in_channels * math.prod(self.kernel_size)
        bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
        shape = [out_channels, in_channels, *self.kernel_size]
        self.weight = nn.Parameter(tenon.uniform(shape, -bound, bound))
        self.bias = nn.Parameter(tenon.uniform([out_channels], -bound, bound)) if bias else None

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={tuple(self.kernel_size)}, "
            f"bias={self.bias is not None}"
        )


class Conv3d(_Convolution):
    """sparse.nn.functional.conv3d with its weights."""

    def forward(self, x: Tensor) -> Tensor:
        return F.conv3d(x, self.weight, self.bias, self.stride, self.padding, self.dilation)


class Conv2d(_Convolution):
    """sparse.nn.functional.conv2d with its weights."""

    axes = 2

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation)


class _Submanifold(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, dilation=dilation, bias=bias)


class SubmConv3d(_Submanifold):
    """sparse.nn.functional.subm_conv3d with its weights: a convolution whose result has the sites of its argument."""

    def forward(self, x: Tensor) -> Tensor:
        return F.subm_conv3d(x, self.weight, self.bias, self.dilation)


class SubmConv2d(_Submanifold):
    """sparse.nn.functional.subm_conv2d with its weights."""

    axes = 2

    def forward(self, x: Tensor) -> Tensor:
        return F.subm_conv2d(x, self.weight, self.bias, self.dilation)


class MaxPool3d(nn.Module):
    """sparse.nn.functional.max_pool3d."""

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool3d(x, self.kernel_size, self.stride, self.padding)


class MaxPool2d(MaxPool3d):
    """sparse.nn.functional.max_pool2d."""

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding)


class BatchNorm(nn.BatchNorm1d):
    """nn.BatchNorm1d of the channels of the sites that are there."""

    def forward(self, x: Tensor) -> Tensor:
        x = _channels("BatchNorm", x)
        return _core.with_values(x, super().forward(x.values()))


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm of the channels of each site."""

    def forward(self, x: Tensor) -> Tensor:
        x = _channels("LayerNorm", x)
        return _core.with_values(x, super().forward(x.values()))


class Softmax(nn.Module):
    """sparse.softmax: of the elements that are stored."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return rows.softmax(x, self.axis)


def _channels(name: str, x: Any) -> Tensor:
    if x.layout != "coo" or x.values().ndim != 2:
        raise ValueError(
            f"sparse.nn.{name}: expected a tensor of layout coo with indices along all axes but the "
            f"last, got layout {x.layout} and shape {tuple(x.shape)}"
        )
    return x.coalesce()
