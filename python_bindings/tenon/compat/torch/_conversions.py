# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions that make tensors of numbers and layouts, and low-rank factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon._tensor.low_rank import pca_lowrank as pca_lowrank
from tenon._tensor.low_rank import svd_lowrank as svd_lowrank

__all__ = """constant_pad_nd empty_permuted empty_strided fill grid_sampler_2d grid_sampler_3d
native_group_norm native_layer_norm ormqr pca_lowrank prelu rsub scalar_tensor svd_lowrank
unravel_index""".split()


def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A 0-d tensor of one number, in the default floating dtype unless one is given."""
    dtype = tenon.get_default_dtype() if dtype is None and not isinstance(s, complex) else dtype
    return tenon.tensor(s, dtype=dtype, device=device, requires_grad=requires_grad)


def fill(input: Tensor, value: Any) -> Tensor:
    """The number `value` in the shape and dtype of `input`; it may be a 0-d tensor."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise ValueError(
                f"fill(): expected a number or a 0-d tensor, got shape {tuple(value.shape)}; "
                f"broadcast_to() takes others"
            )
        return tenon.broadcast_to(value.to(input.dtype), list(input.shape)).clone()
    return tenon.full_like(input, value)


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """An uninitialised tensor of this shape and these strides, in elements, which must be those of a
    dense tensor with its axes in some order."""
    size, stride = list(size), list(stride)
    layout = sorted(range(len(size)), key=lambda axis: (-stride[axis], -size[axis]))
    expected, dense = 1, len(size) == len(stride)
    for axis in reversed(layout):
        dense = dense and (size[axis] <= 1 or stride[axis] == expected)
        expected *= size[axis]
    if not dense:
        raise NotImplementedError(
            f"empty_strided(): expected strides of a dense tensor of shape {tuple(size)} with its axes in "
            f"some order, got {tuple(stride)}; index a larger tensor for others"
        )
    return empty_permuted(size, layout, dtype=dtype, device=device, requires_grad=requires_grad)


def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """An uninitialised tensor whose axes lie in memory in the order `physical_layout`, the outermost
    first."""
    layout = list(physical_layout)
    if sorted(layout) != list(range(len(size))):
        raise ValueError(
            f"empty_permuted(): expected physical_layout to order the axes 0 to {len(size) - 1}, "
            f"got {layout}"
        )
    memory = tenon.empty([size[axis] for axis in layout], dtype=dtype, device=device)
    result = tenon.permute(memory, [layout.index(axis) for axis in range(len(layout))])
    return result.requires_grad_() if requires_grad else result


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`other - alpha * input`."""
    return other - (input if alpha == 1 else input * alpha)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The index along each axis of `shape` of positions in the flat tensor."""
    return tenon.unravel_index(indices, (shape,) if isinstance(shape, int) else tuple(shape))


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """`input` between margins of `value`; two numbers for each axis, the last axis first. Negative
    margins cut."""
    return tenon.nn.functional.pad(input, list(pad), "constant", value)


def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """layer_norm(), and the mean and the reciprocal deviation of each row."""
    axes = list(range(input.ndim - len(tuple(normalized_shape)), input.ndim))
    if [input.shape[axis] for axis in axes] != list(normalized_shape):
        raise ValueError(
            f"native_layer_norm(): expected input whose last axes are {tuple(normalized_shape)}, got "
            f"shape {tuple(input.shape)}"
        )
    mean = tenon.mean(input, axes, True)
    deviation = tenon.rsqrt(tenon.var(input, axes, 0, True) + eps)
    result = (input - mean) * deviation
    result = result if weight is None else result * weight
    result = result if bias is None else result + bias
    return result, mean.detach(), deviation.detach()


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """group_norm(), and the mean and the reciprocal deviation of each group: [N, group]."""
    if C % group or input.numel() != N * C * HxW:
        raise ValueError(
            f"native_group_norm(): expected {N} * {C} * {HxW} elements and channels in {group} groups, "
            f"got shape {tuple(input.shape)}"
        )
    rows = input.reshape([N, group, C // group * HxW])
    mean = tenon.mean(rows, [2])
    deviation = tenon.rsqrt(tenon.var(rows, [2]) + eps)
    result = (rows - mean.unsqueeze(2)) * deviation.unsqueeze(2)
    result = result.reshape([N, C, HxW])
    result = result if weight is None else result * weight.reshape([C, 1])
    result = result if bias is None else result + bias.reshape([C, 1])
    return result.reshape(list(input.shape)), mean, deviation


def _grid_sampler(axes: int) -> Any:
    def function(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
        if interpolation_mode not in range(3) or padding_mode not in range(3):
            raise ValueError(
                f"grid_sampler_{axes}d(): expected interpolation_mode and padding_mode from 0 to 2, got "
                f"{interpolation_mode} and {padding_mode}"
            )
        return tenon.grid_sample(
            input, grid, modes[interpolation_mode], paddings[padding_mode], align_corners
        )

    function.__name__ = function.__qualname__ = f"grid_sampler_{axes}d"
    function.__doc__ = (
        "nn.functional.grid_sample() with numbers for modes: bilinear, nearest, bicubic; and for padding: "
        "zeros, border, reflection."
    )
    return function


grid_sampler_2d, grid_sampler_3d = _grid_sampler(2), _grid_sampler(3)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, times `weight` where it is negative; a weight for each channel, which is the axis 1, or one for all."""
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise ValueError(
            f"prelu(): expected one weight, or one for each of {channels} channels, got shape {tuple(weight.shape)}"
        )
    if weight.numel() == 1:
        return tenon.prelu(input, weight.reshape([]))
    return tenon.prelu(input, weight.reshape([-1] + [1] * (input.ndim - 2)))


def ormqr(
    input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Q input3, or input3 Q without `left`, where `input` and `input2` (tau) hold the reflections of Q; with
    `transpose` Q is its adjoint."""
    return tenon.ormqr(input, input2, input3, left, transpose)
