# SPDX-License-Identifier: Apache-2.0
"""Pooling layers over 1 to 3 spatial axes. Sizes are one number, or one for each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tenon import Tensor

from . import functional as F
from .functional._common import Size, spread
from .module import Module


class _MaxPool(Module):
    """Largest element of every window. The stride is the window's size unless given.

    `return_indices` adds the index of each element in its flattened spatial axes.
    """

    axes = 2
    function: Callable[..., Tensor]
    with_indices: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = spread(kernel_size, self.axes, "kernel_size")
        self.stride = self.kernel_size if stride is None else spread(stride, self.axes, "stride")
        self.padding = spread(padding, self.axes, "padding")
        self.dilation = spread(dilation, self.axes, "dilation")
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, x: Tensor) -> Any:
        settings = (self.kernel_size, self.stride, self.padding, self.dilation)
        function = type(self).with_indices if self.return_indices else type(self).function
        if x.ndim > self.axes + 1:
            return function(x, *settings, self.ceil_mode)
        out = function(x.unsqueeze(0), *settings, self.ceil_mode)  # without a batch
        return tuple(each.squeeze(0) for each in out) if self.return_indices else out.squeeze(0)

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool1d(_MaxPool):
    """Largest element of every window of [N, C, L]."""

    axes = 1
    function = staticmethod(F.max_pool1d)
    with_indices = staticmethod(F.max_pool1d_with_indices)


class MaxPool2d(_MaxPool):
    """Largest element of every window of [N, C, H, W]."""

    axes = 2
    function = staticmethod(F.max_pool2d)
    with_indices = staticmethod(F.max_pool2d_with_indices)


class MaxPool3d(_MaxPool):
    """Largest element of every window of [N, C, D, H, W]."""

    axes = 3
    function = staticmethod(F.max_pool3d)
    with_indices = staticmethod(F.max_pool3d_with_indices)


class _AvgPool(Module):
    """Mean of every window. The stride is the window's size unless given."""

    axes = 2
    function: Callable[..., Tensor]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        if divisor_override is not None and (self.axes == 1 or ceil_mode or divisor_override < 1):
            raise ValueError(
                f"{type(self).__name__}: expected divisor_override above 0, for 2 or 3 axes and "
                f"without ceil_mode, got {divisor_override}"
            )
        self.divisor_override = divisor_override
        self.kernel_size = spread(kernel_size, self.axes, "kernel_size")
        self.stride = self.kernel_size if stride is None else spread(stride, self.axes, "stride")
        self.padding, self.ceil_mode = spread(padding, self.axes, "padding"), ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == self.axes + 1:  # without a batch
            return self.forward(x.unsqueeze(0)).squeeze(0)
        settings = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        if self.divisor_override is None:
            return type(self).function(x, *settings, self.count_include_pad)
        total = type(self).function(x, *settings, True) * math.prod(self.kernel_size)
        return total / self.divisor_override

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """Mean of every window of [N, C, L]."""

    axes = 1
    function = staticmethod(F.avg_pool1d)


class AvgPool2d(_AvgPool):
    """Mean of every window of [N, C, H, W]."""

    axes = 2
    function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """Mean of every window of [N, C, D, H, W]."""

    axes = 3
    function = staticmethod(F.avg_pool3d)


class _AdaptivePool(Module):
    """As many windows as make an output of `output_size`; None keeps an extent."""

    axes = 2
    function: Callable[..., Tensor]

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        if isinstance(output_size, int):
            output_size = (output_size,) * self.axes
        self.output_size = tuple(output_size)
        if len(self.output_size) != self.axes:
            raise ValueError(
                f"{type(self).__name__}: expected output_size of {self.axes} numbers, got "
                f"{self.output_size}"
            )

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == self.axes + 1:  # without a batch
            return self.forward(x.unsqueeze(0)).squeeze(0)
        extents = x.shape[-self.axes :]
        size = [n if want is None else want for want, n in zip(self.output_size, extents)]
        return type(self).function(x, size)

    def extra_repr(self) -> str:
        return f"{self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means of as many windows of [N, C, L] as make `output_size`."""

    axes = 1
    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means of as many windows of [N, C, H, W] as make `output_size`."""

    axes = 2
    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means of as many windows of [N, C, D, H, W] as make `output_size`."""

    axes = 3
    function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(_AdaptivePool):
    """Maxima of as many windows as make an output of `output_size`."""

    def __init__(
        self, output_size: int | Sequence[int | None], return_indices: bool = False
    ) -> None:
        _refuse_indices(return_indices, type(self).__name__)
        super().__init__(output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima of as many windows of [N, C, L] as make `output_size`."""

    axes = 1
    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima of as many windows of [N, C, H, W] as make `output_size`."""

    axes = 2
    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima of as many windows of [N, C, D, H, W] as make `output_size`."""

    axes = 3
    function = staticmethod(F.adaptive_max_pool3d)


class _LPPool(Module):
    """`(sum of x ** p) ** (1 / p)` of every window."""

    function: Callable[..., Tensor]

    def __init__(
        self,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        ceil_mode: bool = False,
    ) -> None:
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return type(self).function(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"{self.norm_type}, {self.kernel_size}, stride={self.stride}"


class LPPool1d(_LPPool):
    """Power-average pooling of [N, C, L]."""

    function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """Power-average pooling of [N, C, H, W]."""

    function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """Power-average pooling of [N, C, D, H, W]."""

    function = staticmethod(F.lp_pool3d)


class _MaxUnpool(Module):
    """Zeros, with the maxima at their indices."""

    function: Callable[..., Tensor]

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(
        self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return type(self).function(
            x, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Undoes MaxPool1d(return_indices=True), with zeros for what it dropped."""

    function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Undoes MaxPool2d(return_indices=True), with zeros for what it dropped."""

    function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Zeros of [N, C, D, H, W], with the maxima at their indices."""

    function = staticmethod(F.max_unpool3d)


class _FractionalMaxPool(Module):
    function: Callable[..., Tensor]

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
        *,
        generator: Any = None,
    ) -> None:
        _refuse_indices(return_indices, type(self).__name__)
        self.kernel_size, self.output_size = kernel_size, output_size
        self.output_ratio, self._random_samples = output_ratio, _random_samples
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        sizes = (self.kernel_size, self.output_size, self.output_ratio, self._random_samples)
        return type(self).function(x, *sizes, generator=self.generator)

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, output_size={self.output_size}"


class FractionalMaxPool2d(_FractionalMaxPool):
    """Max pooling of [N, C, H, W] whose windows begin at random steps (Graham, 2014)."""

    function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Max pooling of [N, C, D, H, W] whose windows begin at random steps."""

    function = staticmethod(F.fractional_max_pool3d)


def _refuse_indices(return_indices: bool, caller: str) -> None:
    if return_indices:
        raise NotImplementedError(
            f"{caller}: maxima come without their indices, expected return_indices False; "
            f"MaxPool gives them, and so does tenon.compat.torch.nn.functional.adaptive_max_pool2d"
        )
