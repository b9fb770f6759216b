# SPDX-License-Identifier: Apache-2.0
"""Pools with PyTorch's parameters: inputs without a batch, positions of maxima, other divisors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.nn import functional as _functional

__all__ = """adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d
lp_pool3d max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
max_pool3d_with_indices""".split()


def _batch(name: str, input: Tensor, axes: int) -> tuple[Tensor, bool]:
    """`input` with a batch, and whether it had none: [channels, ...] for [1, channels, ...]."""
    if input.ndim not in (axes + 1, axes + 2):
        raise ValueError(
            f"{name}(): expected input of {axes + 1} or {axes + 2} axes, channels and {axes} of space with "
            f"or without a batch before them, got shape {tuple(input.shape)}"
        )
    alone = input.ndim == axes + 1
    return (input.unsqueeze(0) if alone else input), alone


def _unbatched(result: Any, alone: bool) -> Any:
    if isinstance(result, Tensor):
        return result.squeeze(0) if alone else result
    return tuple(_unbatched(each, alone) for each in result)


def _spread(size: Any, axes: int) -> list[int]:
    sizes = [size] if isinstance(size, int) else list(size)
    return sizes * axes if len(sizes) == 1 else sizes


def _max_pool(name: str, axes: int, always: bool = False) -> Callable[..., Any]:
    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        stride = None if isinstance(stride, (list, tuple)) and not stride else stride
        indexed = always or return_indices
        pool = getattr(_functional, f"{name}_with_indices" if indexed else name)
        x, alone = _batch(name, input, axes)
        return _unbatched(pool(x, kernel_size, stride, padding, dilation, ceil_mode), alone)

    function.__name__ = function.__qualname__ = f"{name}_with_indices" if always else name
    function.__doc__ = "The largest element of each window" + (
        ", and where it is." if always else "; with `return_indices` also where it is."
    )
    return function


max_pool1d, max_pool2d, max_pool3d = (_max_pool(f"max_pool{n}d", n) for n in (1, 2, 3))
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _max_pool(f"max_pool{n}d", n, True) for n in (1, 2, 3)
)


def _lp_pool(name: str, axes: int) -> Callable[..., Tensor]:
    pool = getattr(_functional, name)

    def function(
        input: Tensor,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        stride = None if isinstance(stride, (list, tuple)) and not stride else stride
        x, alone = _batch(name, input, axes)
        return _unbatched(pool(x, norm_type, kernel_size, stride, ceil_mode), alone)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The norm of order `norm_type` of each window."
    return function


lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(f"lp_pool{n}d", n) for n in (1, 2, 3))


def _elements(extent: int, windows: int, kernel: int, stride: int, padding: int) -> list[int]:
    """How many elements of the input are in each window along one axis."""
    starts = [i * stride - padding for i in range(windows)]
    return [min(start + kernel, extent) - max(start, 0) for start in starts]


def _sums(x: Tensor, means: Tensor, kernel: Any, stride: Any, padding: Any, axes: int) -> Tensor:
    """The sums of windows whose means over the elements of `x` are given."""
    kernels, paddings = _spread(kernel, axes), _spread(padding, axes)
    strides = kernels if stride is None else _spread(stride, axes)
    for axis, (k, s, p) in enumerate(zip(kernels, strides, paddings, strict=True)):
        counts = _elements(x.shape[2 + axis], means.shape[2 + axis], k, s, p)
        shape = [-1 if i == axis else 1 for i in range(axes)]
        means = means * tenon.tensor(counts, dtype=x.dtype).to(x.device).reshape(shape)
    return means


def _avg_pool(name: str, axes: int) -> Callable[..., Tensor]:
    pool = getattr(_functional, name)

    def averaged(
        input: Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        stride = None if isinstance(stride, (list, tuple)) and not stride else stride
        x, alone = _batch(name, input, axes)
        # Of whole numbers PyTorch gives the quotient of the sum, cut to a whole number.
        whole = not x.dtype.is_floating_point
        x = x.to(tenon.float64) if whole else x
        if axes > 1:  # one number stands for every axis
            kernel_size, padding = _spread(kernel_size, axes), _spread(padding, axes)
            stride = None if stride is None else _spread(stride, axes)
        if divisor_override is None:
            result = pool(x, kernel_size, stride, padding, ceil_mode, count_include_pad)
        elif divisor_override == 0:
            raise ValueError(f"{name}(): expected divisor_override other than 0, got 0")
        else:
            means = pool(x, kernel_size, stride, padding, ceil_mode, False)
            result = _sums(x, means, kernel_size, stride, padding, axes) / divisor_override
        if whole:
            # A quotient that rounding left just below a whole number is that number.
            result = tenon.trunc(result * (1 + 1e-12)).to(input.dtype)
        return _unbatched(result, alone)

    if axes == 1:

        def of_lengths(
            input: Tensor,
            kernel_size: Any,
            stride: Any = None,
            padding: Any = 0,
            ceil_mode: bool = False,
            count_include_pad: bool = True,
        ) -> Tensor:
            return averaged(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)

        of_lengths.__name__ = of_lengths.__qualname__ = name
        of_lengths.__doc__ = "The mean of each window."
        return of_lengths

    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        return averaged(
            input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The mean of each window, or its sum divided by `divisor_override`."
    return function


avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(f"avg_pool{n}d", n) for n in (1, 2, 3))


def _output_size(name: str, input: Tensor, output_size: Any, axes: int) -> list[int]:
    """A length for each axis of space; None keeps the input's."""
    wanted = [output_size] if output_size is None or isinstance(output_size, int) else output_size
    sizes = list(wanted) * (axes if len(wanted) == 1 else 1)
    if len(sizes) != axes:
        raise ValueError(
            f"{name}(): expected output_size of one number or {axes}, got {output_size}"
        )
    extents = input.shape[-axes:]
    return [extents[i] if each is None else each for i, each in enumerate(sizes)]


