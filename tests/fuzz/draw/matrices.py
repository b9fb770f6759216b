# SPDX-License-Identifier: Apache-2.0
"""Rules of linear algebra: small matrices that are far from singular and whose eigenvalues are apart, as
oracles in another dtype could not agree on others."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, applicable, representable


def _numbers(d, shape):
    x = d.rng.standard_normal(shape)
    if d.dtype.startswith("complex"):
        x = x + 1j * d.rng.standard_normal(shape)
    return x


def _array(d, values):
    values = representable(np.asarray(values), d.dtype)
    layout = d.choice(["plain", "plain", "transposed", "flipped", "strided"])
    return Array(values, d.dtype, layout if applicable(layout, values) else "plain")


def _batch(d):
    return tuple(d.integer(0 if d.chance(0.1) else 1, 3) for _ in range(d.integer(0, 2)))


def _size(d):
    return 0 if d.chance(0.03) else d.integer(1, 5)


def _diagonal(n, m):
    """1.5, 3, 4.5, ..., of changing signs."""
    return np.eye(n, m) * (1.5 * np.arange(1, m + 1) * (-1.0) ** np.arange(m))


def _square(d, n=None, batch=None):
    n = _size(d) if n is None else n
    return _numbers(d, (*(_batch(d) if batch is None else batch), n, n)) / 4 + _diagonal(n, n)


def _hermitian(d, n=None):
    x = _square(d, n)
    return x + x.conj().swapaxes(-1, -2)


def _positive(d):
    x = _square(d)
    return x @ x.conj().swapaxes(-1, -2)


def _rectangle(d, tall=False):
    m, n = d.integer(1, 5), d.integer(1, 5)
    if tall:
        m, n = max(m, n), min(m, n)
    return _numbers(d, (*_batch(d), m, n)) / 4 + _diagonal(m, n)


def square(d):
    return {"x": _array(d, _square(d))}


def hermitian(d):
    return {"x": _array(d, _hermitian(d)), "upper": d.chance(0.5)}


def rectangle(d):
    return {"x": _array(d, _rectangle(d))}


def cholesky(d):
    return {"x": _array(d, _positive(d)), "upper": d.chance(0.5)}


def qr(d):
    return {"x": _array(d, _rectangle(d)), "mode": d.choice(["reduced", "complete", "r"])}


def svd(d):
    return {"x": _array(d, _rectangle(d)), "full_matrices": d.chance(0.5)}


def householder_product(d):
    a = _rectangle(d, tall=True)
    tau = _numbers(d, (*a.shape[:-2], d.integer(0, a.shape[-1])))
    return {"a": _array(d, a), "tau": _array(d, tau)}


def _sides(d, rows, batch):
    kept = batch[d.integer(0, len(batch)) :]
    return _array(d, _numbers(d, (*kept, rows, d.integer(1, 3))))


def solve(d):
    a = _square(d)
    b = _sides(d, a.shape[-1], a.shape[:-2])
    if d.chance(0.3):
        b = _array(d, _numbers(d, (a.shape[-1],)))
    return {"a": _array(d, a), "b": b}


def triangular_solve(d):
    a = _square(d)
    b = _sides(d, a.shape[-1], a.shape[:-2])
    left = d.chance(0.7)
    if not left:
        b = _array(d, b.values.swapaxes(-1, -2))
    return {"a": _array(d, a), "b": b, "upper": d.chance(0.5), "left": left, "unitriangular": False}


def lstsq(d):
    a = _rectangle(d)
    return {"a": _array(d, a), "b": _sides(d, a.shape[-2], a.shape[:-2])}


def cholesky_solve(d):
    factor = _square(d)
    b = _sides(d, factor.shape[-1], factor.shape[:-2])
    return {"b": b, "factor": _array(d, factor), "upper": d.chance(0.5)}


def cholesky_inverse(d):
    return {"factor": _array(d, _square(d)), "upper": d.chance(0.5)}


def _pivots(d, n, rows):
    swaps = [d.integer(i, rows - 1) for i in range(n)]
    return Array(np.array(swaps, dtype=np.int64), "int64")


def lu_permutation(d):
    n = d.integer(1, 5)
    rows = n + d.integer(0, 2)
    return {"pivots": _pivots(d, n, rows), "rows": rows}


def lu_solve(d):
    n = d.integer(1, 5)
    b = _array(d, _numbers(d, (n, 2) if d.chance(0.5) else (n,)))
    return {"lu": _array(d, _square(d, n, ())), "pivots": _pivots(d, n, n), "b": b}


def ldl_factor(d):
    return {"x": _array(d, _square(d)), "hermitian": d.chance(0.5)}


def ldl_solve(d):
    n = d.integer(1, 5)
    rows = [d.integer(1, n) for _ in range(n)]  # counted from 1, as LAPACK counts them
    return {
        "ld": _array(d, _square(d, n, ())),
        "pivots": Array(np.array(rows, dtype=np.int64), "int64"),
        "b": _array(d, _numbers(d, (n, 2))),
        "hermitian": d.chance(0.5),
    }


def matrix_power(d):
    return {"x": _array(d, _square(d)), "n": d.integer(-2 if "int" not in d.dtype else 0, 4)}


def norm(d):
    return {
        "x": _array(d, _square(d, d.integer(1, 5))),
        "ord": d.choice(["fro", "1", "-inf", "2", "nuc"]),
    }


def cond(d):
    return {"x": _array(d, _square(d, d.integer(1, 5))), "ord": d.choice(["2", "-2", "fro", "1"])}


def multi_dot(d):
    extents = [d.integer(1, 5) for _ in range(d.integer(3, 5))]
    return {"tensors": [d.tensor(pair) for pair in zip(extents, extents[1:])]}


def kron(d):
    def some():
        return d.tensor(tuple(d.integer(0, 5) for _ in range(d.integer(0, 3))))

    return {"x": some(), "y": some()}


def tensorinv(d):
    m = d.integer(1, 2)
    x = _square(d, 2 * m, ())
    return {"x": _array(d, x.reshape(2 * m, 2, m)), "ind": 1}


def tensorsolve(d):
    m = d.integer(1, 2)
    a = _square(d, 2 * m, ())
    return {"a": _array(d, a.reshape(2, m, 2 * m)), "b": _array(d, _numbers(d, (2, m)))}


def ormqr(d):
    a = _rectangle(d, tall=True)
    b = _numbers(d, (a.shape[-2], 2))
    left = d.chance(0.5)
    tau = _numbers(d, (*a.shape[:-2], a.shape[-1]))
    b = _array(d, b if left else b.T)
    return {
        "a": _array(d, a),
        "tau": _array(d, tau),
        "b": b,
        "left": left,
        "adjoint": d.chance(0.5),
    }


def lu_unpack(d):
    n = d.integer(1, 5)
    rows = n + d.integer(0, 2)
    lu = _numbers(d, (rows, n))
    return {"lu": _array(d, lu), "pivots": _pivots(d, n, rows)}


def _axes(d, ndim):
    axes = d.rng.permutation(ndim)[: d.integer(1, ndim)]
    return [int(axis) - (ndim if d.chance(0.3) else 0) for axis in axes]


def fft(d):
    shape = tuple(d.integer(1, 6) for _ in range(d.integer(1, 3)))
    return {"x": _array(d, _numbers(d, shape)), "axes": _axes(d, len(shape))}


def fft_c2r(d):
    given = fft(d)
    length = given["x"].shape[given["axes"][-1]]
    return {**given, "n": 2 * length - (1 if length == 1 else d.integer(1, 2))}


FUNCTIONS = {
    "fft_c2c": fft,
    "fft_r2c": fft,
    "fft_c2r": fft_c2r,
    "lu_unpack": lu_unpack,
    "ormqr": ormqr,
    **dict.fromkeys("adjugate det inv logdet slogdet eig eigvals matrix_exp".split(), square),
    **dict.fromkeys("eigh eigvalsh".split(), hermitian),
    **dict.fromkeys("lu lu_factor geqrf svdvals pinv matrix_rank".split(), rectangle),
    "cholesky": cholesky,
    "cholesky_inverse": cholesky_inverse,
    "cholesky_solve": cholesky_solve,
    "cond": cond,
    "householder_product": householder_product,
    "kron": kron,
    "ldl_factor": ldl_factor,
    "ldl_solve": ldl_solve,
    "lstsq": lstsq,
    "lu_permutation": lu_permutation,
    "lu_solve": lu_solve,
    "matrix_norm": norm,
    "matrix_power": matrix_power,
    "multi_dot": multi_dot,
    "qr": qr,
    "solve": solve,
    "svd": svd,
    "tensorinv": tensorinv,
    "tensorsolve": tensorsolve,
    "triangular_solve": triangular_solve,
}
