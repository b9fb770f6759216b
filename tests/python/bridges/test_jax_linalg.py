# SPDX-License-Identifier: Apache-2.0
"""Factorisations and transforms of JAX as programs, beside jax.jit.

Vectors of a decomposition are compared by what they make: their signs are another library's choice.
"""

import numpy as np
import pytest
import tenon

jax = pytest.importorskip("jax", exc_type=ImportError)
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

_numbers = np.random.default_rng(0)


def normal(*shape, dtype="float32"):
    drawn = _numbers.normal(size=shape)
    if dtype.startswith("complex"):
        drawn = drawn + 1j * _numbers.normal(size=shape)
    return jnp.asarray(drawn.astype(dtype))


def check(function, *arguments, rtol=1e-4, atol=1e-4):
    """Tenon's results are jax.jit's, in value, shape and dtype."""
    wanted = jax.tree_util.tree_leaves(jax.jit(function)(*arguments))
    found = jax.tree_util.tree_leaves(tenon.jax.jit(function)(*arguments))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=rtol, atol=atol)


SQUARE, TALL, WIDE = normal(2, 4, 4), normal(2, 5, 3), normal(2, 3, 5)
POSITIVE = SQUARE @ SQUARE.mT + 4 * jnp.eye(4)
COMPLEX = normal(3, 3, dtype="complex64")
HERMITIAN = COMPLEX + COMPLEX.conj().T
SIDES = normal(2, 4, 2)


def adjoint(x):
    return jnp.conj(x).mT


MATRICES = {
    "cholesky": (lambda x: (jnp.linalg.cholesky(x), jnp.linalg.cholesky(x, upper=True)), POSITIVE),
    "complex cholesky": (jnp.linalg.cholesky, COMPLEX @ COMPLEX.conj().T + 3 * jnp.eye(3)),
    "solve": (jnp.linalg.solve, SQUARE + 3 * jnp.eye(4), SIDES),
    "inverse": (jnp.linalg.inv, SQUARE + 3 * jnp.eye(4)),
    "determinants": (lambda x: (jnp.linalg.det(x), jnp.linalg.slogdet(x)), SQUARE),
    "least squares": (lambda a, b: jnp.linalg.lstsq(a, b)[0], TALL[0], TALL[1][:, :2]),
    "lu": (jax.scipy.linalg.lu, SQUARE[0]),
    "lu_factor": (jax.scipy.linalg.lu_factor, SQUARE),
    "permutation": (lambda x: lax.linalg.lu(x)[1:], TALL),
    "cho_solve": (
        lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b),
        POSITIVE,
        SIDES,
    ),
    "singular values": (lambda x: jnp.linalg.svd(x, compute_uv=False), WIDE),
    "rank": (lambda x: (jnp.linalg.matrix_rank(x), jnp.linalg.norm(x, 2), jnp.linalg.cond(x)), TALL[0]),
    "pinv": (jnp.linalg.pinv, WIDE[0]),
    "eigenvalues": (lambda x: (jnp.linalg.eigvalsh(x), jnp.linalg.eigvalsh(x, UPLO="U")), POSITIVE),
    "qr": (
        lambda x: (lambda q, r: (q @ r, adjoint(q) @ q, jnp.abs(r)))(*jnp.linalg.qr(x)),
        TALL,
    ),
    "complete qr": (lambda x: jnp.abs(jnp.linalg.qr(x, mode="complete")[1]), TALL),
    "svd": (lambda x: (lambda u, s, v: ((u * s[..., None, :]) @ v, s))(*jnp.linalg.svd(x, False)), WIDE),
    "full svd": (lambda x: jnp.linalg.svd(x)[0] @ jnp.linalg.svd(x)[0].mT, TALL),
    "eigh": (lambda x: (lambda w, v: ((v * w[..., None, :]) @ adjoint(v), w))(*jnp.linalg.eigh(x)), HERMITIAN),
}  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    function, *arguments = MATRICES[name]
    check(function, *arguments)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint_a", [None, "transpose", "conjugate"])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve(lower, left, adjoint_a, unit):
    a = normal(2, 3, 3, dtype="complex64") + 3 * jnp.eye(3)
    b = normal(2, 3, 3, dtype="complex64")

    def solve(a, b):
        return lax.linalg.triangular_solve(
            a,
            b,
            lower=lower,
            left_side=left,
            transpose_a=adjoint_a is not None,
            conjugate_a=adjoint_a == "conjugate",
            unit_diagonal=unit,
        )

    check(solve, a, b, rtol=1e-3, atol=1e-3)


def test_eig_without_symmetry():
    def made(x):
        values, vectors = jnp.linalg.eig(x)
        return (vectors * values[None, :]) @ jnp.linalg.inv(vectors)

    check(made, SQUARE[0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.linalg.cholesky(x @ x.mT + 4 * jnp.eye(4)).sum(),
        lambda x: jnp.linalg.slogdet(x)[1].sum(),
        lambda x: jnp.linalg.solve(x + 3 * jnp.eye(4), x[..., :1]).sum(),
        lambda x: jnp.abs(jnp.linalg.qr(x)[1]).sum(),
        lambda x: jnp.linalg.svd(x, compute_uv=False).sum(),
        lambda x: jnp.linalg.eigvalsh(x @ x.mT).sum(),
    ],
)
def test_gradients_are_those_of_jax(function):
    check(jax.grad(function), SQUARE, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.fft.fft(x),
        lambda x: jnp.fft.ifft(x, axis=0),
        lambda x: jnp.fft.fft2(x),
        lambda x: jnp.fft.rfft(x, 9),
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x), 6),
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x[:, :5]), 5),
        lambda x: jnp.fft.rfftn(x),
        lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x), x.shape),
        lambda x: jnp.fft.fftshift(jnp.fft.fft(x, norm="ortho")),
        jax.grad(lambda x: jnp.abs(jnp.fft.fft(x)).sum()),
        jax.grad(lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 1.5).std()),
    ],
)
def test_transforms(function):
    check(function, normal(4, 6))


def test_sorting_by_several_keys():
    keys = jnp.asarray(_numbers.integers(0, 3, (3, 30)).astype("int32"))

    def sorted_by(a, b, c):
        return (
            lax.sort((a, b, c), num_keys=2),
            jnp.lexsort((c, b, a)),
            lax.sort((a, b, c), num_keys=3),
        )

    check(sorted_by, *keys)


def test_refusals_say_what_was_asked():
    with pytest.raises(NotImplementedError, match="qr: with exchanged columns"):
        tenon.jax.jit(lambda x: jax.scipy.linalg.qr(x, pivoting=True))(TALL[0])
    with pytest.raises(NotImplementedError, match="eig: with eigenvectors of the left side"):
        tenon.jax.jit(lambda x: lax.linalg.eig(x))(SQUARE[0])
