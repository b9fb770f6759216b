# SPDX-License-Identifier: Apache-2.0
"""numpy.linalg: matrices as tensors, arrays or lists; whole numbers are float64."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat._signature import LEFT_OUT
from tenon.compat._signed import bound
from tenon.compat.numpy import _functions as base
from tenon.compat.numpy import _reductions as reductions
from tenon.compat.numpy._convert import as_float, as_tensor, unified
from tenon.compat.numpy._signatures import LINALG

LinAlgError = tenon.linalg.LinAlgError if hasattr(tenon.linalg, "LinAlgError") else ValueError


def _matrix(name: str, a: Any) -> Tensor:
    """Stacks of matrices in float32 and wider, as NumPy computes them."""
    x = as_float(a)
    if x.numel() == 0 and x.ndim >= 2 and name in ("cond", "matrix_rank"):
        raise ValueError(f"linalg.{name}(): expected elements, got shape {tuple(x.shape)}")
    if x.dtype.name in ("float16", "bfloat16"):
        raise TypeError(f"linalg.{name}(): expected float32 or wider, got {x.dtype}")
    if x.ndim < 2:
        raise ValueError(f"linalg.{name}(): expected at least two axes, got {x.ndim}")
    return x


def _two(name: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    x, y = unified([as_float(a), as_float(b)])
    return _matrix(name, x), y


def _of_matrix(name: str) -> Callable[..., Any]:
    def function(a: Any) -> Any:
        return getattr(tenon.linalg, name)(_matrix(name, a))

    function.__doc__ = f"tenon.linalg.{name}."
    return function


det, eig, eigvals, inv, slogdet = map(_of_matrix, "det eig eigvals inv slogdet".split())


def svdvals(x: Any) -> Tensor:
    """The singular values, the largest first."""
    return tenon.linalg.svdvals(_matrix("svdvals", x))


def cholesky(a: Any, upper: bool = False) -> Tensor:
    """The triangular factor of a positive definite matrix."""
    return tenon.linalg.cholesky(_matrix("cholesky", a), upper=upper)


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix, of which one triangle is read."""
    return tenon.linalg.eigh(_matrix("eigh", a), UPLO=UPLO)


def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a Hermitian matrix, of which one triangle is read."""
    return tenon.linalg.eigvalsh(_matrix("eigvalsh", a), UPLO=UPLO)


def solve(a: Any, b: Any) -> Tensor:
    """The solution of a @ x = b; b is a vector if it has one axis."""
    x, y = _two("solve", a, b)
    return tenon.linalg.solve(x, y)


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution of least squares, sums of squares of what is left, rank and singular values. What is
    left has no sums where the rank is below the number of columns, or rows are not more than columns."""
    x, y = _two("lstsq", a, b)
    if x.ndim != 2 or y.ndim not in (1, 2):
        raise ValueError(
            f"linalg.lstsq(): expected a matrix and a vector or matrix, got {x.ndim} and {y.ndim} axes"
        )
    rows, columns = x.shape
    u, s, vh = tenon.linalg.svd(x, full_matrices=False)
    limit = (
        float(tenon.finfo(x.dtype).eps) * builtins.max(rows, columns)
        if rcond is None
        else 0.0
        if rcond == -1
        else float(rcond)
    )
    known = s > limit * s.max() if s.numel() else s > 0
    rank = builtins.int(known.sum().item())
    inverse = _core.operator("where")(known, 1 / s, _core.operator("zeros_like")(s))
    right = y.reshape((rows, -1))
    part = inverse.reshape((-1, 1)) * (base.conj_transpose(u) @ right)
    solution = base.conj_transpose(vh) @ part
    rest = (right - x @ solution).abs() ** 2
    sums = rest.sum(0) if rank == columns and rows > columns else rest[:0, 0]
    return solution.reshape([columns, *y.shape[1:]]), sums, _core.tensor(rank, dtype="int32"), s


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, rtol: Any = LEFT_OUT) -> Tensor:
    """The pseudo-inverse; singular values below `rcond` times the largest are taken for 0."""
    x = _matrix("pinv", a)
    if rcond is not None and rtol is not LEFT_OUT:
        raise ValueError("linalg.pinv(): expected one of `rcond` and `rtol`, got both")
    limit = rcond if rcond is not None else rtol
    if limit is LEFT_OUT:
        limit = 1e-15
    if hermitian:
        x = _of_lower(x)
    if limit is None:
        return tenon.linalg.pinv(x)
    return tenon.linalg.pinv(x, rtol=limit if isinstance(limit, float) else as_float(limit))


def _of_lower(x: Tensor) -> Tensor:
    """The Hermitian matrix whose lower triangle is that of `x`."""
    lower = _core.operator("tril")(x, -1)
    middle = base.real(base.diagonal(x, 0, -2, -1))
    middle = _core.operator("diag_embed")(middle.to(dtype=x.dtype))
    return lower + base.conj_transpose(lower) + middle


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, rtol: Any = None) -> Tensor:
    """How many singular values are above `tol`, or `rtol` times the largest."""
    x = as_float(A)
    if x.ndim < 2:
        return base.any_nonzero(x).to(dtype=_core.int64)
    if tol is not None and rtol is not None:
        raise ValueError("linalg.matrix_rank(): expected one of `tol` and `rtol`, got both")
    s = tenon.linalg.eigvalsh(x).abs() if hermitian else tenon.linalg.svdvals(x)
    if tol is not None:
        limit = base.expand_dims(as_float(tol), -1)
    else:
        eps = float(tenon.finfo(s.dtype).eps)
        part = builtins.max(x.shape[-2:]) * eps if rtol is None else as_float(rtol)
        part = base.expand_dims(part, -1) if isinstance(part, Tensor) else part
        limit = s.max(-1, keepdim=True) * part
    return (s > limit).sum(-1)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """The singular value decomposition (U, S, Vh), or without `compute_uv` the singular values."""
    x = _matrix("svd", a)
    if hermitian:
        x = _of_lower(x)
    return (
        tenon.linalg.svd(x, full_matrices=full_matrices) if compute_uv else tenon.linalg.svdvals(x)
    )


