# SPDX-License-Identifier: Apache-2.0
"""The namespace of the Python array API standard, revision 2025.12.

`x.__array_namespace__()` gives this module. Names, parameters, defaults and results are those of
the standard, also where Tenon's own function of the name differs: nonzero() gives a tuple,
meshgrid() takes its vectors one by one, sum() and prod() have `dtype`. What agrees with the
standard is the operator itself. docs/array_api.md says which special cases differ, and why.
"""

from __future__ import annotations

from builtins import bool as _bool
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import (
    Tensor,
    asarray,
    complex64,
    complex128,
    float32,
    float64,
    from_dlpack,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tenon._core import operator as _operator
from tenon._tensor.array_api import (
    __array_namespace_info__,
    astype,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    can_cast,
    cumulative_prod,
    cumulative_sum,
    expand_dims,
    finfo,
    iinfo,
    isdtype,
    isin,
    matrix_transpose,
    moveaxis,
    permute_dims,
    result_type,
    take,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    unstack,
)
from tenon._tensor.ports import filled
from tenon.linalg import tensordot, vecdot

__array_api_version__ = "2025.12"

bool = _core.dtype("bool")
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

# Operators whose parameters and results are those of the standard.
_SAME = frozenset(
    "abs acos acosh add arange asin asinh atan atan2 atanh bitwise_and bitwise_invert "
    "bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh "
    "divide empty empty_like equal exp expm1 flip floor floor_divide greater greater_equal hypot imag "
    "isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and "
    "logical_not logical_or logical_xor matmul maximum minimum multiply negative nextafter not_equal "
    "ones ones_like positive pow real reciprocal remainder roll round sign signbit sin sinh sqrt square "
    "squeeze stack subtract take_along_axis tan tanh tile trunc where zeros zeros_like".split()
)

# The functions below hide Python's own of the same names.
_max, _min = max, min

Axes = int | Sequence[int] | None


# -- creation --------------------------------------------------------------------------------------


def _diagonal(k: int, rows: int, columns: int) -> int:
    """The number of a diagonal, which may be any int: those outside of the matrix are all alike."""
    return _max(-rows, _min(k, columns))


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """A matrix [n_rows, n_cols], square without `n_cols`, with ones on diagonal `k`."""
    offset = _diagonal(k, n_rows, n_rows if n_cols is None else n_cols)
    return _operator("eye")(n_rows, n_cols, offset=offset, dtype=dtype, device=device)


def full(
    shape: int | Sequence[int], fill_value: Any, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """A tensor of this shape whose elements are `fill_value`, a number or a tensor without axes."""
    if isinstance(fill_value, Tensor):
        return filled(shape, fill_value, dtype or fill_value.dtype, device)
    return _operator("full")(shape, fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of the shape of `x` whose elements are `fill_value`, a number or a tensor without axes."""
    if isinstance(fill_value, Tensor):
        return filled(x.shape, fill_value, dtype or x.dtype, device or x.device)
    return _operator("full_like")(x, fill_value, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors; 'xy' exchanges the first two axes of what 'ij' gives."""
    return tuple(_operator("meshgrid")(list(arrays), indexing)) if arrays else ()


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, up to diagonal `k`; zeros elsewhere."""
    return _operator("tril")(x, _diagonal(k, *x.shape[-2:]))


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, from diagonal `k` on; zeros elsewhere."""
    return _operator("triu")(x, _diagonal(k, *x.shape[-2:]))


# -- manipulation ----------------------------------------------------------------------------------


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along an axis; without one, all their elements in one vector."""
    if axis is None:
        return _operator("concat")([each.reshape(-1) for each in arrays], 0)
    return _operator("concat")(list(arrays), axis)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element along `axis` repeated; of the flat tensor without one. `repeats` is a number,
    or a vector with one for each element."""
    if not isinstance(repeats, Tensor):
        return _operator("repeat")(x, repeats, axis)
    if axis is None:
        x, axis = x.reshape(-1), 0
    counts = broadcast_to(repeats, (x.shape[axis],))
    ends = _operator("cumsum")(counts.to(int64), 0)
    total = int(ends[-1]) if ends.numel() else 0
    index = _operator("arange")(total, dtype=int64, device=x.device)
    return _operator("index_select")(x, _operator("searchsorted")(ends, index, True), axis)


def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: _bool | None = None) -> Tensor:
    """The elements of `x` in another shape. `copy` true: in new memory; false: in the same memory,
    or ValueError; None: in the same where that is possible."""
    if copy:
        return _operator("reshape")(_operator("clone")(x), shape)
    result = _operator("reshape")(x, shape)
    if copy is False and x.numel() > 0 and result.data_ptr() != x.data_ptr():
        raise ValueError(
            f"reshape(): expected a shape that a view of a tensor of shape {tuple(x.shape)} and these "
            f"strides can have, got {shape} with copy=False; leave copy out to allow a copy"
        )
    return result


# -- searching and sorting -------------------------------------------------------------------------


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: _bool = False) -> Tensor:
    """Where the largest element is, the first of equals; in the flat tensor without an axis."""
    return _operator("argmax")(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: _bool = False) -> Tensor:
    """Where the smallest element is, the first of equals; in the flat tensor without an axis."""
    return _operator("argmin")(x, axis, keepdims)


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: _bool = False, stable: _bool = True
) -> Tensor:
    """The indices that sort `x`. Tenon's sort is stable, so that `stable` changes nothing."""
    return _operator("argsort")(x, axis, descending)


