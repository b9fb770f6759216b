# SPDX-License-Identifier: Apache-2.0
"""Paddle's functions whose order of arguments, defaults or results are not those of Tenon's
operators."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor

Axes = builtins.int | Sequence[builtins.int] | None


def _operator(name: str) -> Any:
    return _core.operator(name)


# -- creation --------------------------------------------------------------------------------------


def to_tensor(
    data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> Tensor:
    """A new tensor of the values; trained where stop_gradient is false."""
    return _core.tensor(data, dtype=dtype, device=place, requires_grad=not stop_gradient)


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Zeros."""
    return _operator("zeros")(shape, dtype=dtype)


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Ones."""
    return _operator("ones")(shape, dtype=dtype)


def empty(shape: Any, dtype: Any = None) -> Tensor:
    """Unspecified elements."""
    return _operator("empty")(shape, dtype=dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """One value; of the default floating dtype unless one is given."""
    wanted = _core.get_default_dtype() if dtype is None else dtype
    return _operator("full")(shape, fill_value, dtype=wanted)


def full_like(x: Tensor, fill_value: Any, dtype: Any = None) -> Tensor:
    """One value, in the shape of `x`."""
    return _operator("full_like")(x, fill_value, dtype=dtype)


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Numbers from `start` to before `end`; arange(end) starts from 0."""
    return _operator("arange")(start, end, step, dtype=dtype)


def linspace(start: float, stop: float, num: builtins.int, dtype: Any = None) -> Tensor:
    """Evenly spaced numbers, both ends included."""
    return _operator("linspace")(start, stop, num, dtype=dtype)


def eye(
    num_rows: builtins.int, num_columns: builtins.int | None = None, dtype: Any = None
) -> Tensor:
    """A matrix with ones on its diagonal."""
    return _operator("eye")(num_rows, num_columns, dtype=dtype)


def meshgrid(*args: Any) -> list[Tensor]:
    """Coordinate grids of vectors, one by one or in a list."""
    given = args[0] if len(args) == 1 and not isinstance(args[0], Tensor) else args
    return list(_operator("meshgrid")(list(given), "ij"))


def rand(shape: Any, dtype: Any = None) -> Tensor:
    """Uniform numbers from 0 to 1."""
    return _operator("uniform")(shape, dtype=dtype)


def randn(shape: Any, dtype: Any = None) -> Tensor:
    """Normal numbers of mean 0 and variance 1."""
    return _operator("normal")(shape, dtype=dtype)


standard_normal = randn


def uniform(shape: Any, dtype: Any = None, min: float = -1.0, max: float = 1.0) -> Tensor:
    """Uniform numbers in [min, max)."""
    return _operator("uniform")(shape, min, max, dtype=dtype)


def normal(mean: float = 0.0, std: float = 1.0, shape: Any = None) -> Tensor:
    """Normal numbers."""
    return _operator("normal")([1] if shape is None else shape, mean, std)


def randint(
    low: builtins.int = 0, high: Any = None, shape: Any = (1,), dtype: Any = None
) -> Tensor:
    """Whole numbers in [low, high); randint(high) starts from 0."""
    low, high = (0, low) if high is None else (low, high)
    return _operator("randint")(low, high, shape, dtype=dtype)


def seed(seed: builtins.int) -> None:
    """Start the streams of random numbers."""
    tenon.manual_seed(seed)


def poisson(x: Tensor) -> Tensor:
    """Counts of these rates."""
    return tenon.random.poisson(x)


# -- mathematics -----------------------------------------------------------------------------------


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """The product of matrices, of which each may be transposed first."""
    x = x.mT if transpose_x and x.ndim > 1 else x
    y = y.mT if transpose_y and y.ndim > 1 else y
    return _operator("matmul")(x, y)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of matrices."""
    return _operator("matmul")(input, mat2)


def bmm(x: Tensor, y: Tensor) -> Tensor:
    """The products of batches of matrices."""
    return _operator("matmul")(x, y)


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner products of vectors, in the last axis."""
    return _operator("vecdot")(x, y, -1)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Einstein's summation."""
    return _operator("einsum")(equation, list(operands))


def addmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta * input + alpha * x @ y."""
    return _operator("addmm")(input, x, y, beta=beta, alpha=alpha)


def cast(x: Tensor, dtype: Any) -> Tensor:
    """The elements in another dtype."""
    return _operator("cast")(x, dtype)


def clip(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Elements moved into [min, max]."""
    return _operator("clip")(x, min, max)


def scale(
    x: Tensor, scale: float = 1.0, bias: float = 0.0, bias_after_scale: bool = True
) -> Tensor:
    """x * scale + bias, or (x + bias) * scale."""
    return x * scale + bias if bias_after_scale else (x + bias) * scale


def equal_all(x: Tensor, y: Tensor) -> Tensor:
    """Whether both have the same shape and elements."""
    return _core.tensor(tenon.array_equal(x, y))


def numel(x: Tensor) -> Tensor:
    """The number of elements, as a tensor."""
    return _core.tensor(x.numel())


def shape(input: Tensor) -> Tensor:
    """The extents, as a tensor of int32."""
    return _core.tensor(list(input.shape), dtype=_core.int32)


def rank(input: Tensor) -> Tensor:
    """The number of axes, as a tensor of int32."""
    return _core.tensor(input.ndim, dtype=_core.int32)


# -- reductions ------------------------------------------------------------------------------------


def sum(x: Tensor, axis: Axes = None, dtype: Any = None, keepdim: bool = False) -> Tensor:
    """The sum over `axis`."""
    if dtype is None:
        return _operator("sum")(x, axis, keepdim)
    return _operator("sum")(x.to(dtype=dtype), axis, keepdim).to(dtype=dtype)


