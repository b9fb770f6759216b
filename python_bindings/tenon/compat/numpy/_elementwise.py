# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions of each element that are no universal functions."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat._signature import LEFT_OUT
from tenon.compat.numpy import _ufuncs
from tenon.compat.numpy._convert import (
    as_tensor,
    common_dtype,
    kind_of,
    unified,
)
from tenon.compat.numpy._layout import concatenate, copies, moveaxis
from tenon.compat.numpy._ordering import nonzero

__all__ = """allclose angle around array_equal clip diff fix i0 imag isclose isneginf isposinf nan_to_num
real round sinc where""".split()

Axes = builtins.int | Sequence[builtins.int] | None


def round(a: Any, decimals: builtins.int = 0) -> Tensor:
    """Elements rounded to decimals, halves to even ones."""
    x = as_tensor(a)
    kind = kind_of(x.dtype)
    if kind == "b":
        return x.to(dtype=_core.float16)
    if kind == "i" and decimals >= 0:
        return x.clone()
    scale = 10.0 ** abs(decimals)
    if kind == "i":
        wide = _operator("round")(x.to(dtype=_core.float64) / scale) * scale
        return wide.to(dtype=x.dtype)
    if kind == "c":
        parts = [round(_operator(each)(x), decimals) for each in ("real", "imag")]
        return _operator("complex")(*parts)
    if decimals == 0:
        return _operator("round")(x)
    scaled = x * scale if decimals > 0 else x / scale
    rounded = _operator("round")(scaled)
    rounded = rounded / scale if decimals > 0 else rounded * scale
    # What is beyond the numbers when it is scaled has no decimals.
    return _operator("where")(_operator("isfinite")(scaled), rounded, x)


around = round


def fix(x: Any) -> Tensor:
    """Whole parts."""
    value = as_tensor(x)
    return _operator("trunc")(value) if kind_of(value.dtype) == "f" else value.clone()


def real(val: Any) -> Tensor:
    """The real parts; of a real array itself."""
    x = as_tensor(val)
    return _operator("as_real")(x)[..., 0] if kind_of(x.dtype) == "c" else x


def imag(val: Any) -> Tensor:
    """The imaginary parts; 0 of real numbers."""
    x = as_tensor(val)
    return (
        _operator("as_real")(x)[..., 1] if kind_of(x.dtype) == "c" else _operator("zeros_like")(x)
    )


def angle(z: Any, deg: bool = False) -> Tensor:
    """The angles of complex numbers, in degrees if that is requested."""
    x = as_tensor(z)
    made = _ufuncs.FUNCTIONS["arctan2"](imag(x), real(x))
    return _operator("rad2deg")(made) if deg else made


def clip(
    a: Any,
    a_min: Any = LEFT_OUT,
    a_max: Any = LEFT_OUT,
    *,
    min: Any = LEFT_OUT,
    max: Any = LEFT_OUT,
) -> Tensor:
    """Elements moved into a range; a bound that is None or left out does not count."""
    if (a_min is not LEFT_OUT or a_max is not LEFT_OUT) and (
        min is not LEFT_OUT or max is not LEFT_OUT
    ):
        raise ValueError("clip(): expected `a_min` and `a_max`, or `min` and `max`, got of both")
    low, high = (min, max) if a_min is LEFT_OUT and a_max is LEFT_OUT else (a_min, a_max)
    low, high = (None if each is LEFT_OUT else each for each in (low, high))
    given = [each for each in (low, high) if each is not None]
    result = as_tensor(a)
    result = result.to(dtype=common_dtype([result, *given]))
    if low is not None:
        result = _ufuncs.FUNCTIONS["maximum"](result, low)
    if high is not None:
        result = _ufuncs.FUNCTIONS["minimum"](result, high)
    return result if given else result.clone()


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """With numbers for NaN and infinities; without `copy` in place."""
    copy = copies("nan_to_num", copy)
    value = as_tensor(x)
    kind = kind_of(value.dtype)
    if kind in "bi":
        made = value.clone() if copy else value
    elif kind == "c":
        parts = [
            nan_to_num(_operator(e)(value), True, nan, posinf, neginf) for e in ("real", "imag")
        ]
        made = _operator("complex")(*parts)
    else:
        made = _operator("nan_to_num")(value, nan, posinf, neginf)
    if copy or made is value:
        return made
    if not isinstance(x, Tensor):
        raise TypeError("nan_to_num(): expected a tensor to write to where copy is False")
    _operator("clone")(made, out=x)
    return x