def qr(a: Any, mode: str = "reduced") -> Any:
    """The factors Q and R; with mode "r" R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"linalg.qr(): expected mode 'reduced', 'complete' or 'r', got {mode!r}")
    found = tenon.linalg.qr(_matrix("qr", a), mode="reduced" if mode == "r" else mode)
    return found[1] if mode == "r" else found


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of all elements as one vector, of vectors along an axis, or of matrices along two. `ord` of
    an array of two axes without `axis` is a norm of a matrix."""
    value = as_float(x)
    if axis is None:
        if ord is None:
            flat = value.reshape(-1)
            made = tenon.linalg.vector_norm(flat)
            return made.reshape((1,) * value.ndim) if keepdims else made
        if value.ndim > 2:
            raise ValueError(
                f"linalg.norm(): expected an axis beside `ord` for {value.ndim} axes, got none"
            )
        axis = tuple(range(value.ndim))
    axes = (axis,) if isinstance(axis, builtins.int) else tuple(axis)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"linalg.norm(): expected a number for vectors, got ord={ord!r}")
        made = tenon.linalg.vector_norm(
            value, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord
        )
        return made
    if len(axes) != 2:
        raise ValueError(f"linalg.norm(): expected one or two axes, got {axis}")
    first, second = (each % value.ndim for each in axes)
    if first == second:
        raise ValueError(f"linalg.norm(): expected two different axes, got {axis}")
    moved = base.moveaxis(value, (first, second), (-2, -1))
    made = _matrix_norm(moved, "fro" if ord is None else ord)
    return base.expand_dims(made, tuple(sorted((first, second)))) if keepdims else made


def _matrix_norm(x: Tensor, ord: Any) -> Tensor:
    allowed = ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf"))
    if ord not in allowed:
        raise ValueError(f"linalg.norm(): expected an order of a matrix's norm, got {ord!r}")
    return tenon.linalg.matrix_norm(x, ord=ord)


def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norms of matrices."""
    value = _matrix("matrix_norm", x)
    made = _matrix_norm(value, "fro" if ord is None else ord)
    return base.expand_dims(made, (-2, -1)) if keepdims else made


def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norms of vectors along axes, or of all elements."""
    value = as_float(x)
    if isinstance(axis, (list, tuple)):
        axis = tuple(axis)
    return tenon.linalg.vector_norm(
        value, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord
    )


def cond(x: Any, p: Any = None) -> Tensor:
    """The condition number by a norm, 2 by default."""
    value = _matrix("cond", x)
    if p in (None, 2, -2):
        s = tenon.linalg.svdvals(value)
        low, high = s[..., -1], s[..., 0]
        return low / high if p == -2 else high / low
    return _matrix_norm(value, p) * _matrix_norm(tenon.linalg.inv(value), p)


def matrix_power(a: Any, n: builtins.int) -> Tensor:
    """A matrix times itself; its inverse where n is below 0."""
    x = as_tensor(a)
    if not isinstance(n, builtins.int):
        raise TypeError(f"linalg.matrix_power(): expected a whole number n, got {n!r}")
    if n < 0:
        x = _matrix("matrix_power", x)
    return tenon.linalg.matrix_power(x, n).to(dtype=x.dtype)


def multi_dot(arrays: Sequence[Any]) -> Tensor:
    """The product of several matrices, in the order that costs least."""
    return _core.operator("multi_dot")(unified([as_tensor(each) for each in arrays]))


def tensorinv(a: Any, ind: builtins.int = 2) -> Tensor:
    """The inverse as of a matrix whose rows are the first `ind` axes."""
    return _core.operator("tensorinv")(as_float(a), ind)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """The solution of tensordot(a, x) = b."""
    x, y = unified([as_float(a), as_float(b)])
    if axes is not None:
        rest = [i for i in range(x.ndim) if i not in axes]
        x = base.transpose(x, [*rest, *axes])
    return _core.operator("tensorsolve")(x, y)


def cross(x1: Any, x2: Any, axis: builtins.int = -1) -> Tensor:
    """Cross products of vectors of length 3."""
    return base.cross(x1, x2, axis=axis)


def diagonal(x: Any, offset: builtins.int = 0) -> Tensor:
    """The diagonals of matrices."""
    return base.diagonal(x, offset, -2, -1)


def trace(x: Any, offset: builtins.int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    return reductions.sum(base.diagonal(x, offset, -2, -1), -1, dtype)


def outer(x1: Any, x2: Any) -> Tensor:
    """Products of every two elements of two vectors."""
    x, y = as_tensor(x1), as_tensor(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"linalg.outer(): expected vectors, got {x.ndim} and {y.ndim} axes")
    return base.outer(x, y)


def matmul(x1: Any, x2: Any) -> Tensor:
    """The product of matrices."""
    return base.matmul(x1, x2)


def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged."""
    return tenon.matrix_transpose(as_tensor(x))


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Tensor:
    """Products summed over axes."""
    return base.tensordot(x1, x2, axes)


def vecdot(x1: Any, x2: Any, axis: builtins.int = -1) -> Tensor:
    """Products of vectors along an axis, the first ones conjugated."""
    return base.vecdot(x1, x2, axis)


for _name, _signature in LINALG.items():
    globals()[_name] = bound(f"tenon.compat.numpy.linalg.{_name}", _signature, globals()[_name])

__all__ = sorted(LINALG)


def __dir__() -> list[str]:
    return __all__
