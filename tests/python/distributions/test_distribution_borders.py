# SPDX-License-Identifier: Apache-2.0
"""Distributions where terms are infinite, or large and nearly cancel: values and gradients."""

import math

import numpy as np
import pytest
import scipy.stats as stats
import tenon
from tenon import distributions as D

INF = math.inf


def T(value, dtype="float64", **options):
    return tenon.tensor(value, dtype=getattr(tenon, dtype), **options)


def gradient(function, *values):
    """The gradient of the sum of what the function gives, for each of the values."""
    parameters = [T(value, requires_grad=True) for value in values]
    gradients = tenon.grad(function(*parameters).sum(), parameters)
    return [each.tolist() for each in gradients]


# -- 0 log 0 = 0 -----------------------------------------------------------------------------------


def test_categories_that_are_ruled_out_count_nothing():
    logits = T([0.0, 0.0, -INF])
    for kind in (D.Categorical, D.OneHotCategorical):
        assert kind(logits=logits).entropy().item() == pytest.approx(math.log(2))
    assert D.OneHotCategorical(logits=logits).log_prob(T([1.0, 0.0, 0.0])).item() == pytest.approx(
        -math.log(2)
    )
    assert D.OneHotCategorical(logits=logits).log_prob(T([0.0, 0.0, 1.0])).item() == -INF
    assert D.Multinomial(2, logits=logits).log_prob(T([1.0, 1.0, 0.0])).item() == pytest.approx(
        math.log(0.5)
    )
    assert D.Multinomial(2, logits=logits).entropy().item() == pytest.approx(1.5 * math.log(2))
    p, q = D.Categorical(logits=logits), D.Categorical(logits=T([math.log(3), 0.0, -INF]))
    want = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert D.kl_divergence(p, q).item() == pytest.approx(want)
    assert D.kl_divergence(D.Categorical(logits=T([0.0, 0.0, 0.0])), q).item() == INF


def test_gradients_beside_categories_that_are_ruled_out_are_finite():
    def parts(logits):
        p = D.Categorical(logits=logits)
        onehot = D.OneHotCategorical(logits=logits).log_prob(T([1.0, 0.0, 0.0]))
        counts = D.Multinomial(2, logits=logits).log_prob(T([1.0, 1.0, 0.0]))
        return p.entropy() + onehot + counts + D.kl_divergence(p, p)

    (got,) = gradient(parts, [0.0, 1.0, -INF])
    (want,) = gradient(lambda x: parts(tenon.concat([x, T([-700.0])])), [0.0, 1.0])
    assert got == pytest.approx([*want, 0.0])


def test_a_component_of_weight_0_has_no_part_in_moments():
    mixture = D.MixtureSameFamily(D.Categorical(T([0.0, 1.0])), D.HalfCauchy(T([1.0, 1.0])))
    assert mixture.mean.item() == INF
    levy = D.MixtureSameFamily(D.Categorical(T([0.0, 1.0])), D.Pareto(T([1.0, 1.0]), T([0.5, 3.0])))
    assert levy.mean.item() == pytest.approx(1.5)


@pytest.mark.parametrize(
    "make, p, value, want",
    [
        (D.Bernoulli, 0.0, 0.0, -1.0),
        (D.Bernoulli, 1.0, 1.0, 1.0),
        (D.Geometric, 1.0, 0.0, 1.0),
        (D.Poisson, 0.0, 0.0, -1.0),
        (lambda p: D.Binomial(T(3.0), p), 0.0, 0.0, -3.0),
        (lambda p: D.Binomial(T(3.0), p), 1.0, 3.0, 3.0),
        (lambda p: D.NegativeBinomial(T(3.0), p), 0.0, 0.0, -3.0),
    ],
)
def test_gradients_by_a_parameter_at_the_end_of_its_range(make, p, value, want):
    """One-sided derivatives of a logarithm of a probability, which is 0 there."""
    assert make(T(p)).log_prob(T(value)).item() == 0
    (got,) = gradient(lambda x: make(x).log_prob(T(value)), p)
    assert got == pytest.approx(want)


@pytest.mark.parametrize("logit, value", [(INF, 1.0), (-INF, 0.0)])
def test_log_odds_that_are_infinite(logit, value):
    likely = D.Bernoulli(logits=T(logit))
    assert likely.log_prob(T(value)).item() == 0 and likely.log_prob(T(1 - value)).item() == -INF
    assert likely.entropy().item() == 0
    assert D.kl_divergence(likely, D.Bernoulli(T(0.5))).item() == pytest.approx(math.log(2))
    assert D.kl_divergence(D.Bernoulli(T(0.5)), likely).item() == INF


