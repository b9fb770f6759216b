# SPDX-License-Identifier: Apache-2.0
"""NumPy's reductions: of all elements, of those where a mask holds, of those that are numbers."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat._signature import LEFT_OUT
from tenon.compat.numpy._convert import (
    as_float,
    as_tensor,
    common_dtype,
    dtype_of,
    kind_of,
    unified,
)

Axes = builtins.int | Sequence[builtins.int] | None

__all__ = """all amax amin any argmax argmin average count_nonzero cumprod cumsum max mean median min nanargmax
nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd
nansum nanvar percentile prod ptp quantile std sum var""".split()


def _is_given(value: Any) -> bool:
    return value is not LEFT_OUT and value is not None


def _keeps(keepdims: Any) -> bool:
    if not _is_given(keepdims):
        return False
    if not isinstance(keepdims, (bool, builtins.int)):
        raise TypeError(f"expected keepdims True or False, got {keepdims!r}")
    return bool(keepdims)


def _reduced(name: str, x: Tensor, axis: Axes, keepdims: Any, *settings: Any) -> Tensor:
    """The operator over `axis`; over no axis, it is over axes of length 1 that are put in."""
    if isinstance(axis, (tuple, list)) and len(axis) == 0:
        return _operator(name)(x.reshape((*x.shape, 1)), -1, *settings, False)
    wanted = list(axis) if isinstance(axis, (tuple, list)) else axis
    return _operator(name)(x, wanted, *settings, _keeps(keepdims))


def _selected(x: Tensor, where: Any, instead: Any) -> Tensor:
    """`x` with `instead` where the mask does not hold."""
    if where is LEFT_OUT or where is True:
        return x
    mask = as_tensor(where).to(dtype=tenon.bool)
    other = as_tensor(instead, x.dtype)
    return _operator("where")(mask, x, other)


def _count(x: Tensor, axis: Axes, keepdims: Any, where: Any) -> Tensor:
    """How many elements are reduced into each result, in float64."""
    ones = _operator("ones")(list(x.shape), dtype=_core.float64)
    return _reduced("sum", _selected(ones, where, 0.0), axis, keepdims)


def _accumulator(dtype: Any) -> Any:
    """Sums of small whole numbers are of the widest of their kind."""
    if kind_of(dtype) in "bi":
        return _core.uint64 if dtype.name.startswith("uint") else _core.int64
    return dtype


# -- sums and products -----------------------------------------------------------------------------


def _accumulation(name: str, combine: str, identity: builtins.int) -> Callable[..., Tensor]:
    def function(
        a: Any,
        axis: Axes = None,
        dtype: Any = None,
        keepdims: Any = LEFT_OUT,
        initial: Any = LEFT_OUT,
        where: Any = LEFT_OUT,
    ) -> Tensor:
        x = as_tensor(a)
        wanted = _accumulator(x.dtype) if dtype is None else dtype_of(dtype)
        x = _selected(x.to(dtype=wanted), where, identity)
        result = _reduced(name, x, axis, keepdims).to(dtype=wanted)
        if _is_given(initial):
            result = _operator(combine)(result, as_tensor(initial, wanted))
        return result

    function.__doc__ = f"tenon.{name}, of the elements in `dtype` where the mask holds."
    return function


sum, prod = _accumulation("sum", "add", 0), _accumulation("prod", "multiply", 1)


def _extremum(name: str, combine: str) -> Callable[..., Tensor]:
    def function(
        a: Any,
        axis: Axes = None,
        keepdims: Any = LEFT_OUT,
        initial: Any = LEFT_OUT,
        where: Any = LEFT_OUT,
    ) -> Tensor:
        x = as_tensor(a)
        if not _is_given(initial):
            if where is not LEFT_OUT and where is not True:
                raise ValueError(
                    f"tenon.compat.numpy.{name}(): expected `initial` beside `where`, the result "
                    f"where no element counts"
                )
            return _reduced(name, x, axis, keepdims)
        start = as_tensor(initial, x.dtype)
        x = _selected(x, where, start)
        if x.numel() == 0:
            shape = _reduced("sum", x, axis, keepdims).shape
            return _operator("expand")(start, tuple(shape)).clone()
        return _operator(combine)(_reduced(name, x, axis, keepdims), start)

    function.__doc__ = f"tenon.{name}, of the elements where the mask holds and of `initial`."
    return function


max = amax = _extremum("max", "maximum")
min = amin = _extremum("min", "minimum")


def _truth(name: str, identity: bool) -> Callable[..., Tensor]:
    def function(
        a: Any, axis: Axes = None, keepdims: Any = LEFT_OUT, where: Any = LEFT_OUT
    ) -> Tensor:
        x = as_tensor(a)
        x = x if x.dtype == tenon.bool else x != 0
        return _reduced(name, _selected(x, where, identity), axis, keepdims)

    function.__doc__ = f"tenon.{name}, of the elements where the mask holds."
    return function


any, all = _truth("any", False), _truth("all", True)


def _position(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: builtins.int | None = None, keepdims: Any = LEFT_OUT) -> Tensor:
        x = as_tensor(a)
        x = x.to(dtype=_core.uint8) if x.dtype == tenon.bool else x
        return _operator(name)(x, axis, _keeps(keepdims))

    function.__doc__ = f"tenon.{name}."
    return function


argmax, argmin = _position("argmax"), _position("argmin")


def count_nonzero(a: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero."""
    x = as_tensor(a)
    x = x if x.dtype == tenon.bool else x != 0
    return _reduced("sum", x.to(dtype=_core.int64), axis, keepdims)


