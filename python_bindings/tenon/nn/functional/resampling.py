# SPDX-License-Identifier: Apache-2.0
"""Resizing of images. `affine_grid` and `grid_sample` are operators of `tenon`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor


def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool = False,
    antialias: bool = False,
) -> Tensor:
    """`x` [N, C, ...] resized to `size`, or to its extents times `scale_factor`, rounded down.

    `mode` is 'nearest', 'nearest-exact' or 'area' for one to three spatial axes, 'linear' for one,
    'bilinear' or 'bicubic' for two, 'trilinear' for three. The grid follows from the factor where one
    is given, unless `recompute_scale_factor`; else from both sizes. See tenon.interpolate.
    """
    if recompute_scale_factor and scale_factor is not None:
        factors = (
            [scale_factor] * (x.ndim - 2)
            if isinstance(scale_factor, (int, float))
            else list(scale_factor)
        )
        size = [math.floor(extent * factor) for extent, factor in zip(x.shape[2:], factors)]
        scale_factor = None
    return tenon.interpolate(x, size, scale_factor, mode, bool(align_corners), antialias)


def upsample(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Same as interpolate."""
    return interpolate(x, size, scale_factor, mode, align_corners)
