# SPDX-License-Identifier: Apache-2.0
"""Pooling over one and three spatial axes.

Maxima and means over boxes are separable: a 3-d pool is a 2-d pool over height and width and then one
over the depth.
"""

from __future__ import annotations

import math

import tenon
from tenon import Tensor

from ._common import Size, check_ndim, spread


def max_pool1d(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of every window of `x` [N, C, L]."""
    (k,), (p,), (d,) = spread(kernel_size, 1), spread(padding, 1), spread(dilation, 1)
    s = k if stride is None else spread(stride, 1)[0]
    return tenon.max_pool1d(x, k, s, p, d, ceil_mode)


def avg_pool1d(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of `x` [N, C, L]."""
    (k,), (p,) = spread(kernel_size, 1), spread(padding, 1)
    s = k if stride is None else spread(stride, 1)[0]
    return tenon.avg_pool1d(x, k, s, p, ceil_mode, count_include_pad)


def max_pool3d(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of every window of `x` [N, C, D, H, W]."""
    check_ndim(x, 5, "[N, C, D, H, W]", "max_pool3d")
    k, p, d = spread(kernel_size, 3), spread(padding, 3), spread(dilation, 3)
    s = k if stride is None else spread(stride, 3)
    return tenon.max_pool3d(x, k, s, p, d, ceil_mode)


def max_pool1d_with_indices(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """max_pool1d, and the index of every maximum in its row."""
    k, p, d = spread(kernel_size, 1), spread(padding, 1), spread(dilation, 1)
    s = k if stride is None else spread(stride, 1)
    values, indices = tenon.max_pool2d_with_indices(
        x.unsqueeze(-2), [1, *k], [1, *s], [0, *p], [1, *d], ceil_mode
    )
    return values.squeeze(-2), indices.squeeze(-2)


def max_pool3d_with_indices(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """max_pool3d, and the index of every maximum in the flattened D x H x W."""
    check_ndim(x, 5, "[N, C, D, H, W]", "max_pool3d_with_indices")
    k, p, d = spread(kernel_size, 3), spread(padding, 3), spread(dilation, 3)
    s = k if stride is None else spread(stride, 3)
    values, indices = tenon.max_pool3d_with_indices(x, k, s, p, d, ceil_mode)
    return values, indices


def avg_pool3d(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of `x` [N, C, D, H, W]."""
    check_ndim(x, 5, "[N, C, D, H, W]", "avg_pool3d")
    k, p = spread(kernel_size, 3), spread(padding, 3)
    s = k if stride is None else spread(stride, 3)
    return tenon.avg_pool3d(x, k, s, p, ceil_mode, count_include_pad)


def adaptive_avg_pool1d(x: Tensor, output_size: Size) -> Tensor:
    """Means of as many windows of `x` [N, C, L] as make `output_size`."""
    return tenon.adaptive_avg_pool2d(x.unsqueeze(2), [1, *spread(output_size, 1)]).squeeze(2)


def adaptive_max_pool1d(x: Tensor, output_size: Size) -> Tensor:
    """Maxima of as many windows of `x` [N, C, L] as make `output_size`."""
    return tenon.adaptive_max_pool2d(x.unsqueeze(2), [1, *spread(output_size, 1)]).squeeze(2)


def adaptive_avg_pool3d(x: Tensor, output_size: Size) -> Tensor:
    """Means of as many windows of `x` [N, C, D, H, W] as make `output_size`."""
    return _adaptive3d(x, output_size, tenon.adaptive_avg_pool2d)


def adaptive_max_pool3d(x: Tensor, output_size: Size) -> Tensor:
    """Maxima of as many windows of `x` [N, C, D, H, W] as make `output_size`."""
    return _adaptive3d(x, output_size, tenon.adaptive_max_pool2d)


def _adaptive3d(x: Tensor, output_size: Size, pool) -> Tensor:
    check_ndim(x, 5, "[N, C, D, H, W]", pool.__name__.replace("2d", "3d"))
    size = spread(output_size, 3)
    n, c, depth, h, w = x.shape
    x = pool(x.reshape([n * c, depth, h, w]), size[1:])
    # The product of the extents, as -1 says nothing in an empty batch.
    flat = pool(x.reshape([n * c, 1, depth, size[1] * size[2]]), [size[0], size[1] * size[2]])
    return flat.reshape([n, c, *size])


def lp_pool1d(
    x: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`(sum of x ** p) ** (1 / p)` of every window of `x` [N, C, L]."""
    mean = avg_pool1d(tenon.pow(x, norm_type), kernel_size, stride, 0, ceil_mode)
    return _root(mean, math.prod(spread(kernel_size, 1)), norm_type)


def lp_pool2d(
    x: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`(sum of x ** p) ** (1 / p)` of every window of `x` [N, C, H, W]."""
    kernel = spread(kernel_size, 2)
    steps = None if stride is None else spread(stride, 2)
    mean = tenon.avg_pool2d(tenon.pow(x, norm_type), kernel, steps, [0, 0], ceil_mode)
    return _root(mean, math.prod(kernel), norm_type)


def lp_pool3d(
    x: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`(sum of x ** p) ** (1 / p)` of every window of `x` [N, C, D, H, W]."""
    mean = avg_pool3d(tenon.pow(x, norm_type), kernel_size, stride, 0, ceil_mode)
    return _root(mean, math.prod(spread(kernel_size, 3)), norm_type)


def _root(mean: Tensor, count: int, p: float) -> Tensor:
    # A sum below zero, which odd powers of negative elements give, counts as zero.
    return tenon.pow(tenon.relu(mean) * count, 1.0 / p)