def sort(
    x: Tensor, /, *, axis: int = -1, descending: _bool = False, stable: _bool = True
) -> Tensor:
    """The elements of `x` in order. Tenon's sort is stable, so that `stable` changes nothing."""
    return _operator("sort")(x, axis, descending)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: _bool = False) -> Tensor:
    """How many elements over `axis` are not zero."""
    return _operator("count_nonzero")(x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero: one vector for each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero(): expected a tensor of at least one axis, got one of none")
    return tuple(_operator("unbind")(_operator("nonzero")(x), 1))


def searchsorted(
    x1: Tensor, x2: Tensor | int | float, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where each element of `x2` would go in the ascending vector `x1`, or in `x1[sorter]`: before
    equal elements, or after them with side 'right'."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): expected side 'left' or 'right', got {side!r}")
    known = x1 if sorter is None else _operator("index_select")(x1, sorter, 0)
    if not isinstance(x2, Tensor):  # a number of x1's dtype, which may be beyond int64
        x2 = asarray(x2, dtype=x1.dtype, device=x1.device)
    return _operator("searchsorted")(known, x2, side == "right")


# -- statistics ------------------------------------------------------------------------------------


def all(x: Tensor, /, *, axis: Axes = None, keepdims: _bool = False) -> Tensor:
    """Whether all elements over `axis` are not zero."""
    return _operator("all")(x, axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: _bool = False) -> Tensor:
    """Whether any element over `axis` is not zero."""
    return _operator("any")(x, axis, keepdims)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: _bool = False) -> Tensor:
    """The largest element over `axis`."""
    return _operator("max")(x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: _bool = False) -> Tensor:
    """The smallest element over `axis`."""
    return _operator("min")(x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: _bool = False) -> Tensor:
    """The arithmetic mean over `axis`."""
    return _operator("mean")(x, axis, keepdims)


def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: _bool = False
) -> Tensor:
    """The standard deviation over `axis`, of n - `correction` degrees of freedom."""
    return _operator("std")(x, axis, correction, keepdims)


def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: _bool = False
) -> Tensor:
    """The variance over `axis`, of n - `correction` degrees of freedom."""
    return _operator("var")(x, axis, correction, keepdims)


def _accumulated(name: str, x: Tensor, axis: Axes, dtype: Any, keepdims: _bool) -> Tensor:
    if dtype is None:
        return _operator(name)(x, axis, keepdims)
    result = _operator(name)(x.to(dtype=dtype), axis, keepdims)
    return result.to(dtype=dtype)  # small integers are accumulated in a wider dtype


def sum(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: _bool = False) -> Tensor:
    """The sum over `axis`, of the elements in `dtype`; without it integers add up in int64 or
    uint64."""
    return _accumulated("sum", x, axis, dtype, keepdims)


def prod(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: _bool = False) -> Tensor:
    """The product over `axis`, of the elements in `dtype`; without it integers multiply in int64 or
    uint64."""
    return _accumulated("prod", x, axis, dtype, keepdims)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along `axis`, `n` times, after `prepend` and `append` were
    joined."""
    if n < 0:
        raise ValueError(f"diff(): expected n of at least 0, got {n}")
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = _operator("concat")(parts, axis)
    for _ in range(n):
        x = _operator("diff")(x, axis)
    return x


def __getattr__(name: str) -> Any:
    if name in _SAME:
        value = _operator(name)
    elif name in ("linalg", "fft"):
        value = getattr(tenon, name)
    else:
        from tenon.ops._suggestions import did_you_mean  # for errors only

        hint = did_you_mean(name, __dir__())
        raise AttributeError(f"module 'tenon.array_api' has no attribute '{name}'{hint}")
    globals()[name] = value
    return value


_OTHER = {"Any", "Axes", "Sequence", "Tensor", "annotations", "tenon"}


def __dir__() -> list[str]:
    own = {name for name in globals() if not name.startswith("_")} - _OTHER
    return sorted(own | _SAME | {"linalg", "fft", "__array_namespace_info__"})


__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "astype",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "complex64",
    "complex128",
    "concat",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "e",
    "expand_dims",
    "eye",
    "finfo",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "isin",
    "matrix_transpose",
    "max",
    "mean",
    "meshgrid",
    "min",
    "moveaxis",
    "nan",
    "newaxis",
    "nonzero",
    "permute_dims",
    "pi",
    "prod",
    "repeat",
    "reshape",
    "result_type",
    "searchsorted",
    "sort",
    "std",
    "sum",
    "take",
    "tensordot",
    "tril",
    "triu",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
]
