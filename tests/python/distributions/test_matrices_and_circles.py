# SPDX-License-Identifier: Apache-2.0
"""VonMises, ContinuousBernoulli, GeneralizedPareto, LogisticNormal, low rank normal vectors, Wishart and LKJ: densities against
numbers of SciPy or integrals, samples against moments, and PyTorch where it is installed."""

import math

import numpy as np
import pytest
import tenon
from tenon import distributions as D

T = lambda x: tenon.tensor(np.asarray(x, np.float64))
RNG = np.random.default_rng(2)
A = RNG.normal(size=(3, 3))
COVARIANCE = A @ A.T + np.eye(3)


def integral(f, low, high, count=20001):
    x = np.linspace(low, high, count)
    return np.trapezoid(f(x), x) if hasattr(np, "trapezoid") else np.trapz(f(x), x)


@pytest.mark.parametrize(
    "make,low,high",
    [
        (lambda: D.VonMises(T(0.5), T(3.0)), -math.pi, math.pi),
        (lambda: D.VonMises(T(0.0), T(1e-6)), -math.pi, math.pi),
        (lambda: D.ContinuousBernoulli(T(0.2)), 0.0, 1.0),
        (lambda: D.ContinuousBernoulli(T(0.501)), 0.0, 1.0),
        (lambda: D.ContinuousBernoulli(logits=T(4.0)), 0.0, 1.0),
        (lambda: D.GeneralizedPareto(T(1.0), T(2.0), T(0.2)), 1.0, 1500.0),
        (lambda: D.GeneralizedPareto(T(1.0), T(2.0), T(-0.5)), 1.0, 5.0 - 1e-9),
        (lambda: D.GeneralizedPareto(T(1.0), T(2.0), T(0.0)), 1.0, 80.0),
    ],
)
def test_densities_are_densities(make, low, high):
    p = make()
    count = 400001 if high > 100 else 20001
    density = lambda x: np.exp(p.log_prob(T(x)).numpy())
    assert integral(density, low, high, count) == pytest.approx(1.0, abs=2e-3)
    entropy = integral(lambda x: -density(x) * p.log_prob(T(x)).numpy(), low, high, count)
    assert float(p.entropy()) == pytest.approx(entropy, abs=2e-2)
    tenon.manual_seed(0)
    x = p.sample([20000]).numpy()
    assert low <= x.min() and x.max() <= high
    if not isinstance(p, D.VonMises):
        mean = integral(lambda x: x * density(x), low, high, count)
        assert float(p.mean) == pytest.approx(mean, abs=2e-2)
        spread = integral(lambda x: (x - mean) ** 2 * density(x), low, high, count)
        assert float(p.variance) == pytest.approx(spread, rel=3e-2)
        assert x.mean() == pytest.approx(mean, abs=0.06)
        u = T([0.1, 0.5, 0.9])
        np.testing.assert_allclose(p.cdf(p.icdf(u)).numpy(), u.numpy(), rtol=1e-7)
        below = integral(density, low, float(p.icdf(T(0.4))))
        assert below == pytest.approx(0.4, abs=1e-3)
    else:
        mean = np.array([np.cos(x).mean(), np.sin(x).mean()])
        assert 1 - np.linalg.norm(mean) == pytest.approx(float(p.variance), abs=0.02)


def test_gradients_at_even_odds():
    odds = tenon.tensor([0.0, 0.005, -0.02, 3.0], dtype=tenon.float64, requires_grad=True)
    for name in ("mean", "variance", "_log_norm"):

        def value(x, name=name):
            p = D.ContinuousBernoulli(logits=x, validate_args=False)
            return getattr(p, name)() if name == "_log_norm" else getattr(p, name)

        assert tenon.autograd.gradcheck(value, (odds,))
    assert D.ContinuousBernoulli(T(0.5)).mean.item() == 0.5
    kl = D.kl_divergence(D.ContinuousBernoulli(T(0.3)), D.ContinuousBernoulli(T(0.8)))
    p, q = D.ContinuousBernoulli(T(0.3)), D.ContinuousBernoulli(T(0.8))
    want = integral(
        lambda x: np.exp(p.log_prob(T(x)).numpy()) * (p.log_prob(T(x)) - q.log_prob(T(x))).numpy(),
        0,
        1,
    )
    assert float(kl) == pytest.approx(want, abs=1e-4)


