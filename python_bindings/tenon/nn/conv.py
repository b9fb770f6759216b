# SPDX-License-Identifier: Apache-2.0
"""Convolution and pooling over [batch, channels, height, width]."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

Size = int | tuple[int, int]


class Conv2d(Module):
    """Cross-correlation with `out_channels` filters. Sizes are one number, or (height, width)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"Conv2d: expected channels divisible by groups {groups}, got "
                f"{in_channels} in and {out_channels} out"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = pair(kernel_size), pair(stride)
        self.padding, self.dilation = pair(padding), pair(dilation)
        shape = [out_channels, in_channels // groups, *self.kernel_size]
        self.weight = Parameter(tenon.empty(shape, device=device, dtype=dtype))
        self.bias = (
            Parameter(tenon.empty([out_channels], device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(inputs of one output)."""
        bound = 1.0 / math.sqrt(init.fans(self.weight)[0])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, {self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", (0, 0)), ("dilation", (1, 1)), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text if self.bias is not None else text + ", bias=False"


class MaxPool2d(Module):
    """Largest element of every window. The stride is the window's size unless given."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = pair(kernel_size)
        self.stride = self.kernel_size if stride is None else pair(stride)
        self.padding, self.dilation, self.ceil_mode = pair(padding), pair(dilation), ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """Mean of every window. The stride is the window's size unless given."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size = pair(kernel_size)
        self.stride = self.kernel_size if stride is None else pair(stride)
        self.padding, self.ceil_mode = pair(padding), ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool2d(Module):
    """Means of as many windows as make an output of `output_size`."""

    def __init__(self, output_size: Size) -> None:
        self.output_size = pair(output_size)

    def forward(self, x: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(x, self.output_size)

    def extra_repr(self) -> str:
        return f"{self.output_size}"


def pair(size: Size) -> tuple[int, int]:
    if isinstance(size, int):
        return (size, size)
    height, width = size
    return (height, width)
