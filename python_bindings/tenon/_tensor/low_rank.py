# SPDX-License-Identifier: Apache-2.0
"""Factors of low rank by random projections."""

from __future__ import annotations

from typing import Any, NamedTuple

import tenon
from tenon._core import Tensor
from tenon._core import operator as _operator


class LowRank(NamedTuple):
    """The matrix is near U diag(S) V^H."""

    U: Tensor
    S: Tensor
    V: Tensor


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int = 2, M: Tensor | None = None) -> LowRank:
    """`q` singular values and vectors of `A` - `M`, by random projections (Halko, Martinsson, Tropp,
    Finding structure with randomness, 2011, algorithms 4.4 and 5.1): U [..., m, q], S [..., q],
    V [..., n, q]. Of a matrix of rank `q` or less they are exact."""
    if A.ndim >= 2 and q in (None, 6):  # PyTorch's default is at most the shorter axis
        q = min(6, *A.shape[-2:])
    if A.ndim < 2 or q is None or not 0 <= q <= min(A.shape[-2:]):
        raise ValueError(
            f"svd_lowrank(): expected matrices, and q up to their shorter axis, got shape "
            f"{tuple(A.shape)} and q = {q}"
        )
    matrix = A if M is None else A - M
    adjoint = tenon.conj(matrix.mT) if matrix.dtype.is_complex else matrix.mT
    start = tenon.normal([*matrix.shape[:-2], matrix.shape[-1], q], dtype=_real(matrix.dtype))
    basis = _operator("qr")(matrix @ start.to(device=matrix.device, dtype=matrix.dtype))[0]
    for _ in range(niter):
        basis = _operator("qr")(adjoint @ basis)[0]
        basis = _operator("qr")(matrix @ basis)[0]
    of_basis = tenon.conj(basis.mT) if matrix.dtype.is_complex else basis.mT
    u, s, vh = _operator("svd")(of_basis @ matrix, full_matrices=False)
    return LowRank(basis @ u, s, tenon.conj(vh.mT) if matrix.dtype.is_complex else vh.mT)


def _real(dtype: Any) -> Any:
    return {tenon.complex64: tenon.float32, tenon.complex128: tenon.float64}.get(dtype, dtype)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> LowRank:
    """`q` principal components of the rows of `A` by svd_lowrank(): the columns of V, and the scores
    U diag(S). With `center` the mean of each column is taken off first."""
    if A.ndim < 2:
        raise ValueError(f"pca_lowrank(): expected matrices, got shape {tuple(A.shape)}")
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - tenon.mean(A, [-2], True) if center else A, q, niter)