def ptp(a: Any, axis: Axes = None, keepdims: Any = LEFT_OUT) -> Tensor:
    """The difference of the largest and the smallest element."""
    return _operator("subtract")(max(a, axis, keepdims), min(a, axis, keepdims))


def _scan(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: builtins.int | None = None, dtype: Any = None) -> Tensor:
        x = as_tensor(a)
        wanted = _accumulator(x.dtype) if dtype is None else dtype_of(dtype)
        x = x.to(dtype=wanted)
        x = x.reshape(-1) if axis is None else x
        return _operator(name)(x, 0 if axis is None else axis).to(dtype=wanted)

    function.__doc__ = f"tenon.{name}; of the flat tensor without an axis."
    return function


cumsum, cumprod = _scan("cumsum"), _scan("cumprod")


# -- means and spreads -----------------------------------------------------------------------------


def mean(
    a: Any,
    axis: Axes = None,
    dtype: Any = None,
    keepdims: Any = LEFT_OUT,
    where: Any = LEFT_OUT,
) -> Tensor:
    """The mean of the elements in `dtype` where the mask holds."""
    x = as_float(a)
    if dtype is not None and kind_of(dtype_of(dtype)) in "bi":
        total = sum(a, axis, dtype, keepdims, where=where)
        parts = total.to(dtype=_core.float64) / _count(x, axis, keepdims, where)
        return parts.to(dtype=dtype_of(dtype))
    x = x if dtype is None else x.to(dtype=dtype_of(dtype))
    if where is LEFT_OUT or where is True:
        return _reduced("mean", as_float(x), axis, keepdims).to(dtype=x.dtype)
    total = _reduced("sum", _selected(x, where, 0), axis, keepdims)
    return (total / _count(x, axis, keepdims, where).to(dtype=x.dtype)).to(dtype=x.dtype)


def _floating_dtype(dtype: Any, x: Tensor) -> Any:
    """The dtype to compute a spread in: one that holds fractions, and complex only of complex numbers."""
    wanted = x.dtype if dtype is None else dtype_of(dtype)
    if kind_of(wanted) in "bi" or (kind_of(wanted) == "c") != (kind_of(x.dtype) == "c"):
        raise TypeError(f"expected a dtype of floats for the spread of {x.dtype}, got {wanted}")
    return wanted


def _freedom(ddof: Any, correction: Any) -> float:
    if correction is LEFT_OUT:
        return ddof
    if ddof != 0:
        raise ValueError("expected one of `ddof` and `correction`, got both")
    return correction


