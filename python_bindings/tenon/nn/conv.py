# SPDX-License-Identifier: Apache-2.0
"""Convolutions over 1 to 3 spatial axes. Sizes are one number, or one for each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from . import init
from .functional._common import Size, spread
from .module import Module
from .parameter import Parameter

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvBase(Module):
    """What convolutions and transposed ones share: settings and parameters."""

    axes = 2
    transposed = False
    function: Callable[..., Tensor]

    def _setup(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        dilation: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        options: dict[str, Any],
    ) -> None:
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{type(self).__name__}: expected channels divisible by groups {groups}, got "
                f"{in_channels} in and {out_channels} out"
            )
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"{type(self).__name__}: expected padding_mode one of "
                f"{', '.join(_PADDING_MODES)}, got {padding_mode!r}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = spread(kernel_size, self.axes, "kernel_size")
        self.stride = spread(stride, self.axes, "stride")
        self.dilation = spread(dilation, self.axes, "dilation")
        self.padding_mode = padding_mode
        first, second = out_channels, in_channels // groups
        if self.transposed:
            first, second = in_channels, out_channels // groups
        self.weight = Parameter(tenon.empty([first, second, *self.kernel_size], **options))
        self.bias = Parameter(tenon.empty([out_channels], **options)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(inputs of one output)."""
        fan_in = init.fans(self.weight)[0]
        bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, {self.kernel_size}, stride={self.stride}"
        usual = {
            "padding": (0,) * self.axes,
            "output_padding": (0,) * self.axes,
            "dilation": (1,) * self.axes,
            "groups": 1,
            "padding_mode": "zeros",
        }
        for name, value in usual.items():
            if getattr(self, name, value) != value:
                text += f", {name}={getattr(self, name)}"
        return text if self.bias is not None else text + ", bias=False"


class _Conv(_ConvBase):
    """Cross-correlation with `out_channels` filters.

    `padding` is a size, 'valid' (none) or 'same' (the output is as large as the input).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = {"device": device, "dtype": dtype}
        self._setup(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            dilation,
            groups,
            bias,
            padding_mode,
            options,
        )
        # Margins that are added by a call of their own: (before, after), last axis first.
        self._margins: list[int] = []
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"{type(self).__name__}: expected padding to be sizes, 'same' or 'valid', got "
                    f"{padding!r}"
                )
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError(
                    f"{type(self).__name__}: padding='same' needs stride 1, got {self.stride}"
                )
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            totals = totals if padding == "same" else [0] * self.axes
            both = [(total // 2, total - total // 2) for total in totals]
        else:
            both = [(p, p) for p in spread(padding, self.axes, "padding")]
        self.padding = padding if isinstance(padding, str) else tuple(p for p, _ in both)
        if padding_mode != "zeros" or any(p != q for p, q in both):
            self._margins = [n for pair in reversed(both) for n in pair]
            both = [(0, 0)] * self.axes
        self._symmetric = tuple(p for p, _ in both)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == self.axes + 1:  # without a batch
            return self.forward(x.unsqueeze(0)).squeeze(0)
        if self._margins:
            mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
            x = F.pad(x, self._margins, mode)
        return type(self).function(
            x, self.weight, self.bias, self.stride, self._symmetric, self.dilation, self.groups
        )


class Conv1d(_Conv):
    """Cross-correlation of [N, C, L] with `out_channels` filters."""

    axes = 1
    function = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Cross-correlation of [N, C, H, W] with `out_channels` filters."""

    axes = 2
    function = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Cross-correlation of [N, C, D, H, W] with `out_channels` filters."""

    axes = 3
    function = staticmethod(F.conv3d)


class _ConvTranspose(_ConvBase):
    """The gradient of a convolution with respect to its input, as a layer.

    `output_padding` adds to the extents of the output; `forward` takes `output_size` instead.
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f"{type(self).__name__}: expected padding_mode 'zeros', got {padding_mode!r}"
            )
        options = {"device": device, "dtype": dtype}
        self._setup(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            dilation,
            groups,
            bias,
            padding_mode,
            options,
        )
        self.padding = spread(padding, self.axes, "padding")
        self.output_padding = spread(output_padding, self.axes, "output_padding")

    def forward(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        if x.ndim == self.axes + 1:  # without a batch
            return self.forward(x.unsqueeze(0), output_size).squeeze(0)
        extra = self.output_padding
        if output_size is not None:
            extra = self._extra(x, list(output_size)[-self.axes :])
        return type(self).function(
            x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            groups=self.groups,
            dilation=self.dilation,
        )

    def _extra(self, x: Tensor, size: list[int]) -> tuple[int, ...]:
        """The output_padding that yields `size`."""
        settings = zip(x.shape[2:], self.stride, self.padding, self.dilation, self.kernel_size)
        smallest = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in settings]
        extra = tuple(want - least for want, least in zip(size, smallest))
        if any(not 0 <= e < max(s, d) for e, s, d in zip(extra, self.stride, self.dilation)):
            largest = [n + s - 1 for n, s in zip(smallest, self.stride)]
            raise ValueError(
                f"{type(self).__name__}: expected output_size from {smallest} to {largest}, got "
                f"{size}"
            )
        return extra


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of [N, C, L]."""

    axes = 1
    function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of [N, C, H, W]."""

    axes = 2
    function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of [N, C, D, H, W]."""

    axes = 3
    function = staticmethod(F.conv_transpose3d)