def prod(x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The product over `axis`."""
    if dtype is None:
        return _operator("prod")(x, axis, keepdim)
    return _operator("prod")(x.to(dtype=dtype), axis, keepdim).to(dtype=dtype)


def argmax(
    x: Tensor, axis: builtins.int | None = None, keepdim: bool = False, dtype: Any = "int64"
) -> Tensor:
    """Where the largest element is."""
    return _operator("argmax")(x, axis, keepdim).to(dtype=dtype)


def argmin(
    x: Tensor, axis: builtins.int | None = None, keepdim: bool = False, dtype: Any = "int64"
) -> Tensor:
    """Where the smallest element is."""
    return _operator("argmin")(x, axis, keepdim).to(dtype=dtype)


def var(x: Tensor, axis: Axes = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The variance, by default of a sample: of n - 1 degrees of freedom."""
    return _operator("var")(x, axis, float(unbiased), keepdim)


def std(x: Tensor, axis: Axes = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The standard deviation, by default of a sample: of n - 1 degrees of freedom."""
    return _operator("std")(x, axis, float(unbiased), keepdim)


def norm(x: Tensor, p: Any = None, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The vector norm of order `p`, 2 by default, over `axis`."""
    return _operator("norm")(x, 2.0 if p in (None, "fro") else p, axis, keepdim)


def cumsum(x: Tensor, axis: builtins.int | None = None, dtype: Any = None) -> Tensor:
    """Running sums; of the flat tensor without an axis."""
    given = x if dtype is None else x.to(dtype=dtype)
    if axis is None:
        return _operator("cumsum")(given.reshape(-1), 0)
    return _operator("cumsum")(given, axis)


# -- shapes ----------------------------------------------------------------------------------------


def concat(x: Sequence[Tensor], axis: builtins.int = 0) -> Tensor:
    """Joined along an axis."""
    return _operator("concat")(list(x), axis)


def stack(x: Sequence[Tensor], axis: builtins.int = 0) -> Tensor:
    """Joined along a new axis."""
    return _operator("stack")(list(x), axis)


def split(x: Tensor, num_or_sections: Any, axis: builtins.int = 0) -> list[Tensor]:
    """So many parts of one length, or parts of the lengths of a list, of which one may be -1."""
    extent, sizes = x.shape[axis], num_or_sections
    if isinstance(sizes, builtins.int):
        if extent % sizes:
            raise ValueError(f"split(): expected a number that divides {extent}, got {sizes}")
        sizes = [extent // sizes] * sizes
    rest = extent - builtins.sum(each for each in sizes if each != -1)
    return list(_operator("split")(x, [rest if each == -1 else each for each in sizes], axis))


def chunk(x: Tensor, chunks: builtins.int, axis: builtins.int = 0) -> list[Tensor]:
    """So many parts of one length."""
    return split(x, chunks, axis)


def transpose(x: Tensor, perm: Sequence[builtins.int]) -> Tensor:
    """The axes in another order."""
    return _operator("permute")(x, perm)


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix."""
    return input.t()


def flatten(x: Tensor, start_axis: builtins.int = 0, stop_axis: builtins.int = -1) -> Tensor:
    """Several axes as one."""
    return _operator("flatten")(x, start_axis, stop_axis)


def tile(x: Tensor, repeat_times: Any) -> Tensor:
    """Repeated as a whole."""
    return _operator("tile")(x, repeat_times)


def expand_as(x: Tensor, y: Tensor) -> Tensor:
    """Expanded to the shape of `y`."""
    return x.expand_as(y)


def broadcast_to(x: Tensor, shape: Any) -> Tensor:
    """Expanded to a shape."""
    return _operator("expand")(x, shape)


def repeat_interleave(x: Tensor, repeats: Any, axis: builtins.int | None = None) -> Tensor:
    """Each element repeated."""
    return tenon.array_api.repeat(x, repeats, axis=axis)


# -- indices and order -----------------------------------------------------------------------------


def gather(x: Tensor, index: Tensor, axis: builtins.int = 0) -> Tensor:
    """Slices at `index` along `axis`."""
    return _operator("index_select")(x, index, axis)


def index_select(x: Tensor, index: Tensor, axis: builtins.int = 0) -> Tensor:
    """Slices at `index` along `axis`."""
    return _operator("index_select")(x, index, axis)


def index_add(x: Tensor, index: Tensor, axis: builtins.int, value: Tensor) -> Tensor:
    """With slices of `value` added at `index` along `axis`."""
    return _operator("index_add")(x, index, value, axis)


def take_along_axis(arr: Tensor, indices: Tensor, axis: builtins.int) -> Tensor:
    """Elements at `indices` along `axis`."""
    return _operator("take_along_axis")(arr, indices, axis)


def put_along_axis(
    arr: Tensor, indices: Tensor, values: Any, axis: builtins.int, reduce: str = "assign"
) -> Tensor:
    """With `values` at `indices` along `axis`."""
    if reduce not in ("assign", "add"):
        raise ValueError(f"put_along_axis(): expected reduce 'assign' or 'add', got {reduce!r}")
    source = _core.asarray(values, device=arr.device).to(arr.dtype)
    source = _operator("expand")(source, indices.shape)
    return _operator("scatter" if reduce == "assign" else "scatter_add")(arr, indices, source, axis)


def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True) -> Tensor:
    """With the rows `updates` at `index`; added to zeros, where overwrite is false."""
    if overwrite:
        return _operator("index_put")(x, [index], updates)
    cleared = _operator("index_put")(x, [index], _operator("zeros_like")(updates))
    return _operator("index_add")(cleared, index, updates, 0)


def nonzero(x: Tensor, as_tuple: bool = False) -> Any:
    """Indices of the elements that are not zero."""
    return tenon.array_api.nonzero(x) if as_tuple else _operator("nonzero")(x)


def where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` or of `y`; with a condition alone, where it holds."""
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    return _operator("where")(condition, x, y)


def sort(x: Tensor, axis: builtins.int = -1, descending: bool = False) -> Tensor:
    """Elements in order."""
    return _operator("sort")(x, axis, descending)


def argsort(x: Tensor, axis: builtins.int = -1, descending: bool = False) -> Tensor:
    """Where the elements in order are."""
    return _operator("argsort")(x, axis, descending)


def topk(
    x: Tensor,
    k: builtins.int,
    axis: builtins.int | None = None,
    largest: bool = True,
    sorted: bool = True,
) -> tuple[Tensor, Tensor]:
    """The k largest or smallest elements, in order, and where they are."""
    return tuple(_operator("topk")(x, k, -1 if axis is None else axis, largest))


def unique(
    x: Tensor, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """The different elements in ascending order, and what is wanted."""
    found = tenon.unique_all(x)
    wanted = (True, return_index, return_inverse, return_counts)
    results = [part for part, is_wanted in zip(found, wanted, strict=True) if is_wanted]
    return tuple(results) if len(results) > 1 else results[0]


_OTHER = set("annotations builtins tenon Axes Any Sequence Tensor".split())
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OTHER)
