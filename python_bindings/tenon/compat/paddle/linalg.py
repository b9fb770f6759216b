# SPDX-License-Identifier: Apache-2.0
"""paddle.linalg: matrices by Paddle's parameters and defaults."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat._signed import bound
from tenon.compat.numpy._functions import cov as weighted_cov
from tenon.compat.paddle import _composed as composed
from tenon.compat.paddle._signatures import LINALG


def _of_one(name: str) -> Callable[..., Any]:
    def function(x: Tensor) -> Any:
        return getattr(tenon.linalg, name)(x)

    function.__doc__ = f"tenon.linalg.{name}."
    return function


det, eig, eigvals, inv, svdvals = map(_of_one, "det eig eigvals inv svdvals".split())


def matrix_exp(x: Tensor) -> Tensor:
    """The exponentials of matrices."""
    return _operator("matrix_exp")(x)


def matrix_transpose(x: Tensor) -> Tensor:
    """The last two axes exchanged."""
    return _operator("transpose")(x, -2, -1)


def multi_dot(x: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that costs least."""
    return _operator("multi_dot")(list(x))


def slogdet(x: Tensor) -> Tensor:
    """Signs and logarithms of determinants, as one tensor [2, ...]."""
    sign, logarithm = tenon.linalg.slogdet(x)
    return _operator("stack")([sign, logarithm.to(dtype=sign.dtype)], 0)


def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The triangular factors of positive definite matrices."""
    return tenon.linalg.cholesky(x, upper=upper)


def cholesky_inverse(x: Tensor, upper: bool = False) -> Tensor:
    """The inverse of the matrix of which `x` is the triangular factor."""
    return _operator("cholesky_inverse")(x, upper=upper)


def cholesky_solve(x: Tensor, y: Tensor, upper: bool = False) -> Tensor:
    """The solution of a @ z = x, where `y` is the triangular factor of a."""
    return _operator("cholesky_solve")(x, y, upper=upper)


def eigh(x: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read."""
    return tenon.linalg.eigh(x, UPLO=UPLO)


