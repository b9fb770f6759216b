# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions whose arguments, defaults, dtypes or results are not those of Tenon's
operators."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core, array_api
from tenon._core import Tensor
from tenon.compat.numpy._convert import as_float, as_tensor

Axes = builtins.int | Sequence[builtins.int] | None


def _operator(name: str) -> Any:
    return _core.operator(name)


# -- creation --------------------------------------------------------------------------------------


def array(object: Any, dtype: Any = None, *, copy: bool = True, ndmin: builtins.int = 0) -> Tensor:
    """A tensor of the values."""
    made = as_tensor(object, _double(dtype))
    made = made.clone() if copy and (made is object or hasattr(object, "dtype")) else made
    return (
        made.reshape((1,) * (ndmin - made.ndim) + tuple(made.shape)) if made.ndim < ndmin else made
    )


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """The values as a tensor, sharing memory where that is possible."""
    return as_tensor(a, _double(dtype))


ascontiguousarray = asarray


def _filled(name: str) -> Callable[..., Tensor]:
    def function(shape: Any, dtype: Any = float) -> Tensor:
        return _operator(name)(shape, dtype=_double(dtype))

    function.__doc__ = f"tenon.{name}, in float64 unless a dtype is given."
    return function


def _double(dtype: Any) -> Any:
    """NumPy's meaning of Python's types."""
    return {float: _core.float64, complex: _core.complex128, int: _core.int64}.get(dtype, dtype)


zeros, ones, empty = _filled("zeros"), _filled("ones"), _filled("empty")


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A tensor of one value."""
    value = as_tensor(fill_value, _double(dtype))
    return _operator("expand")(value, shape).clone()


def _like(name: str) -> Callable[..., Tensor]:
    def function(a: Any, *args: Any, dtype: Any = None) -> Tensor:
        return _operator(name)(as_tensor(a), *args, dtype=_double(dtype))

    function.__doc__ = f"tenon.{name}."
    return function


zeros_like, ones_like = _like("zeros_like"), _like("ones_like")
empty_like, full_like = _like("empty_like"), _like("full_like")


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Numbers from `start` to before `stop`; arange(stop) starts from 0."""
    if dtype is None and builtins.any(isinstance(each, float) for each in (start, stop, step)):
        dtype = _core.float64
    return _operator("arange")(start, stop, step, dtype=_double(dtype))


def linspace(
    start: Any, stop: Any, num: builtins.int = 50, endpoint: bool = True, dtype: Any = None
) -> Tensor:
    """Evenly spaced numbers."""
    wanted = _core.float64 if dtype is None else _double(dtype)
    return _operator("linspace")(start, stop, num, endpoint=endpoint, dtype=wanted)


def logspace(
    start: Any, stop: Any, num: builtins.int = 50, endpoint: bool = True, base: float = 10.0
) -> Tensor:
    """Numbers whose logarithms are evenly spaced."""
    return base ** linspace(start, stop, num, endpoint)


def eye(
    N: builtins.int, M: builtins.int | None = None, k: builtins.int = 0, dtype: Any = float
) -> Tensor:
    """A matrix with ones on a diagonal."""
    return array_api.eye(N, M, k=k, dtype=_double(dtype))


def identity(n: builtins.int, dtype: Any = float) -> Tensor:
    """A square matrix with ones on its diagonal."""
    return eye(n, dtype=dtype)


def meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors."""
    return array_api.meshgrid(*map(as_tensor, xi), indexing=indexing)


def copy(a: Any) -> Tensor:
    """The values in memory of their own."""
    return as_tensor(a).clone()


# -- elementwise -----------------------------------------------------------------------------------


def _floating(name: str) -> Callable[..., Tensor]:
    def function(*args: Any) -> Tensor:
        return _operator(name)(*map(as_float, args))

    function.__doc__ = f"tenon.{name}; of whole numbers in float64."
    return function


sin, cos, tan = _floating("sin"), _floating("cos"), _floating("tan")
arcsin, arccos, arctan = _floating("asin"), _floating("acos"), _floating("atan")
asin, acos, atan = arcsin, arccos, arctan
arctan2 = atan2 = _floating("atan2")
sinh, cosh, tanh = _floating("sinh"), _floating("cosh"), _floating("tanh")
arcsinh, arccosh, arctanh = _floating("asinh"), _floating("acosh"), _floating("atanh")
asinh, acosh, atanh = arcsinh, arccosh, arctanh
exp, exp2, expm1 = _floating("exp"), _floating("exp2"), _floating("expm1")
log, log2, log10, log1p = map(_floating, ("log", "log2", "log10", "log1p"))
sqrt, cbrt = _floating("sqrt"), _floating("cbrt")
divide = true_divide = _floating("divide")


def power(x1: Any, x2: Any) -> Tensor:
    """`x1` to the power `x2`."""
    return _operator("pow")(as_tensor(x1), as_tensor(x2))


pow = power


def round(a: Any, decimals: builtins.int = 0) -> Tensor:
    """Elements rounded to decimals."""
    x = as_tensor(a)
    scale = 10.0**decimals
    return _operator("round")(x) if decimals == 0 else _operator("round")(x * scale) / scale


around = round


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` or of `y`; with a condition alone, the indices where it holds."""
    if x is None and y is None:
        return nonzero(condition)
    return _operator("where")(as_tensor(condition), as_tensor(x), as_tensor(y))


def allclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close."""
    return bool(_operator("allclose")(as_tensor(a), as_tensor(b), rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any) -> bool:
    """Whether both have the same shape and elements."""
    return tenon.array_equal(as_tensor(a1), as_tensor(a2))


# -- reductions ------------------------------------------------------------------------------------


def _reduction(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
        return _operator(name)(as_tensor(a), axis, keepdims)

    function.__doc__ = f"tenon.{name}."
    return function


max = amax = _reduction("max")
min = amin = _reduction("min")
any, all = _reduction("any"), _reduction("all")
argmax, argmin = _reduction("argmax"), _reduction("argmin")


def _accumulation(name: str, convert: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def function(a: Any, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
        x = convert(a)
        if dtype is None:
            return _operator(name)(x, axis, keepdims)
        wanted = _double(dtype)
        return _operator(name)(x.to(dtype=wanted), axis, keepdims).to(dtype=wanted)

    function.__doc__ = f"tenon.{name}, of the elements in `dtype`."
    return function


sum, prod = _accumulation("sum", as_tensor), _accumulation("prod", as_tensor)
nansum = _accumulation("nansum", as_tensor)
mean, nanmean = _accumulation("mean", as_float), _accumulation("nanmean", as_float)


def _spread(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: Axes = None, ddof: float = 0.0, keepdims: bool = False) -> Tensor:
        return _operator(name)(as_float(a), axis, float(ddof), keepdims)

    function.__doc__ = f"tenon.{name}, of n - `ddof` degrees of freedom."
    return function


var, std = _spread("var"), _spread("std")


def ptp(a: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The difference of the largest and the smallest element."""
    return max(a, axis, keepdims) - min(a, axis, keepdims)


def average(a: Any, axis: Axes = None, weights: Any = None) -> Tensor:
    """The mean, by weights of the shape of `a`."""
    if weights is None:
        return mean(a, axis)
    w = as_float(weights)
    return sum(as_float(a) * w, axis) / sum(w, axis)


def _scan(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: builtins.int | None = None, dtype: Any = None) -> Tensor:
        x = as_tensor(a, _double(dtype))
        result = _operator(name)(x.reshape(-1) if axis is None else x, 0 if axis is None else axis)
        return result if dtype is None else result.to(dtype=_double(dtype))

    function.__doc__ = f"tenon.{name}; of the flat tensor without an axis."
    return function


cumsum, cumprod = _scan("cumsum"), _scan("cumprod")


