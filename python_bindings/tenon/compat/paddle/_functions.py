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
from tenon._core import operator as _operator
from tenon.compat.paddle._composed import numbers
from tenon.compat.paddle.linalg import norm as _norm

Axes = builtins.int | Sequence[builtins.int] | None


# -- creation --------------------------------------------------------------------------------------


def to_tensor(
    data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> Tensor:
    """A new tensor of the values; trained where stop_gradient is false."""
    return _core.tensor(data, dtype=dtype, device=place, requires_grad=not stop_gradient)


def _made(tensor: Tensor, requires_grad: bool) -> Tensor:
    return tensor.requires_grad_() if requires_grad else tensor


def lengths(shape: Any) -> list[builtins.int]:
    """A shape as Paddle takes it: a number, a list of numbers and tensors, or a tensor."""
    found = numbers(shape)
    return [found] if isinstance(found, builtins.int) else list(found)


def _creation(name: str, doc: str) -> Any:
    def function(
        shape: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> Tensor:
        return _made(_operator(name)(lengths(shape), dtype=dtype, device=device), requires_grad)

    function.__doc__ = doc
    return function


zeros, ones = _creation("zeros", "Zeros."), _creation("ones", "Ones.")
empty = _creation("empty", "Unspecified elements.")


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """One value; of the default floating dtype unless one is given, or the value is a bool or complex."""
    fill_value = numbers(fill_value)
    if dtype is None:
        kinds = {bool: tenon.bool, complex: _core.complex128}
        dtype = kinds.get(type(fill_value), _core.get_default_dtype())
    made = _operator("full")(lengths(shape), fill_value, dtype=dtype, device=device)
    return _made(made, requires_grad)


def full_like(
    x: Tensor,
    fill_value: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """One value, in the shape of `x`."""
    made = _operator("full_like")(x, numbers(fill_value), dtype=dtype, device=device)
    return _made(made, requires_grad)


def arange(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` to before `end`; arange(end) starts from 0."""
    start, end, step = map(numbers, (start, end, step))
    return _made(_operator("arange")(start, end, step, dtype=dtype, device=device), requires_grad)


def linspace(
    start: Any,
    stop: Any,
    num: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Evenly spaced numbers, both ends included."""
    start, stop, num = map(numbers, (start, stop, num))
    made = _operator("linspace")(float(start), float(stop), num, dtype=dtype, device=device)
    return _made(made, requires_grad)


def eye(
    num_rows: builtins.int,
    num_columns: builtins.int | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix with ones on its diagonal."""
    made = _operator("eye")(num_rows, num_columns, dtype=dtype, device=device)
    return _made(made, requires_grad)


def meshgrid(*args: Any) -> list[Tensor]:
    """Coordinate grids of vectors, one by one or in a list."""
    given = args[0] if len(args) == 1 and not isinstance(args[0], Tensor) else args
    return list(_operator("meshgrid")(list(given), "ij"))


rand = _creation("uniform", "Uniform numbers from 0 to 1.")
randn = standard_normal = _creation("normal", "Normal numbers of mean 0 and variance 1.")


def uniform(
    shape: Any,
    dtype: Any = None,
    min: Any = 0,
    max: Any = 1.0,
    seed: builtins.int = 0,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers in [min, max)."""
    low, high = float(numbers(min)), float(numbers(max))
    if seed:
        raise NotImplementedError(
            f"uniform(): expected seed=0, the stream of paddle.seed(), got {seed}"
        )
    made = _operator("uniform")(lengths(shape), low, high, dtype=dtype, device=device)
    return _made(made, requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None) -> Tensor:
    """Normal numbers; of tensors of means or deviations, one for each element."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        like = mean + std
        return _operator("normal")(list(like.shape), dtype=like.dtype) * std + mean
    return _operator("normal")([1] if shape is None else lengths(shape), float(mean), float(std))


def randint(
    low: builtins.int = 0, high: Any = None, shape: Any = (1,), dtype: Any = None
) -> Tensor:
    """Whole numbers in [low, high); randint(high) starts from 0."""
    low, high = (0, low) if high is None else (low, high)
    return _operator("randint")(low, high, lengths(shape), dtype=dtype)


def seed(seed: builtins.int) -> None:
    """Start the streams of random numbers."""
    tenon.manual_seed(seed)


def poisson(x: Tensor) -> Tensor:
    """Counts of these rates."""
    return tenon.random.poisson(x)


# -- mathematics -----------------------------------------------------------------------------------


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of matrices, of vectors and of stacks of these."""
    return _operator("matmul")(input, mat2)


def bmm(x: Tensor, y: Tensor) -> Tensor:
    """The products of batches of matrices."""
    if x.ndim != 3 or y.ndim != 3:
        raise ValueError(f"bmm(): expected three axes each, got {x.ndim} and {y.ndim}")
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
    min, max = numbers(min), numbers(max)
    return _operator("clip")(x, min, max)


def scale(x: Tensor, scale: Any = 1.0, bias: float = 0.0, bias_after_scale: bool = True) -> Tensor:
    """x * scale + bias, or (x + bias) * scale, in the dtype of x."""
    made = x * scale + bias if bias_after_scale else (x + bias) * scale
    return made.to(dtype=x.dtype)


def equal_all(x: Tensor, y: Tensor) -> Tensor:
    """Whether both have the same shape and elements."""
    return _core.tensor(tenon.array_equal(x, y))


def numel(x: Tensor) -> Tensor:
    """The number of elements, as a tensor."""
    return _core.tensor(x.numel())


def shape(input: Tensor) -> Tensor:
    """The extents, as a tensor of int64."""
    return _core.tensor(list(input.shape), dtype=_core.int64)


def rank(input: Tensor) -> Tensor:
    """The number of axes, as a tensor of int32."""
    return _core.tensor(input.ndim, dtype=_core.int32)


# -- reductions ------------------------------------------------------------------------------------


def sum(x: Tensor, axis: Axes = None, dtype: Any = None, keepdim: bool = False) -> Tensor:
    """The sum over `axis`."""
    if dtype is None:
        return _operator("sum")(x, numbers(axis), keepdim)
    return _operator("sum")(x.to(dtype=dtype), numbers(axis), keepdim).to(dtype=dtype)


def prod(x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The product over `axis`."""
    if dtype is None:
        made = _operator("prod")(x, numbers(axis), keepdim)
        return made.to(dtype=x.dtype) if x.dtype.is_integer else made
    return _operator("prod")(x.to(dtype=dtype), numbers(axis), keepdim).to(dtype=dtype)


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


def _freedom(name: str, unbiased: bool | None, correction: float) -> float:
    if unbiased is None:
        return float(correction)
    if not isinstance(unbiased, (bool, builtins.int)):
        raise TypeError(f"{name}(): expected unbiased True or False, got {unbiased!r}")
    if correction != 1:
        raise ValueError(f"{name}(): expected one of `unbiased` and `correction`, got both")
    return float(unbiased)


def floating(name: str, x: Tensor) -> Tensor:
    """`x`, which holds floats."""
    if not x.dtype.is_floating_point and not x.dtype.is_complex:
        raise TypeError(f"{name}(): expected a tensor of floats, got {x.dtype}; cast() it first")
    return x


def var(
    x: Tensor,
    axis: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float = 1,
) -> Tensor:
    """The variance, by default of a sample: of n - 1 degrees of freedom."""
    return _operator("var")(
        floating("var", x), axis, _freedom("var", unbiased, correction), keepdim
    )


def std(x: Tensor, axis: Axes = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The standard deviation, by default of a sample: of n - 1 degrees of freedom."""
    return _operator("std")(floating("std", x), axis, float(unbiased), keepdim)


def norm(
    x: Tensor, p: Any = None, axis: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of order `p`, 2 by default, of all elements as a vector, of vectors along an axis, or of
    matrices along two."""
    return _norm(x if dtype is None else x.to(dtype=dtype), p, axis, keepdim)


def cumsum(x: Tensor, axis: builtins.int | None = None, dtype: Any = None) -> Tensor:
    """Running sums; of the flat tensor without an axis."""
    given = x if dtype is None else x.to(dtype=dtype)
    if axis is None:
        given, axis = given.reshape(-1), 0
    made = _operator("cumsum")(given, axis)
    return made if dtype is None else made.to(dtype=dtype)


# -- shapes ----------------------------------------------------------------------------------------


def concat(x: Sequence[Tensor], axis: Any = 0) -> Tensor:
    """Joined along an axis."""
    return _operator("concat")(list(x), numbers(axis))


def stack(x: Sequence[Tensor], axis: builtins.int | None = 0) -> Tensor:
    """Joined along a new axis."""
    return _operator("stack")(list(x), 0 if axis is None else axis)


def split(x: Tensor, num_or_sections: Any, axis: builtins.int = 0) -> list[Tensor]:
    """So many parts of one length, or parts of the lengths of a list, of which one may be -1."""
    axis = numbers(axis)
    extent, sizes = x.shape[axis], numbers(num_or_sections)
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
    """The transpose of a matrix; vectors stay."""
    if input.ndim > 2:
        raise ValueError(f"t(): expected at most two axes, got {input.ndim}")
    return input.t() if input.ndim == 2 else input


def flatten(x: Tensor, start_axis: builtins.int = 0, stop_axis: builtins.int = -1) -> Tensor:
    """Several axes as one."""
    return _operator("flatten")(x, start_axis, stop_axis)


def tile(x: Tensor, repeat_times: Any) -> Tensor:
    """Repeated as a whole."""
    return _operator("tile")(x, lengths(repeat_times)).clone()


def expand_as(x: Tensor, y: Tensor) -> Tensor:
    """Expanded to the shape of `y`."""
    return x.expand_as(y)


def broadcast_to(x: Tensor, shape: Any) -> Tensor:
    """Expanded to a shape; -1 keeps the length of an axis."""
    return _operator("expand")(x, lengths(shape))


expand = broadcast_to


# -- indices and order -----------------------------------------------------------------------------


def gather(x: Tensor, index: Tensor, axis: Any = None) -> Tensor:
    """Slices at `index`, a vector or one number, along `axis`, by default the first."""
    axis = 0 if axis is None else numbers(axis)
    if index.ndim == 2 and index.shape[1] == 1:
        index = index.reshape(-1)
    if index.ndim > 1:
        raise ValueError(f"gather(): expected a vector of indices, got shape {tuple(index.shape)}")
    if index.ndim == 0:
        return _operator("index_select")(x, index.reshape(1), axis).squeeze(axis)
    return _operator("index_select")(x, index, axis)


def index_select(x: Tensor, index: Tensor, axis: builtins.int = 0) -> Tensor:
    """Slices at `index` along `axis`."""
    return _operator("index_select")(x, index, axis)


def index_add(
    x: Tensor, index: Tensor, axis: builtins.int, value: Tensor, alpha: float = 1
) -> Tensor:
    """With slices of alpha * `value` added at `index` along `axis`."""
    return _operator("index_add")(x, index, value if alpha == 1 else value * alpha, axis)


_REDUCTIONS = {
    "add": "sum",
    "mul": "prod",
    "multiply": "prod",
    "mean": "mean",
    "amin": "amin",
    "amax": "amax",
}


def put_along_axis(
    arr: Tensor,
    indices: Tensor,
    values: Any,
    axis: builtins.int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Tensor:
    """With `values` at `indices` along `axis`, put there, added, multiplied, or of them all the mean or an
    extreme one; without `include_self` what was there does not count. The other axes of the indices are
    broadcast unless `broadcast` is false."""
    if reduce != "assign" and reduce not in _REDUCTIONS:
        raise ValueError(
            f"put_along_axis(): expected reduce 'assign', {', '.join(map(repr, _REDUCTIONS))}, got {reduce!r}"
        )
    if broadcast:
        # The tensor itself keeps its shape: only the indices are broadcast.
        shape = [n if i != axis % arr.ndim else -1 for i, n in enumerate(arr.shape)]
        if indices.ndim != arr.ndim:
            raise ValueError(
                f"put_along_axis(): expected indices of {arr.ndim} axes, got {indices.ndim}"
            )
        shape[axis] = indices.shape[axis]
        indices = _operator("expand")(indices, shape)
    source = _core.asarray(values, device=arr.device).to(arr.dtype)
    if broadcast or source.ndim == 0:
        source = _operator("expand")(source, indices.shape)
    if reduce == "assign":
        return _operator("scatter")(arr, indices, source, axis)
    return _operator("scatter_reduce")(
        arr, indices, source, axis, reduce=_REDUCTIONS[reduce], include_self=include_self
    )


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


def sort(
    x: Tensor, axis: builtins.int = -1, descending: bool = False, stable: bool = False
) -> Tensor:
    """Elements in order; every order here is stable."""
    return _operator("sort")(x, axis, descending)


def argsort(
    x: Tensor, axis: builtins.int = -1, descending: bool = False, stable: bool = False
) -> Tensor:
    """Where the elements in order are; every order here is stable."""
    return _operator("argsort")(x, axis, descending)


def topk(
    x: Tensor,
    k: builtins.int,
    axis: builtins.int | None = None,
    largest: bool = True,
    sorted: bool = True,
) -> tuple[Tensor, Tensor]:
    """The k largest or smallest elements, in order, and where they are."""
    return tuple(_operator("topk")(x, numbers(k), -1 if axis is None else axis, largest))


_OTHER = set("annotations builtins tenon Axes Any Sequence Tensor numbers lengths floating".split())
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OTHER)