def test_gradients_of_divergences_at_certain_probabilities_are_no_nan():
    for p in (0.0, 1.0):
        _, by_q = gradient(lambda p, q: D.kl_divergence(D.Bernoulli(p), D.Bernoulli(q)), p, p)
        assert by_q == pytest.approx(1.0 if p == 0 else -1.0)
    assert gradient(lambda r: D.kl_divergence(D.Poisson(T(0.0)), D.Poisson(r)), 0.0) == [1.0]


def test_no_successes_before_no_failures_are_certain():
    none = D.NegativeBinomial(T(0.0), T(0.3))
    assert none.log_prob(T([0.0, 1.0])).tolist() == [0.0, -INF]
    assert none.cdf(T([0.0, 5.0])).tolist() == [1.0, 1.0]


def test_entropy_of_rare_events_keeps_its_digits():
    for p in (1e-3, 1e-8, 1 - 1e-4):
        x = T(p, "float32")
        exact = stats.bernoulli(float(x.item())).entropy()
        assert D.Bernoulli(x).entropy().item() == pytest.approx(exact, rel=3e-6)
        logit = tenon.logit(x.to(tenon.float64)).to(tenon.float32)
        assert D.Bernoulli(logits=logit).entropy().item() == pytest.approx(exact, rel=1e-3)
    # At the ends the derivative is infinite.
    assert gradient(lambda p: D.Bernoulli(p).entropy(), [0.0, 1.0])[0] == [INF, -INF]


# -- temperatures ----------------------------------------------------------------------------------


def test_gradient_by_the_temperature_of_a_relaxed_choice():
    logits, value = T([0.3, -1.0, 0.5]), T([0.2, 0.3, 0.5])

    def density(t):
        return D.RelaxedOneHotCategorical(t, logits=logits).log_prob(value)

    step = 1e-6
    numeric = (density(T(0.7 + step)) - density(T(0.7 - step))).item() / (2 * step)
    assert gradient(density, 0.7)[0] == pytest.approx(numeric, rel=1e-6)

    def sample(t):
        tenon.manual_seed(3)
        return (D.RelaxedOneHotCategorical(t, logits=logits).rsample([4]) * value).sum()

    numeric = (sample(T(0.7 + step)) - sample(T(0.7 - step))).item() / (2 * step)
    assert abs(numeric) > 1e-3 and gradient(sample, 0.7)[0] == pytest.approx(numeric, rel=1e-5)


def test_a_temperature_for_each_vector():
    logits = T([[0.3, -1.0], [0.5, 0.1]])
    both = D.RelaxedOneHotCategorical(T([0.5, 2.0]), logits=logits)
    value = T([0.2, 0.8])
    each = [
        D.RelaxedOneHotCategorical(t, logits=x).log_prob(value).item()
        for t, x in zip((0.5, 2.0), logits)
    ]
    assert both.log_prob(value).tolist() == pytest.approx(each)
    assert both.expand([3, 2]).temperature.shape == (3, 2)
    with pytest.raises(
        ValueError, match="expected parameter temperature to be numbers above 0, got 0"
    ):
        D.RelaxedOneHotCategorical(0.0, logits=logits)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_samples_have_a_finite_density(dtype):
    """Also those that round to an end of the support."""
    tenon.manual_seed(0)
    like = {"dtype": getattr(tenon, dtype)}
    small, one = tenon.full([3], 0.02, **like), tenon.ones([3], **like)
    for each in (
        D.RelaxedBernoulli(tenon.tensor(0.1, **like), logits=tenon.tensor(0.3, **like)),
        D.RelaxedOneHotCategorical(tenon.tensor(0.05, **like), logits=one),
        D.Beta(small, small),
        D.Dirichlet(small),
        D.Kumaraswamy(small, small),
    ):
        x = each.rsample([500])
        assert bool(tenon.all(tenon.isfinite(each.log_prob(x)))), each


# -- large parameters ------------------------------------------------------------------------------

