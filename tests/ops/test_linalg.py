# SPDX-License-Identifier: Apache-2.0
"""Linear algebra against NumPy and SciPy: values, reconstruction, batches, layouts, empty matrices, and
what is refused. Gradients are in test_linalg_gradients.py."""

import numpy as np
import pytest
import scipy.linalg
import tenon
import vendor_libraries

DEVICE = "cpu"


@pytest.fixture(autouse=True)
def on_device(device):
    global DEVICE
    DEVICE = device
    with tenon.fallback(vendor_libraries.POLICY):
        yield


def T(x, **options):
    return tenon.tensor(x, **{"device": DEVICE, **options})


DTYPES = ["float32", "float64", "complex64", "complex128"]
BATCHES = [(), (3,), (2, 3), (0,)]


def tolerance(dtype):
    return 2e-4 if dtype in ("float32", "complex64") else 1e-10


def random(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def invertible(*shape, dtype="float64", seed=0):
    return random(*shape, dtype=dtype, seed=seed) + 3 * np.eye(shape[-1], dtype=dtype)


def hermitian(*shape, dtype="float64", seed=0):
    x = random(*shape, dtype=dtype, seed=seed)
    return x + x.conj().swapaxes(-1, -2)


def positive(*shape, dtype="float64", seed=0):
    x = random(*shape, dtype=dtype, seed=seed)
    return x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def close(got, want, dtype="float64"):
    got = got.cpu().numpy() if isinstance(got, tenon.Tensor) else got
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance(dtype), atol=tolerance(dtype))


# -- values ------------------------------------------------------------------------------------------

UNARY = {
    "det": (invertible, np.linalg.det),
    "inv": (invertible, np.linalg.inv),
    "svdvals": (random, lambda x: np.linalg.svd(x, compute_uv=False)),
    "pinv": (random, np.linalg.pinv),
    "matrix_rank": (random, np.linalg.matrix_rank),
    "eigvalsh": (hermitian, np.linalg.eigvalsh),
    "cholesky": (positive, np.linalg.cholesky),
    "cond": (invertible, np.linalg.cond),
    "logdet": (positive, lambda x: np.linalg.slogdet(x)[1]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_equals_numpy(name, batch, dtype, device):
    make, oracle = UNARY[name]
    x = make(*batch, 4, 4, dtype=dtype)
    if x.size:
        want = oracle(x)
    elif name in ("det", "cond", "logdet"):
        want = np.zeros(batch)
    else:
        want = {"svdvals": x.real[..., 0], "eigvalsh": x.real[..., 0]}.get(name, x)
        want = np.zeros(batch, "int64") if name == "matrix_rank" else want
    got = getattr(tenon, name)(T(x))
    assert str(got.device).startswith(device)
    if name != "matrix_rank" and not (name == "logdet" and "complex" in dtype):
        real = np.dtype(dtype).type(0).real.dtype.name
        keeps = name in ("det", "inv", "pinv", "cholesky")
        assert str(got.dtype).removeprefix("tenon.") == (dtype if keeps else real)
    close(got, want, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 2), (1, 1)], ids=str)
def test_rectangular_matrices_equal_numpy(shape, dtype):
    x = random(*shape, dtype=dtype)
    close(tenon.pinv(T(x)), np.linalg.pinv(x), dtype)
    close(tenon.svdvals(T(x)), np.linalg.svd(x, compute_uv=False), dtype)
    close(tenon.matrix_rank(T(x)), np.linalg.matrix_rank(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_slogdet_equals_numpy(dtype):
    x = random(3, 4, 4, dtype=dtype)
    x[1, 0] = 0  # singular, whatever the rounding
    for got, want in zip(tenon.slogdet(T(x)), np.linalg.slogdet(x), strict=True):
        close(got, want, dtype)


def test_determinants_of_large_matrices_do_not_overflow_as_logarithms():
    x = np.eye(400) * 10.0
    sign, logabsdet = tenon.slogdet(T(x))
    assert sign.item() == 1.0 and abs(logabsdet.item() - 400 * np.log(10)) < 1e-9
    assert np.isinf(tenon.det(T(x)).item())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 4), (4,)),
        ((4, 4), (4, 3)),
        ((2, 4, 4), (4, 3)),
        ((4, 4), (2, 4, 3)),
        ((3, 1, 4, 4), (2, 4, 1)),
    ],
    ids=str,
)
def test_solve_equals_numpy(shapes, dtype):
    a, b = invertible(*shapes[0], dtype=dtype), random(*shapes[1], dtype=dtype, seed=1)
    close(tenon.solve(T(a), T(b)), np.linalg.solve(a, b), dtype)
    lu, pivots = tenon.lu_factor(T(a))
    close(tenon.lu_solve(lu, pivots, T(b)), np.linalg.solve(a, b), dtype)


