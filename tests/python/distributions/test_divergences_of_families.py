# SPDX-License-Identifier: Apache-2.0
"""Divergences of distributions of two different families, against integrals."""

import math

import numpy as np
import pytest
import scipy.stats as stats
import tenon
from tenon import distributions as D


def T(value):
    return tenon.tensor(value, dtype=tenon.float64)


# A distribution, and its quantiles.
FIRST = {
    "Beta": (D.Beta(T(2.0), T(1.7)), stats.beta(2.0, 1.7).ppf),
    "ContinuousBernoulli": (D.ContinuousBernoulli(T(0.3)), None),
    "Exponential": (D.Exponential(T(1.5)), stats.expon(0, 1 / 1.5).ppf),
    "Gamma": (D.Gamma(T(2.5), T(2.0)), stats.gamma(2.5, scale=0.5).ppf),
    "Gumbel": (D.Gumbel(T(1.0), T(0.8)), stats.gumbel_r(1.0, 0.8).ppf),
    "Laplace": (D.Laplace(T(1.0), T(0.5)), stats.laplace(1.0, 0.5).ppf),
    "Normal": (D.Normal(T(-0.4), T(0.6)), stats.norm(-0.4, 0.6).ppf),
    "Pareto": (D.Pareto(T(1.2), T(9.0)), stats.pareto(9.0, scale=1.2).ppf),
    "Uniform": (D.Uniform(T(0.1), T(0.9)), stats.uniform(0.1, 0.8).ppf),
}
SECOND = {
    "Beta": D.Beta(T(1.5), T(0.8)),
    "ContinuousBernoulli": D.ContinuousBernoulli(T(0.8)),
    "Exponential": D.Exponential(T(0.7)),
    "Gamma": D.Gamma(T(1.5), T(0.7)),
    "Gumbel": D.Gumbel(T(0.3), T(1.5)),
    "Laplace": D.Laplace(T(0.2), T(1.5)),
    "Normal": D.Normal(T(0.2), T(1.5)),
    "Pareto": D.Pareto(T(0.05), T(0.7)),
    "Uniform": D.Uniform(T(-0.5), T(1.0)),
}
FINITE = {
    "Beta": ["ContinuousBernoulli", "Exponential", "Gamma", "Normal", "Uniform"],
    "ContinuousBernoulli": ["Exponential", "Normal", "Uniform"],
    "Exponential": ["Gamma", "Gumbel", "Normal"],
    "Gamma": ["Exponential", "Gumbel", "Normal"],
    "Gumbel": ["Normal"],
    "Laplace": ["Normal"],
    "Normal": ["Gumbel", "Laplace"],
    "Pareto": ["Exponential", "Gamma", "Normal", "Pareto"],
    "Uniform": [*SECOND.keys() - {"Laplace", "Uniform"}],
}
INFINITE = {
    "Beta": ["Pareto"],
    "ContinuousBernoulli": ["Pareto"],
    "Exponential": ["Beta", "ContinuousBernoulli", "Pareto", "Uniform"],
    "Gamma": ["Beta", "ContinuousBernoulli", "Pareto", "Uniform"],
    **{
        name: ["Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Pareto", "Uniform"]
        for name in ("Gumbel", "Laplace", "Normal")
    },
    "Pareto": ["Beta", "ContinuousBernoulli", "Uniform"],
}


def pairs(table):
    return [(p, q) for p, names in table.items() for q in sorted(names)]


@pytest.mark.parametrize(("first", "second"), pairs(FINITE))
def test_divergences_equal_integrals(first, second):
    (p, quantiles), q = FIRST[first], SECOND[second]
    at = (np.arange(50_000) + 0.5) / 50_000
    x = p.icdf(T(at)) if quantiles is None else T(quantiles(at))
    want = (p.log_prob(x) - q.log_prob(x)).mean().item()
    got = D.kl_divergence(p, q)
    assert got.shape == () and got.dtype == tenon.float64
    assert abs(got.item() - want) < 1e-3 * max(1.0, abs(want))