def diff(a: Any, n: builtins.int = 1, axis: builtins.int = -1) -> Tensor:
    """Differences of neighbours, `n` times."""
    return array_api.diff(as_tensor(a), axis=axis, n=n)


# -- shapes ----------------------------------------------------------------------------------------


def reshape(a: Any, shape: Any) -> Tensor:
    """The elements in another shape."""
    return as_tensor(a).reshape(shape)


def ravel(a: Any) -> Tensor:
    """The elements as a vector."""
    return as_tensor(a).reshape(-1)


def transpose(a: Any, axes: Sequence[builtins.int] | None = None) -> Tensor:
    """The axes in another order, reversed by default."""
    return _operator("permute")(as_tensor(a), axes)


permute_dims = transpose


def swapaxes(a: Any, axis1: builtins.int, axis2: builtins.int) -> Tensor:
    """Two axes exchanged."""
    return _operator("transpose")(as_tensor(a), axis1, axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved elsewhere."""
    return _operator("movedim")(as_tensor(a), source, destination)


def expand_dims(a: Any, axis: Any) -> Tensor:
    """New axes of length 1."""
    return _operator("unsqueeze")(as_tensor(a), axis)


def broadcast_to(array: Any, shape: Any) -> Tensor:
    """The elements seen with another shape."""
    return tenon.broadcast_to(as_tensor(array), shape)


def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    """The arguments seen with the shape that they have together."""
    return tenon.broadcast_arrays(*map(as_tensor, args))


def concatenate(arrays: Sequence[Any], axis: builtins.int | None = 0) -> Tensor:
    """Joined along an axis; without one, all elements in a vector."""
    return array_api.concat([as_tensor(each) for each in arrays], axis=axis)


concat = concatenate


def stack(arrays: Sequence[Any], axis: builtins.int = 0) -> Tensor:
    """Joined along a new axis."""
    return _operator("stack")([as_tensor(each) for each in arrays], axis)


def vstack(tup: Sequence[Any]) -> Tensor:
    """Rows, one below the other."""
    return tenon.vstack([as_tensor(each) for each in tup])


def hstack(tup: Sequence[Any]) -> Tensor:
    """Columns side by side, vectors one after the other."""
    return tenon.hstack([as_tensor(each) for each in tup])


def array_split(ary: Any, indices_or_sections: Any, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """Parts of about one length, or between indices."""
    x = as_tensor(ary)
    extent, parts = x.shape[axis], indices_or_sections
    if isinstance(parts, builtins.int):
        sizes = [extent // parts + (i < extent % parts) for i in range(parts)]
    else:
        edges = [0, *(builtins.min(each % (extent + 1), extent) for each in parts), extent]
        sizes = [builtins.max(b - a, 0) for a, b in zip(edges, edges[1:], strict=False)]
    return tuple(_operator("split")(x, sizes, axis))


def split(ary: Any, indices_or_sections: Any, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """Parts of one length, or between indices."""
    extent, parts = as_tensor(ary).shape[axis], indices_or_sections
    if isinstance(parts, builtins.int) and extent % parts:
        raise ValueError(
            f"split(): expected parts of one length, got {parts} of {extent}; use array_split()"
        )
    return array_split(ary, parts, axis)


def tile(A: Any, reps: Any) -> Tensor:
    """Repeated as a whole."""
    return _operator("tile")(as_tensor(A), reps)


def repeat(a: Any, repeats: Any, axis: builtins.int | None = None) -> Tensor:
    """Each element repeated."""
    counts = repeats if isinstance(repeats, builtins.int) else as_tensor(repeats)
    return array_api.repeat(as_tensor(a), counts, axis=axis)


def roll(a: Any, shift: Any, axis: Axes = None) -> Tensor:
    """Elements moved along an axis, from the end to the start."""
    return _operator("roll")(as_tensor(a), shift, axis)


def flip(m: Any, axis: Axes = None) -> Tensor:
    """Elements in reverse order."""
    return _operator("flip")(as_tensor(m), axis)


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """With margins: a number, a pair for all axes, or a pair for each."""
    x = as_tensor(array)
    if isinstance(pad_width, builtins.int):
        pad_width = [(pad_width, pad_width)] * x.ndim
    elif isinstance(pad_width[0], builtins.int):
        pad_width = [tuple(pad_width) * (2 // len(pad_width))] * x.ndim
    flat = [number for pair in pad_width for number in pair]
    return _operator("pad")(x, flat, mode, constant_values)


# -- indices and order -----------------------------------------------------------------------------


def nonzero(a: Any) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero."""
    return array_api.nonzero(as_tensor(a))


def argwhere(a: Any) -> Tensor:
    """The same as rows of a matrix."""
    return _operator("nonzero")(as_tensor(a))


def _in_order(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: builtins.int | None = -1) -> Tensor:
        x = as_tensor(a)
        return _operator(name)(x.reshape(-1) if axis is None else x, -1 if axis is None else axis)

    function.__doc__ = f"tenon.{name}; of the flat tensor where axis is None."
    return function


sort, argsort = _in_order("sort"), _in_order("argsort")


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Where elements would go in an ascending vector."""
    order = None if sorter is None else as_tensor(sorter)
    return array_api.searchsorted(as_tensor(a), as_tensor(v), side=side, sorter=order)


def take(a: Any, indices: Any, axis: builtins.int | None = None) -> Tensor:
    """Elements at indices along an axis; of the flat tensor without one."""
    x = as_tensor(a)
    return _operator("index_select")(
        x.reshape(-1) if axis is None else x, as_tensor(indices), 0 if axis is None else axis
    )


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """The different elements in ascending order, and what is wanted."""
    found = tenon.unique_all(as_tensor(ar))
    wanted = (True, return_index, return_inverse, return_counts)
    results = [part for part, is_wanted in zip(found, wanted, strict=True) if is_wanted]
    return tuple(results) if len(results) > 1 else results[0]


def isin(element: Any, test_elements: Any, invert: bool = False) -> Tensor:
    """Which elements are among others."""
    return tenon.isin(as_tensor(element), as_tensor(test_elements), invert=invert)


# -- products --------------------------------------------------------------------------------------


def dot(a: Any, b: Any) -> Tensor:
    """Products summed over the last axis of `a` and the last but one of `b`."""
    x, y = as_tensor(a), as_tensor(b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if x.ndim <= 2 and y.ndim <= 2:
        return _operator("matmul")(x, y)
    return tenon.linalg.tensordot(x, y, axes=((-1,), (builtins.max(y.ndim - 2, 0),)))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Products summed over axes."""
    return tenon.linalg.tensordot(as_tensor(a), as_tensor(b), axes=axes)


def einsum(subscripts: str, *operands: Any) -> Tensor:
    """Einstein's summation."""
    return _operator("einsum")(subscripts, [as_tensor(each) for each in operands])


def cross(a: Any, b: Any, axis: builtins.int = -1) -> Tensor:
    """Cross products of vectors of length 3."""
    return _operator("cross")(as_tensor(a), as_tensor(b), axis)


def trace(a: Any, offset: builtins.int = 0) -> Tensor:
    """The sum of a diagonal of matrices."""
    return _operator("trace")(as_tensor(a), offset)


def diag(v: Any, k: builtins.int = 0) -> Tensor:
    """A diagonal of a matrix, or a matrix with this diagonal."""
    return _operator("diag")(as_tensor(v), k)


def cov(m: Any, bias: bool = False, ddof: builtins.int | None = None) -> Tensor:
    """Covariances of the rows."""
    correction = (0 if bias else 1) if ddof is None else ddof
    return _operator("cov")(as_float(m), correction=correction)


def corrcoef(x: Any) -> Tensor:
    """Correlations of the rows."""
    return _operator("corrcoef")(as_float(x))


_OTHER = set(
    "annotations builtins tenon array_api as_float as_tensor Axes Any Callable Sequence Tensor".split()
)
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _OTHER)
