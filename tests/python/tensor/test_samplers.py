# SPDX-License-Identifier: Apache-2.0
"""Samplers against their distributions: Kolmogorov and Smirnov's test for densities, Pearson's for counts.
Seeds are fixed, so that a test that passes always does."""

import functools
import math

import numpy as np
import pytest
import tenon
from tenon import random

COUNT = 20_000


def lgamma(x):
    return np.vectorize(math.lgamma)(x)


def density_of(log_density, low, high, points=200_001):
    """The cumulative distribution of a density that need not be normalised, by the trapezoidal rule."""
    grid = np.linspace(low, high, points)
    values = np.exp(log_density(grid))
    steps = (values[1:] + values[:-1]) / 2 * np.diff(grid)
    total = np.concatenate([[0], np.cumsum(steps)])
    return lambda x: np.interp(x, grid, total / total[-1])


def normal_cdf(x):
    return np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(x)


def gamma_log(a):
    return lambda x: (a - 1) * np.log(x) - x


# What draws COUNT samples, and the cumulative distribution.
CONTINUOUS = {
    "exponential": (lambda n: random.exponential(2.0, n), lambda x: 1 - np.exp(-2 * x)),
    "cauchy": (
        lambda n: random.cauchy(1.0, 3.0, n),
        lambda x: 0.5 + np.arctan((x - 1) / 3) / np.pi,
    ),
    "log_normal": (
        lambda n: random.log_normal(0.5, 0.75, n),
        lambda x: normal_cdf((np.log(x) - 0.5) / 0.75),
    ),
    "gamma": (lambda n: random.gamma(3.5, 2.0, n) * 2, density_of(gamma_log(3.5), 1e-12, 60)),
    "gamma below 1": (  # the square root removes the pole from the density
        lambda n: random.gamma(0.3, 1.0, n) ** 0.25,
        density_of(lambda y: 0.2 * np.log(y) - y**4, 1e-12, 3.5),
    ),
    "beta": (
        lambda n: random.beta(2.0, 3.5, n),
        density_of(lambda x: np.log(x) + 2.5 * np.log1p(-x), 1e-9, 1 - 1e-9),
    ),
    "chi_square": (
        lambda n: random.chi_square(5.0, n),
        density_of(lambda x: 1.5 * np.log(x) - x / 2, 1e-12, 120),
    ),
    "student_t": (
        lambda n: random.student_t(4.0, 1.0, 2.0, n),
        density_of(lambda x: -2.5 * np.log1p(((x - 1) / 2) ** 2 / 4), -500, 500, 1_000_001),
    ),
    "von_mises": (
        lambda n: random.von_mises(0.5, 2.0, n),
        density_of(lambda x: 2 * np.cos(x - 0.5), -np.pi, np.pi),
    ),
    "von_mises, nearly uniform": (
        lambda n: random.von_mises(0.0, 1e-5, n),
        lambda x: (x + np.pi) / (2 * np.pi),
    ),
    "dirichlet": (  # each part is beta distributed
        lambda n: random.dirichlet(tenon.tensor([1.5, 2.0, 2.5]), n)[:, 0],
        density_of(lambda x: 0.5 * np.log(x) + 3.5 * np.log1p(-x), 1e-9, 1 - 1e-9),
    ),
}
for low, high in ((-2.0, 2.0), (-0.5, 0.25), (1.5, 4.0), (-9.0, -4.0), (2.0, 2.25), (-1.0, 50.0)):
    CONTINUOUS[f"truncated_normal({low}, {high})"] = (
        functools.partial(random.truncated_normal, 0.0, 1.0, low, high),
        density_of(lambda x: -x * x / 2, low, min(high, 9.0)),
    )


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density(name):
    draw, cumulative = CONTINUOUS[name]
    tenon.manual_seed(3)
    x = np.sort(draw(COUNT).to(tenon.float64).numpy())
    assert x.shape == (COUNT,) and np.isfinite(x).all()
    steps = np.arange(COUNT + 1) / COUNT
    expected = cumulative(x)
    distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    assert distance < 1.95 / math.sqrt(COUNT)  # a chance of 0.001


def poisson_log(rate):
    return lambda k: k * math.log(rate) - rate - lgamma(k + 1)


def binomial_log(n, p):
    def log_mass(k):
        inside = k <= n
        k = np.minimum(k, n)
        mass = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        return np.where(inside, mass + k * math.log(p) + (n - k) * math.log1p(-p), -np.inf)

    return log_mass


