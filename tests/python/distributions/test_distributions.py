# SPDX-License-Identifier: Apache-2.0
"""tenon.distributions against SciPy: densities, moments, samples; divergences against integrals."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats as stats
import tenon
from tenon import distributions as D

SEED = 20


def T(value):
    return tenon.tensor(value, dtype=tenon.float64)


# name, parameters, the same distribution of SciPy, values
CONTINUOUS = [
    ("Normal", (0.5, 1.5), stats.norm(0.5, 1.5), [-3.0, 0.1, 2.5]),
    ("LogNormal", (0.5, 0.7), stats.lognorm(0.7, scale=math.exp(0.5)), [0.1, 1.0, 5.0]),
    ("HalfNormal", (1.5,), stats.halfnorm(0, 1.5), [0.1, 1.0, 5.0]),
    ("Uniform", (-1.0, 2.0), stats.uniform(-1, 3), [-0.9, 0.0, 1.5]),
    ("Laplace", (1.0, 2.0), stats.laplace(1, 2), [-3.0, 1.5, 4.0]),
    ("Cauchy", (1.0, 2.0), stats.cauchy(1, 2), [-30.0, 1.5, 4.0]),
    ("HalfCauchy", (2.0,), stats.halfcauchy(0, 2), [0.1, 3.0, 40.0]),
    ("Gumbel", (1.0, 2.0), stats.gumbel_r(1, 2), [-2.0, 1.5, 8.0]),
    ("Logistic", (1.0, 2.0), stats.logistic(1, 2), [-8.0, 1.5, 8.0]),
    ("StudentT", (5.0, 1.0, 2.0), stats.t(5, 1, 2), [-8.0, 1.5, 8.0]),
    ("Exponential", (2.0,), stats.expon(0, 0.5), [0.01, 1.0, 5.0]),
    ("Gamma", (2.5, 2.0), stats.gamma(2.5, scale=0.5), [0.01, 1.0, 5.0]),
    ("Gamma", (0.3, 2.0), stats.gamma(0.3, scale=0.5), [1e-9, 0.1, 2.0]),
    ("Chi2", (3.0,), stats.chi2(3), [0.01, 1.0, 9.0]),
    ("InverseGamma", (3.5, 2.0), stats.invgamma(3.5, scale=2), [0.1, 1.0, 5.0]),
    ("Beta", (2.0, 0.7), stats.beta(2, 0.7), [0.01, 0.4, 0.99]),
    ("Weibull", (2.0, 1.5), stats.weibull_min(1.5, scale=2), [0.01, 1.0, 5.0]),
    ("FisherSnedecor", (3.0, 9.0), stats.f(3, 9), [0.01, 1.0, 5.0]),
    ("Pareto", (2.0, 3.5), stats.pareto(3.5, scale=2), [2.01, 3.0, 9.0]),
]
DISCRETE = [
    ("Bernoulli", (0.3,), stats.bernoulli(0.3), [0, 1]),
    ("Geometric", (0.3,), stats.geom(0.3, -1), [0, 1, 7]),
    ("Poisson", (3.3,), stats.poisson(3.3), [0, 3, 12]),
    ("Poisson", (40.0,), stats.poisson(40), [20, 40, 60]),
    ("Binomial", (10.0, 0.3), stats.binom(10, 0.3), [0, 3, 10]),
    ("Binomial", (100.0, 0.7), stats.binom(100, 0.7), [50, 70, 90]),
    ("NegativeBinomial", (5.0, 0.3), stats.nbinom(5, 0.7), [0, 3, 12]),
]
ALL = CONTINUOUS + DISCRETE


def made(name, parameters):
    return getattr(D, name)(*(T(p) for p in parameters))


def identity(case):
    return f"{case[0]}{case[1]}"


@pytest.mark.parametrize("case", ALL, ids=identity)
def test_densities_and_distribution_functions_equal_scipy(case):
    name, parameters, oracle, values = case
    ours, x = made(name, parameters), T(values)
    log_density = oracle.logpmf if case in DISCRETE else oracle.logpdf
    np.testing.assert_allclose(ours.log_prob(x).numpy(), log_density(values), rtol=1e-11)
    np.testing.assert_allclose(ours.cdf(x).numpy(), oracle.cdf(values), rtol=1e-9)


@pytest.mark.parametrize("case", ALL, ids=identity)
def test_moments_and_entropy_equal_scipy(case):
    name, parameters, oracle, _ = case
    ours = made(name, parameters)
    if "Cauchy" not in name:
        np.testing.assert_allclose(ours.mean.numpy(), oracle.mean(), rtol=1e-12)
        np.testing.assert_allclose(ours.variance.numpy(), oracle.var(), rtol=1e-12)
        np.testing.assert_allclose(ours.stddev.numpy(), oracle.std(), rtol=1e-12)
    if name in ("Poisson", "NegativeBinomial", "FisherSnedecor"):
        with pytest.raises(NotImplementedError, match=f"{name} has no entropy"):
            ours.entropy()
    else:
        # SciPy integrates some of them numerically.
        np.testing.assert_allclose(ours.entropy().numpy(), oracle.entropy(), rtol=1e-6)
        np.testing.assert_allclose(ours.perplexity().numpy(), math.exp(oracle.entropy()), rtol=1e-6)


@pytest.mark.parametrize("case", CONTINUOUS, ids=identity)
def test_quantiles_equal_scipy(case):
    name, parameters, oracle, _ = case
    ours, p = made(name, parameters), np.array([1e-6, 0.1, 0.5, 0.93])
    if name in ("StudentT", "Gamma", "Chi2", "InverseGamma", "Beta", "FisherSnedecor"):
        with pytest.raises(NotImplementedError, match="has no icdf: expected a distribution"):
            ours.icdf(T(p))
    else:
        np.testing.assert_allclose(ours.icdf(T(p)).numpy(), oracle.ppf(p), rtol=1e-7)


@pytest.mark.parametrize("case", CONTINUOUS, ids=identity)
@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float64], ids=str)
def test_samples_are_of_the_distribution(case, dtype):
    """A test of Kolmogorov and Smirnov at a level of 1 in 1,000, on a fixed seed."""
    name, parameters, oracle, _ = case
    tenon.manual_seed(SEED)
    ours = getattr(D, name)(*(tenon.tensor(p, dtype=dtype) for p in parameters))
    samples = ours.sample([4000])
    assert samples.dtype == dtype and not samples.requires_grad
    assert stats.kstest(samples.numpy().astype(np.float64), oracle.cdf).pvalue > 1e-3


@pytest.mark.parametrize("case", DISCRETE, ids=identity)
def test_counts_are_of_the_distribution(case):
    """A chi-squared test over the counts that are expected five times or more."""
    name, parameters, oracle, _ = case
    tenon.manual_seed(SEED)
    samples = made(name, parameters).sample([8000]).numpy().astype(int)
    values = np.arange(samples.max() + 1)
    expected = 8000 * oracle.pmf(values)
    observed = np.bincount(samples, minlength=len(values))
    usual = expected >= 5
    expected = np.append(expected[usual], 8000 - expected[usual].sum())
    observed = np.append(observed[usual], 8000 - observed[usual].sum())
    if expected[-1] < 1e-3:
        expected, observed = expected[:-1], observed[:-1]
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-3


def test_kumaraswamy():
    """SciPy lacks it; x ** concentration1 is of Beta(1, concentration0)."""
    a, b = 2.0, 3.5
    ours, oracle = D.Kumaraswamy(T(a), T(b)), stats.beta(1, b)
    x = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(ours.cdf(T(x)).numpy(), oracle.cdf(x**a))
    density = oracle.pdf(x**a) * a * x ** (a - 1)
    np.testing.assert_allclose(ours.log_prob(T(x)).numpy(), np.log(density))
    np.testing.assert_allclose(ours.icdf(ours.cdf(T(x))).numpy(), x)

    def expected(function):
        return oracle.expect(lambda power: function(power ** (1 / a)))

    mean = expected(lambda v: v)
    np.testing.assert_allclose(ours.mean.item(), mean, rtol=1e-8)
    np.testing.assert_allclose(ours.variance.item(), expected(lambda v: (v - mean) ** 2), rtol=1e-7)
    entropy = -expected(lambda v: ours.log_prob(T(v)).item())
    np.testing.assert_allclose(ours.entropy().item(), entropy, rtol=1e-7)
    at = ours.mode.item()
    assert ours.log_prob(T(at)).item() > ours.log_prob(T([at - 0.01, at + 0.01])).max().item()
    tenon.manual_seed(SEED)
    samples = ours.rsample([4000]).numpy()
    assert stats.kstest(samples, lambda v: oracle.cdf(v**a)).pvalue > 1e-3


def test_large_and_small_parameters():
    tenon.manual_seed(SEED)
    tiny = D.Gamma(tenon.full([1000], 1e-3), 1.0).sample()
    assert tenon.all(tiny > 0).item() and tenon.all(tenon.isfinite(tiny)).item()
    beta = D.Beta(tenon.full([1000], 1e-3), 1e-3).sample()
    assert not tenon.any(tenon.isnan(beta)).item()
    counts = D.Poisson(T(1e6)).sample([500])
    assert abs(counts.mean().item() - 1e6) < 5 * 1e3 / math.sqrt(500)
    trials = D.Binomial(T(1e6), T(1e-5)).sample([2000])
    assert abs(trials.mean().item() - 10) < 5 * math.sqrt(10 / 2000)
    assert D.Binomial(T(5.0), T([0.0, 1.0])).sample().tolist() == [0.0, 5.0]
    assert D.Poisson(T(0.0)).sample().item() == 0.0


def test_equal_seeds_give_equal_samples():
    def draw():
        tenon.manual_seed(3)
        return D.Dirichlet(T([0.5, 2.0, 3.0])).sample([2]).tolist()

    assert draw() == draw()


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [0.02, 0.3, 1.0, 2.5, 30.0, 400.0])
def test_the_implicit_gradient_of_gamma(concentration):
    """A sample moves with the concentration as the quantile at its probability does."""
    tenon.manual_seed(SEED)
    a = tenon.tensor([concentration] * 50, dtype=tenon.float64, requires_grad=True)
    x = D.Gamma(a, 1.0).rsample()
    (got,) = tenon.grad(x.sum(), a)
    values, step = x.detach().numpy(), 1e-5 * concentration
    usable = values > 1e-100  # smaller ones have no derivative in float64
    p = scipy.special.gammainc(concentration, values)
    want = (
        scipy.special.gammaincinv(concentration + step, p)
        - scipy.special.gammaincinv(concentration - step, p)
    ) / (2 * step)
    usable &= p < 0.999  # the quotient of differences loses its digits beyond
    assert usable.sum() > 5
    np.testing.assert_allclose(got.numpy()[usable], want[usable], rtol=2e-4)


@pytest.mark.parametrize("case", [c for c in CONTINUOUS if "Cauchy" not in c[0]], ids=identity)
def test_expectations_have_gradients(case):
    """The mean of samples moves with the parameters as the expected value does."""
    name, parameters, _, _ = case
    tenon.manual_seed(SEED)
    given = [tenon.tensor(p, dtype=tenon.float64, requires_grad=True) for p in parameters]
    distribution = getattr(D, name)(*given)
    assert distribution.has_rsample
    estimated = tenon.grad(distribution.rsample([40000]).mean(), given, allow_unused=True)
    exact = tenon.grad(distribution.mean, given, allow_unused=True)
    for got, want in zip(estimated, exact):
        got, want = (0.0 if g is None else g.item() for g in (got, want))
        assert abs(got - want) < 0.05 * max(1.0, abs(want))


def test_second_gradients_of_samples():
    a = tenon.tensor([0.7, 3.0], dtype=tenon.float64, requires_grad=True)

    def sample(a):
        tenon.manual_seed(1)
        return D.Gamma(a, 2.0).rsample()

    (first,) = tenon.grad(sample(a).sum(), a, create_graph=True)
    (second,) = tenon.grad(first.sum(), a)
    step = 1e-4  # along the curve of equal probability, not of equal draws
    p = scipy.special.gammainc(a.detach().numpy(), 2 * sample(a).detach().numpy())
    at = [scipy.special.gammaincinv(a.detach().numpy() + k * step, p) / 2 for k in (-1, 0, 1)]
    # The errors of SciPy grow by 1 / step**2, which is 1e8.
    np.testing.assert_allclose(second.numpy(), (at[0] - 2 * at[1] + at[2]) / step**2, rtol=1e-3)


def test_distributions_without_a_gradient_say_so():
    with pytest.raises(NotImplementedError, match=r"Poisson has no rsample: .*; use sample\(\)"):
        D.Poisson(1.0).rsample()
    assert not D.Categorical(T([0.5, 0.5])).has_rsample


def test_log_prob_and_quantiles_have_gradients():
    loc, scale = T(0.3), T(1.7)
    loc.requires_grad = scale.requires_grad = True
    x = T([0.2, 2.0])
    assert tenon.autograd.gradcheck(lambda a, b: D.Normal(a, b).log_prob(x), (loc, scale))
    assert tenon.autograd.gradcheck(lambda a, b: D.Normal(a, b).icdf(x / 3), (loc, scale))
    a = T(1.3)
    a.requires_grad = True
    assert tenon.autograd.gradcheck(lambda rate: D.Gamma(2.0, rate).cdf(x), (a,))
    with pytest.raises(NotImplementedError, match="gammainc.* has no gradient for `a`"):
        tenon.grad(D.Gamma(a, 2.0).cdf(x).sum(), (a,))
    assert tenon.autograd.gradcheck(lambda a: D.Beta(a, 2.0).cdf(x / 3), (a,))


# -- several variables -----------------------------------------------------------------------------


def test_multivariate_normal():
    mean, covariance = (
        np.array([0.5, -1.0, 2.0]),
        np.array([[2, 0.5, 0], [0.5, 1, 0.3], [0, 0.3, 3]]),
    )
    oracle = stats.multivariate_normal(mean, covariance)
    x = np.random.default_rng(0).normal(size=(4, 3))
    forms = {
        "covariance_matrix": covariance,
        "precision_matrix": np.linalg.inv(covariance),
        "scale_tril": np.linalg.cholesky(covariance),
    }
    for name, matrix in forms.items():
        ours = D.MultivariateNormal(T(mean), **{name: T(matrix)})
        np.testing.assert_allclose(ours.log_prob(T(x)).numpy(), oracle.logpdf(x), rtol=1e-10)
        np.testing.assert_allclose(ours.entropy().numpy(), oracle.entropy(), rtol=1e-10)
        for other, expected in forms.items():
            np.testing.assert_allclose(getattr(ours, other).numpy(), expected, atol=1e-12)
    tenon.manual_seed(SEED)
    samples = ours.sample([20000]).numpy()
    np.testing.assert_allclose(samples.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(samples.T), covariance, atol=0.1)
    with pytest.raises(ValueError, match="expected one of covariance_matrix, .* got 0"):
        D.MultivariateNormal(T(mean))
    with pytest.raises(ValueError, match="to be symmetric positive definite matrices"):
        D.MultivariateNormal(T(mean), T(-covariance))


def test_dirichlet_categorical_and_multinomial():
    p, x = np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.3, 0.6])
    a = np.array([0.5, 2.0, 3.0])
    np.testing.assert_allclose(
        D.Dirichlet(T(a)).log_prob(T(x)).item(), stats.dirichlet(a).logpdf(x)
    )
    np.testing.assert_allclose(D.Dirichlet(T(a)).entropy().item(), stats.dirichlet(a).entropy())
    np.testing.assert_allclose(D.Dirichlet(T(a)).variance.numpy(), stats.dirichlet(a).var())
    for choice in (D.Categorical(T(p * 4)), D.Categorical(logits=T(np.log(p) + 3))):
        np.testing.assert_allclose(choice.probs.numpy(), p)
        np.testing.assert_allclose(choice.log_prob(T([0, 2])).numpy(), np.log(p[[0, 2]]))
        np.testing.assert_allclose(choice.entropy().item(), stats.entropy(p))
        np.testing.assert_allclose(choice.cdf(T([0, 1, 2])).numpy(), np.cumsum(p))
    counts = stats.multinomial(7, p)
    ours = D.Multinomial(7, T(p))
    np.testing.assert_allclose(ours.log_prob(T([1, 2, 4])).item(), counts.logpmf([1, 2, 4]))
    np.testing.assert_allclose(ours.entropy().item(), counts.entropy())
    tenon.manual_seed(SEED)
    drawn = ours.sample([5000])
    assert drawn.shape == (5000, 3) and tenon.all(drawn.sum(axis=-1) == 7).item()
    np.testing.assert_allclose(drawn.numpy().mean(0), 7 * p, atol=0.1)
    index = D.Categorical(T([[0.9, 0.1], [0.0, 1.0]])).sample([3, 4])
    assert index.shape == (3, 4, 2) and index.dtype == tenon.int64
    assert tenon.all(index[..., 1] == 1).item()
    assert D.Categorical(T(p)).sample([0]).shape == (0,)
    rows = D.OneHotCategorical(T(p)).sample([6])
    assert tenon.all(rows.sum(axis=-1) == 1).item()


def test_straight_through_and_relaxed_samples_have_gradients():
    logits = T([0.1, 0.7, -0.2])
    logits.requires_grad = True
    for distribution in (
        D.OneHotCategoricalStraightThrough(logits=logits),
        D.RelaxedOneHotCategorical(0.5, logits=logits),
    ):
        sample = distribution.rsample([5])
        np.testing.assert_allclose(sample.sum(axis=-1).detach().numpy(), 1.0)
        (gradient,) = tenon.grad((sample * T([1.0, 2.0, 3.0])).sum(), logits)
        assert tenon.any(gradient != 0).item()


def test_densities_of_relaxed_distributions_integrate_to_one():
    bernoulli = D.RelaxedBernoulli(T(0.8), T(0.3))
    total = scipy.integrate.quad(lambda x: math.exp(bernoulli.log_prob(T(x)).item()), 0, 1)[0]
    assert abs(total - 1) < 1e-6
    choice = D.RelaxedOneHotCategorical(0.8, T([0.3, 0.7]))
    total = scipy.integrate.quad(lambda x: math.exp(choice.log_prob(T([x, 1 - x])).item()), 0, 1)[0]
    assert abs(total - 1) < 1e-6


def test_independent_and_mixture():
    base = D.Normal(T([[0.0, 1.0], [2.0, 3.0]]), T(1.5))
    joined = D.Independent(base, 1)
    assert (joined.batch_shape, joined.event_shape) == ((2,), (2,))
    x = T([[0.5, 0.5], [1.0, 1.0]])
    np.testing.assert_allclose(
        joined.log_prob(x).numpy(), stats.norm(base.loc.numpy(), 1.5).logpdf(x.numpy()).sum(-1)
    )
    weights = np.array([0.3, 0.7])
    mixture = D.MixtureSameFamily(D.Categorical(T(weights)), D.Normal(T([0.0, 5.0]), T([1.0, 2.0])))
    parts = [stats.norm(0, 1), stats.norm(5, 2)]
    at = np.array([-1.0, 2.0, 6.0])
    np.testing.assert_allclose(
        mixture.log_prob(T(at)).numpy(),
        np.log(sum(w * part.pdf(at) for w, part in zip(weights, parts))),
    )
    np.testing.assert_allclose(mixture.mean.item(), 3.5)
    np.testing.assert_allclose(mixture.variance.item(), 0.3 + 0.7 * 4 + 0.3 * 0.7 * 25)
    tenon.manual_seed(SEED)

    def cdf(v):
        return sum(w * part.cdf(v) for w, part in zip(weights, parts))

    assert stats.kstest(mixture.sample([4000]).numpy(), cdf).pvalue > 1e-3
    with pytest.raises(ValueError, match="last batch axis, of length 2, got batch shape"):
        D.MixtureSameFamily(D.Categorical(T(weights)), D.Normal(T([0.0] * 3), T(1.0)))


# -- shapes and checks -----------------------------------------------------------------------------


def test_shapes_and_expand():
    normal = D.Normal(tenon.zeros([3, 1]), tenon.ones([2]))
    assert normal.batch_shape == (3, 2) and normal.sample([5]).shape == (5, 3, 2)
    assert normal.log_prob(tenon.zeros([5, 3, 2])).shape == (5, 3, 2)
    for distribution, event in [
        (D.Normal(0.0, 1.0), ()),
        (D.Bernoulli(logits=0.3), ()),
        (D.Binomial(4, 0.3), ()),
        (D.Chi2(3.0), ()),
        (D.LogNormal(0.0, 1.0), ()),
        (D.Dirichlet(tenon.ones([3])), (3,)),
        (D.Multinomial(4, tenon.ones([3])), (3,)),
        (D.MultivariateNormal(tenon.zeros([3]), tenon.eye(3)), (3,)),
        (D.Independent(D.Normal(tenon.zeros([3]), 1.0), 1), (3,)),
        (D.RelaxedOneHotCategorical(0.5, tenon.ones([3])), (3,)),
        (D.TransformedDistribution(D.Normal(0.0, 1.0), D.TanhTransform()), ()),
    ]:
        wide = distribution.expand([2, 4])
        assert type(wide) is type(distribution)
        assert (wide.batch_shape, wide.event_shape) == ((2, 4), event)
        samples = wide.sample([5])
        assert samples.shape == (5, 2, 4, *event)
        assert wide.log_prob(samples).shape == (5, 2, 4)


def test_the_support_is_enumerated():
    assert D.Bernoulli(T([0.1, 0.2])).enumerate_support().tolist() == [[0, 0], [1, 1]]
    assert D.Binomial(T(2.0), T(0.3)).enumerate_support().tolist() == [0, 1, 2]
    assert D.Categorical(T([[0.1, 0.9]])).enumerate_support(expand=False).shape == (2, 1)
    assert D.OneHotCategorical(T([0.1, 0.9])).enumerate_support().tolist() == [[1, 0], [0, 1]]


def test_parameters_and_values_are_checked():
    with pytest.raises(
        ValueError,
        match=r"Normal: expected parameter scale to be numbers above 0, got -1.0 at index \[1\]; "
        "validate_args=False leaves the check out",
    ):
        D.Normal(0.0, T([1.0, -1.0]))
    with pytest.raises(ValueError, match="expected parameter loc to be numbers that are not NaN"):
        D.Normal(math.nan, 1.0)
    with pytest.raises(ValueError, match="expected value to be numbers of at least 0, got -0.5"):
        D.Exponential(1.0).log_prob(tenon.tensor(-0.5))
    with pytest.raises(ValueError, match="expected value to be whole numbers from 0 to 3, got 1.5"):
        D.Binomial(3, 0.5).log_prob(tenon.tensor(1.5))
    with pytest.raises(ValueError, match="vectors of numbers that are not negative and sum to 1"):
        D.Dirichlet(tenon.ones([2])).log_prob(tenon.tensor([0.5, 0.6]))
    with pytest.raises(ValueError, match=r"expected values whose last axes are \(3,\), got shape"):
        D.Dirichlet(tenon.ones([3])).log_prob(tenon.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="Bernoulli: expected one of probs and logits, got both"):
        D.Bernoulli(0.5, 0.5)
    with pytest.raises(ValueError, match="parameter high - low to be numbers above 0"):
        D.Uniform(1.0, 1.0)
    with pytest.raises(TypeError, match="Normal: expected a tensor as value, got float"):
        D.Normal(0.0, 1.0).log_prob(0.5)
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0


# -- divergences -----------------------------------------------------------------------------------

DIVERGENCES = [
    ("Normal", (0.5, 1.5), (1.0, 2.0)),
    ("LogNormal", (0.5, 0.7), (0.3, 0.6)),
    ("HalfNormal", (1.5,), (0.7,)),
    ("Laplace", (1.0, 2.0), (0.0, 1.0)),
    ("Cauchy", (1.0, 2.0), (0.0, 1.0)),
    ("Gumbel", (1.0, 2.0), (0.0, 1.5)),
    ("Exponential", (2.0,), (0.5,)),
    ("Gamma", (2.5, 2.0), (1.5, 0.7)),
    ("Weibull", (2.0, 1.5), (1.0, 1.2)),
    ("Beta", (2.0, 0.7), (1.0, 3.0)),
    ("Bernoulli", (0.3,), (0.8,)),
    ("Binomial", (10.0, 0.3), (10.0, 0.6)),
    ("Geometric", (0.3,), (0.8,)),
    ("Poisson", (3.3,), (1.1,)),
]


@pytest.mark.parametrize("name, first, second", DIVERGENCES)
def test_divergences_equal_integrals(name, first, second):
    p, q = made(name, first), made(name, second)
    got = D.kl_divergence(p, q).item()
    if any(case[0] == name for case in DISCRETE):
        top = 1 if name == "Bernoulli" else int(first[0]) if name == "Binomial" else 200
        x = T(np.arange(top + 1))
        log_p = p.log_prob(x).numpy()
        want = (np.exp(log_p) * (log_p - q.log_prob(x).numpy())).sum()
    else:
        # The integral over probabilities: the mean at quantiles of even distances.
        oracle = next(case[2] for case in CONTINUOUS if case[:2] == (name, first))
        x = T(oracle.ppf((np.arange(200_000) + 0.5) / 200_000))
        want = (p.log_prob(x) - q.log_prob(x)).mean().item()
    assert abs(got - want) < 2e-3 * max(1.0, abs(want))
    assert abs(D.kl_divergence(p, p).item()) < 1e-12


def test_divergences_of_composed_distributions():
    p = D.Independent(D.Normal(T([0.0, 1.0]), T(1.0)), 1)
    q = D.Independent(D.Normal(T([1.0, 1.0]), T(1.0)), 1)
    assert D.kl_divergence(p, q).item() == 0.5
    loc, matrix = T([0.0, 1.0]), T([[2.0, 0.5], [0.5, 1.0]])
    p = D.MultivariateNormal(loc, matrix)
    q = D.MultivariateNormal(loc + 1, 2 * matrix)
    offset = np.ones(2) @ np.linalg.inv(2 * matrix.numpy()) @ np.ones(2)
    want = (2 * math.log(2) - 2 + 1 + offset) / 2
    np.testing.assert_allclose(D.kl_divergence(p, q).item(), want)
    p, q = D.Categorical(T([0.5, 0.5])), D.Categorical(T([1.0, 0.0]))
    assert D.kl_divergence(p, q).item() == math.inf
    np.testing.assert_allclose(D.kl_divergence(q, p).item(), math.log(2))
    p, q = D.Dirichlet(T([1.0, 1.0])), D.Dirichlet(T([2.0, 0.7]))
    as_beta = D.kl_divergence(D.Beta(T(1.0), T(1.0)), D.Beta(T(2.0), T(0.7)))
    np.testing.assert_allclose(D.kl_divergence(p, q).item(), as_beta.item())
    uniform = D.Uniform(T(0.0), T(1.0))
    assert D.kl_divergence(uniform, D.Uniform(T(0.5), T(2.0))).item() == math.inf
    np.testing.assert_allclose(
        D.kl_divergence(D.Exponential(T(2.0)), D.Gamma(T(1.0), T(0.3))).item(),
        D.kl_divergence(D.Exponential(T(2.0)), D.Exponential(T(0.3))).item(),
    )


def test_rules_are_registered():
    class Mine(D.Normal):
        pass

    class Other(D.Normal):
        pass

    p, q = Mine(0.0, 1.0), Other(1.0, 1.0)
    assert D.kl_divergence(p, q).item() == 0.5  # that of the base classes

    @D.register_kl(Mine, D.Normal)
    def _(p, q):
        return tenon.tensor(7.0)

    assert D.kl_divergence(p, q).item() == 7.0
    with pytest.raises(
        NotImplementedError, match="expected a pair of distributions with a rule, got"
    ):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))
