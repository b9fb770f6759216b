# SPDX-License-Identifier: Apache-2.0
"""torch.linalg: tenon.linalg with PyTorch's parameters, which call an axis `dim`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tenon
from tenon import _core
from tenon import linalg as _linalg
from tenon._core import Tensor
from tenon._tensor import checked_factors as _checked
from tenon._tensor.checked_factors import cholesky_ex as cholesky_ex
from tenon._tensor.checked_factors import inv_ex as inv_ex
from tenon.compat._adapt import at, functions_of, operators_of
from tenon.compat.torch import _signatures
from tenon.compat.torch._options import kind

_OPERATORS = operators_of("torch", "linalg.")
_FUNCTIONS = functions_of("torch", "linalg.")

__all__ = (
    """cross diagonal eigh eigvalsh ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_solve matmul matrix_norm matrix_rank matrix_sqrth norm
pinv polar qr solve solve_triangular svd svdvals tensorsolve vander vecdot vector_norm""".split()
    + [*_OPERATORS, *_FUNCTIONS]
    + _checked.__all__
)

globals().update({name: _core.operator(ours) for name, ours in _OPERATORS.items()})
globals().update({name: at(path) for name, path in _FUNCTIONS.items()})


class LDLFactorEx(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor


def _adjoint(x: Tensor) -> Tensor:
    transposed = x.swapaxes(-2, -1)
    return transposed.conj() if x.dtype.is_complex else transposed


def _hermitian(x: Tensor) -> Tensor:
    """The Hermitian matrix that the lower triangle gives; its diagonal is real."""
    below, diagonal = tenon.tril(x, -1), tenon.diagonal(x, 0, -2, -1)
    if x.dtype.is_complex:
        diagonal = tenon.real(diagonal).to(x.dtype)
    return below + _adjoint(below) + tenon.diag_embed(diagonal)


def _cast(x: Tensor, dtype: Any) -> Tensor:
    if dtype is not None and kind(_core.dtype(dtype)) < 2:
        raise TypeError(f"linalg.norm(): expected a floating or complex dtype, got {dtype}")
    return x if dtype is None else x.to(dtype)


def _no_pivot(function: str, pivot: bool) -> None:
    if not pivot:
        raise NotImplementedError(f"linalg.{function}(): expected pivot=True, got False")


def _no_driver(function: str, driver: str | None) -> None:
    if driver is not None:
        raise NotImplementedError(
            f"linalg.{function}(): expected driver=None, got {driver!r}; there is one algorithm"
        )


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values, the largest first."""
    _no_driver("svdvals", driver)
    return _linalg.svdvals(A)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along `dim`."""
    return _linalg.cross(input, other, axis=dim)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot product along `dim`; the first factor is conjugated."""
    return _linalg.vecdot(x, y, axis=dim)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices."""
    return _linalg.matmul(input, other)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of the matrices of the axes `dim1` and `dim2`."""
    return tenon.diagonal(A, offset, dim1, dim2)


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """The norm of order `ord` of vectors along `dim`, of all elements without it."""
    axis = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    return _linalg.vector_norm(_cast(x, dtype), axis=axis, keepdims=keepdim, ord=ord)


def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """The norm of order `ord` of the matrices of the two axes `dim`."""
    first, second = (axis % A.ndim for axis in dim)
    result = _linalg.matrix_norm(
        tenon.moveaxis(_cast(A, dtype), (first, second), (-2, -1)), ord=ord
    )
    if keepdim:
        for axis in sorted((first, second)):
            result = result.unsqueeze(axis)
    return result