LARGE = [
    (lambda: D.StudentT(T(1e6, "float32")), stats.t(1e6), [0.0, 1.0, 4.0]),
    (lambda: D.StudentT(T(40.0, "float32")), stats.t(40), [0.0, 1.0, 4.0]),
    (lambda: D.Poisson(T(1e6, "float32")), stats.poisson(1e6), [998000.0, 1e6, 1003000.0]),
    (
        lambda: D.Gamma(T(1e6, "float32"), T(2.0, "float32")),
        stats.gamma(1e6, scale=0.5),
        [499000.0, 5e5, 501000.0],
    ),
    (
        lambda: D.Beta(T(4e5, "float32"), T(6e5, "float32")),
        stats.beta(4e5, 6e5),
        [0.3984375, 0.400390625],
    ),
    (
        lambda: D.Binomial(T(1e6, "float32"), T(0.25, "float32")),
        stats.binom(10**6, 0.25),
        [249000.0, 250000.0, 251000.0],
    ),
    (
        lambda: D.NegativeBinomial(T(1e6, "float32"), T(0.5, "float32")),
        stats.nbinom(10**6, 0.5),
        [997000.0, 1e6, 1002000.0],
    ),
]


@pytest.mark.parametrize(
    "make, peer, values", LARGE, ids=lambda each: getattr(getattr(each, "dist", None), "name", "")
)
def test_densities_of_large_parameters(make, peer, values):
    """In float32 the logarithms that they are made of are near 1e7, one unit apart."""
    log_density = getattr(
        peer, "logpdf" if isinstance(peer.dist, stats.rv_continuous) else "logpmf"
    )
    # Rounding of a value moves z, the distance from the mean in deviations, by 3e-8 mean /
    # deviation.
    got = make().log_prob(T(values, "float32")).numpy()
    np.testing.assert_allclose(got, log_density(values), rtol=1e-3, atol=3e-3)


def test_densities_of_vectors_and_ratios_of_large_parameters():
    concentration = T([2e5, 3e5, 5e5], "float32")
    value = T([0.19921875, 0.30078125, 0.5], "float32")
    wide = [each.to(tenon.float64) for each in (concentration, value)]
    want = D.Dirichlet(wide[0]).log_prob(wide[1]).item()
    assert want == pytest.approx(stats.dirichlet(wide[0].numpy()).logpdf(wide[1].numpy()), abs=1e-6)
    assert D.Dirichlet(concentration).log_prob(value).item() == pytest.approx(want, abs=5e-3)
    inverse = D.InverseGamma(T(1e6, "float32"), T(2.0, "float32"))
    x = T(2.001953e-6, "float32")
    want = stats.invgamma(1e6, scale=2).logpdf(x.item())
    assert inverse.log_prob(x).item() == pytest.approx(want, abs=5e-3)
    few = D.NegativeBinomial(T(50.0, "float32"), T(0.96875, "float32")).log_prob(
        T(1600.0, "float32")
    )
    assert few.item() == pytest.approx(stats.nbinom(50, 0.03125).logpmf(1600), abs=2e-4)


@pytest.mark.parametrize(
    "make, peer",
    [
        (lambda x: D.StudentT(x), stats.t(1e6)),
        (lambda x: D.Gamma(x, T(1.0, "float32")), stats.gamma(1e6)),
        (lambda x: D.InverseGamma(x, T(1.0, "float32")), None),
        (lambda x: D.Beta(x, 2 * x), None),
        (lambda x: D.Dirichlet(tenon.stack([x, 2 * x, x])), None),
    ],
)
def test_entropy_of_large_parameters(make, peer):
    x = T(1e6, "float32")
    want = peer.entropy() if peer else make(x.to(tenon.float64)).entropy().item()
    assert make(x).entropy().item() == pytest.approx(float(want), abs=1e-5)


@pytest.mark.parametrize("scale", [1.0, 15.9, 16.1, 63.0, 65.0, 1e4])
def test_gradients_pass_from_the_plain_formula_to_that_of_large_parameters(scale):
    """Finite differences on both sides of the borders between them."""

    def total(a, b, p):
        parts = [
            D.StudentT(a).log_prob(T(0.7)) + D.StudentT(a).entropy(),
            D.Gamma(a, b).log_prob(T(1.1)) + D.Gamma(a, b).entropy(),
            D.Beta(a, b).log_prob(p),
            D.Poisson(a).log_prob(T(float(round(scale)))),
            D.Binomial(T(float(round(2 * scale))), p).log_prob(T(float(round(scale)))),
            D.NegativeBinomial(a, p).log_prob(T(float(round(scale)))),
        ]
        return sum(parts)

    at = [1.02 * scale, 1.05 * scale, 0.47]
    for i, got in enumerate(gradient(total, *at)):
        step = 1e-5 * at[i]
        up, down = ([x + s * step * (j == i) for j, x in enumerate(at)] for s in (1, -1))
        numeric = (total(*map(T, up)) - total(*map(T, down))).item() / (2 * step)
        assert got == pytest.approx(numeric, rel=1e-4, abs=1e-6)


