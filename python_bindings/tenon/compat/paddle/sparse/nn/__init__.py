# SPDX-License-Identifier: Apache-2.0
"""paddle.sparse.nn: layers of sites; weights have Paddle's shape [kernel, in_channels, out_channels]."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import nn
from tenon import sparse as _sparse
from tenon._core import Tensor
from tenon.compat.paddle.sparse.nn import functional

__all__ = """BatchNorm Conv2D Conv3D LeakyReLU MaxPool3D ReLU ReLU6 Softmax SubmConv2D SubmConv3D
SyncBatchNorm functional""".split()


class ReLU(nn.Module):
    """functional.relu."""

    def __init__(self, name: Any = None) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x)


class ReLU6(ReLU):
    """functional.relu6."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu6(x)


class LeakyReLU(nn.Module):
    """functional.leaky_relu."""

    def __init__(self, negative_slope: float = 0.01, name: Any = None) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return functional.leaky_relu(x, self.negative_slope)


class Softmax(nn.Module):
    """functional.softmax."""

    def __init__(self, axis: int = -1, name: Any = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return functional.softmax(x, self.axis)


def _no_attributes(name: str, **given: Any) -> None:
    for key, value in given.items():
        if value not in (None, False):
            raise NotImplementedError(
                f"sparse.nn.{name}: expected {key}=None, got {value!r}; set the parameter afterwards"
            )


class BatchNorm(_sparse.nn.BatchNorm):
    """sparse.nn.BatchNorm, whose momentum is what stays of a running statistic."""

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NDHWC",
        use_global_stats: bool | None = None,
        name: Any = None,
    ) -> None:
        _no_attributes(
            type(self).__name__,
            weight_attr=weight_attr,
            bias_attr=bias_attr,
            use_global_stats=use_global_stats,
        )
        if data_format not in ("NDHWC", "NHWC"):
            raise ValueError(
                f"sparse.nn.{type(self).__name__}: expected data_format 'NDHWC' or 'NHWC', got "
                f"{data_format!r}"
            )
        super().__init__(num_features, eps=epsilon, momentum=1.0 - momentum)


class SyncBatchNorm(nn.Module):
    """Not there: its statistics would be those of all ranks."""

    def __init__(self, num_features: int, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "sparse.nn.SyncBatchNorm: statistics of the sites of all ranks are not there; "
            "sparse.nn.BatchNorm has those of this rank"
        )


class _Convolution(nn.Module):
    axes, is_submanifold = 3, False
    layout = "NDHWC"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        key: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        backend: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        _no_attributes(name, weight_attr=weight_attr)
        if padding_mode != "zeros" or groups != 1:
            raise NotImplementedError(
                f"sparse.nn.{name}: expected padding_mode='zeros' and groups=1, got "
                f"{padding_mode!r} and {groups}"
            )
        if bias_attr not in (None, False):
            raise NotImplementedError(
                f"sparse.nn.{name}: expected bias_attr=None or False, got {bias_attr!r}"
            )
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.data_format = data_format or self.layout
        make = _sparse.nn.SubmConv3d if self.axes == 3 else _sparse.nn.SubmConv2d
        dense = make(in_channels, out_channels, kernel_size, bias=bias_attr is not False)
        order = [*range(2, self.axes + 2), 1, 0]
        self.weight = nn.Parameter(dense.weight.detach().permute(order).contiguous())
        self.bias = None if dense.bias is None else nn.Parameter(tenon.zeros([out_channels]))

    def forward(self, x: Tensor) -> Tensor:
        name = f"{'subm_' if self.is_submanifold else ''}conv{self.axes}d"
        return getattr(functional, name)(
            x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            1,
            self.data_format,
        )


class Conv3D(_Convolution):
    """functional.conv3d with its weights."""


class Conv2D(_Convolution):
    """functional.conv2d with its weights."""

    axes, layout = 2, "NHWC"


class SubmConv3D(_Convolution):
    """functional.subm_conv3d with its weights. `key` and `backend` change no result."""

    is_submanifold = True


class SubmConv2D(SubmConv3D):
    """functional.subm_conv2d with its weights."""

    axes, layout = 2, "NHWC"


class MaxPool3D(nn.Module):
    """functional.max_pool3d."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NDHWC",
        name: Any = None,
    ) -> None:
        super().__init__()
        if return_mask:
            raise NotImplementedError("sparse.nn.MaxPool3D: expected return_mask=False, got True")
        self.arguments = (kernel_size, stride, padding, ceil_mode, data_format)

    def forward(self, x: Tensor) -> Tensor:
        return functional.max_pool3d(x, *self.arguments)