def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """A norm of vectors, or of matrices if `dim` names two axes and `ord` is given."""
    if isinstance(dim, (list, tuple)) and len(dim) == 1:
        dim = dim[0]
    if dim is None and ord is not None and A.ndim == 2:
        dim = (0, 1)
    if ord is not None and isinstance(dim, (list, tuple)):
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)  # type: ignore[arg-type]


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Rows of powers 0 to N - 1 of each element."""
    x = x.reshape(1) if x.ndim == 0 else x
    powers = tenon.arange(x.shape[-1] if N is None else N, device=x.device)
    return x.unsqueeze(-1) ** powers.to(x.dtype)


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return _linalg.eigh(A, UPLO=UPLO)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices."""
    return _linalg.eigvalsh(A, UPLO=UPLO)


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Q and R of A = QR. With mode 'r' there is no Q, but an empty tensor."""
    if mode != "r":
        return _linalg.qr(A, mode=mode)
    nothing = tenon.zeros([0], dtype=A.dtype, device=A.device)
    return _linalg.QRResult(nothing, _linalg.qr(A, mode="r"))


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """U, S and Vh. A `driver` names a routine of CUDA's, and is refused, as PyTorch refuses it on the CPU."""
    _no_driver("svd", driver)
    return _linalg.svd(A, full_matrices=full_matrices)


def ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """D and L in one matrix, and LAPACK's pivots in int32."""
    factors, pivots = _linalg.ldl_factor(A, hermitian=hermitian)
    return _linalg.LDLFactorResult(factors, pivots.to(tenon.int32))


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """The same, and info [...]: the first row at which D is 0, counted from 1, or 0."""
    factors, pivots = ldl_factor(A, hermitian=hermitian)
    zero = (tenon.diagonal(factors.detach(), 0, -2, -1) == 0) & (pivots > 0)
    if A.shape[-1] == 0:
        info = tenon.zeros(list(A.shape[:-2]), dtype=tenon.int32, device=A.device)
    else:
        first = tenon.argmax(zero.to(tenon.int32), -1) + 1
        info = tenon.where(tenon.any(zero, -1), first, tenon.zeros_like(first)).to(tenon.int32)
    _checked._raise_if(check_errors, "ldl_factor_ex", info, "matrices of full rank")
    return LDLFactorEx(factors, pivots, info)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The solution of AX = B by the factors of A."""
    return _linalg.ldl_solve(LD, pivots.to(tenon.int64), B, hermitian=hermitian)


def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """P, L and U of A = PLU."""
    _no_pivot("lu", pivot)
    return _linalg.lu(A)


def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L and U in one matrix, and LAPACK's pivots, which count from 1, in int32."""
    _no_pivot("lu_factor", pivot)
    factors, pivots = _linalg.lu_factor(A)
    return _linalg.LUFactorResult(factors, (pivots + 1).to(tenon.int32))


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The solution of AX = B, or of XA = B without `left`, from the factors of A or its adjoint."""
    if not left:
        return _adjoint(lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint))
    pivots = pivots.to(tenon.int64) - 1  # Tenon's count from 0
    if not adjoint:
        return _linalg.lu_solve(LU, pivots, B)
    permutation, lower, upper = _linalg.lu_unpack(LU, pivots)
    first = _linalg.solve_triangular(_adjoint(upper), B, upper=False)
    return permutation @ _linalg.solve_triangular(
        _adjoint(lower), first, upper=True, unitriangular=True
    )


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution of AX = B, or of XA = B without `left`. B holds vectors if it has one axis, or
    A's shape without the last axis."""
    vectors = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if vectors else B
    if left or vectors:
        solved = _linalg.solve(A, right)
    else:
        solved = _linalg.solve(A.swapaxes(-2, -1), right.swapaxes(-2, -1)).swapaxes(-2, -1)
    return solved.squeeze(-1) if vectors else solved


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The solution of AX = B, or of XA = B without `left`, for triangular A."""
    return _linalg.solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> _linalg.LstsqResult:
    """The solution of least squares. The `driver`, 'gelsy' by default, says what else there is: 'gels' the residuals,
    'gelsy' the rank, 'gelsd' and 'gelss' both and the singular values. One algorithm serves them all."""
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise ValueError(
            f"linalg.lstsq(): expected driver among {', '.join(_DRIVERS)}, got {driver!r}"
        )
    solution, residuals, rank, singular_values = _linalg.lstsq(A, B, rcond=rcond)
    nothing = tenon.zeros([0], dtype=singular_values.dtype, device=A.device)
    rows, columns = A.shape[-2:]
    if rows <= columns or (driver != "gels" and bool((rank < columns).any())):
        residuals = nothing
    return _linalg.LstsqResult(
        solution,
        nothing if driver == "gelsy" else residuals,
        tenon.zeros([0], dtype=tenon.int64, device=A.device) if driver == "gels" else rank,
        singular_values if driver in ("gelsd", "gelss") else nothing,
    )


def _relative_tolerance(singular: Tensor, atol: Any, rtol: Any) -> Any:
    """What `atol` and `rtol` come to as one relative tolerance, for singular values."""
    if atol is None:
        return rtol
    largest = tenon.max(singular, -1)
    relative = atol / tenon.where(largest == 0, tenon.ones_like(largest), largest)
    return relative if rtol is None else tenon.maximum(relative, rtol)


def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above max(atol, rtol * the largest one)."""
    atol = tol if atol is None else atol
    if hermitian:
        A = _hermitian(A)
    if atol is not None:
        rtol = _relative_tolerance(_linalg.svdvals(A), atol, rtol)
    return _linalg.matrix_rank(A, rtol=rtol)