def var(
    a: Any,
    axis: Axes = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: Any = LEFT_OUT,
    where: Any = LEFT_OUT,
    mean: Any = LEFT_OUT,
    correction: Any = LEFT_OUT,
) -> Tensor:
    """The variance, of n - `ddof` degrees of freedom; of complex numbers that of their distances."""
    x = as_float(a)
    x = x.to(dtype=_floating_dtype(dtype, x))
    if mean is not LEFT_OUT:
        x = x.to(dtype=common_dtype([x, mean]))
    wanted = _operator("real")(x).dtype if kind_of(x.dtype) == "c" else x.dtype
    x = x.to(dtype=_core.float32) if x.dtype == _core.float16 else x
    count = _count(x, axis, keepdims, where)
    if mean is LEFT_OUT:
        total = _reduced("sum", _selected(x, where, 0), axis, True)
        middle = total / _count(x, axis, True, where).to(dtype=x.dtype)
        if isinstance(axis, (tuple, list)) and len(axis) == 0:
            middle = middle.reshape(tuple(x.shape))
    else:
        middle = as_tensor(mean).to(dtype=x.dtype)
    off = x - middle
    square = off.abs() ** 2 if kind_of(x.dtype) == "c" else off * off
    total = _reduced("sum", _selected(square, where, 0), axis, keepdims)
    freedom = _operator("maximum")(count - float(_freedom(ddof, correction)), 0.0)
    made = (total / freedom.to(dtype=total.dtype)).to(dtype=wanted)
    return made if dtype is None else made.to(dtype=dtype_of(dtype))


def std(
    a: Any,
    axis: Axes = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: Any = LEFT_OUT,
    where: Any = LEFT_OUT,
    mean: Any = LEFT_OUT,
    correction: Any = LEFT_OUT,
) -> Tensor:
    """The standard deviation: the root of var()."""
    return _operator("sqrt")(var(a, axis, dtype, ddof, keepdims, where, mean, correction))