def test_low_rank():
    factor, diagonal, loc = RNG.normal(size=(4, 2)), RNG.uniform(0.5, 1, 4), RNG.normal(size=4)
    p = D.LowRankMultivariateNormal(T(loc), T(factor), T(diagonal))
    q = D.MultivariateNormal(T(loc), T(factor @ factor.T + np.diag(diagonal)))
    x = RNG.normal(size=(5, 4))
    np.testing.assert_allclose(p.log_prob(T(x)).numpy(), q.log_prob(T(x)).numpy(), rtol=1e-9)
    for name in ("variance", "covariance_matrix", "precision_matrix", "scale_tril"):
        np.testing.assert_allclose(
            getattr(p, name).numpy(), getattr(q, name).numpy(), rtol=1e-8, atol=1e-10
        )
    assert float(p.entropy()) == pytest.approx(float(q.entropy()))
    other = D.MultivariateNormal(T(np.zeros(4)), T(np.eye(4)))
    assert float(D.kl_divergence(p, other)) == pytest.approx(float(D.kl_divergence(q, other)))
    assert float(D.kl_divergence(other, p)) == pytest.approx(float(D.kl_divergence(other, q)))
    tenon.manual_seed(0)
    np.testing.assert_allclose(
        np.cov(p.sample([20000]).numpy().T), q.covariance_matrix.numpy(), atol=0.12
    )
    assert p.expand([2]).sample([3]).shape == (3, 2, 4)


def test_wishart():
    p = D.Wishart(T(5.0), covariance_matrix=T(COVARIANCE))
    tenon.manual_seed(0)
    x = p.sample([20000])
    np.testing.assert_allclose(x.mean(axis=0).numpy(), p.mean.numpy(), rtol=0.08, atol=0.5)
    np.testing.assert_allclose(x.numpy().var(0), p.variance.numpy(), rtol=0.15, atol=3)
    estimate = -float(p.log_prob(x).mean())
    assert float(p.entropy()) == pytest.approx(estimate, abs=0.1)
    q = D.Wishart(T(6.0), precision_matrix=T(np.eye(3)))
    kl = float(D.kl_divergence(p, q))
    assert kl == pytest.approx(float((p.log_prob(x) - q.log_prob(x)).mean()), abs=0.3)
    assert float(D.kl_divergence(p, p)) == pytest.approx(0.0, abs=1e-12)
    assert p.expand([2]).sample().shape == (2, 3, 3)
    with pytest.raises(ValueError, match="expected df above n - 1 = 2, got 1.5"):
        D.Wishart(T(1.5), scale_tril=T(np.eye(3)))
    with pytest.raises(ValueError, match="expected one matrix"):
        D.Wishart(T(5.0))


def test_lkj():
    p = D.LKJCholesky(3, T(1.0))
    tenon.manual_seed(0)
    x = p.sample([4000])
    assert p.support.check(x).all().item()
    correlations = (x @ x.mT).numpy()
    # Of concentration 1 in 3 dimensions each correlation is a beta variate of 1.5 and 1.5 from -1 to 1.
    np.testing.assert_allclose(correlations[:, [1, 2, 2], [0, 0, 1]].var(0), 0.25, atol=0.02)
    # In two dimensions: the density of c = L[1, 0] from -1 to 1 is integrated over its circle.
    q = D.LKJCholesky(2, T(2.5))
    c = np.linspace(-0.9999, 0.9999, 4001)
    factors = np.zeros((len(c), 2, 2))
    factors[:, 0, 0], factors[:, 1, 0], factors[:, 1, 1] = 1, c, np.sqrt(1 - c * c)
    density = np.exp(q.log_prob(T(factors)).numpy())
    assert integral(lambda _: density, -0.9999, 0.9999, 4001) == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(ValueError, match="dim of at least 2, got 1"):
        D.LKJCholesky(1)


def test_logistic_normal():
    p = D.LogisticNormal(T([0.2, -0.3]), T([0.5, 1.0]))
    x = p.rsample([7])
    assert x.shape == (7, 3) and np.allclose(x.sum(axis=-1).numpy(), 1.0)
    y = D.StickBreakingTransform().inv(x)
    normal = D.Normal(T([0.2, -0.3]), T([0.5, 1.0])).log_prob(y).sum(axis=-1)
    size = D.StickBreakingTransform().log_abs_det_jacobian(y, x)
    np.testing.assert_allclose(p.log_prob(x).numpy(), (normal - size).numpy(), rtol=1e-9)
    assert p.expand([4]).sample().shape == (4, 3)