def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudoinverse; singular values up to max(atol, rtol * the largest one) count as 0."""
    rtol = rcond if rtol is None else rtol
    if hermitian:
        A = _hermitian(A)
    if atol is not None:
        rtol = _relative_tolerance(_linalg.svdvals(A), atol, rtol)
    return _linalg.pinv(A, rtol=rtol)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The solution X of tensordot(A, X, X.ndim) = B."""
    return _linalg.tensorsolve(A, B, axes=None if dims is None else tuple(dims))


class Polar(NamedTuple):
    """A = U H."""

    U: Tensor
    H: Tensor


def polar(A: Tensor) -> Polar:
    """U with orthonormal columns and a positive-semidefinite H whose product is A, which has at least as many rows
    as columns; from the singular vectors (Higham, 1986)."""
    if A.ndim < 2 or A.shape[-2] < A.shape[-1]:
        raise ValueError(
            f"polar(): expected matrices with at least as many rows as columns, got shape {tuple(A.shape)}"
        )
    left, singular, right = _linalg.svd(A, full_matrices=False)
    scaled = _adjoint(right) * singular.unsqueeze(-2).to(A.dtype)
    return Polar(left @ right, scaled @ right)


def matrix_sqrth(A: Tensor) -> Tensor:
    """The positive-definite square root of Hermitian positive-definite matrices, of which the lower triangle is
    read; from their eigenvectors. NaN where an eigenvalue is negative."""
    values, vectors = _linalg.eigh(A)
    roots = tenon.sqrt(values).unsqueeze(-2).to(A.dtype)
    return (vectors * roots) @ _adjoint(vectors)


def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> _checked.LUFactorEx:
    """L and U in one matrix, LAPACK's pivots, and info [...]. A pivot of 0 is no failure of the factors,
    which stay as they are."""
    factors, pivots = lu_factor(A, pivot=pivot)
    if A.numel() == 0:
        info = tenon.zeros(list(A.shape[:-2]), dtype=tenon.int32, device=A.device)
    else:
        zero = tenon.diagonal(factors.detach(), 0, -2, -1) == 0
        first = tenon.argmax(zero.to(tenon.int32), -1) + 1
        info = tenon.where(tenon.any(zero, -1), first, tenon.zeros_like(first)).to(tenon.int32)
    _checked._raise_if(check_errors, "lu_factor_ex", info, "matrices of full rank")
    return _checked.LUFactorEx(factors, pivots, info)


def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> _checked.SolveEx:
    """The solution of AX = B, or of XA = B without `left`, and info [...]."""
    _checked._square("solve_ex", A)
    info = _checked._first_zero_pivot(A)
    _checked._raise_if(check_errors, "solve_ex", info, "invertible matrices")
    return _checked.SolveEx(
        _checked._marked(solve(_checked._safe(A, info), B, left=left), info), info
    )


_signatures.adapt_all("linalg", __all__, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