COUNTS = {
    "poisson, few": (lambda n: random.poisson(2.5, n), poisson_log(2.5)),
    "poisson, many": (lambda n: random.poisson(40.0, n), poisson_log(40.0)),
    "binomial, few": (lambda n: random.binomial(12.0, 0.3, n), binomial_log(12, 0.3)),
    "binomial, many": (lambda n: random.binomial(200.0, 0.3, n), binomial_log(200, 0.3)),
    "binomial, likely": (lambda n: random.binomial(150.0, 0.8, n), binomial_log(150, 0.8)),
    "geometric": (
        lambda n: random.geometric(0.3, n) - 1,
        lambda k: k * math.log(0.7) + math.log(0.3),
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    draw, log_mass = COUNTS[name]
    tenon.manual_seed(5)
    x = draw(COUNT).numpy()
    assert (x == np.floor(x)).all() and x.min() >= 0
    expected = np.exp(log_mass(np.arange(400.0))) * COUNT
    got = np.bincount(x.astype(int), minlength=400)
    rare = expected < 10
    got = np.append(got[~rare], got[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
    freedom = len(expected) - 1
    statistic = np.sum((got - expected) ** 2 / np.maximum(expected, 1))
    limit = freedom * (1 - 2 / (9 * freedom) + 3.1 * math.sqrt(2 / (9 * freedom))) ** 3
    assert statistic < limit  # Wilson and Hilferty: a chance of 0.001


def test_parameters_broadcast_and_give_the_dtype():
    rates = tenon.tensor([[1.0], [100.0]], dtype=tenon.float64)
    x = random.gamma(rates, tenon.tensor([1.0, 2.0, 3.0]))
    assert x.shape == (2, 3) and x.dtype == tenon.float64
    assert random.poisson(rates, (2, 5)).mean(1).tolist()[1] > 50
    assert random.exponential(1.0, (2,), dtype="float16").dtype == tenon.float16
    assert random.beta(1.0, 1.0).shape == ()
    assert random.dirichlet(tenon.ones(4), (2, 3)).sum(-1).shape == (2, 3)
    assert random.gamma(tenon.ones(3, device="meta")).device == tenon.device("meta")


def test_edges():
    assert random.poisson(0.0, 3).tolist() == [0, 0, 0]
    assert random.binomial(5.0, 0.0, 3).tolist() == [0, 0, 0]
    assert random.binomial(1000.0, 1.0, 3).tolist() == [1000, 1000, 1000]
    assert random.binomial(0.0, 0.5, 3).tolist() == [0, 0, 0]
    assert random.geometric(1.0, 3).tolist() == [1, 1, 1]
    tiny = random.beta(1e-6, 1e-6, 100)
    assert set(tiny.tolist()) <= {0.0, 1.0} and 20 < float(tiny.sum()) < 80


BAD = {
    "exponential": (0.0,),
    "geometric": (1.5,),
    "cauchy": (0.0, 0.0),
    "log_normal": (0.0, -1.0),
    "truncated_normal": (0.0, 1.0, 2.0, 1.0),
    "gamma": (-1.0,),
    "beta": (1.0, float("nan")),
    "chi_square": (0.0,),
    "student_t": (0.0,),
    "von_mises": (0.0, -1.0),
    "poisson": (float("inf"),),
    "binomial": (2.5, 0.5),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(name):
    with pytest.raises(ValueError, match=rf"{name}\(\): expected "):
        getattr(random, name)(*BAD[name])


def test_refusals_of_shapes_and_dtypes():
    with pytest.raises(ValueError, match=r"broadcast to shape \(2,\), got shapes \(3,\), \(\)"):
        random.gamma(tenon.ones(3), 1.0, 2)
    with pytest.raises(TypeError, match="expected a floating dtype, got int64"):
        random.gamma(1.0, dtype="int64")
    with pytest.raises(TypeError, match="expected a tensor of at least one axis"):
        random.dirichlet(1.0)


def test_samples_are_constants():
    rate = tenon.ones(3, requires_grad=True)
    assert not random.exponential(rate).requires_grad and tenon.is_grad_enabled()


def test_generators_are_streams_of_their_own():
    tenon.manual_seed(1)
    first, second = tenon.rand(3).tolist(), tenon.rand(3).tolist()
    generator = tenon.Generator(seed=1)
    tenon.manual_seed(1)
    assert tenon.rand(3).tolist() == first
    assert tenon.rand(3, generator=generator).tolist() == first
    assert tenon.rand(3).tolist() == second
    with generator:
        assert tenon.rand(3).tolist() == second
        state = generator.get_state()
        third = random.gamma(2.0, shape=3).tolist()
    generator.set_state(state)
    with generator:
        assert random.gamma(2.0, shape=3).tolist() == third
    assert tenon.zeros(3).normal_(generator=generator.manual_seed(1)).tolist() == (
        tenon.randn(3, generator=generator.manual_seed(1)).tolist()
    )
    assert generator.initial_seed() == 1 and "seed=1" in repr(generator)
    assert tenon.Generator().seed() != tenon.Generator().seed()


def test_fork_rng_leaves_the_stream():
    tenon.manual_seed(1)
    first = tenon.rand(3).tolist()
    tenon.manual_seed(1)
    with random.fork_rng():
        tenon.rand(100)
    assert tenon.rand(3).tolist() == first and random.initial_seed() == 1
    assert random.seed() == random.initial_seed()