def _adaptive_avg(name: str, axes: int) -> Callable[..., Tensor]:
    pool = getattr(_functional, name)

    def function(input: Tensor, output_size: Any) -> Tensor:
        x, alone = _batch(name, input, axes)
        size = _output_size(name, input, output_size, axes)
        return _unbatched(pool(x, size), alone)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        "Means of as many windows as `output_size` says; None keeps an axis as it is."
    )
    return function


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _adaptive_avg(f"adaptive_avg_pool{n}d", n) for n in (1, 2, 3)
)


def _windows(extent: int, count: int) -> list[list[int]]:
    """The positions in each of `count` windows along an axis; shorter ones repeat their last."""
    rows = [list(range(i * extent // count, -((i + 1) * extent // -count))) for i in range(count)]
    longest = max((len(row) for row in rows), default=0)
    return [row + row[-1:] * (longest - len(row)) for row in rows]


def _largest_of_windows(x: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The maxima of adaptive windows of `x` [N, C, ...], and where in the flat space they are."""
    axes, extents = len(sizes), x.shape[2:]
    of_axes = [_windows(extent, size) for extent, size in zip(extents, sizes, strict=True)]
    strides = [math.prod(extents[i + 1 :]) for i in range(axes)]
    indices = tenon.zeros([1] * (2 * axes), dtype=tenon.int64, device=x.device)
    for axis, (rows, stride) in enumerate(zip(of_axes, strides, strict=True)):
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = len(rows), len(rows[0])
        at = tenon.tensor(list(itertools.chain(*rows)), dtype=tenon.int64).to(x.device)
        indices = indices + at.reshape(shape) * stride
    indices = indices.reshape([*sizes, -1])
    flat = x.reshape([*x.shape[:2], math.prod(extents)])
    inside = tenon.index_select(flat, indices.reshape(-1), -1)
    inside = inside.reshape([*x.shape[:2], *indices.shape])
    largest = tenon.argmax(inside, -1, True)
    values = tenon.take_along_axis(inside, largest, -1).squeeze(-1)
    everywhere = tenon.broadcast_to(indices, list(inside.shape))
    return values, tenon.take_along_axis(everywhere, largest, -1).squeeze(-1)


def _adaptive_max(name: str, axes: int, always: bool) -> Callable[..., Any]:
    pool = getattr(_functional, name)

    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        x, alone = _batch(name, input, axes)
        size = _output_size(name, input, output_size, axes)
        if not (return_indices or always):
            return _unbatched(pool(x, size), alone)
        if 0 in size or 0 in x.shape:
            nothing = pool(x, size)
            return _unbatched((nothing, tenon.zeros_like(nothing, dtype=tenon.int64)), alone)
        return _unbatched(_largest_of_windows(x, size), alone)

    function.__name__ = function.__qualname__ = f"{name}_with_indices" if always else name
    function.__doc__ = (
        "Maxima of as many windows as `output_size` says, and their positions in the flat space"
        + ("." if always else " with `return_indices`.")
    )
    return function


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_max(f"adaptive_max_pool{n}d", n, False) for n in (1, 2, 3)
)
(
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
) = (_adaptive_max(f"adaptive_max_pool{n}d", n, True) for n in (1, 2, 3))