def average(
    a: Any,
    axis: Axes = None,
    weights: Any = None,
    returned: bool = False,
    keepdims: Any = LEFT_OUT,
) -> Any:
    """The mean by weights, of the shape of `a` or a vector along `axis`; with `returned`, the sum of
    the weights, too."""
    x = as_tensor(a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        total = _count(x, axis, keepdims, LEFT_OUT).to(dtype=result.dtype)
        return (result, total) if returned else result
    w = as_tensor(weights)
    if tuple(w.shape) != tuple(x.shape):
        if axis is None:
            raise TypeError(
                f"tenon.compat.numpy.average(): expected an axis beside weights of shape "
                f"{tuple(w.shape)}, which is not that of the elements, {tuple(x.shape)}"
            )
        axes = [each % x.ndim for each in ([axis] if isinstance(axis, builtins.int) else axis)]
        if [x.shape[each] for each in axes] != list(w.shape):
            raise ValueError(
                f"tenon.compat.numpy.average(): expected weights of the shape along the axes {axes}, "
                f"{tuple(x.shape[each] for each in axes)}, got {tuple(w.shape)}"
            )
        order = sorted(range(len(axes)), key=axes.__getitem__)
        lengths = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
        w = _operator("permute")(w, order).reshape(lengths)
    x, w = unified([x, w])
    if kind_of(x.dtype) in "bi":
        x, w = as_float(x), as_float(w)
    total = sum(_operator("expand")(w, tuple(x.shape)), axis, keepdims=keepdims)
    if bool((total == 0).any()):
        raise ZeroDivisionError(
            "tenon.compat.numpy.average(): expected weights whose sum is not zero"
        )
    result = sum(x * w, axis, keepdims=keepdims) / total
    return (result, total) if returned else result


# -- of the elements that are numbers --------------------------------------------------------------


def _is_nan(x: Tensor) -> Tensor | None:
    return _operator("isnan")(x) if kind_of(x.dtype) in "fc" else None


def _without_nan(x: Tensor, instead: float) -> Tensor:
    missing = _is_nan(x)
    return x if missing is None else _operator("where")(missing, as_tensor(instead, x.dtype), x)


def _nan_accumulation(function: Callable[..., Tensor], identity: float) -> Callable[..., Tensor]:
    def reduce(
        a: Any,
        axis: Axes = None,
        dtype: Any = None,
        keepdims: Any = LEFT_OUT,
        initial: Any = LEFT_OUT,
        where: Any = LEFT_OUT,
    ) -> Tensor:
        return function(_without_nan(as_tensor(a), identity), axis, dtype, keepdims, initial, where)

    reduce.__doc__ = f"{function.__name__}() of the elements that are numbers."
    return reduce


nansum, nanprod = _nan_accumulation(sum, 0.0), _nan_accumulation(prod, 1.0)


def _nan_extremum(function: Callable[..., Tensor], instead: float) -> Callable[..., Tensor]:
    def reduce(
        a: Any,
        axis: Axes = None,
        keepdims: Any = LEFT_OUT,
        initial: Any = LEFT_OUT,
        where: Any = LEFT_OUT,
    ) -> Tensor:
        x = as_tensor(a)
        missing = _is_nan(x)
        if missing is None:
            return function(x, axis, keepdims, initial, where)
        result = function(_without_nan(x, instead), axis, keepdims, initial, where)
        if _is_given(initial):
            return result
        is_all = _reduced("all", missing, axis, keepdims)
        return _operator("where")(is_all, as_tensor(math.nan, result.dtype), result)

    reduce.__doc__ = "The same of the elements that are numbers."
    return reduce


nanmax, nanmin = _nan_extremum(max, -math.inf), _nan_extremum(min, math.inf)


def _nan_position(function: Callable[..., Tensor], instead: float) -> Callable[..., Tensor]:
    def reduce(a: Any, axis: builtins.int | None = None, keepdims: Any = LEFT_OUT) -> Tensor:
        x = as_tensor(a)
        missing = _is_nan(x)
        if missing is not None and bool(_reduced("all", missing, axis, False).any()):
            raise ValueError("expected a number in each slice, got one of NaN alone")
        return function(_without_nan(x, instead), axis, keepdims)

    reduce.__doc__ = "The same of the elements that are numbers."
    return reduce


nanargmax, nanargmin = _nan_position(argmax, -math.inf), _nan_position(argmin, math.inf)


def nancumsum(a: Any, axis: builtins.int | None = None, dtype: Any = None) -> Tensor:
    """Running sums, NaN counted as 0."""
    return cumsum(_without_nan(as_tensor(a), 0.0), axis, dtype)


def nancumprod(a: Any, axis: builtins.int | None = None, dtype: Any = None) -> Tensor:
    """Running products, NaN counted as 1."""
    return cumprod(_without_nan(as_tensor(a), 1.0), axis, dtype)


def _known(x: Tensor, where: Any) -> Any:
    """The mask of the elements that are numbers and count."""
    missing = _is_nan(x)
    if missing is None:
        return where
    known = ~missing
    return known if where is LEFT_OUT or where is True else known & as_tensor(where)


def nanmean(
    a: Any,
    axis: Axes = None,
    dtype: Any = None,
    keepdims: Any = LEFT_OUT,
    where: Any = LEFT_OUT,
) -> Tensor:
    """The mean of the elements that are numbers."""
    x = as_tensor(a)
    return mean(_without_nan(x, 0.0), axis, dtype, keepdims, _known(x, where))


def nanvar(
    a: Any,
    axis: Axes = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: Any = LEFT_OUT,
    where: Any = LEFT_OUT,
    mean: Any = LEFT_OUT,
    correction: Any = LEFT_OUT,
) -> Tensor:
    """The variance of the elements that are numbers; NaN where there are `ddof` or fewer."""
    x = as_tensor(a)
    if _is_nan(x) is None:
        return var(x, axis, dtype, ddof, keepdims, where, mean, correction)
    known = _known(x, where)
    freedom = _freedom(ddof, correction)
    if mean is not LEFT_OUT:
        mean = as_tensor(mean).to(dtype=x.dtype)
    result = var(_without_nan(x, 0.0), axis, dtype, freedom, keepdims, known, mean)
    count = _count(x, axis, keepdims, known)
    return _operator("where")(count > float(freedom), result, as_tensor(math.nan, result.dtype))


def nanstd(
    a: Any,
    axis: Axes = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: Any = LEFT_OUT,
    where: Any = LEFT_OUT,
    mean: Any = LEFT_OUT,
    correction: Any = LEFT_OUT,
) -> Tensor:
    """The standard deviation of the elements that are numbers."""
    return _operator("sqrt")(nanvar(a, axis, dtype, ddof, keepdims, where, mean, correction))


# -- order statistics ------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def _along_last(x: Tensor, axis: Axes) -> tuple[Tensor, list[builtins.int]]:
    """`x` with the elements of `axis` in its last one, and the lengths that keep these axes."""
    axes = list(range(x.ndim)) if axis is None else axis
    axes = [axes] if isinstance(axes, builtins.int) else list(axes)
    axes = [each % x.ndim if x.ndim else each for each in axes]
    rest = [i for i in range(x.ndim) if i not in axes]
    lengths = [1 if i in axes else x.shape[i] for i in range(x.ndim)]
    moved = _operator("permute")(x, [*rest, *axes]) if x.ndim else x
    count = math.prod(x.shape[i] for i in axes)
    return moved.reshape([*(x.shape[i] for i in rest), count]), lengths


def _real(name: str, a: Any) -> Tensor:
    x = as_float(a)
    if kind_of(x.dtype) == "c":
        raise TypeError(
            f"tenon.compat.numpy.{name}(): expected real numbers, whose order has a meaning, got {x.dtype}"
        )
    return x


def _median(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: Axes = None, keepdims: Any = LEFT_OUT) -> Tensor:
        x = _real(name, a)
        flat, lengths = _along_last(x, axis)
        half = 0.5
        result = getattr(tenon, name.replace("median", "quantile"))(flat, half, -1)
        result = result.to(dtype=x.dtype)
        return result.reshape(lengths) if _keeps(keepdims) else result

    function.__doc__ = "The middle element, or the mean of the two in the middle."
    return function


median, nanmedian = _median("median"), _median("nanmedian")


def _of_order(x: Tensor, at: Tensor, axis: Axes, method: str, keepdims: Any) -> Tensor:
    """Quantiles that are elements, of whole numbers, which stay as they are."""
    flat, lengths = _along_last(x, axis)
    place = at.reshape(-1) * (flat.shape[-1] - 1)
    name = {"lower": "floor", "higher": "ceil", "nearest": "round"}[method]
    index = _operator(name)(place).to(dtype=_core.int64)
    ordered = _operator("sort")(flat.to(dtype=_core.uint8) if x.dtype == tenon.bool else flat, -1)
    found = _operator("movedim")(_operator("index_select")(ordered, index, -1), -1, 0)
    inner = lengths if _keeps(keepdims) else list(flat.shape[:-1])
    return found.to(dtype=x.dtype).reshape([*at.shape, *inner])


def _quantile(name: str, parts: float) -> Callable[..., Tensor]:
    operator = "nanquantile" if name.startswith("nan") else "quantile"

    def function(
        a: Any, q: Any, axis: Axes = None, method: str = "linear", keepdims: Any = False
    ) -> Tensor:
        if method not in _METHODS:
            raise ValueError(
                f"tenon.compat.numpy.{name}(): expected a method of {', '.join(_METHODS)}, got {method!r}"
            )
        given = as_tensor(a)
        if kind_of(given.dtype) in "bi" and method in ("lower", "higher", "nearest"):
            return _of_order(given, as_float(q) / parts, axis, method, keepdims)
        x = _real(name, a)
        is_number = type(q) in (bool, builtins.int, float)
        at = as_float(q) / parts
        keeps_dtype = is_number or method in ("lower", "higher", "nearest")
        dtype = x.dtype if keeps_dtype else common_dtype([x, at])
        flat, lengths = _along_last(x, axis)
        result = getattr(tenon, operator)(
            flat.to(dtype=dtype), at.to(dtype=dtype).reshape(-1), -1, method=method
        )
        inner = lengths if _keeps(keepdims) else list(flat.shape[:-1])
        return result.reshape([*at.shape, *inner])

    function.__doc__ = f"{operator}() of {'hundredths' if parts > 1 else 'fractions'}."
    return function


quantile, nanquantile = _quantile("quantile", 1.0), _quantile("nanquantile", 1.0)
percentile, nanpercentile = _quantile("percentile", 100.0), _quantile("nanpercentile", 100.0)