def eigvalsh(x: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices, of which one triangle is read."""
    return tenon.linalg.eigvalsh(x, UPLO=UPLO)


def householder_product(x: Tensor, tau: Tensor) -> Tensor:
    """The product of reflections."""
    return _operator("householder_product")(x, tau)


def lu(x: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The factors of PA = LU in one matrix and the pivots, counted from 1; with `get_infos` zeros, as
    none failed."""
    if not pivot:
        raise NotImplementedError("linalg.lu(): expected pivot=True, got False")
    factors, pivots = _operator("lu_factor")(x)
    pivots = (pivots + 1).to(dtype=_core.int32)
    if not get_infos:
        return factors, pivots
    return factors, pivots, _operator("zeros")(list(x.shape[:-2]), dtype=_core.int32)


def lu_unpack(
    x: Tensor, y: Tensor, unpack_ludata: bool = True, unpack_pivots: bool = True
) -> tuple[Any, Any, Any]:
    """P, L and U of what lu() gives; None for what is not wanted."""
    p, lower, upper = _operator("lu_unpack")(x, y.to(dtype=_core.int64) - 1)
    pair = (lower, upper) if unpack_ludata else (None, None)
    return (p if unpack_pivots else None, *pair)


def lstsq(
    x: Tensor, y: Tensor, rcond: float | None = None, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution of least squares, sums of squares of what is left, rank and singular values."""
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(
            f"linalg.lstsq(): expected driver 'gels', 'gelsy', 'gelsd' or 'gelss', got {driver!r}"
        )
    solution, sums, rank, values = tenon.linalg.lstsq(x, y, rcond=rcond)
    # Which of them there are depends on LAPACK's routine.
    nothing = _operator("zeros")([0], dtype=x.dtype)
    if driver in (None, "gelsy"):
        sums = values = nothing
    elif driver == "gels":
        return solution, sums, _operator("zeros")([0], dtype=_core.int64), nothing
    return solution, sums, rank.to(dtype=_core.int32), values


def matrix_power(x: Tensor, n: builtins.int) -> Tensor:
    """A matrix times itself; its inverse where n is below 0."""
    return tenon.linalg.matrix_power(x, n)


def matrix_rank(
    x: Tensor, tol: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above `tol`, or above the larger of `atol` and `rtol` times the
    largest one; as int64."""
    if tol is not None and (atol is not None or rtol is not None):
        raise ValueError("linalg.matrix_rank(): expected `tol`, or `atol` and `rtol`, got of both")
    s = tenon.linalg.eigvalsh(x).abs() if hermitian else tenon.linalg.svdvals(x)
    largest = s.max(-1, keepdim=True)
    eps = float(tenon.finfo(s.dtype).eps) * builtins.max(x.shape[-2:])

    def each(value: Any) -> Any:
        return value.unsqueeze(-1) if isinstance(value, Tensor) and value.ndim else value

    if tol is not None:
        limit = each(tol)
    else:
        has_atol = atol is not None
        part = each(rtol) if rtol is not None else (0.0 if has_atol else eps)
        limit = _operator("maximum")(largest * part, each(atol) if has_atol else 0.0)
    return (s > limit).sum(-1)


def pinv(x: Tensor, rcond: Any = 1e-15, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse; singular values below `rcond` times the largest are taken for 0."""
    if hermitian:
        lower = _operator("tril")(x, -1)
        middle = _operator("diag_embed")(_operator("diagonal")(x, 0, -2, -1))
        x = lower + _operator("conj")(matrix_transpose(lower)) + middle
    return tenon.linalg.pinv(x, rtol=rcond)


def qr(x: Tensor, mode: str = "reduced") -> Any:
    """The factors Q and R; with mode "r" R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"linalg.qr(): expected mode 'reduced', 'complete' or 'r', got {mode!r}")
    found = tenon.linalg.qr(x, mode="reduced" if mode == "r" else mode)
    return found[1] if mode == "r" else found


def solve(x: Tensor, y: Tensor, left: bool = True) -> Tensor:
    """The solution of x @ z = y, or of z @ x = y where `left` is false."""
    if left:
        return tenon.linalg.solve(x, y)
    is_vector = y.ndim == x.ndim - 1
    if is_vector:
        return tenon.linalg.solve(matrix_transpose(x), y)
    return matrix_transpose(tenon.linalg.solve(matrix_transpose(x), matrix_transpose(y)))


def svd(x: Tensor, full_matrices: bool = False) -> Any:
    """The singular value decomposition (U, S, Vh)."""
    return tenon.linalg.svd(x, full_matrices=full_matrices)


def triangular_solve(
    x: Tensor,
    y: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Tensor:
    """The solution of x @ z = y with a triangular matrix, or with its transpose."""
    if transpose:
        x, upper = matrix_transpose(x), not upper
    return tenon.linalg.solve_triangular(x, y, upper=upper, unitriangular=unitriangular)


def corrcoef(x: Tensor, rowvar: bool = True) -> Tensor:
    """Correlations of the rows, or of the columns."""
    return _operator("corrcoef")(x if rowvar or x.ndim < 2 else x.T)


def cov(
    x: Tensor,
    rowvar: bool = True,
    ddof: bool = True,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariances of the rows, or of the columns; of n - 1 degrees of freedom where `ddof` is true."""
    given = x if rowvar or x.ndim < 2 else x.T
    return weighted_cov(
        given, ddof=builtins.int(ddof), fweights=fweights, aweights=aweights, dtype=x.dtype
    )


_MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf"))


def _of_vectors(x: Tensor, p: Any, axis: Any, keepdim: bool) -> Tensor:
    if isinstance(p, str):
        raise ValueError(f"linalg.norm(): expected a number for vectors, got p={p!r}")
    axes = None if axis is None else tuple(axis) if isinstance(axis, (list, tuple)) else axis
    return tenon.linalg.vector_norm(x, axis=axes, keepdims=keepdim, ord=p)


def matrix_norm(
    x: Tensor, p: Any = "fro", axis: Sequence[builtins.int] = (-2, -1), keepdim: bool = False
) -> Tensor:
    """The norms of the matrices of two axes."""
    if len(axis) != 2:
        raise ValueError(f"linalg.matrix_norm(): expected two axes, got {axis}")
    if p not in _MATRIX_ORDERS:
        raise ValueError(f"linalg.matrix_norm(): expected an order of a matrix's norm, got {p!r}")
    first, second = (each % x.ndim for each in axis)
    moved = _operator("movedim")(x, [first, second], [-2, -1])
    made = tenon.linalg.matrix_norm(moved, ord=p)
    for each in sorted((first, second)) if keepdim else ():
        made = _operator("unsqueeze")(made, each)
    return made


def vector_norm(
    x: Tensor, p: float = 2.0, axis: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norms of vectors along axes, or of all elements."""
    return _of_vectors(x if dtype is None else x.to(dtype=dtype), p, axis, keepdim)


def norm(
    x: Tensor, p: Any = None, axis: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of order `p`, 2 by default, of all elements as a vector, of vectors along an axis, or of
    matrices along two."""
    x = x if dtype is None else x.to(dtype=dtype)
    axes = [axis] if isinstance(axis, builtins.int) else None if axis is None else list(axis)
    if axes is not None and len(axes) == 2:
        return matrix_norm(x, 2 if p is None else p, axes, keepdim)
    if isinstance(p, str):
        if axes is None and p == "fro":
            return _of_vectors(x, 2.0, None, keepdim)
        if axes is None and x.ndim == 2:
            return matrix_norm(x, p, (0, 1), keepdim)
        raise ValueError(f"linalg.norm(): expected two axes for p={p!r}, got {axis}")
    return _of_vectors(
        x,
        2.0 if p is None else p,
        axis if axes is None else axes[0] if len(axes) == 1 else axes,
        keepdim,
    )


def cond(x: Tensor, p: Any = None) -> Tensor:
    """The condition numbers of matrices by a norm, 2 by default."""
    if p not in (None, *_MATRIX_ORDERS):
        raise ValueError(f"linalg.cond(): expected an order of a matrix's norm, got {p!r}")
    return tenon.linalg.cond(x, p)


cross, matmul = composed.cross, composed.matmul


def vecdot(x: Tensor, y: Tensor, axis: builtins.int = -1) -> Tensor:
    """Products summed over an axis, or without one over all, the first factor conjugated."""
    return (_operator("conj")(x) * y).sum(axis)


def diagonal(
    x: Tensor, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1
) -> Tensor:
    """The diagonals of two axes, as a view with them in the last axis."""
    return _operator("diagonal")(x, offset, axis1, axis2)


_FREE = {name: globals()[name] for name in LINALG}
for _name, _signature in LINALG.items():
    globals()[_name] = bound(
        f"tenon.compat.paddle.linalg.{_name}",
        _signature,
        _FREE[_name],
        ignored=frozenset({"name"}),
    )

__all__ = sorted(LINALG)


def __dir__() -> list[str]:
    return __all__