def test_solve_of_a_vector_broadcasts_over_the_batch():
    a, b = invertible(2, 3, 4, 4), random(4, seed=1)
    close(
        tenon.solve(T(a), T(b)),
        np.linalg.solve(a, np.broadcast_to(b, (2, 3, 4))[..., None])[..., 0],
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solve_reads_one_triangle(upper, left, unit, dtype):
    a, b = invertible(3, 4, 4, dtype=dtype), random(4, 4, dtype=dtype, seed=1)
    part = np.triu(a) if upper else np.tril(a)
    if unit:
        part = np.where(np.eye(4, dtype=bool), 1, part).astype(dtype)
    x = tenon.triangular_solve(T(a), T(b), upper=upper, left=left, unitriangular=unit).cpu().numpy()
    close(part @ x if left else x @ part, np.broadcast_to(b, (3, 4, 4)), dtype)
    other = tenon.triangular_solve(
        T(np.ascontiguousarray(a.swapaxes(-1, -2))).mT,
        T(b),
        upper=upper,
        left=left,
        unitriangular=unit,
    )
    close(other, x, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)], ids=str)
def test_lstsq_equals_numpy(shape, dtype):
    a, b = random(*shape, dtype=dtype), random(shape[0], 2, dtype=dtype, seed=1)
    want = np.linalg.lstsq(a, b, rcond=None)
    got = tenon.lstsq(T(a), T(b))
    close(got.solution, want[0], dtype)
    assert got.rank.item() == want[2]
    close(got.singular_values, want[3], dtype)
    close(got.residuals, np.sum(np.abs(a @ want[0] - b) ** 2, axis=0), dtype)
    close(tenon.lstsq(T(a), T(b[:, 0])).solution, want[0][:, 0], dtype)
    batch = tenon.lstsq(T(np.stack([a, 2 * a])), T(b))
    close(batch.solution, np.stack([want[0], want[0] / 2]), dtype)


def test_lstsq_of_matrices_without_full_rank_has_the_shortest_solution():
    a = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    b = np.array([1.0, 2.0, 3.0])
    got = tenon.lstsq(T(a), T(b))
    assert got.rank.item() == 1
    close(got.solution, np.linalg.lstsq(a, b, rcond=None)[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0.01, 0.5, 1.0, 3.0, 40.0])
def test_matrix_exp_equals_scipy(scale, dtype):
    x = random(2, 5, 5, dtype=dtype) * np.dtype(dtype).type(scale).real / 5
    want = np.stack([scipy.linalg.expm(each.astype("complex128")) for each in x])
    want = want if "complex" in dtype else want.real
    bound = (1e-4 if tolerance(dtype) > 1e-6 else 1e-11) * np.abs(want).max()
    np.testing.assert_allclose(tenon.matrix_exp(T(x)).cpu().numpy(), want, rtol=0, atol=bound)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 12, -1, -3])
def test_matrix_power_equals_numpy(n):
    x = invertible(2, 3, 3)
    close(tenon.matrix_power(T(x), n), np.linalg.matrix_power(x, n))


def test_matrix_power_of_the_smallest_integer_ends():
    assert tenon.matrix_power(T(np.eye(2)), -(2**63)).cpu().numpy().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_norms_of_matrices_equal_numpy(ord, dtype):
    x = random(2, 3, 4, dtype=dtype)
    for keepdims in (False, True):
        want = np.linalg.matrix_norm(x, ord=ord, keepdims=keepdims)
        close(tenon.linalg.matrix_norm(T(x), ord=ord, keepdims=keepdims), want)
        want = np.linalg.norm(x, ord=ord, axis=(2, 0), keepdims=keepdims)
        close(tenon.linalg.norm(T(x), ord, (2, 0), keepdims), want)
    square = invertible(2, 4, 4, dtype=dtype)
    close(tenon.linalg.cond(T(square), ord), np.linalg.cond(square, ord))