def sinc(x: Any) -> Tensor:
    """sin(pi x) / (pi x)."""
    return _operator("sinc")(_floating(x))


def i0(x: Any) -> Tensor:
    """The modified Bessel function of order 0, in float64."""
    value = as_tensor(x)
    if kind_of(value.dtype) == "c":
        raise TypeError(f"i0(): expected real numbers, got {value.dtype}")
    return _operator("i0")(value.to(dtype=_core.float64)).to(dtype=_floating(value).dtype)


def _floating(x: Any) -> Tensor:
    value = as_tensor(x)
    return value.to(dtype=_core.float64) if kind_of(value.dtype) in "bi" else value


def isneginf(x: Any) -> Tensor:
    """Where elements are minus infinity."""
    return _infinite("isneginf", x)


def isposinf(x: Any) -> Tensor:
    """Where elements are infinity."""
    return _infinite("isposinf", x)


def _infinite(name: str, x: Any) -> Tensor:
    value = as_tensor(x)
    if kind_of(value.dtype) == "c":
        raise TypeError(f"{name}(): expected real numbers, got {value.dtype}")
    return _operator(name)(value)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` or of `y`; with a condition alone, the indices where it holds."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("where(): expected both or neither of `x` and `y`, got one")
    mask = as_tensor(condition)
    mask = mask if mask.dtype == tenon.bool else mask != 0
    return _operator("where")(mask, *unified([x, y]))


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where elements are close: |a - b| <= atol + rtol * |b|."""
    x, y = unified([a, b])
    x, y = (_floating(each) for each in (x, y))
    return _operator("isclose")(x, y, float(rtol), float(atol), equal_nan)


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether both have the same shape and elements."""
    x, y = as_tensor(a1), as_tensor(a2)
    if tuple(x.shape) != tuple(y.shape):
        return False
    x, y = unified([x, y])
    same = x == y
    if equal_nan and kind_of(x.dtype) in "fc":
        same = same | (_operator("isnan")(x) & _operator("isnan")(y))
    return bool(same.all())


def diff(
    a: Any,
    n: builtins.int = 1,
    axis: builtins.int = -1,
    prepend: Any = LEFT_OUT,
    append: Any = LEFT_OUT,
) -> Tensor:
    """Differences of neighbours, `n` times; of bools whether they differ."""
    x = as_tensor(a)
    if n < 0:
        raise ValueError(f"diff(): expected n of at least 0, got {n}")
    if x.ndim == 0:
        raise ValueError("diff(): expected at least one axis, got a 0-d array")
    if n == 0:
        return x
    parts = [x]
    for more, at in ((prepend, 0), (append, len(parts))):
        if more is not LEFT_OUT:
            edge = as_tensor(more)
            if edge.ndim == 0:
                lengths = list(x.shape)
                lengths[axis] = 1
                edge = _operator("expand")(edge, lengths)
            parts.insert(0 if at == 0 else len(parts), edge)
    x = concatenate(parts, axis) if len(parts) > 1 else x
    y = moveaxis(x, axis, -1)
    for _ in range(n):
        later, earlier = y[..., 1:], y[..., :-1]
        y = later != earlier if y.dtype == tenon.bool else later - earlier
    return moveaxis(y, -1, axis)