def test_factors_of_correlations():
    transform = D.CorrCholeskyTransform()
    x = T(RNG.normal(size=(2, 6)))
    y = transform(x)
    assert y.shape == (2, 4, 4) and D.constraints.corr_cholesky.check(y).all().item()
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-8)
    below = [(i, j) for i in range(4) for j in range(i)]

    def free(x):
        factor = transform(x)
        return tenon.stack([factor[i, j] for i, j in below])

    jacobian = tenon.func.jacrev(free)(x[0]).detach().numpy()
    size = transform.log_abs_det_jacobian(x, y).numpy()[0]
    assert size == pytest.approx(np.linalg.slogdet(jacobian)[1])
    assert D.biject_to(D.constraints.corr_cholesky) == transform
    with pytest.raises(ValueError, match="n \\* \\(n - 1\\) / 2 numbers for some n, got 4"):
        transform(T(np.zeros(4)))
    matrix = D.transform_to(D.constraints.positive_definite)(T(A))
    assert D.constraints.positive_definite.check(matrix).item()


def test_parts_side_by_side():
    parts = [D.ExpTransform(), D.AffineTransform(1.0, 2.0)]
    x = T(RNG.normal(size=(4, 3)))
    cat = D.CatTransform(parts, dim=-1, lengths=[2, 1])
    y = cat(x)
    np.testing.assert_allclose(y.numpy(), np.c_[np.exp(x.numpy()[:, :2]), 1 + 2 * x.numpy()[:, 2:]])
    np.testing.assert_allclose(cat.inv(y).numpy(), x.numpy())
    sizes = cat.log_abs_det_jacobian(x, y).numpy()
    np.testing.assert_allclose(sizes, np.c_[x.numpy()[:, :2], np.full((4, 1), math.log(2))])
    stack = D.StackTransform(parts, dim=1)
    z = stack(x[:, :2])
    np.testing.assert_allclose(z.numpy(), np.c_[np.exp(x.numpy()[:, 0]), 1 + 2 * x.numpy()[:, 1]])
    assert stack.log_abs_det_jacobian(x[:, :2], z).shape == (4, 2)
    assert stack.codomain.check(z).tolist() == [[True, True]] * 4
    assert cat.codomain.check(-y).tolist() == [[False, False, True]] * 4
    with pytest.raises(ValueError, match="expected 3 slices along axis -1, got shape \\(4, 2\\)"):
        cat(x[:, :2])
    with pytest.raises(TypeError, match="expected a list of transforms"):
        D.StackTransform([1])
    uniform = D.CumulativeDistributionTransform(D.Normal(T(0.0), T(1.0)))
    np.testing.assert_allclose(uniform.inv(uniform(x)).numpy(), x.numpy(), rtol=1e-8)


def test_as_pytorch():
    torch = pytest.importorskip("torch")
    theirs = torch.distributions
    make = lambda x: torch.tensor(np.asarray(x, np.float64))
    x = np.array([0.1, 0.5, 0.93])
    spd = COVARIANCE @ COVARIANCE.T
    factor = np.linalg.cholesky(np.array([[1, 0.3, 0.1], [0.3, 1, -0.2], [0.1, -0.2, 1]]))
    for name, parameters, value, members in [
        ("VonMises", (0.5, 3.0), x, "log_prob mean variance"),
        ("ContinuousBernoulli", (0.3,), x, "log_prob mean variance entropy cdf icdf"),
        ("ContinuousBernoulli", (0.9,), x, "log_prob mean variance entropy cdf icdf"),
        ("LKJCholesky", (3, 1.5), factor, "log_prob"),
        ("Wishart", (5.0, COVARIANCE), spd, "log_prob mean variance entropy mode"),
        ("LowRankMultivariateNormal", (x, A, x), x, "log_prob entropy"),
    ]:
        ours, other = (
            getattr(library, name)(
                *(each if isinstance(each, int) else convert(each) for each in parameters)
            )
            for library, convert in ((D, T), (theirs, make))
        )
        for member in members.split():
            got, want = getattr(ours, member), getattr(other, member)
            if callable(got):
                given = () if member == "entropy" else (value,)
                got, want = got(*map(T, given)), want(*map(make, given))
            np.testing.assert_allclose(
                got.numpy(), want.numpy(), rtol=1e-5, err_msg=f"{name}.{member}"
            )
