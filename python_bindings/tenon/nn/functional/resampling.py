# SPDX-License-Identifier: Apache-2.0
"""Resizing and sampling of images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor

from .pooling import adaptive_avg_pool1d, adaptive_avg_pool3d

_MODES = {
    "nearest": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
    "area": (3, 4, 5),
}


def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`x` [N, C, ...] resized to `size`, or to its extents times `scale_factor`, rounded down.

    `mode` is 'nearest' or 'area' for one to three spatial axes, 'linear' for one, 'bilinear' or
    'bicubic' for two, 'trilinear' for three. The grid follows from both sizes alone.
    """
    if mode not in _MODES or x.ndim not in _MODES[mode]:
        raise ValueError(
            f"interpolate: expected a mode for {x.ndim - 2} spatial axes of "
            f"{sorted(m for m, ndims in _MODES.items() if x.ndim in ndims)}, got {mode!r}"
        )
    count = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: expected one of size and scale_factor")
    if size is not None:
        sizes = [size] * count if isinstance(size, int) else list(size)
    else:
        factors = (
            [scale_factor] * count
            if isinstance(scale_factor, (int, float))
            else list(scale_factor or ())
        )
        sizes = [int(math.floor(n * f)) for n, f in zip(x.shape[2:], factors)]
    if len(sizes) != count:
        raise ValueError(f"interpolate: expected {count} sizes, got {len(sizes)}")
    corners = bool(align_corners)
    if mode == "area":
        if count == 1:
            return adaptive_avg_pool1d(x, sizes)
        return tenon.adaptive_avg_pool2d(x, sizes) if count == 2 else adaptive_avg_pool3d(x, sizes)
    if mode == "bicubic":
        return _cubic(_cubic(x, 2, sizes[0], corners), 3, sizes[1], corners)
    plane = "nearest" if mode == "nearest" else "bilinear"
    if count == 1:
        return tenon.interpolate2d(x.unsqueeze(2), [1, sizes[0]], plane, corners).squeeze(2)
    if count == 2:
        return tenon.interpolate2d(x, sizes, plane, corners)
    n, c, d, h, w = x.shape
    x = tenon.interpolate2d(x.reshape([n * c, d, h, w]), sizes[1:], plane, corners)
    area = sizes[1] * sizes[2]
    x = tenon.interpolate2d(x.reshape([n * c, 1, d, area]), [sizes[0], area], plane, corners)
    return x.reshape([n, c, *sizes])


def upsample(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Same as interpolate."""
    return interpolate(x, size, scale_factor, mode, align_corners)


def _cubic(x: Tensor, axis: int, size: int, corners: bool) -> Tensor:
    """Cubic convolution along one axis with a = -0.75 (Keys, 1981)."""
    extent, a = x.shape[axis], -0.75
    out = tenon.arange(size, device=x.device).cast(tenon.float64)
    if corners:
        where = out * ((extent - 1) / (size - 1) if size > 1 else 0.0)
    else:
        where = (out + 0.5) * (extent / size) - 0.5
    base = tenon.floor(where)
    t = where - base
    shape = [1] * x.ndim
    shape[axis] = size
    result: Tensor | None = None
    for offset in (-1, 0, 1, 2):
        s = tenon.abs(t - offset)
        inner = ((a + 2) * s - (a + 3)) * s * s + 1
        outer = ((a * s - 5 * a) * s + 8 * a) * s - 4 * a
        weight = tenon.where(s <= 1, inner, outer).cast(x.dtype).reshape(shape)
        index = tenon.clip(base + offset, 0, extent - 1).cast(tenon.int64)
        part = tenon.index_select(x, index, axis) * weight
        result = part if result is None else result + part
    assert result is not None
    return result


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """Sampling points [N, H, W, 2] of affine maps `theta` [N, 2, 3]; [N, D, H, W, 3] of [N, 3, 4].

    Coordinates run from -1 to 1, x first.
    """
    n, _, *extents = size
    axes = []
    for extent in extents:
        line = (tenon.arange(extent, device=theta.device) * 2 + 1).cast(theta.dtype) / extent - 1.0
        if align_corners:
            line = tenon.linspace(-1.0, 1.0, extent, dtype=theta.dtype, device=theta.device)
            line = line if extent > 1 else tenon.zeros_like(line)
        axes.append(line)
    grids = tenon.meshgrid(axes)
    points = tenon.stack([*reversed(grids), tenon.ones_like(grids[0])], -1)
    flat = points.reshape([1, -1, len(extents) + 1])
    return tenon.matmul(flat, theta.transpose(1, 2)).reshape([n, *extents, len(extents)])


def grid_sample(
    x: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Values of `x` [N, C, H, W] at the points `grid` [N, H', W', 2]: [N, C, H', W'].

    `mode` is 'bilinear' or 'nearest'. Outside the image `padding_mode` 'zeros' gives 0, 'border'
    the nearest element, 'reflection' the mirrored image.
    """
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"grid_sample: expected mode 'bilinear' or 'nearest', got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "grid_sample: expected padding_mode 'zeros', 'border' or 'reflection', got "
            f"{padding_mode!r}"
        )
    n, c, h, w = x.shape
    columns = _pixel(grid[..., 0], w, padding_mode, align_corners)
    rows = _pixel(grid[..., 1], h, padding_mode, align_corners)
    flat = x.reshape([n, c, h * w])

    def at(row: Tensor, column: Tensor) -> Tensor:
        inside = (row >= 0) & (row < h) & (column >= 0) & (column < w)
        index = tenon.clip(row, 0, h - 1) * w + tenon.clip(column, 0, w - 1)
        index = index.cast(tenon.int64).reshape([n, 1, -1])
        values = tenon.gather(flat, index.expand([n, c, index.shape[2]]), 2)
        values = values.reshape([n, c, *row.shape[1:]])
        return values * inside.cast(x.dtype).unsqueeze(1)

    if mode == "nearest":
        return at(tenon.round(rows), tenon.round(columns))
    top, left = tenon.floor(rows), tenon.floor(columns)
    down, right = (rows - top).unsqueeze(1), (columns - left).unsqueeze(1)
    return (
        at(top, left) * (1.0 - down) * (1.0 - right)
        + at(top, left + 1) * (1.0 - down) * right
        + at(top + 1, left) * down * (1.0 - right)
        + at(top + 1, left + 1) * down * right
    )


def _pixel(coordinate: Tensor, extent: int, padding_mode: str, corners: bool) -> Tensor:
    """[-1, 1] to the index of a pixel."""
    if corners:
        pixel = (coordinate + 1.0) * ((extent - 1) / 2)
        low, high = 0.0, extent - 1.0
    else:
        pixel = ((coordinate + 1.0) * extent - 1.0) / 2
        low, high = -0.5, extent - 0.5
    if padding_mode == "reflection":
        span = high - low
        if span <= 0:
            return tenon.zeros_like(pixel)
        moved = tenon.abs(pixel - low)
        turns = tenon.floor(moved / span)
        rest = moved - turns * span
        odd = tenon.remainder(turns, 2.0) == 1
        pixel = tenon.where(odd, span - rest, rest) + low
    return pixel if padding_mode == "zeros" else tenon.clip(pixel, 0.0, extent - 1.0)
