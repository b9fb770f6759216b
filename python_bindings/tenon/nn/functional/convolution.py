# SPDX-License-Identifier: Apache-2.0
"""Convolutions over one and three spatial axes, composed of those over two.

A 3-d convolution gathers the windows along the depth as further channels, so that one 2-d
convolution computes every slice of the result. A transposed one runs the same steps backwards: a 2-d
transposed convolution yields the contribution of each slice, and these are added along the depth.
"""

from __future__ import annotations

import tenon
from tenon import Tensor

from ._common import Size, check_ndim, spread


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """`x` [N, C, L] with `weight` [O, C / groups, K]; padding is a size, 'same' or 'valid'."""
    (stride,), (dilation,) = spread(stride, 1), spread(dilation, 1)
    x, padding = padded(x, weight, padding, (stride,), (dilation,))
    return tenon.conv1d(x, weight, bias, stride, padding[0], dilation, groups)


def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """`x` [N, C, D, H, W] with `weight` [O, C / groups, KD, KH, KW]."""
    check_ndim(x, 5, "[N, C, D, H, W]", "conv3d")
    strides, dilations = spread(stride, 3, "stride"), spread(dilation, 3, "dilation")
    x, pads = padded(x, weight, padding, strides, dilations)
    return tenon.conv3d(x, weight, bias, strides, pads, dilations, groups)


def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Transposed convolution of `x` [N, C, L] with `weight` [C, O / groups, K]."""
    check_ndim(x, 3, "[N, C, L]", "conv_transpose1d")
    out = tenon.conv_transpose2d(
        x.unsqueeze(2),
        weight.unsqueeze(2),
        bias,
        [1, *spread(stride, 1)],
        [0, *spread(padding, 1)],
        [0, *spread(output_padding, 1)],
        [1, *spread(dilation, 1)],
        groups,
    )
    return out.squeeze(2)


def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Transposed convolution of `x` [N, C, D, H, W] with `weight` [C, O / groups, KD, KH, KW]."""
    check_ndim(x, 5, "[N, C, D, H, W]", "conv_transpose3d")
    strides, pads = spread(stride, 3, "stride"), spread(padding, 3, "padding")
    extra, dilations = spread(output_padding, 3, "output_padding"), spread(dilation, 3, "dilation")
    return tenon.conv_transpose3d(x, weight, bias, strides, pads, extra, dilations, groups)


def padded(
    x: Tensor,
    weight: Tensor,
    padding: Size | str,
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tuple[Tensor, tuple[int, ...]]:
    """`x` and the symmetric padding that remains; the odd element of 'same' is added at the end."""
    count = x.ndim - 2
    if not isinstance(padding, str):
        return x, spread(padding, count, "padding")
    if padding == "valid":
        return x, (0,) * count
    if padding != "same":
        raise ValueError(f"expected padding to be sizes, 'same' or 'valid', got {padding!r}")
    if any(s != 1 for s in stride):
        raise ValueError(f"padding='same' needs stride 1, got {stride}")
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    if any(total % 2 for total in totals):
        x = tenon.pad(x, [0, 0, 0, 0, *(p for total in totals for p in (0, total % 2))])
    return x, tuple(total // 2 for total in totals)
