# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional's margins, resizing and sampling of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.nn import functional as _functional

__all__ = (
    "affine_grid grid_sample interpolate pad upsample upsample_bilinear upsample_nearest".split()
)


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """`input` with margins on its last axes, the last axis first: (left, right, top, bottom, front, back). Negative
    margins crop; what they crop is still reflected on the other side."""
    margins = list(pad)
    if mode != "constant" and value is not None and value != 0:
        raise ValueError(f"pad(): expected no value for mode {mode!r}, got {value!r}")
    if mode == "reflect" and any(n < 0 for n in margins):
        pairs = zip(margins[::2], margins[1::2], strict=True)
        for axis, (before, after) in enumerate(pairs, start=1):
            if before or after:
                input = _reflected(input, input.ndim - axis, before, after)
        return input
    return _functional.pad(input, margins, mode, 0.0 if value is None else value)


def _reflected(x: Tensor, axis: int, before: int, after: int) -> Tensor:
    """Margins along one axis, whose elements are those at the mirrored positions of `x`."""
    extent = x.shape[axis]
    if max(before, after) >= extent or extent + before + after < 1:
        raise ValueError(
            f"pad(): expected margins below {extent}, the length of axis {axis}, and a result with elements, got "
            f"({before}, {after})"
        )
    positions = [abs(i) for i in range(-before, extent + after)]
    mirrored = [extent - 1 - abs(extent - 1 - i) for i in positions]
    index = tenon.tensor(mirrored, dtype=tenon.int64).to(x.device)
    return tenon.index_select(x, index, axis)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input` [N, C, ...] resized to `size`, or by `scale_factor`."""
    if align_corners is not None and mode not in ("linear", "bilinear", "bicubic", "trilinear"):
        raise ValueError(
            f"interpolate(): expected align_corners=None for mode {mode!r}, got {align_corners!r}"
        )
    if (size is None) == (scale_factor is None):
        raise ValueError(
            f"interpolate(): expected one of size and scale_factor, got {size!r} and {scale_factor!r}"
        )
    if recompute_scale_factor and size is not None:
        raise ValueError("interpolate(): expected recompute_scale_factor beside scale_factor alone")
    for word, given in (("size", size), ("scale_factor", scale_factor)):
        if isinstance(given, (tuple, list)) and len(given) != input.ndim - 2:
            raise ValueError(
                f"interpolate(): expected {word} of one number or {input.ndim - 2}, got {given!r}"
            )
    return _functional.interpolate(
        input, size, scale_factor, mode, align_corners, bool(recompute_scale_factor), antialias
    )


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """interpolate()."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`input` [N, C, ...] resized to `size` or by `scale_factor`, each element the nearest one."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`input` [N, C, H, W] resized bilinearly; the corners stay corners, as align_corners says."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Positions for grid_sample() of affine maps."""
    return tenon.affine_grid(theta, list(size), bool(align_corners))


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """`input` at the positions of `grid`."""
    return tenon.grid_sample(input, grid, mode, padding_mode, bool(align_corners))