def test_condition_of_singular_and_empty_matrices():
    assert tenon.cond(T(np.zeros((2, 2)))).item() == np.inf
    assert tenon.cond(T(np.zeros((3, 0, 0)))).cpu().numpy().tolist() == [0, 0, 0]
    x = T([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]])
    assert tenon.cond(x, "1").cpu().numpy().tolist() == [np.inf, 2.0]


@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
def test_products_equal_numpy(dtype):
    def some(*shape, seed=0):
        x = random(*shape, dtype="complex128" if dtype == "complex128" else "float64", seed=seed)
        return (x * 9).astype(dtype)

    with np.errstate(all="ignore"):
        x, y = some(2, 3), some(4, 1, 2, seed=1)
        close(tenon.kron(T(x), T(y)), np.kron(x, y))
        x, y = some(4, 3), some(3, seed=1)
        close(tenon.cross(T(x), T(y)), np.cross(x, y))
        x, y = some(3, 4), some(3, 4, seed=1)
        close(tenon.cross(T(x), T(y), 0), np.cross(x, y, axis=0))
        chain = [some(4, 10), some(10, 3, seed=1), some(3, 6, seed=2), some(6, 2, seed=3)]
        close(tenon.multi_dot([T(each) for each in chain]), np.linalg.multi_dot(chain))
        chain = [some(4), some(4, 3, seed=1), some(3, seed=2)]
        close(tenon.multi_dot([T(each) for each in chain]), np.linalg.multi_dot(chain))
        x = some(3)
        for n in (None, 0, 1, 5):
            for increasing in (False, True):
                close(tenon.vander(T(x), n, increasing=increasing), np.vander(x, n, increasing))


@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
def test_sums_of_products_equal_numpy(dtype):
    def some(*shape, seed=0):
        x = random(*shape, dtype="complex128" if dtype == "complex128" else "float64", seed=seed)
        return (x * 9).astype(dtype)

    with np.errstate(all="ignore"):
        x, y = some(2, 3, 4), some(5, 4, seed=1)
        close(tenon.inner(T(x), T(y)), np.inner(x, y))
        close(tenon.inner(T(y), 2), np.inner(y, 2))
        a, b, c = some(2, 3), some(3, 4, seed=1), some(4, seed=2)
        close(tenon.addmm(T(c), T(a), T(b), beta=2, alpha=3), 2 * c + 3 * (a @ b))
        close(tenon.addmv(T(some(2)), T(a), T(b[:, 0]), alpha=2), some(2) + 2 * (a @ b[:, 0]))
        close(tenon.addr(T(b), T(some(3)), T(c)), b + np.outer(some(3), c))
        batch, other = some(5, 2, 3), some(5, 3, 4, seed=1)
        close(tenon.baddbmm(T(c), T(batch), T(other)), c + batch @ other)
        close(tenon.addbmm(T(c), T(batch), T(other), beta=2), 2 * c + (batch @ other).sum(0))
        close(tenon.addcmul(T(b), T(c), T(c), value=2), b + 2 * c * c)
        if dtype != "int64":
            close(tenon.addcdiv(T(b), T(c), T(b), value=2), b + 2 * c / b)


SCALED_SUMS = {
    "addmm": ((2, 3), (3, 4)),
    "addmv": ((2, 3), (3,)),
    "addr": ((2,), (4,)),
    "baddbmm": ((5, 2, 3), (5, 3, 4)),
    "addbmm": ((5, 2, 3), (5, 3, 4)),
}


