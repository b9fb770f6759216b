# SPDX-License-Identifier: Apache-2.0
"""Layers without parameters that move or resize: flatten, shuffle, fold, upsample."""

from __future__ import annotations

from collections.abc import Sequence

from tenon import Tensor

from . import functional as F
from .functional._common import Size
from .module import Module


class Flatten(Module):
    """Joins axes `start_dim` to `end_dim`; by default all but the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        return F.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"{self.start_dim}, {self.end_dim}"


class Unflatten(Module):
    """Splits axis `dim` into `unflattened_size`, in which one extent may be -1."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        axis = self.dim % x.ndim
        return x.reshape([*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1 :]])

    def extra_repr(self) -> str:
        return f"{self.dim}, {self.unflattened_size}"


class PixelShuffle(Module):
    """[N, C * r * r, H, W] to [N, C, H * r, W * r]."""

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"{self.upscale_factor}"


class PixelUnshuffle(Module):
    """[N, C, H * r, W * r] to [N, C * r * r, H, W]."""

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"{self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleaves the channels of `groups` groups of [N, C, ...]."""

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        return F.channel_shuffle(x, self.groups)

    def extra_repr(self) -> str:
        return f"{self.groups}"


class Unfold(Module):
    """The windows of [N, C, H, W] as columns [N, C * KH * KW, windows]."""

    def __init__(
        self, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
    ) -> None:
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, x: Tensor) -> Tensor:
        return F.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"


class Fold(Module):
    """Adds columns [N, C * KH * KW, windows] to the windows of [N, C, *output_size]."""

    def __init__(
        self,
        output_size: Size,
        kernel_size: Size,
        dilation: Size = 1,
        padding: Size = 0,
        stride: Size = 1,
    ) -> None:
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        return F.fold(
            x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return f"{self.output_size}, {self.kernel_size}, stride={self.stride}"


class Upsample(Module):
    """Resizes [N, C, ...] to `size`, or by `scale_factor`; modes as in functional.interpolate."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool = False,
    ) -> None:
        self.size, self.scale_factor = size, scale_factor
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(
            x,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        size = f"scale_factor={self.scale_factor}" if self.size is None else f"size={self.size}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Repeats the pixels of [N, C, H, W]."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Interpolates the pixels of [N, C, H, W]; the corners of both grids coincide."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)
