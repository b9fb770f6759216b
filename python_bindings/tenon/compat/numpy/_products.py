# SPDX-License-Identifier: Apache-2.0
"""NumPy's diagonals, products, integrals and covariances."""

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
    dtype_of,
    kind_of,
    promote,
    unified,
)
from tenon.compat.numpy._creation import arange
from tenon.compat.numpy._elementwise import diff, imag, real
from tenon.compat.numpy._layout import (
    broadcast_arrays,
    concatenate,
    expand_dims,
    moveaxis,
    squeeze,
    transpose,
    wanted_dtype,
)
from tenon.compat.numpy._ordering import put
from tenon.compat.numpy._reductions import sum as _total

__all__ = """corrcoef cov cross diag diagflat diagonal dot einsum fill_diagonal inner kron matmul matvec
outer tensordot trace trapezoid vander vdot vecdot vecmat""".split()

Axes = builtins.int | Sequence[builtins.int] | None


def diag(v: Any, k: builtins.int = 0) -> Tensor:
    """A diagonal of a matrix, as a view, or a matrix with this diagonal."""
    x = as_tensor(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag(): expected a vector or a matrix, got {x.ndim} axes")
    return _operator("diag")(x, k)


def diagflat(v: Any, k: builtins.int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    return _operator("diag")(as_tensor(v).reshape(-1), k)


def diagonal(
    a: Any, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1
) -> Tensor:
    """The diagonal of two axes, as a view with it in the last axis."""
    x = as_tensor(a)
    if x.ndim < 2:
        raise ValueError(f"diagonal(): expected at least two axes, got {x.ndim}")
    return _operator("diagonal")(x, offset, axis1, axis2)


def trace(
    a: Any,
    offset: builtins.int = 0,
    axis1: builtins.int = 0,
    axis2: builtins.int = 1,
    dtype: Any = None,
) -> Tensor:
    """The sum of the diagonal of two axes."""
    return _total(diagonal(a, offset, axis1, axis2), -1, dtype)


def fill_diagonal(a: Tensor, val: Any, wrap: bool = False) -> None:
    """Writes on the main diagonal, in place; with `wrap` again below the end of a tall matrix."""
    if not isinstance(a, Tensor):
        raise TypeError(f"fill_diagonal(): expected a tensor, got {type(a).__name__}")
    if a.ndim < 2:
        raise ValueError(f"fill_diagonal(): expected at least two axes, got {a.ndim}")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError(f"fill_diagonal(): expected axes of one length, got {tuple(a.shape)}")
    if a.ndim == 2:
        step = a.shape[1] + 1
        end = a.numel() if wrap else builtins.min(a.numel(), a.shape[1] * a.shape[1])
    else:
        step = 1 + builtins.sum(a.shape[0] ** i for i in range(1, a.ndim))
        end = a.numel()
    put(a, arange(0, end, step), val)


# -- products --------------------------------------------------------------------------------------


def dot(a: Any, b: Any) -> Tensor:
    """Products summed over the last axis of `a` and the last but one of `b`."""
    x, y = unified([as_tensor(a), as_tensor(b)])
    if x.ndim == 0 or y.ndim == 0:
        return _operator("multiply")(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (builtins.max(y.ndim - 2, 0),)))


def inner(a: Any, b: Any) -> Tensor:
    """Products summed over the last axes of both."""
    x, y = unified([as_tensor(a), as_tensor(b)])
    if x.ndim == 0 or y.ndim == 0:
        return _operator("multiply")(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


def outer(a: Any, b: Any) -> Tensor:
    """Products of every two elements."""
    x, y = unified([as_tensor(a), as_tensor(b)])
    return _operator("multiply")(x.reshape((-1, 1)), y.reshape((1, -1)))


def vdot(a: Any, b: Any) -> Tensor:
    """The product of two flat arrays, the first one conjugated."""
    x, y = (each.reshape(-1) for each in unified([as_tensor(a), as_tensor(b)]))
    return tensordot(_operator("conj")(x), y, 1)


def kron(a: Any, b: Any) -> Tensor:
    """Kronecker's product."""
    x, y = unified([as_tensor(a), as_tensor(b)])
    return _operator("kron")(x, y)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Products summed over axes."""
    x, y = unified([as_tensor(a), as_tensor(b)])
    if not isinstance(axes, builtins.int):
        first, second = axes
        axes = tuple(
            (each,) if isinstance(each, builtins.int) else tuple(each) for each in (first, second)
        )
    if x.dtype == tenon.bool:  # a sum of bools is whether one holds
        return tenon.linalg.tensordot(x.to(_core.int64), y.to(_core.int64), axes=axes) != 0
    return tenon.linalg.tensordot(x, y, axes=axes).to(dtype=x.dtype)


def einsum(*operands: Any, optimize: Any = False, dtype: Any = None) -> Tensor:
    """Einstein's summation, by a text; `optimize` says nothing about the result."""
    if not operands or not isinstance(operands[0], str):
        raise TypeError(
            "einsum(): expected a text of subscripts before the operands, as 'ij,jk->ik', got "
            f"{type(operands[0]).__name__ if operands else 'nothing'}"
        )
    values = unified([as_tensor(each) for each in operands[1:]], wanted_dtype(dtype))
    return _operator("einsum")(operands[0], values)


def _matmul(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype == tenon.bool:
        return _operator("matmul")(x.to(_core.int64), y.to(_core.int64)) != 0
    return _operator("matmul")(x, y).to(dtype=x.dtype)


def _products(name: str, multiply: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def function(x1: Any, x2: Any, dtype: Any = None) -> Tensor:
        x, y = unified([as_tensor(x1), as_tensor(x2)], wanted_dtype(dtype))
        return multiply(x, y)

    function.__doc__ = name
    return function


matmul = _products("The product of matrices, of vectors and of stacks of these.", _matmul)
matvec = _products("Matrices times vectors.", lambda x, y: _matmul(x, expand_dims(y, -1))[..., 0])
vecmat = _products(
    "Vectors, conjugated, times matrices.",
    lambda x, y: _matmul(expand_dims(_operator("conj")(x), -2), y)[..., 0, :],
)


def vecdot(
    x1: Any, x2: Any, axis: Any = LEFT_OUT, keepdims: bool = False, dtype: Any = None
) -> Tensor:
    """Products of vectors along an axis, the first ones conjugated."""
    x, y = unified([as_tensor(x1), as_tensor(x2)], wanted_dtype(dtype))
    axis = -1 if axis is LEFT_OUT else axis
    if x.dtype == tenon.bool:
        made = _operator("vecdot")(x.to(_core.int64), y.to(_core.int64), axis) != 0
    else:
        made = _operator("vecdot")(x, y, axis).to(dtype=x.dtype)
    return expand_dims(made, axis) if keepdims else made


def cross(
    a: Any,
    b: Any,
    axisa: builtins.int = -1,
    axisb: builtins.int = -1,
    axisc: builtins.int = -1,
    axis: builtins.int | None = None,
) -> Tensor:
    """Cross products of vectors of length 3."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = unified([as_tensor(a), as_tensor(b)])
    if x.dtype == tenon.bool:
        raise TypeError("cross(): expected numbers, got bool")
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError(
            f"cross(): expected vectors of length 3, got {x.shape[-1]} and {y.shape[-1]}"
        )
    x, y = broadcast_arrays(x, y)
    return moveaxis(_operator("cross")(x, y, -1), -1, axisc)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: builtins.int = -1) -> Tensor:
    """The integral along an axis by the trapezoidal rule."""
    values = moveaxis(as_float(y), axis, -1)
    if x is None:
        steps = as_float(dx)
    else:
        points = as_float(x)
        steps = diff(points) if points.ndim == 1 else diff(moveaxis(points, axis, -1))
    both = unified([steps, values])
    return ((both[1][..., 1:] + both[1][..., :-1]) / 2 * both[0]).sum(-1)


def vander(x: Any, N: builtins.int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector as columns, falling unless `increasing`."""
    value = as_tensor(x)
    if value.ndim != 1:
        raise ValueError(f"vander(): expected a vector, got {value.ndim} axes")
    value = value.to(dtype=promote(value.dtype, _core.int64))
    count = value.shape[0] if N is None else N
    powers = [_operator("ones_like")(value)]
    for _ in range(count - 1):
        powers.append(powers[-1] * value)
    powers = powers[:count]
    if not powers:
        return _operator("zeros")([value.shape[0], 0], dtype=value.dtype)
    return _operator("stack")(powers if increasing else powers[::-1], 1)


# -- covariances -----------------------------------------------------------------------------------


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: builtins.int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Tensor:
    """Covariances of the rows of `m`, and of `y` below it; of one row a number."""
    x = _observations(m, rowvar)
    if y is not None:
        x = concatenate([x, _observations(y, rowvar)])
    x = as_float(x)
    x = x if dtype is None else x.to(dtype=dtype_of(dtype))
    x = x.to(dtype=promote(x.dtype, _core.float64)) if dtype is None else x
    freedom = (0 if bias else 1) if ddof is None else ddof
    if freedom != int(freedom):
        raise ValueError(f"cov(): expected ddof to be a whole number, got {ddof}")
    weights = None
    for each in (fweights, aweights):
        if each is not None:
            one = as_tensor(each).to(dtype=_core.float64)
            if one.ndim != 1 or one.shape[0] != x.shape[1] or bool((one < 0).any()):
                raise ValueError(
                    f"cov(): expected a weight of at least 0 for each of {x.shape[1]} columns"
                )
            weights = one if weights is None else weights * one
    if weights is None:
        middle, total = x.mean(1, keepdim=True), float(x.shape[1])
        factor = total - freedom
    else:
        total = float(weights.sum())
        middle = ((x * weights).sum(1) / total).reshape((-1, 1))
        factor = total - freedom
        if aweights is not None and freedom:
            doubled = float((weights * as_tensor(aweights).to(dtype=_core.float64)).sum())
            factor = total - freedom * doubled / total
    off = x - middle
    other = off if weights is None else off * weights
    made = _operator("matmul")(off, _operator("conj")(_operator("transpose")(other, 0, 1)))
    made = made / builtins.max(factor, 0.0) if factor > 0 else made * math.inf
    return squeeze(made)


def _observations(m: Any, rowvar: bool) -> Tensor:
    x = as_tensor(m)
    if x.ndim > 2:
        raise ValueError(f"cov(): expected one or two axes, got {x.ndim}")
    x = x.reshape((1, -1)) if x.ndim < 2 else x
    return x if rowvar or x.shape[0] == 1 else transpose(x)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Tensor:
    """Correlations of the rows; of one row a number."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    spread = _operator("sqrt")(real(diagonal(c)))
    made = c / spread.reshape((-1, 1)) / spread.reshape((1, -1))
    if kind_of(made.dtype) == "c":
        parts = [_operator("clip")(part, -1.0, 1.0) for part in (real(made), imag(made))]
        return _operator("complex")(*parts)
    return _operator("clip")(made, -1.0, 1.0)
