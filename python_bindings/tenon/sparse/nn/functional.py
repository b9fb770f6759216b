# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling of sites: gather, a product with a matrix for each element of the kernel, scatter.

Tensors have layout 'coo', the shape [batch, spatial axes, channels] and indices along all axes but the last. Weights are
those of dense convolutions: [out_channels, in_channels, kernel]."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor, _core

from .pairs import Pairs, grown_pairs, submanifold_pairs

Sizes = int | Sequence[int]


def subm_conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, dilation: Sizes = 1, groups: int = 1
) -> Tensor:
    """subm_conv3d of two spatial axes."""
    return _submanifold("subm_conv2d", x, weight, bias, dilation, groups, 2)


def subm_conv3d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, dilation: Sizes = 1, groups: int = 1
) -> Tensor:
    """The convolution at the sites that `x` has, which are the sites of the result: what is not there is 0, and nothing
    grows (Graham and van der Maaten, 2017). The kernel's sizes are odd; stride is 1, and padding keeps the grid."""
    return _submanifold("subm_conv3d", x, weight, bias, dilation, groups, 3)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """conv3d of two spatial axes."""
    return _grown("conv2d", x, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of a dense grid, at the sites that the kernel reaches from those of `x`; all others, which would
    hold the bias alone, are not stored."""
    return _grown("conv3d", x, weight, bias, stride, padding, dilation, groups, 3)


def max_pool2d(
    x: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0
) -> Tensor:
    """max_pool3d of two spatial axes."""
    return _pooled("max_pool2d", x, kernel_size, stride, padding, 2)


def max_pool3d(
    x: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0
) -> Tensor:
    """The largest of the elements that are stored in each window: sites that are not there do not count as zeros. Windows
    without any site give none."""
    return _pooled("max_pool3d", x, kernel_size, stride, padding, 3)


def _submanifold(
    name: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    dilation: Sizes,
    groups: int,
    axes: int,
) -> Tensor:
    x = _sites(name, x, axes)
    kernel = _kernel(name, x, weight, axes, groups)
    if any(size % 2 == 0 for size in kernel):
        raise ValueError(
            f"{name}(): expected a kernel of odd sizes, which has a middle, got {kernel}"
        )
    found = submanifold_pairs(
        x.indices(), x.shape[1:-1], kernel, _each(name, "dilation", dilation, axes)
    )
    return _convolved(x, weight, bias, found)


def _grown(
    name: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    axes: int,
) -> Tensor:
    x = _sites(name, x, axes)
    kernel = _kernel(name, x, weight, axes, groups)
    found = grown_pairs(
        x.indices(),
        x.shape[1:-1],
        kernel,
        _each(name, "stride", stride, axes),
        _each(name, "padding", padding, axes, 0),
        _each(name, "dilation", dilation, axes),
    )
    return _convolved(x, weight, bias, found)


def _pooled(
    name: str, x: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, axes: int
) -> Tensor:
    x = _sites(name, x, axes)
    kernel = _each(name, "kernel_size", kernel_size, axes)
    steps = kernel if stride is None else _each(name, "stride", stride, axes)
    pads = _each(name, "padding", padding, axes, 0)
    if any(2 * pad > size for pad, size in zip(pads, kernel)):
        raise ValueError(f"{name}(): expected padding of at most half of {kernel}, got {pads}")
    found = grown_pairs(x.indices(), x.shape[1:-1], kernel, steps, pads, [1] * axes)
    rows = x.values()[tenon.concat(found.source)]
    sites = found.indices.shape[1]
    values = tenon.segment_max(rows, tenon.concat(found.target), sites)
    return _of_sites(x, found, values)


def _convolved(x: Tensor, weight: Tensor, bias: Tensor | None, found: Pairs) -> Tensor:
    values = x.values()
    out_channels, in_channels = weight.shape[:2]
    matrices = weight.reshape([out_channels, in_channels, -1]).permute([2, 1, 0])
    products, targets = [], []
    for k, (source, target) in enumerate(zip(found.source, found.target)):
        if source.shape[0] == 0:
            continue
        products.append(tenon.index_select(values, source, 0) @ matrices[k])
        targets.append(target)
    sites = found.indices.shape[1]
    if products:
        sums = tenon.segment_sum(tenon.concat(products), tenon.concat(targets), sites)
    else:  # of a gradient that is 0
        sums = tenon.concat([values[:0] @ matrices[0]])
    return _of_sites(x, found, sums if bias is None else sums + bias)


def _of_sites(x: Tensor, found: Pairs, values: Tensor) -> Tensor:
    shape = [x.shape[0], *found.shape, values.shape[1]]
    return _core.compose("coo", shape, [found.indices, values])


def _sites(name: str, x: Tensor, axes: int) -> Tensor:
    """The tensor with its sites in order, of which none repeats."""
    if x.layout != "coo" or x.ndim != axes + 2 or x.indices().shape[0] != axes + 1:
        raise ValueError(
            f"{name}(): expected a tensor of layout coo and shape [batch, {axes} axes, channels] with "
            f"indices along all axes but the last, got layout {x.layout} and shape {tuple(x.shape)}"
        )
    indices = x.indices().to(tenon.int64)
    _check_inside(name, indices, x.shape)
    number = indices[0]
    for axis in range(1, axes + 1):
        number = number * x.shape[axis] + indices[axis]
    if number.shape[0] < 2 or not tenon.any(number[1:] <= number[:-1]).item():
        return x if indices is x.indices() else _core.compose("coo", x.shape, [indices, x.values()])
    return x.coalesce()


def _check_inside(name: str, indices: Tensor, shape: Sequence[int]) -> None:
    if indices.shape[1] == 0:
        return
    for axis in range(indices.shape[0]):
        least, most = int(indices[axis].min().item()), int(indices[axis].max().item())
        if least < 0 or most >= shape[axis]:
            wrong = least if least < 0 else most
            at = int(tenon.nonzero(indices[axis] == wrong)[0].item())
            raise IndexError(
                f"{name}(): expected indices from 0 to {shape[axis] - 1} along axis {axis}, got "
                f"{wrong} at position {at}"
            )


def _kernel(name: str, x: Tensor, weight: Tensor, axes: int, groups: int) -> list[int]:
    if groups != 1:
        raise NotImplementedError(f"{name}(): expected groups=1, got {groups}; not there yet")
    if weight.ndim != axes + 2 or weight.shape[1] != x.shape[-1]:
        raise ValueError(
            f"{name}(): expected weights [out_channels, {x.shape[-1]}, {axes} sizes of the kernel], got "
            f"shape {tuple(weight.shape)}"
        )
    return list(weight.shape[2:])


def _each(name: str, what: str, given: Sizes, axes: int, least: int = 1) -> list[int]:
    sizes = [given] * axes if isinstance(given, int) else [int(size) for size in given]
    if len(sizes) != axes or min(sizes) < least:
        raise ValueError(
            f"{name}(): expected {what} of at least {least}, one or {axes} numbers, got {given}"
        )
    return sizes