@pytest.mark.parametrize("name", SCALED_SUMS)
def test_factors_of_sums_with_products(name):
    call, in_place = getattr(tenon, name), getattr(tenon.Tensor, name + "_")
    a, b = (random(*shape) for shape in SCALED_SUMS[name])
    zero = call(T(0.0), T(a), T(b))
    product = zero.cpu().numpy()
    # Nothing of x counts with the factor 0, NaN neither.
    x = zero * np.nan
    close(call(x, T(a), T(b), beta=0, alpha=2), 2 * product)
    close(in_place(x.clone(), T(a), T(b), beta=0.0), product)
    empty = [T(np.zeros(shape)) for shape in SCALED_SUMS[name]]
    close(call(x, *empty, beta=0), 0 * product)
    # Factors of integers are whole numbers, and so are their sums.
    whole = [T(np.ones(shape, "int64")) for shape in SCALED_SUMS[name]]
    ones = call(T(0), *whole)
    assert ones.dtype == tenon.int64
    result = call(ones, *whole, beta=3.0, alpha=2)
    assert result.dtype == tenon.int64 and result.tolist() == (5 * ones).tolist()
    for factors, text in (
        ({"beta": 0.5}, "beta to be a whole number beside tensors of int64, got 0.5"),
        ({"alpha": 1.5}, "alpha to be a whole number beside tensors of int64, got 1.5"),
        ({"alpha": 1j}, "got one that is not real; convert them"),
    ):
        with pytest.raises(TypeError, match=text):
            call(ones, *whole, **factors)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_statistics_of_vectors_equal_numpy(dtype):
    x = random(3, 7, dtype=dtype)
    close(tenon.cov(T(x[:1])), np.cov(x[:1]))
    assert tenon.corrcoef(T(x[:1])).item() == 1
    close(tenon.cov(T(x)), np.cov(x))
    close(tenon.cov(T(x), correction=0), np.cov(x, ddof=0))
    close(tenon.cov(T(x[0])), np.cov(x[0]))
    close(tenon.corrcoef(T(x)), np.corrcoef(x))
    assert tenon.corrcoef(T(x[0])).item() == 1
    close(tenon.dist(T(x), T(x[0]), 3.0), np.linalg.norm((x - x[0]).reshape(-1), 3))
    for axis in (0, 1, -1):
        norms = np.linalg.norm(x, axis=1 - axis % 2, keepdims=True)
        want = np.where(norms > 2, x * (2 / (norms + 1e-7)), x)
        close(tenon.renorm(T(x), 2.0, axis, 2.0), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (2, 4, 2)], ids=str)
def test_products_with_the_square_factor_of_qr(shape, dtype):
    x = random(*shape, dtype=dtype)
    a, tau = tenon.geqrf(T(x))
    q = tenon.qr(T(x), mode="complete").q.cpu().numpy()
    b, c = random(shape[-2], 2, dtype=dtype), random(2, shape[-2], dtype=dtype, seed=1)
    close(tenon.ormqr(a, tau, T(b)), q @ b, dtype)
    close(tenon.ormqr(a, tau, T(b), True, True), adjoint(q) @ b, dtype)
    close(tenon.ormqr(a, tau, T(c), False), c @ q, dtype)
    close(tenon.ormqr(a, tau, T(c), False, True), c @ adjoint(q), dtype)
    with pytest.raises(ValueError, match=r"\[ormqr\] expected b.shape\[-2\] == a.shape\[-2\]"):
        tenon.ormqr(a, tau, T(c))


def test_unpacking_gives_the_factors():
    for shape in ((4, 4), (2, 5, 3), (3, 5)):
        x = T(random(*shape))
        for got, want in zip(tenon.lu_unpack(*tenon.lu_factor(x)), tenon.lu(x), strict=True):
            close(got, want.cpu().numpy())
    assert tenon.linalg.lu_unpack(*tenon.linalg.lu_factor(x)).P.shape == (3, 3)
    a, b = invertible(3, 3), random(3, 2)
    close(
        tenon.linalg.solve_triangular(T(a), T(b), upper=False),
        scipy.linalg.solve_triangular(a, b, lower=True),
    )


def test_maps_between_tensors_equal_numpy():
    x = random(4, 6, 8, 3)
    close(tenon.tensorinv(T(x), 2), np.linalg.tensorinv(x, 2))
    a, b = random(2, 3, 6), random(2, 3, seed=1)
    close(tenon.tensorsolve(T(a), T(b)), np.linalg.tensorsolve(a, b))
    a = random(2, 6, 3)
    close(tenon.tensorsolve(T(a), T(b), axes=[1]), np.linalg.tensorsolve(a, b, axes=(1,)))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, np.inf])
