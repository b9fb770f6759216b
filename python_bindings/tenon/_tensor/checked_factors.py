# SPDX-License-Identifier: Apache-2.0
"""Functions of matrices that report what went wrong in `info`, a number for each matrix, and do not
raise: cholesky_ex, inv_ex, lu_factor_ex and solve_ex. The results of matrices whose info is not 0 are
NaN; the others of a batch are right, and so are their gradients."""

from __future__ import annotations

import math
from typing import NamedTuple

import tenon
from tenon._core import Tensor
from tenon._core import operator as _operator

__all__ = "cholesky_ex inv_ex lu_factor_ex solve_ex".split()


class CholeskyEx(NamedTuple):
    """The factors, and 0 or the order of the first leading minor that is not positive."""

    L: Tensor
    info: Tensor


class InvEx(NamedTuple):
    """The inverses, and 0 or which pivot was the first to be 0."""

    inverse: Tensor
    info: Tensor


class LUFactorEx(NamedTuple):
    """The factors in one matrix, LAPACK's pivots from 1, and 0 or which pivot was the first to be 0."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """The solution, and 0 or which pivot was the first to be 0."""

    result: Tensor
    info: Tensor


def _square(name: str, A: Tensor) -> None:
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(
            f"linalg.{name}(): expected square matrices in the last two axes, got shape {tuple(A.shape)}"
        )


def _raise_if(check_errors: bool, name: str, info: Tensor, what: str) -> None:
    if check_errors and bool(tenon.any(info != 0)):
        raise ValueError(
            f"linalg.{name}(): expected {what}, got info {info.tolist()}; pass check_errors=False to go on"
        )


def _first_zero_pivot(A: Tensor) -> Tensor:
    """Which pivot of the factorisation is the first to be 0, counted from 1; 0 if none is."""
    if A.numel() == 0:
        return tenon.zeros(list(A.shape[:-2]), dtype=tenon.int32, device=A.device)
    factors = _operator("lu_factor")(A.detach())[0]
    zero = tenon.diagonal(factors, 0, -2, -1) == 0
    first = tenon.argmax(zero.to(tenon.int32), -1) + 1
    return tenon.where(tenon.any(zero, -1), first, tenon.zeros_like(first)).to(tenon.int32)


def _safe(A: Tensor, info: Tensor) -> Tensor:
    """`A`, and the identity where info is not 0, so that the others of the batch can be computed."""
    eye = tenon.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return tenon.where((info == 0).unsqueeze(-1).unsqueeze(-1), A, eye)


def _marked(result: Tensor, info: Tensor) -> Tensor:
    wrong = info != 0
    for _ in range(result.ndim - info.ndim):
        wrong = wrong.unsqueeze(-1)
    return tenon.where(wrong, tenon.full_like(result, math.nan), result)


def _first_bad_minor(A: Tensor, upper: bool) -> int:
    for order in range(1, A.shape[-1] + 1):
        try:
            _operator("cholesky")(A[:order, :order], upper=upper)
        except ValueError:
            return order
    return 0


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """Cholesky factors of Hermitian matrices [..., n, n], and info [...]."""
    _square("cholesky_ex", A)
    info = tenon.zeros(list(A.shape[:-2]), dtype=tenon.int32, device=A.device)
    try:
        return CholeskyEx(_operator("cholesky")(A, upper=upper), info)
    except ValueError:
        # The operator names the first matrix that fails at most, so each is tried by itself.
        given = A.detach().reshape([-1, *A.shape[-2:]])
        orders = [_first_bad_minor(given[i], upper) for i in range(given.shape[0])]
        info = tenon.tensor(orders, dtype=tenon.int32).reshape(list(A.shape[:-2])).to(A.device)
        if not any(orders):
            raise
    _raise_if(check_errors, "cholesky_ex", info, "positive definite matrices")
    return CholeskyEx(_marked(_operator("cholesky")(_safe(A, info), upper=upper), info), info)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """Inverses of matrices [..., n, n], and info [...]."""
    _square("inv_ex", A)
    info = _first_zero_pivot(A)
    _raise_if(check_errors, "inv_ex", info, "invertible matrices")
    return InvEx(_marked(_operator("inv")(_safe(A, info)), info), info)