# -- samples of small floats -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_samples_by_inversion_of_small_floats_are_finite(dtype):
    tenon.manual_seed(0)
    one = T(1.0, dtype)
    zero = T(0.0, dtype)
    for each in (
        D.Exponential(one),
        D.Gumbel(zero, one),
        D.Laplace(zero, one),
        D.Logistic(zero, one),
        D.Weibull(one, one),
        D.Geometric(T(0.5, dtype)),
        D.Uniform(zero, one),
    ):
        x = each.sample([60_000])
        assert x.dtype == getattr(tenon, dtype) and bool(tenon.all(tenon.isfinite(x))), each
    assert x.max().item() < 1
    soft = tenon.nn.functional.gumbel_softmax(tenon.zeros([20_000, 3], dtype=getattr(tenon, dtype)))
    assert bool(tenon.all(tenon.isfinite(soft)))


def test_uniform_samples_stay_below_the_upper_bound():
    tenon.manual_seed(0)
    low = T(1.0, "float32", requires_grad=True)
    narrow = D.Uniform(low, T(1.0 + 2.0**-22, "float32"))  # two numbers lie between
    x = narrow.rsample([4000])
    assert x.min().item() >= 1 and x.max().item() < 1 + 2.0**-22
    (grad,) = tenon.grad(x.sum(), low)
    assert 0 < grad.item() < 4000
    with pytest.raises(
        ValueError, match="expected parameter high - low to be numbers below inf, got inf"
    ):
        D.Uniform(T(-3e38, "float32"), T(3e38, "float32"))


# -- digits near the ends --------------------------------------------------------------------------


def test_values_whose_squares_are_infinite():
    far = T([1e25, -1e38], "float32")
    wide = far.to(tenon.float64)
    for make in (
        lambda dtype: D.Cauchy(T(0.0, dtype), T(1.0, dtype)),
        lambda dtype: D.StudentT(T(0.5, dtype)),
    ):
        want = make("float64").log_prob(wide).numpy()
        np.testing.assert_allclose(make("float32").log_prob(far).numpy(), want, rtol=1e-6)
    ratio = (
        D.FisherSnedecor(T(0.5, "float32"), T(0.1, "float32")).log_prob(T(3e38, "float32")).item()
    )
    assert ratio == pytest.approx(stats.f(0.5, 0.1).logpdf(3e38), rel=1e-5)


def test_distribution_functions_keep_their_digits_near_the_ends():
    values = [1e-12, 1e-7, 1.0, 1e9, 1e14]
    got = D.FisherSnedecor(T(2.0), T(0.11)).cdf(T(values)).numpy()
    np.testing.assert_allclose(got, stats.f(2, 0.11).cdf(values), rtol=1e-9)
    small = [1e-12, 1e-9, 1e-5]
    got = D.StudentT(T(3.0)).cdf(T(small)).numpy() - 0.5
    np.testing.assert_allclose(got, stats.t(3).cdf(small) - 0.5, rtol=1e-3, atol=1e-16)
    near = 1 - 2.0**-50
    share = D.Kumaraswamy(T(2.0), T(0.1)).cdf(T(near)).item()
    assert share == pytest.approx(1 - (2.0**-49) ** 0.1, rel=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [D.TanhTransform, D.SigmoidTransform])
def test_squashed_samples_have_a_finite_density(kind, dtype):
    """Also where the map is flat: this is how actions are drawn."""
    tenon.manual_seed(0)
    squashed = D.TransformedDistribution(D.Normal(T([0.0, 30.0], dtype), T(12.0, dtype)), kind())
    x = squashed.rsample([500])
    assert bool(tenon.all(tenon.isfinite(squashed.log_prob(x))))
    low, high = squashed.support.lower_bound, squashed.support.upper_bound
    assert x.min().item() > low and x.max().item() < high
    ends = squashed.log_prob(T([[low, high]], dtype).T)
    assert bool(tenon.all(tenon.isfinite(ends)))