def test_distances_of_rows(p):
    x, y = random(2, 5, 3), random(4, 3, seed=1)
    want = np.linalg.norm(x[:, :, None] - y[None, None], ord=p, axis=-1)
    close(tenon.cdist(T(x), T(y), p), want)


# -- factors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(4, 4), (5, 3), (3, 5), (2, 3, 5, 2), (0, 3, 3), (3, 0), (0, 3)], ids=str
)
class TestFactors:
    def test_qr(self, shape, dtype):
        x = random(*shape, dtype=dtype)
        for mode in ("reduced", "complete"):
            q, r = tenon.qr(T(x), mode=mode)
            close(q.cpu().numpy() @ r.cpu().numpy(), x, dtype)
            columns = q.shape[-1]
            close(
                adjoint(q.cpu().numpy()) @ q.cpu().numpy(),
                np.broadcast_to(np.eye(columns), (*shape[:-2], columns, columns)),
                dtype,
            )
            close(r, np.triu(r.cpu().numpy()))
        if x.size:
            q, r = tenon.qr(T(x), mode="r")
            assert q.size == 0
            close(
                r,
                np.linalg.qr(x, mode="r") if x.ndim == 2 else tenon.qr(T(x))[1].cpu().numpy(),
                dtype,
            )

    def test_householder(self, shape, dtype):
        x = random(*shape, dtype=dtype)
        if shape[-1] > shape[-2]:
            return
        a, tau = tenon.geqrf(T(x))
        close(tenon.householder_product(a, tau), tenon.qr(T(x)).q.cpu().numpy(), dtype)

    def test_lu(self, shape, dtype):
        x = random(*shape, dtype=dtype)
        p, low, up = (each.cpu().numpy() for each in tenon.lu(T(x)))
        close(p @ low @ up, x, dtype)
        close(low, np.tril(low))
        close(up, np.triu(up))
        if x.ndim == 2 and x.size:
            lu, pivots = tenon.lu_factor(T(x))
            want = scipy.linalg.lu_factor(x)
            close(lu, want[0], dtype)
            close(pivots, want[1])

    def test_svd(self, shape, dtype):
        x = random(*shape, dtype=dtype)
        k = min(shape[-2:])
        for full in (False, True):
            u, s, vh = (each.cpu().numpy() for each in tenon.svd(T(x), full_matrices=full))
            close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, dtype)
            for square in (adjoint(u) @ u, vh @ adjoint(vh)):
                close(square, np.broadcast_to(np.eye(square.shape[-1]), square.shape), dtype)
            assert np.all(np.diff(s, axis=-1) <= 0)
            assert u.shape[-1] == (shape[-2] if full else k)


def test_pivots_make_a_permutation():
    x = random(2, 5, 3)
    rows = tenon.lu_permutation(tenon.lu_factor(T(x)).pivots, 5).cpu().numpy()
    assert np.array_equal(np.sort(rows), np.broadcast_to(np.arange(5), (2, 5)))
    _, low, up = (each.cpu().numpy() for each in tenon.lu(T(x)))
    close(low @ up, np.take_along_axis(x, rows[..., None], -2))
    with pytest.raises(IndexError, match=r"\[lu_permutation\] expected pivots in \[0, 2\), got 2"):
        tenon.lu_permutation(T([0, 2]), 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES, ids=str)
