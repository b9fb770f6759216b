# SPDX-License-Identifier: Apache-2.0
"""Primitives of jax.lax.linalg and of jax.lax.fft in terms of operators. Matrices are in the last two axes."""

from __future__ import annotations

import math
from typing import Any, Final

import tenon
from tenon._core import Tensor
from tenon.jit.foreign_calls import Refused


def cholesky(walk: Any, equation: Any, x: Tensor) -> Any:
    return walk.call("cholesky", x, upper=False)


def triangular_solve(walk: Any, equation: Any, a: Tensor, b: Tensor) -> Any:
    params = equation.params
    is_lower = params["lower"]
    if params["conjugate_a"] and a.dtype.is_complex:
        a = walk.call("conj", a)
    if params["transpose_a"]:
        a, is_lower = walk.call("transpose", a, -2, -1), not is_lower
    return walk.call(
        "triangular_solve",
        a,
        b,
        upper=not is_lower,
        left=params["left_side"],
        unitriangular=params["unit_diagonal"],
    )


def lu(walk: Any, equation: Any, x: Tensor) -> list[Any]:
    factors, pivots = walk.call("lu_factor", x)
    return [factors, pivots, walk.call("lu_permutation", pivots, x.shape[-2])]


def lu_pivots_to_permutation(walk: Any, equation: Any, pivots: Tensor) -> Any:
    whole = walk.call("cast", pivots, tenon.int64)
    return walk.call("lu_permutation", whole, equation.params["permutation_size"])


def qr(walk: Any, equation: Any, x: Tensor) -> list[Any]:
    params = equation.params
    if params.get("pivoting"):
        raise Refused("with exchanged columns (pivoting=True)")
    return list(walk.call("qr", x, mode="complete" if params["full_matrices"] else "reduced"))


def geqrf(walk: Any, equation: Any, x: Tensor) -> list[Any]:
    return list(walk.call("geqrf", x))


def householder_product(walk: Any, equation: Any, a: Tensor, taus: Tensor) -> Any:
    return walk.call("householder_product", a, taus)


def svd(walk: Any, equation: Any, x: Tensor) -> list[Any]:
    params = equation.params
    _check_whole(params)
    if not params["compute_uv"]:
        return [walk.call("svdvals", x)]
    left, values, right = walk.call("svd", x, full_matrices=params["full_matrices"])
    return [values, left, right]


def eigh(walk: Any, equation: Any, x: Tensor) -> list[Any]:
    params = equation.params
    _check_whole(params)
    values, vectors = walk.call("eigh", x, upper=not params["lower"])
    return [vectors, values]


def eig(walk: Any, equation: Any, x: Tensor) -> list[Any]:
    params = equation.params
    if params["compute_left_eigenvectors"]:
        raise Refused("with eigenvectors of the left side")
    if not params["compute_right_eigenvectors"]:
        return [walk.call("eigvals", x)]
    return list(walk.call("eig", x))


def _check_whole(params: Any) -> None:
    if params.get("subset_by_index") is not None:
        raise Refused("of some of the values (subset_by_index)")


def fft(walk: Any, equation: Any, x: Tensor) -> Any:
    lengths = list(equation.params["fft_lengths"])
    kind = equation.params["fft_type"]
    name = str(getattr(kind, "name", kind)).rpartition(".")[2]
    axes = list(range(x.ndim - len(lengths), x.ndim))
    if not axes:
        return x
    inverse = 1.0 / max(1, math.prod(lengths))
    if name == "RFFT":
        return walk.call("fft_r2c", x, axes, True, 1.0)
    if name == "IRFFT":
        return walk.call("fft_c2r", x, axes, lengths[-1], inverse)
    is_forward = name == "FFT"
    return walk.call("fft_c2c", x, axes, is_forward, 1.0 if is_forward else inverse)


TABLE: Final[dict[str, Any]] = {
    "cholesky": cholesky,
    "triangular_solve": triangular_solve,
    "lu": lu,
    "lu_pivots_to_permutation": lu_pivots_to_permutation,
    "qr": qr,
    "geqrf": geqrf,
    "householder_product": householder_product,
    "svd": svd,
    "eigh": eigh,
    "eig": eig,
    "fft": fft,
}
