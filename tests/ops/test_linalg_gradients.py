# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives of linear algebra against finite differences, in float64. Functions of
factors that are not unique are made of what does not depend on the choice."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
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


STEP = 1e-6


def random(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def invertible(*shape, seed=0):
    return random(*shape, seed=seed) + 3 * np.eye(shape[-1])


def spread(*shape, seed=0):
    """Singular values, and eigenvalues of the symmetric part, well apart."""
    return random(*shape, seed=seed) / 4 + np.eye(*shape[-2:]) * np.arange(1.0, 1.0 + shape[-1])


def symmetric(x):
    return (x + x.mT) / 2


def weighted(*tensors):
    """A number that every element of every tensor matters to, and not linearly."""
    total = 0
    for i, x in enumerate(tensors):
        weights = T(np.random.default_rng([i, *x.shape]).standard_normal(tuple(x.shape)))
        total = total + (x * weights).sum() + (x * x * weights).sum() / 3
    return total


def of_svd(x, full_matrices=False):
    u, s, vh = tenon.svd(x, full_matrices=full_matrices)
    k = s.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    return (u * tenon.sin(s).unsqueeze(-2)) @ vh, (u * s.unsqueeze(-2)) @ u.mT, vh.mT @ vh, s


def of_eigh(x, upper=False):
    w, v = tenon.eigh(symmetric(x), upper=upper)
    return (v * tenon.sin(w).unsqueeze(-2)) @ v.mT, w


def of_lstsq(a, b):
    found = tenon.lstsq(a, b)
    return found.solution, found.residuals


def of_lu_solve(a, b):
    lu, pivots = tenon.lu_factor(a)
    return (tenon.lu_solve(lu, pivots, b),)


def of_householder(a):
    q = tenon.householder_product(a, 2 / (1 + (tenon.tril(a, -1) ** 2).sum(-2)))
    return (q,)


def of_householder_of_any_scale(a, tau):
    return (tenon.householder_product(a, tau),)


def positive(x):
    return x @ x.mT + tenon.eye(x.shape[-1], dtype="float64", device=x.device)


CASES = {
    "cholesky": (lambda x: [tenon.cholesky(positive(x))], [random(2, 4, 4)]),
    "cholesky upper": (lambda x: [tenon.cholesky(positive(x), upper=True)], [random(3, 3)]),
    "cholesky_solve": (
        lambda b, x: [tenon.cholesky_solve(b, tenon.cholesky(positive(x)))],
        [random(3, 2), random(2, 3, 3)],
    ),
    "cholesky_inverse": (
        lambda x: [tenon.cholesky_inverse(tenon.cholesky(positive(x)))],
        [random(3, 3)],
    ),
    "triangular_solve": (
        lambda a, b: [tenon.triangular_solve(a, b)],
        [invertible(2, 3, 3), random(3, 2)],
    ),
    "triangular_solve lower right": (
        lambda a, b: [tenon.triangular_solve(a, b, upper=False, left=False)],
        [invertible(3, 3), random(2, 2, 3)],
    ),
    "triangular_solve unit": (
        lambda a, b: [tenon.triangular_solve(a, b, unitriangular=True)],
        [invertible(3, 3), random(3, 2)],
    ),
    "solve": (lambda a, b: [tenon.solve(a, b)], [invertible(2, 3, 3), random(3, 2)]),
    "solve vector": (lambda a, b: [tenon.solve(a, b)], [invertible(2, 3, 3), random(3)]),
    "inv": (lambda x: [tenon.inv(x)], [invertible(2, 3, 3)]),
    "det": (lambda x: [tenon.det(x)], [invertible(2, 3, 3)]),
    "slogdet": (lambda x: [tenon.slogdet(x).logabsdet], [invertible(2, 3, 3)]),
    "logdet": (lambda x: [tenon.logdet(positive(x))], [random(3, 3)]),
    "lu square": (lambda x: list(tenon.lu(x))[1:], [random(2, 4, 4)]),
    "lu tall": (lambda x: list(tenon.lu(x))[1:], [random(5, 3)]),
    "lu wide": (lambda x: list(tenon.lu(x))[1:], [random(3, 5)]),
    "lu_solve": (of_lu_solve, [invertible(2, 3, 3), random(3, 2)]),
    "qr": (tenon.qr, [random(2, 4, 4)]),
    "qr tall": (tenon.qr, [random(5, 3)]),
    "qr wide": (tenon.qr, [random(3, 5)]),
    "householder_product": (of_householder, [random(5, 3)]),
    "householder_product any": (of_householder_of_any_scale, [random(2, 5, 3), random(2, 2)]),
    "svd": (of_svd, [spread(2, 4, 4)]),
    "svd tall": (of_svd, [spread(5, 3)]),
    "svd wide": (of_svd, [spread(3, 5)]),
    "svd full": (lambda x: of_svd(x, True), [spread(5, 3)]),
    "svdvals": (lambda x: [tenon.svdvals(x)], [spread(2, 4, 3)]),
    "pinv": (lambda x: [tenon.pinv(x)], [random(2, 4, 3)]),
    "pinv wide": (lambda x: [tenon.pinv(x)], [random(3, 4)]),
    "lstsq": (of_lstsq, [random(5, 3), random(5, 2)]),
    "lstsq wide": (of_lstsq, [random(3, 5), random(3)]),
    "eigh": (of_eigh, [spread(2, 4, 4)]),
    "eigh upper": (lambda x: of_eigh(x, True), [spread(3, 3)]),
    "eigvalsh": (lambda x: [tenon.eigvalsh(symmetric(x))], [spread(2, 4, 4)]),
    "matrix_exp": (lambda x: [tenon.matrix_exp(x)], [random(2, 3, 3)]),
    "matrix_power": (
        lambda x: [tenon.matrix_power(x, 5), tenon.matrix_power(x, -2)],
        [invertible(3, 3)],
    ),
    "matrix_norm": (
        lambda x: [tenon.matrix_norm(x, ord) for ord in ("fro", "nuc", "2", "-2", "1", "-inf")],
        [spread(4, 3)],
    ),
    "cond": (lambda x: [tenon.cond(x), tenon.cond(x, "fro")], [spread(3, 3)]),
    "cross": (lambda x, y: [tenon.cross(x, y)], [random(2, 3), random(3)]),
    "kron": (lambda x, y: [tenon.kron(x, y)], [random(2, 3), random(3)]),
    "cdist": (
        lambda x, y: [tenon.cdist(x, y), tenon.cdist(x, y, 3.0)],
        [random(2, 4, 3), random(5, 3)],
    ),
    "multi_dot": (
        lambda *x: [tenon.multi_dot(list(x))],
        [random(2, 5), random(5, 3), random(3, 4)],
    ),
    "tensorinv": (lambda x: [tenon.tensorinv(x, 1)], [invertible(6, 6).reshape(6, 2, 3)]),
    "tensorsolve": (
        lambda a, b: [tenon.tensorsolve(a, b)],
        [invertible(6, 6).reshape(2, 3, 6), random(2, 3)],
    ),
    "vander": (lambda x: [tenon.vander(x, 4)], [random(3)]),
}


class Function:
    def __init__(self, name):
        self.function, self.point = CASES[name]

    def __call__(self, arrays):
        return weighted(*self.function(*arrays))

    def gradient(self, arrays):
        tensors = [T(x, requires_grad=True) for x in arrays]
        return [g.cpu().numpy() for g in tenon.grad(self(tensors), tensors)]

    def directions(self, seed):
        return [random(*x.shape, seed=seed) for x in self.point]

    def moved(self, directions, step):
        return [x + step * d for x, d in zip(self.point, directions, strict=True)]


def dot(xs, ys):
    return sum(float(np.sum(x * y)) for x, y in zip(xs, ys, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_first_derivative(name):
    function = Function(name)
    for seed in (1, 2):
        d = function.directions(seed)
        values = [function([T(x) for x in function.moved(d, s)]).item() for s in (STEP, -STEP)]
        want = (values[0] - values[1]) / (2 * STEP)
        got = dot(function.gradient(function.point), d)
        assert abs(got - want) <= 2e-6 * max(1, abs(want)), (got, want)


@pytest.mark.parametrize("name", CASES)
def test_second_derivative(name):
    function = Function(name)
    d, e = function.directions(1), function.directions(2)
    ahead, behind = (function.gradient(function.moved(e, s)) for s in (STEP, -STEP))
    want = (dot(ahead, d) - dot(behind, d)) / (2 * STEP)
    tensors = [T(x, requires_grad=True) for x in function.point]
    first = tenon.grad(function(tensors), tensors, create_graph=True)
    along = sum((g * T(each)).sum() for g, each in zip(first, d, strict=True))
    second = tenon.grad(along, tensors, allow_unused=True)
    got = dot(
        [g.cpu().numpy() for g in second if g is not None],
        [x for x, g in zip(e, second, strict=True) if g is not None],
    )
    assert abs(got - want) <= 2e-5 * max(1, abs(want)), (got, want)


def test_det_has_a_gradient_at_singular_matrices():
    x = T(np.diag([2.0, 3.0, 0.0]), requires_grad=True)
    tenon.det(x).backward()
    assert np.allclose(x.grad.cpu().numpy(), np.diag([0.0, 0.0, 6.0]))
    x = T(np.zeros((3, 3)), requires_grad=True)
    tenon.det(x).backward()
    assert not x.grad.cpu().numpy().any()


def test_values_of_equal_size_have_finite_gradients():
    x = T(np.eye(3), requires_grad=True)
    w, v = tenon.eigh(x)
    ((v * w.unsqueeze(-2)) @ v.mT).sum().backward()
    assert np.allclose(x.grad.cpu().numpy(), np.eye(3))
    x = T(np.eye(3), requires_grad=True)
    tenon.svdvals(x).sum().backward()
    assert np.allclose(x.grad.cpu().numpy(), np.eye(3))


def test_modes_of_qr_without_a_gradient_say_so():
    x = T(random(5, 3), requires_grad=True)
    with pytest.raises(NotImplementedError, match="mode 'complete' has no gradient for more rows"):
        tenon.qr(x, mode="complete").r.sum().backward()
    with pytest.raises(NotImplementedError, match="mode 'r' has no gradient"):
        tenon.qr(x, mode="r").r.sum().backward()


# -- complex gradients, by the operators that gradients are made of: backward refuses complex tensors ---


def complex_random(*shape, seed=0):
    return random(*shape, seed=seed) + 1j * random(*shape, seed=seed + 100)


@pytest.fixture(scope="module", autouse=True)
def rules(tmp_path_factory):
    """The operators that are gradients have no Python function: operators of a file call them."""
    dump = json.loads((Path(os.environ["TENON_BUILD_DIR"]) / "gen" / "operators.json").read_text())
    text = "namespace: gradients_of_linalg\nops:\n"
    for op in dump["operators"]:
        if op["origin"].startswith("factorization.yaml") and op["name"].endswith("_grad"):
            name = op["name"].removeprefix("tenon::")
            call = f"tenon::{name}({', '.join(p['name'] for p in op['params'])})"
            text += f"- op: {name}\n  doc: A rule.\n  sig: {op['signature']}\n"
            text += f"  kind: composite\n  decompose: {call}\n"
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(text)
    tenon.ops.load(path)


def internal(name, *arrays, **attributes):
    result = getattr(tenon.ops.gradients_of_linalg, name)(*[T(x) for x in arrays], **attributes)
    return [each.cpu().numpy() for each in (result if isinstance(result, tuple) else (result,))]


def check_complex(function, gradient, *point, step=1e-6):
    """`function` returns arrays. The loss is the real part of their inner products with weights, which
    are the gradients of the results."""
    results = function(*point)
    weights = [
        complex_random(*r.shape, seed=7) if np.iscomplexobj(r) else random(*r.shape, seed=7)
        for r in results
    ]
    found = gradient(weights, results)

    def loss(*at):
        return sum(np.sum(np.conj(w) * r).real for w, r in zip(weights, function(*at), strict=True))

    directions = [complex_random(*x.shape, seed=3) for x in point]
    ahead = loss(*[x + step * d for x, d in zip(point, directions, strict=True)])
    behind = loss(*[x - step * d for x, d in zip(point, directions, strict=True)])
    want = (ahead - behind) / (2 * step)
    got = sum(np.sum(np.conj(g) * d).real for g, d in zip(found, directions, strict=True))
    assert abs(got - want) <= 1e-5 * max(1, abs(want)), (got, want)


def arrays_of(*tensors):
    return [each.cpu().numpy() for each in tensors]


def test_complex_gradients_of_equations():
    a = complex_random(3, 3) + 3 * np.eye(3)
    b = complex_random(3, 2, seed=1)
    check_complex(
        lambda a: arrays_of(tenon.inv(T(a))), lambda w, r: internal("inv_grad", w[0], r[0]), a
    )
    check_complex(
        lambda a, b: arrays_of(tenon.solve(T(a), T(b))),
        lambda w, r: internal("solve_grad", w[0], a, r[0], b_ndim=2),
        a,
        b,
    )
    check_complex(
        lambda a, b: arrays_of(tenon.triangular_solve(T(a), T(b))),
        lambda w, r: internal(
            "triangular_solve_grad", w[0], a, r[0], upper=True, left=True, unitriangular=False
        ),
        a,
        b,
    )
    check_complex(
        lambda a: arrays_of(tenon.det(T(a))), lambda w, r: internal("det_grad", w[0], a), a
    )
    check_complex(
        lambda a: arrays_of(*tenon.slogdet(T(a))),
        lambda w, r: internal("slogdet_grad", w[0], w[1], a, r[0]),
        a,
    )
    check_complex(
        lambda a: arrays_of(tenon.matrix_exp(T(a))),
        lambda w, r: internal("matrix_exp_grad", w[0], a),
        a,
    )
    tall = complex_random(4, 3)
    check_complex(
        lambda a: arrays_of(tenon.pinv(T(a))),
        lambda w, r: internal("pinv_grad", w[0], tall, r[0]),
        tall,
    )


def test_complex_gradients_of_factors():
    a = complex_random(4, 4)
    check_complex(
        lambda a: arrays_of(tenon.lu_factor(T(a)).lu),
        lambda w, r: internal(
            "lu_factor_grad", w[0], r[0], tenon.lu_factor(T(a)).pivots.cpu().numpy()
        ),
        a,
    )
    check_complex(
        lambda a: arrays_of(tenon.svdvals(T(a))), lambda w, r: internal("svdvals_grad", w[0], a), a
    )
    check_complex(
        lambda a: [np.sort_complex(tenon.eigvals(T(a)).cpu().numpy())],
        lambda w, r: internal(
            "eigvals_grad",
            w[0][np.argsort(np.argsort(tenon.eigvals(T(a)).cpu().numpy()))],
            a,
        ),
        a,
    )
    tall = complex_random(5, 3)
    check_complex(
        lambda x: arrays_of(*tenon.qr(T(x))),
        lambda w, r: internal("qr_grad", *w, *r, mode="reduced"),
        tall,
    )


def loss_of_vectors(u, f, vh, weights):
    return np.sum(np.conj(weights) * (u * f[..., None, :] @ vh)).real


def test_complex_gradients_of_vectors():
    """Of what does not depend on the angle of a vector."""
    x = complex_random(4, 3)
    weights = complex_random(4, 3, seed=5)

    def value(x):
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        return loss_of_vectors(u, np.sin(s), vh, weights)

    u, s, vh = (each.cpu().numpy() for each in tenon.svd(T(x), full_matrices=False))
    core = u.conj().T @ weights @ vh.conj().T
    gu = weights @ vh.conj().T * np.sin(s)
    gvh = np.sin(s)[:, None] * (u.conj().T @ weights)
    gs = np.cos(s) * np.diagonal(core).real
    (gradient,) = internal("svd_grad", gu, gs, gvh, u, s, vh)
    d = complex_random(4, 3, seed=9)
    want = (value(x + 1e-6 * d) - value(x - 1e-6 * d)) / 2e-6
    assert abs(np.sum(np.conj(gradient) * d).real - want) < 1e-5

    h = complex_random(3, 3)
    h = h + h.conj().T
    weights = complex_random(3, 3, seed=5)

    def of_eigenvectors(h):
        w, v = np.linalg.eigh(h)
        return loss_of_vectors(v, np.sin(w), v.conj().T, weights)

    w, v = (each.cpu().numpy() for each in tenon.eigh(T(h)))
    gv = (weights @ v) * np.sin(w) + (weights.conj().T @ v) * np.sin(w)
    gw = np.cos(w) * np.diagonal(v.conj().T @ weights @ v).real
    (gradient,) = internal("eigh_grad", gw, gv, w, v)
    d = complex_random(3, 3, seed=9)
    d = d + d.conj().T
    want = (of_eigenvectors(h + 1e-6 * d) - of_eigenvectors(h - 1e-6 * d)) / 2e-6
    assert abs(np.sum(np.conj(gradient) * d).real - want) < 1e-5

    a = complex_random(3, 3)

    def of_general(a):
        w, v = np.linalg.eig(a)
        order = np.argsort(w)
        v = v[:, order] / np.linalg.norm(v[:, order], axis=0)
        return np.sum(weights.real * np.abs(v) ** 2) + np.sum(np.abs(w[order]) ** 2 * np.arange(3))

    w, v = (each.cpu().numpy() for each in tenon.eig(T(a)))
    rank = np.argsort(np.argsort(w))
    gv, gw = 2 * weights.real[:, rank] * v, 2 * w * rank
    (gradient,) = internal("eig_grad", gw, gv, a, w, v)
    d = complex_random(3, 3, seed=9)
    want = (of_general(a + 1e-6 * d) - of_general(a - 1e-6 * d)) / 2e-6
    assert abs(np.sum(np.conj(gradient) * d).real - want) < 1e-5