class TestEigen:
    def test_eigh(self, batch, dtype):
        x = hermitian(*batch, 4, 4, dtype=dtype)
        for upper in (False, True):
            given = np.triu(x) if upper else np.tril(x)
            w, v = (each.cpu().numpy() for each in tenon.eigh(T(given), upper=upper))
            close(v * w[..., None, :] @ adjoint(v), x, dtype)
            assert np.all(np.diff(w, axis=-1) >= 0)
            close(tenon.eigvalsh(T(given), upper=upper), w, dtype)

    def test_eig(self, batch, dtype):
        x = random(*batch, 4, 4, dtype=dtype)
        w, v = (each.cpu().numpy() for each in tenon.eig(T(x)))
        assert w.dtype.kind == v.dtype.kind == "c"
        close(x @ v, v * w[..., None, :], dtype)
        close(np.linalg.norm(v, axis=-2), np.ones(w.shape), dtype)
        close(np.sort_complex(tenon.eigvals(T(x)).cpu().numpy()), np.sort_complex(w), dtype)

    def test_cholesky(self, batch, dtype):
        x = positive(*batch, 4, 4, dtype=dtype)
        low, up = tenon.cholesky(T(x)), tenon.cholesky(T(x), upper=True)
        close(low.cpu().numpy() @ adjoint(low.cpu().numpy()), x, dtype)
        close(up, adjoint(low.cpu().numpy()), dtype)
        close(tenon.cholesky(T(np.tril(x))), low.cpu().numpy(), dtype)
        b = random(4, 2, dtype=dtype, seed=1)
        if x.size:
            for factor, upper in ((low, False), (up, True)):
                close(tenon.cholesky_solve(T(b), factor, upper=upper), np.linalg.solve(x, b), dtype)
                close(tenon.cholesky_inverse(factor, upper=upper), np.linalg.inv(x), dtype)


def test_adjugate_of_singular_matrices():
    def cofactors(x):
        n = len(x)
        minors = [
            [np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(n)] for i in range(n)
        ]
        return (np.array(minors) * (-1.0) ** np.add.outer(range(n), range(n))).T

    x = np.stack(
        [invertible(3, 3), np.diag([1.0, 2.0, 0.0]), np.diag([1.0, 0.0, 0.0]), np.ones((3, 3))]
    )
    close(tenon.adjugate(T(x)), np.stack([cofactors(each) for each in x]))


# -- inputs ------------------------------------------------------------------------------------------

