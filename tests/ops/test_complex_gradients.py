# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives of functions of complex numbers, against differences. The gradient of a
complex tensor has the derivatives of the loss by the real and by the imaginary part as its parts, so
that the loss changes by `real(sum(conj(gradient) * step))`."""

import numpy as np
import pytest
import tenon

T = tenon.tensor
STEP = 1e-6


def random(*shape, seed=0, real=False):
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return x if real else x + 1j * rng.standard_normal(shape)


def weighted(results):
    """A real number that both parts of every element of every result matter to, and not linearly."""
    total = 0
    for i, x in enumerate(results):
        weights = T(random(*x.shape, seed=100 + i))
        total = total + tenon.real(tenon.conj(weights) * x).sum()
        total = total + tenon.real(weights * x * x).sum() / 3
    return total


def slope(function, arrays, steps):
    moved = [
        float(function([a + sign * STEP * s for a, s in zip(arrays, steps, strict=True)]))
        for sign in (1, -1)
    ]
    return (moved[0] - moved[1]) / (2 * STEP)


def check(function, *arrays):
    leaves = [T(a, requires_grad=True) for a in arrays]
    steps = [
        random(*a.shape, seed=50 + i, real=not np.iscomplexobj(a)) for i, a in enumerate(arrays)
    ]

    def loss(values):
        return weighted(function(*values))

    gradients = tenon.grad(loss(leaves), leaves, create_graph=True)
    for gradient, a in zip(gradients, arrays, strict=True):
        assert gradient.shape == a.shape and gradient.detach().numpy().dtype == a.dtype
    got = sum(
        np.sum(np.conj(g.detach().numpy()) * s).real for g, s in zip(gradients, steps, strict=True)
    )
    want = slope(lambda values: loss([T(v) for v in values]).item(), arrays, steps)
    assert abs(got - want) <= 1e-5 * max(1, abs(want)), (got, want)

    def of_gradients(gradients):
        return sum(
            tenon.real(g * T(random(*g.shape, seed=200 + i))).sum() for i, g in enumerate(gradients)
        )

    def second(values):
        leaves = [T(v, requires_grad=True) for v in values]
        return of_gradients(tenon.grad(loss(leaves), leaves)).item()

    seconds = tenon.grad(of_gradients(gradients), leaves)
    got = sum(
        np.sum(np.conj(g.detach().numpy()) * s).real for g, s in zip(seconds, steps, strict=True)
    )
    want = slope(second, arrays, steps)
    assert abs(got - want) <= 1e-4 * max(1, abs(want)), (got, want)


def away_from_zero(*shape, seed=0):
    x = random(*shape, seed=seed)
    return x + 2 * x / np.abs(x)


UNARY = {
    "exp": tenon.exp,
    "log": tenon.log,
    "sqrt": tenon.sqrt,
    "rsqrt": tenon.rsqrt,
    "exp2": tenon.exp2,
    "expm1": tenon.expm1,
    "log2": tenon.log2,
    "log10": tenon.log10,
    "log1p": tenon.log1p,
    "asin": tenon.asin,
    "acos": tenon.acos,
    "atan": tenon.atan,
    "asinh": tenon.asinh,
    "acosh": tenon.acosh,
    "atanh": tenon.atanh,
    "sign": tenon.sign,
    "sin": tenon.sin,
    "cos": tenon.cos,
    "tan": tenon.tan,
    "sinh": tenon.sinh,
    "cosh": tenon.cosh,
    "tanh": tenon.tanh,
    "tanhshrink": tenon.tanhshrink,
    "square": tenon.square,
    "reciprocal": tenon.reciprocal,
    "negative": tenon.negative,
    "power of a number": lambda z: z**3,
    "number to the power": lambda z: 2.0**z,
    "conj": tenon.conj,
    "real": tenon.real,
    "imag": tenon.imag,
    "abs": tenon.abs,
    "sum": lambda z: tenon.sum(z, 0),
    "mean": lambda z: tenon.mean(z, 1),
    "prod": lambda z: tenon.prod(z, 1),
    "cumsum": lambda z: tenon.cumsum(z, 1),
    "cumprod": lambda z: tenon.cumprod(z, 1),
    "sinc": tenon.sinc,
    "sigmoid": tenon.sigmoid,
    "attributes": lambda z: z.real * z.T.imag.T + tenon.as_real(z).sum(-1),
    "index_put": lambda z: tenon.index_put(z, [T([1, 1])], z[:, ::-1] * 1j),
    "norm": lambda z: tenon.norm(z, 2.0),
    "var": lambda z: tenon.var(tenon.abs(z), 1),
    "views": lambda z: z.T[1:, ::-1].reshape(-1).unsqueeze(0).flip(),
    "diagonal": lambda z: tenon.diagonal(z @ z.T, 0, 0, 1),
    "concat": lambda z: tenon.concat([z, z * 2j], 0),
    "pad": lambda z: tenon.pad(z, [1, 0, 0, 2]),
    "roll": lambda z: tenon.roll(z, [1], [1]),
    "index": lambda z: z[T([1, 0, 1])],
    "gather": lambda z: tenon.gather(z, T([[0, 2], [1, 1]]), 1),
    "where": lambda z: tenon.where(T([True, False, True]), z, 1j),
    "broadcast": lambda z: z * tenon.sum(z, 1, True),
    "cast": lambda z: z.to("complex128") * 1j,
    "in place": lambda z: tenon.mul_(z * 1, z) if hasattr(tenon, "mul_") else (z * 1).multiply_(z),
    "vecdot": lambda z: tenon.vecdot(z, z * (1 + 2j)),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check(lambda z: [UNARY[name](z)], away_from_zero(2, 3))


BINARY = {
    "add": tenon.add,
    "subtract": tenon.subtract,
    "multiply": tenon.multiply,
    "divide": tenon.divide,
    "pow": tenon.pow,
    "matmul": lambda x, y: x @ y.T,
    "einsum": lambda x, y: tenon.einsum("ij,kj->ik", [x, y]),
    "linear": lambda x, y: tenon.linear(x, y),
    "outer": lambda x, y: tenon.outer(x[0], y[1]),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kinds", ["complex complex", "real complex", "complex real"])
def test_binary(name, kinds):
    arrays = [away_from_zero(2, 3, seed=i) for i in range(2)]
    arrays = [
        abs(a) if kind == "real" else a for a, kind in zip(arrays, kinds.split(), strict=True)
    ]
    check(lambda x, y: [BINARY[name](x, y)], *arrays)


def square(n, seed=0):
    return random(n, n, seed=seed) + 4 * np.eye(n)


def hermitian(z):
    return z + tenon.conj(z).mT


LINEAR_ALGEBRA = {
    "inv": lambda z: [tenon.inv(z)],
    "det": lambda z: [tenon.det(z)],
    "slogdet": lambda z: list(tenon.slogdet(z)),
    "solve": lambda z: [tenon.solve(z, z[:, :2] * 1j)],
    "lstsq": lambda z: [tenon.lstsq(z[:, :2], z[:, 2:]).solution],
    "triangular_solve": lambda z: [tenon.triangular_solve(z, z[:, :1])],
    "cholesky": lambda z: [tenon.cholesky(z @ tenon.conj(z).mT)],
    "qr": lambda z: list(tenon.qr(z)),
    "lu": lambda z: list(tenon.lu(z))[1:],
    "svdvals": lambda z: [tenon.svdvals(z)],
    "eigvalsh": lambda z: [tenon.eigvalsh(hermitian(z))],
    "pinv": lambda z: [tenon.pinv(z[:, :2])],
    "matrix_exp": lambda z: [tenon.matrix_exp(z / 4)],
    "matrix_power": lambda z: [tenon.matrix_power(z, 3)],
}


@pytest.mark.parametrize("name", LINEAR_ALGEBRA)
def test_linear_algebra(name):
    check(LINEAR_ALGEBRA[name], square(3))


def test_eigenvectors_that_do_not_depend_on_their_angle():
    def of(z):
        w, v = tenon.eigh(hermitian(z))
        return [(v * tenon.sin(w)) @ tenon.conj(v).mT]

    check(of, square(3) * np.array([1, 2, 3]))

    def of_singular_vectors(z):
        u, s, vh = tenon.svd(z, full_matrices=False)
        return [(u * tenon.sin(s)) @ vh]

    check(of_singular_vectors, square(3) * np.array([1, 2, 3]))


def test_real_eigenvalues_and_polynomial_roots():
    """Real matrices have complex eigenvalues, through which gradients pass."""

    def of(x):
        return [tenon.abs(tenon.eigvals(x)).sum().unsqueeze(0)]

    check(of, random(3, 3, real=True) + np.diag([1.0, 3.0, 6.0]))


def test_gradient_of_abs_at_zero_is_zero():
    z = T(np.zeros(2, complex), requires_grad=True)
    (gradient,) = tenon.grad(tenon.abs(z).sum(), z)
    assert gradient.numpy().tolist() == [0, 0]


def test_backward_accumulates_into_complex_leaves():
    z = T(np.array([1 + 2j, 3 - 1j]), requires_grad=True)
    for count in (1, 2):
        tenon.real(z * tenon.conj(z)).sum().backward()
        np.testing.assert_allclose(z.grad.numpy(), 2 * count * z.detach().numpy())
    (z * (1 + 1j)).backward(T(np.array([1j, 2.0])))
    np.testing.assert_allclose(
        z.grad.numpy(), 4 * z.detach().numpy() + (1 - 1j) * np.array([1j, 2.0])
    )


def test_losses_are_real():
    z = T(np.array([1 + 2j]), requires_grad=True)
    with pytest.raises(ValueError, match="expected one real number"):
        (z * z).backward()