@pytest.mark.parametrize(("first", "second"), pairs(INFINITE))
def test_values_that_the_second_has_not(first, second):
    p, q = FIRST[first][0].expand([2, 1]), SECOND[second].expand([3])
    assert D.kl_divergence(p, q).tolist() == [[math.inf] * 3] * 2


@pytest.mark.parametrize(
    ("bounds", "q"),
    [
        ((-0.1, 0.9), SECOND["Beta"]),
        ((0.1, 1.1), SECOND["Beta"]),
        ((0.1, 1.1), SECOND["ContinuousBernoulli"]),
        ((-0.1, 0.9), SECOND["Exponential"]),
        ((-0.1, 0.9), SECOND["Gamma"]),
        ((0.01, 0.9), SECOND["Pareto"]),
    ],
)
def test_uniform_numbers_outside(bounds, q):
    low, high = (tenon.tensor(x, tenon.float64, requires_grad=True) for x in bounds)
    divergence = D.kl_divergence(D.Uniform(low, high), q)
    assert divergence.item() == math.inf
    divergence.backward()
    assert low.grad.item() == 0.0 and high.grad.item() == 0.0


def test_ranges_that_are_too_small():
    unit = D.Beta(T(2.0), T(2.0))
    assert D.kl_divergence(unit, D.Uniform(T(0.1), T(2.0))).item() == math.inf
    assert D.kl_divergence(D.Pareto(T(1.0), T(2.0)), D.Pareto(T(1.1), T(2.0))).item() == math.inf
    # Moments that are infinite make it infinite, not NaN.
    for alpha in (0.5, 1.5):
        assert D.kl_divergence(D.Pareto(T(1.0), T(alpha)), SECOND["Normal"]).item() == math.inf
    assert D.kl_divergence(D.Pareto(T(1.0), T(0.5)), SECOND["Gamma"]).item() == math.inf


def test_counts():
    p, q = D.Bernoulli(T(0.3)), D.Poisson(T(0.8))
    x = T([0.0, 1.0])
    log_p = p.log_prob(x)
    want = (tenon.exp(log_p) * (log_p - q.log_prob(x))).sum()
    np.testing.assert_allclose(D.kl_divergence(p, q).item(), want.item(), rtol=1e-12)
    assert D.kl_divergence(q, p).item() == math.inf
    ten = D.Binomial(T(10.0), T(0.3))
    assert D.kl_divergence(q, ten).item() == math.inf
    # Of rate 0 the only count is 0.
    np.testing.assert_allclose(
        D.kl_divergence(D.Poisson(T(0.0)), ten).item(), -10 * math.log(0.7), rtol=1e-12
    )


class Waiting(D.ExponentialFamily):
    """The exponential distribution by its natural parameter, without formulas of its own."""

    def __init__(self, rate):
        self.rate = rate
        super().__init__(rate.shape)

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -tenon.log(-x)

    _mean_carrier_measure = 0.0


class Other(Waiting):
    pass


def test_exponential_families_of_ones_own():
    rates = T([0.5, 2.0]).requires_grad_(), T([3.0, 0.2])
    own, known = [[kind(rate) for rate in rates] for kind in (Waiting, D.Exponential)]
    for one, other in zip(own, known, strict=True):
        np.testing.assert_allclose(one.entropy().tolist(), other.entropy().tolist(), rtol=1e-12)
    got, want = D.kl_divergence(*own), D.kl_divergence(*known)
    np.testing.assert_allclose(got.tolist(), want.tolist(), rtol=1e-12)
    grads = [tenon.grad(x.sum(), [rates[0]], retain_graph=True)[0].tolist() for x in (got, want)]
    np.testing.assert_allclose(*grads, rtol=1e-12)
    assert not own[1].entropy().requires_grad
    with pytest.raises(NotImplementedError, match="two distributions of one exponential family"):
        D.kl_divergence(own[0], Other(rates[0]))


def test_indices_are_no_vectors():
    shares = T([0.2, 0.8])
    both = D.Categorical(shares), D.OneHotCategorical(shares)
    for p, q in (both, both[::-1]):
        with pytest.raises(NotImplementedError, match="indices and vectors are different values"):
            D.kl_divergence(p, q)
    assert D.kl_divergence(both[1], both[1]).item() == 0.0