CALLS = {
    "cholesky": (positive, lambda x: [tenon.cholesky(x)]),
    "inv": (invertible, lambda x: [tenon.inv(x)]),
    "det": (invertible, lambda x: [tenon.det(x)]),
    "solve": (invertible, lambda x: [tenon.solve(x, x[..., :2])]),
    "triangular_solve": (invertible, lambda x: [tenon.triangular_solve(x, x[..., 1:3])]),
    "lstsq": (random, lambda x: [tenon.lstsq(x, x[..., :2]).solution]),
    "lu_factor": (random, tenon.lu_factor),
    "qr": (random, tenon.qr),
    "svd": (random, tenon.svd),
    "svdvals": (random, lambda x: [tenon.svdvals(x)]),
    "eigh": (hermitian, tenon.eigh),
    "eig": (random, tenon.eig),
    "matrix_exp": (random, lambda x: [tenon.matrix_exp(x)]),
    "adjugate": (random, lambda x: [tenon.adjugate(x)]),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", CALLS)
def test_layout_does_not_matter(name, dtype):
    make, call = CALLS[name]
    x = make(2, 4, 4, dtype=dtype)
    want = [each.cpu().numpy() for each in call(T(x))]
    storage = np.zeros((4, 8, 8), dtype)
    storage[::-2, ::2, ::-2] = x
    gaps = tenon.flip(T(storage)[:, ::2], [0, 2])[::2, :, ::2]
    for laid_out in (T(np.ascontiguousarray(x.swapaxes(-1, -2))).mT, gaps):
        assert np.array_equal(laid_out.cpu().numpy(), x)
        for got, expected in zip(call(laid_out), want, strict=True):
            close(got, expected)


@pytest.mark.parametrize("name", CALLS)
def test_meta_says_the_same_shapes(name):
    make, call = CALLS[name]
    x = T(make(2, 4, 4))
    for got, want in zip(call(x.to("meta")), call(x), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)


@pytest.mark.parametrize("name", CALLS)
def test_large_batches_run_in_parallel_and_give_the_same(name):
    make, call = CALLS[name]
    x = make(64, 24, 24)
    threads = tenon.get_num_threads()
    try:
        tenon.set_num_threads(1)
        want = [each.cpu().numpy() for each in call(T(x))]
        tenon.set_num_threads(4)
        for got, expected in zip(call(T(x)), want, strict=True):
            assert np.array_equal(got.cpu().numpy(), expected)
    finally:
        tenon.set_num_threads(threads)


def test_integers_are_computed_in_float32():
    assert tenon.inv(T([[2, 0], [0, 4]])).cpu().numpy().tolist() == [[0.5, 0.0], [0.0, 0.25]]
    assert tenon.det(T([[1, 2], [3, 4]])).dtype == tenon.float32
    assert tenon.solve(T([[2, 0], [0, 4]]), T([2.0, 8.0], dtype="float64")).dtype == tenon.float64


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_elements_that_are_not_finite_are_refused(name, bad):
    x = hermitian(2, 3, 3, 3)
    x[1, 2, 2, 0] = x[1, 2, 0, 2] = bad
    expected = (
        rf"\[{name}\] expected finite elements, got NaN or infinity in matrix \(1, 2\) of the batch"
    )
    with pytest.raises(ValueError, match=expected):
        getattr(tenon, name)(T(x))


def test_nan_passes_through_elimination():
    x = invertible(2, 3, 3)
    x[1, 1, 1] = np.nan
    for result in (
        tenon.inv(T(x)),
        tenon.solve(T(x), T(np.eye(3))),
        tenon.det(T(x)),
        tenon.matrix_exp(T(x)),
    ):
        result = result.cpu().numpy()
        assert np.isnan(result[1]).any() and np.isfinite(result[0]).all()


def test_matrices_that_have_no_result_are_named():
    x = np.stack([np.eye(3)] * 4).reshape(2, 2, 3, 3)
    x[1, 0, 2, 2] = 0
    info = r" \((LAPACK|cuSOLVER|hipSOLVER): info 3\)"
    where = r" in matrix \(1, 0\) of the batch" + info
    singular = r"expected invertible matrices, got a singular one"
    with pytest.raises(ValueError, match=rf"\[inv\] {singular}{where}; use pinv"):
        tenon.inv(T(x))
    with pytest.raises(ValueError, match=rf"\[solve\] {singular}{where}; use lstsq"):
        tenon.solve(T(x), T(x))
    with pytest.raises(
        ValueError, match=rf"\[cholesky\] expected positive definite matrices.*{where}"
    ):
        tenon.cholesky(T(x))
    with pytest.raises(ValueError, match=rf"\[inv\] {singular}{info}"):
        tenon.inv(T(x[1, 0]))
    assert tenon.det(T(x)).cpu().numpy().tolist() == [[1, 1], [0, 1]]
    assert tenon.slogdet(T(x)).logabsdet.cpu().numpy().tolist() == [[0, 0], [-np.inf, 0]]


def test_shapes_and_dtypes_that_do_not_fit_are_refused():
    with pytest.raises(
        ValueError, match=r"\[inv\] expected x to have square matrices .* got shape \(2, 3\)"
    ):
        tenon.inv(tenon.zeros([2, 3]))
    with pytest.raises(
        ValueError,
        match=r"\[svd\] expected x to have matrices in its last two axes, got shape \(3,\)",
    ):
        tenon.svd(tenon.zeros([3]))
    with pytest.raises(
        ValueError, match=r"\[solve\] expected b.shape\[-2\] == a.shape\[-2\], got 2 and 3"
    ):
        tenon.solve(tenon.zeros([3, 3]), tenon.zeros([2, 1]))
    with pytest.raises(ValueError, match=r"\[solve\] expected batches that broadcast"):
        tenon.solve(tenon.zeros([2, 3, 3]), tenon.zeros([3, 3, 1]))
    with pytest.raises(
        ValueError, match=r"\[qr\] expected mode 'reduced', 'complete' or 'r', got 'full'"
    ):
        tenon.qr(tenon.zeros([3, 3]), mode="full")
    with pytest.raises(
        ValueError, match=r"\[matrix_norm\] expected ord 'fro', 'nuc', .* got 'spam'"
    ):
        tenon.matrix_norm(tenon.zeros([3, 3]), "spam")
    for shapes in ([3], [1]), ([2, 3], []), ([2, 3], [3, 1]):
        with pytest.raises(ValueError, match=r"\[vecdot\] expected as many elements of x along"):
            tenon.vecdot(*(tenon.zeros(shape) for shape in shapes))
    with pytest.raises(ValueError, match=r"\[cross\] expected vectors of length 3 in axis -1"):
        tenon.cross(tenon.zeros([2]), tenon.zeros([2]))
    with pytest.raises(TypeError, match=r"float16"):
        tenon.inv(tenon.zeros([3, 3], dtype="float16"))
