# SPDX-License-Identifier: Apache-2.0
"""What every distribution promises beside its density: modes, moments that do not exist, supports, refusals."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats as stats
import tenon
from tenon import distributions as D
from tenon.distributions import constraints

NAN, INF = math.nan, math.inf


def T(value):
    return tenon.tensor(value, dtype=tenon.float64)


def close(got, want, tolerance=1e-12):
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


# -- modes and moments -----------------------------------------------------------------------------

PEAKED = [
    D.Normal(T(0.5), T(1.5)),
    D.LogNormal(T(0.5), T(0.7)),
    D.Laplace(T(1.0), T(2.0)),
    D.Cauchy(T(1.0), T(2.0)),
    D.Gumbel(T(1.0), T(2.0)),
    D.Logistic(T(1.0), T(2.0)),
    D.StudentT(T(5.0), T(1.0), T(2.0)),
    D.Gamma(T(2.5), T(2.0)),
    D.Chi2(T(5.0)),
    D.InverseGamma(T(3.5), T(2.0)),
    D.Beta(T(2.0), T(3.5)),
    D.Weibull(T(2.0), T(1.5)),
    D.FisherSnedecor(T(5.0), T(9.0)),
    D.Kumaraswamy(T(2.0), T(3.5)),
]


@pytest.mark.parametrize("each", PEAKED, ids=lambda each: type(each).__name__)
def test_the_density_is_largest_at_the_mode(each):
    at = each.mode.item()
    around = each.log_prob(T([at - 1e-3, at, at + 1e-3])).tolist()
    assert around[0] < around[1] > around[2]


@pytest.mark.parametrize(
    "each, mode",
    [
        (D.HalfNormal(T(1.5)), 0.0),
        (D.HalfCauchy(T(2.0)), 0.0),
        (D.Exponential(T(2.0)), 0.0),
        (D.Gamma(T(0.5), T(2.0)), 0.0),
        (D.Weibull(T(2.0), T(0.5)), 0.0),
        (D.FisherSnedecor(T(1.0), T(9.0)), 0.0),
        (D.Pareto(T(2.0), T(3.0)), 2.0),
        (D.Beta(T(0.5), T(3.0)), 0.0),
        (D.Beta(T(3.0), T(0.5)), 1.0),
        (D.Beta(T(0.5), T(0.5)), NAN),
        (D.Kumaraswamy(T(1.0), T(1.0)), NAN),
        (D.Kumaraswamy(T(0.5), T(4.0)), NAN),
        (D.Kumaraswamy(T(1.0), T(2.0)), 0.0),
        (D.Bernoulli(T([0.3, 0.5, 0.8])), [0.0, NAN, 1.0]),
        (D.Geometric(T(0.3)), 0.0),
        (D.Poisson(T(3.3)), 3.0),
        (D.Binomial(T(10.0), T([0.3, 1.0])), [3.0, 10.0]),
        (D.NegativeBinomial(T([5.0, 0.5]), T(0.7)), [9.0, 0.0]),
        (D.Categorical(T([0.2, 0.5, 0.3])), 1),
        (D.OneHotCategorical(T([0.2, 0.5, 0.3])), [0.0, 1.0, 0.0]),
        (D.Dirichlet(T([2.0, 4.0, 1.0])), [0.25, 0.75, 0.0]),
        (D.Dirichlet(T([0.5, 4.0])), [0.0, 1.0]),
        (D.Independent(D.Normal(T([1.0, 2.0]), T(1.0)), 1), [1.0, 2.0]),
        (D.MultivariateNormal(T([1.0, 2.0]), T([[2.0, 0.0], [0.0, 1.0]])), [1.0, 2.0]),
    ],
    ids=str,
)
def test_modes_at_ends_and_of_counts(each, mode):
    close(each.mode, mode)


@pytest.mark.parametrize(
    "each, mean, variance",
    [
        (D.StudentT(T([0.5, 1.0, 1.5, 2.0, 4.0])), [NAN, NAN, 0, 0, 0], [NAN, NAN, INF, INF, 2]),
        (D.Cauchy(T(1.0), T(2.0)), NAN, NAN),
        (D.HalfCauchy(T(2.0)), INF, INF),
        (D.InverseGamma(T([1.0, 2.0, 3.0]), T(2.0)), [INF, 2, 1], [INF, INF, 1]),
        (D.Pareto(T(2.0), T([1.0, 2.0, 3.0])), [INF, 4, 3], [INF, INF, 3]),
        (D.FisherSnedecor(T(3.0), T([2.0, 4.0, 6.0])), [NAN, 2, 1.5], [NAN, NAN, 5.25]),
        (D.Categorical(T([[0.5, 0.5], [0.1, 0.9]])), [NAN, NAN], [NAN, NAN]),
        (D.OneHotCategorical(T([0.2, 0.8])), [0.2, 0.8], [0.16, 0.16]),
        (D.Multinomial(5, T([0.2, 0.8])), [1, 4], [0.8, 0.8]),
        (D.Uniform(T(-1.0), T(5.0)), 2, 3),
        (D.Dirichlet(T([1.0, 3.0])), [0.25, 0.75], [0.0375, 0.0375]),
    ],
    ids=str,
)
def test_moments_that_are_infinite_or_do_not_exist(each, mean, variance):
    close(each.mean, mean)
    close(each.variance, variance)
    close(each.stddev, np.sqrt(variance))


def test_moments_of_correlated_numbers():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    both = D.MultivariateNormal(T([[1.0, 2.0]] * 3), T(covariance))
    close(both.mean, [[1.0, 2.0]] * 3)
    close(both.variance, [[2.0, 1.0]] * 3)
    close(both.entropy(), [stats.multivariate_normal([0, 0], covariance).entropy()] * 3)


def test_what_is_left_out_has_its_default():
    close(D.StudentT(T(3.0)).log_prob(T([0.5, 2.0])), stats.t(3).logpdf([0.5, 2.0]))
    assert D.Binomial(probs=T(0.3)).total_count.item() == 1
    assert D.Multinomial(probs=T([0.3, 0.7])).total_count == 1
    assert D.Normal(1, 2).loc.dtype == tenon.float32


# -- supports and refusals -------------------------------------------------------------------------

NUMBERS, ABOVE = "numbers that are not NaN", "numbers above 0"
COUNTS, SHARES = (
    "whole numbers of at least 0",
    "vectors of numbers that are not negative and sum to 1",
)
SUPPORTS = [
    (D.Normal(T(0.0), T(1.0)), NUMBERS, NAN),
    (D.MultivariateNormal(T([0.0, 1.0]), T([[1.0, 0.0], [0.0, 1.0]])), "vectors without NaN", [0.0, NAN]),
    (D.LogNormal(T(0.0), T(1.0)), ABOVE, 0.0),
    (D.HalfNormal(T(1.0)), "numbers of at least 0", -0.5),
    (D.HalfCauchy(T(1.0)), "numbers of at least 0", -0.5),
    (D.Uniform(T(1.0), T(2.0)), "numbers from 1 to 2", 2.5),
    (D.Cauchy(T(0.0), T(1.0)), NUMBERS, NAN),
    (D.StudentT(T(1.0)), NUMBERS, NAN),
    (D.Exponential(T(1.0)), "numbers of at least 0", -0.5),
    (D.Gamma(T(1.0), T(1.0)), "numbers of at least 0", -0.5),
    (D.InverseGamma(T(1.0), T(1.0)), ABOVE, 0.0),
    (D.Beta(T(1.0), T(1.0)), "numbers from 0 to 1", 1.5),
    (D.Kumaraswamy(T(1.0), T(1.0)), "numbers from 0 to 1", -0.5),
    (D.FisherSnedecor(T(1.0), T(1.0)), "numbers of at least 0", -0.5),
    (D.Weibull(T(1.0), T(1.0)), "numbers of at least 0", -1.0),
    (D.Pareto(T(2.0), T(1.0)), "numbers of at least 2", 1.5),
    (D.Dirichlet(T([1.0, 1.0])), SHARES, [1.5, -0.5]),
    (D.Bernoulli(T(0.5)), "whole numbers from 0 to 1", 2.0),
    (D.Geometric(T(0.5)), COUNTS, 0.5),
    (D.Poisson(T(0.5)), COUNTS, -1.0),
    (D.Binomial(T(3.0), T(0.5)), "whole numbers from 0 to 3", 4.0),
    (D.NegativeBinomial(T(3.0), T(0.5)), COUNTS, 0.5),
    (D.Categorical(T([0.5, 0.5])), "whole numbers from 0 to 1", 2.0),
    (D.OneHotCategorical(T([0.5, 0.5])), "vectors of zeros and one 1", [1.0, 1.0]),
    (D.Multinomial(3, T([0.5, 0.5])), "vectors of counts that sum to 3", [1.0, 1.0]),
    (D.RelaxedBernoulli(T(1.0), T(0.5)), "numbers from 0 to 1", 1.5),
    (D.RelaxedOneHotCategorical(T(1.0), T([0.5, 0.5])), SHARES, [0.5, 0.6]),
    (D.TransformedDistribution(D.Normal(T(0.0), T(1.0)), D.TanhTransform()), "numbers from -1 to 1", 1.5),
]  # fmt: skip


@pytest.mark.parametrize("each, description, outside", SUPPORTS, ids=lambda x: type(x).__name__)
def test_values_outside_of_the_support_are_refused(each, description, outside):
    assert each.support.description == description
    functions = [each.log_prob]
    if not each.event_shape:
        functions.append(each.cdf)
    for function in functions:
        try:
            function(each.sample([2]))
        except NotImplementedError:
            continue  # which is what those without a cdf say
        with pytest.raises(ValueError) as error:
            function(T(outside))
        assert f"{type(each).__name__}: expected value to be {description}, got" in str(error.value)
    assert bool(tenon.all(each.support.check(each.sample([100]))))


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: D.Laplace(0.0, 0.0), "Laplace: expected parameter scale to be numbers above 0"),
        (lambda: D.HalfCauchy(-1.0), "HalfCauchy: expected parameter scale to be numbers above 0"),
        (lambda: D.StudentT(0.0), "StudentT: expected parameter df to be numbers above 0, got 0.0"),
        (lambda: D.Gamma(1.0, -1.0), "Gamma: expected parameter rate to be numbers above 0"),
        (lambda: D.Pareto(0.0, 1.0), "Pareto: expected parameter scale to be numbers above 0"),
        (lambda: D.Bernoulli(1.5), "parameter probs to be numbers from 0 to 1, got 1.5"),
        (lambda: D.Geometric(0.0), "Geometric: expected parameter probs to be numbers above 0"),
        (lambda: D.Binomial(1.5, 0.5), "total_count to be whole numbers of at least 0, got 1.5"),
        (lambda: D.NegativeBinomial(-1, 0.5), "total_count to be numbers of at least 0, got -1.0"),
        (lambda: D.Poisson(-1.0), "Poisson: expected parameter rate to be numbers of at least 0"),
        (lambda: D.Bernoulli(), "Bernoulli: expected one of probs and logits, got neither"),
        (lambda: D.Categorical(), "Categorical: expected one of probs and logits, got neither"),
        (lambda: D.Categorical(T([1.0]), T([1.0])), "one of probs and logits, got both"),
        (lambda: D.Categorical(T(1.0)), "Categorical: expected one axis or more, got a number"),
        (lambda: D.Categorical(T([0.0, 0.0])), "sum of probs to be numbers above 0, got 0.0"),
        (lambda: D.Multinomial(-1, T([1.0])), "total_count to be a whole number of at least 0, got -1"),
        (lambda: D.Multinomial(1.5, T([1.0])), "a whole number of at least 0, got 1.5"),  # type: ignore[arg-type]
        (lambda: D.Dirichlet(T(1.0)), "Dirichlet: expected a concentration of one axis or more"),
        (lambda: D.MultivariateNormal(T([0.0]), T([[1.0, 0.0]])), r"got shapes \(1,\) and \(1, 2\)"),
        (lambda: D.MultivariateNormal(T(0.0), T([[1.0]])), r"got shapes \(\) and \(1, 1\)"),
        (lambda: D.Independent(D.Normal(T([0.0]), 1.0), 2), "ndims from 0 to 1, the batch axes of"),
        (lambda: D.Independent(D.Normal(T([0.0]), 1.0), -1), "ndims from 0 to 1, .* got -1"),
        (lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)),  # type: ignore[arg-type]
         "expected a Categorical to choose components, got Normal"),
        (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform(), abs]),  # type: ignore[list-item]
         r"expected a Transform or a list of them, got \['ExpTransform', 'builtin_function"),
        (lambda: D.ReshapeTransform([2, 3], [4]), r"expected shapes of equal size, got \(2, 3\) and"),
        (lambda: D.ReshapeTransform([2, 3], [6])(T([[1.0] * 2])), r"the last axes to be \(2, 3\), got"),
        (lambda: D.ReshapeTransform([2, 3], [6])(T([1.0])), r"to be \(2, 3\), got shape \(1,\)"),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(make, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make()


def test_checks_can_be_left_out_of_every_distribution():
    """Also of those that are made of others."""
    nan, rows = T(NAN), T([[NAN, NAN]])
    for kind, parameters in (
        *((kind, (nan, nan)) for kind in (D.Normal, D.LogNormal, D.Laplace, D.Cauchy, D.Gumbel)),
        *((kind, (nan, nan)) for kind in (D.Logistic, D.StudentT, D.Gamma, D.Beta, D.Weibull)),
        *((kind, (nan, nan)) for kind in (D.Pareto, D.FisherSnedecor, D.Kumaraswamy, D.Uniform)),
        *((kind, (nan, nan)) for kind in (D.InverseGamma, D.NegativeBinomial, D.Binomial)),
        *(
            (kind, (nan,))
            for kind in (D.HalfNormal, D.HalfCauchy, D.Exponential, D.Chi2, D.Poisson)
        ),
        *((kind, (nan,)) for kind in (D.Bernoulli, D.Geometric)),
        *((kind, (rows,)) for kind in (D.Categorical, D.OneHotCategorical, D.Dirichlet)),
        (D.RelaxedBernoulli, (nan, nan)),
        (D.RelaxedOneHotCategorical, (nan, rows)),
        (D.Multinomial, (3, rows)),
    ):
        with pytest.raises(ValueError, match="expected (parameter|sum of probs)"):
            kind(*parameters)
        unchecked = kind(*parameters, validate_args=False)
        value = rows if unchecked.event_shape else nan
        if kind not in (D.Categorical, D.OneHotCategorical):
            unchecked.log_prob(value)


def test_checks_can_be_left_out():
    for each in (D.Geometric(0.0, validate_args=False), D.Uniform(1.0, 1.0, validate_args=False)):
        assert each.batch_shape == ()
    assert D.Poisson(T(1.0), validate_args=False).log_prob(T(0.5)).item() < 0
    with pytest.raises(TypeError, match="Poisson: expected a tensor as value, got float"):
        D.Poisson(T(1.0), validate_args=False).log_prob(0.5)
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale.item() == -1
        with pytest.raises(ValueError, match="numbers above 0"):
            D.Normal(0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match=r"got -2.0 at index \[1, 0\]"):
        D.Normal(0.0, T([[1.0, 1.0], [-2.0, 1.0]]))
    with pytest.raises(AttributeError, match="Bernoulli has no attribute 'nothing'"):
        D.Bernoulli(0.5).nothing
    with pytest.raises(AttributeError, match="Categorical has no attribute 'nothing'"):
        D.Categorical(T([1.0])).nothing


EXPANDED = [
    (lambda **o: D.Normal(T(0.0), T(1.0), **o), NAN),
    (lambda **o: D.Binomial(T(3.0), T(0.5), **o), 0.5),
    (lambda **o: D.Multinomial(3, T([0.5, 0.5]), **o), [1.0, 1.0]),
    (lambda **o: D.MultivariateNormal(T([0.0]), T([[1.0]]), **o), [NAN]),
    (lambda **o: D.Independent(D.Normal(T([0.0]), T(1.0), **o), 1, **o), [NAN]),
    (
        lambda **o: D.TransformedDistribution(D.Normal(T(0.0), T(1.0), **o), D.ExpTransform(), **o),
        -1.0,
    ),
    (
        lambda **o: D.MixtureSameFamily(
            D.Categorical(T([0.5, 0.5]), **o), D.Normal(T([0.0, 1.0]), T(1.0), **o), **o
        ),
        NAN,
    ),
]


@pytest.mark.parametrize("make, outside", EXPANDED)
def test_expanded_distributions_check_values_as_before(make, outside):
    wide = T([outside] * 2)
    for each in (make(), make(validate_args=True)):
        with pytest.raises(ValueError, match="expected value to be"):
            each.expand([2]).log_prob(wide)
    unchecked = make(validate_args=False).expand([2])
    unchecked.log_prob(wide)
    D.Distribution.set_default_validate_args(False)
    try:
        make().expand([2]).log_prob(wide)
    finally:
        D.Distribution.set_default_validate_args(True)
    # Parameters were checked, or not, as the first one was made.
    assert D.Normal(T(0.0), T(-1.0), validate_args=False).expand([2]).scale.tolist() == [-1.0] * 2


# -- both forms of a probability -------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, values",
    [
        (lambda **p: D.Bernoulli(**p), [0.0, 1.0]),
        (lambda **p: D.Geometric(**p), [0.0, 3.0]),
        (lambda **p: D.Binomial(T(5.0), **p), [0.0, 2.0]),
        (lambda **p: D.NegativeBinomial(T(2.5), **p), [0.0, 4.0]),
        (lambda **p: D.RelaxedBernoulli(T(0.7), **p), [0.1, 0.6]),
    ],
)
def test_log_odds_and_probabilities_say_the_same(make, values):
    probs = T([0.2, 0.7])
    by_probs, by_logits = make(probs=probs), make(logits=tenon.log(probs) - tenon.log1p(-probs))
    close(by_probs.log_prob(T(values)), by_logits.log_prob(T(values)).numpy())
    for name in ("mean", "variance"):
        if not isinstance(by_probs, D.RelaxedBernoulli):
            close(getattr(by_probs, name), getattr(by_logits, name).numpy())
    if not isinstance(by_probs, (D.RelaxedBernoulli, D.NegativeBinomial)):
        close(by_probs.entropy(), by_logits.entropy().numpy())
    tenon.manual_seed(0)
    first = by_probs.sample([3])
    tenon.manual_seed(0)
    close(first, by_logits.sample([3]).numpy(), 1e-9)


def test_all_values_are_enumerated_with_and_without_the_batch():
    batch = T([[0.1, 0.2, 0.3]])
    for each, count, event in (
        (D.Bernoulli(batch), 2, []),
        (D.Bernoulli(logits=batch), 2, []),
        (D.Binomial(T(4.0), batch), 5, []),
        (D.Categorical(batch.unsqueeze(-1).expand(1, 3, 2)), 2, []),
        (D.OneHotCategorical(batch.unsqueeze(-1).expand(1, 3, 2)), 2, [2]),
    ):
        assert each.has_enumerate_support or isinstance(each, D.Binomial)
        whole, thin = each.enumerate_support(), each.enumerate_support(expand=False)
        assert whole.shape == (count, 1, 3, *event) and thin.shape == (count, 1, 1, *event)
        assert (whole == thin).all().item()
        close(tenon.exp(each.log_prob(whole)).sum(0), [[1.0] * 3])
    with pytest.raises(
        NotImplementedError, match=r"one total_count to enumerate, got \[1.0, 2.0\]"
    ):
        D.Binomial(T([1.0, 2.0]), T(0.5)).enumerate_support()
    with pytest.raises(NotImplementedError, match="Poisson has no enumerate_support"):
        D.Poisson(1.0).enumerate_support()


def test_gradients_pass_straight_through_a_choice():
    tenon.manual_seed(1)
    probs = T([0.2, 0.5, 0.3]).requires_grad_()
    weights = T([1.0, 2.0, 4.0])
    sample = D.OneHotCategoricalStraightThrough(probs).rsample([10])
    assert set(sample.reshape([-1]).tolist()) == {0.0, 1.0}
    (got,) = tenon.grad((sample * weights).sum(), probs)
    (want,) = tenon.grad((10 * probs / probs.sum() * weights).sum(), probs)
    close(got, want.numpy())


# -- transforms ------------------------------------------------------------------------------------


def test_constraints_at_their_edges():
    for constraint, inside, outside in (
        (constraints.simplex, [[0.0, 1.0], [0.5, 0.5]], [[-0.5, 1.5], [0.5, 0.4], [0.0, 0.0]]),
        (constraints.one_hot, [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.5, 0.5], [2.0, -1.0]]),
        (constraints.multinomial(2), [[0.0, 2.0]], [[-1.0, 3.0], [0.5, 1.5], [2.0, 1.0]]),
        (constraints.real_vector, [[0.0, 1.0]], [[0.0, NAN]]),
        (constraints.boolean, [0.0, 1.0], [0.5, 2.0, -1.0]),
        (constraints.integer_interval(1, 3), [1.0, 3.0], [0.0, 4.0, 1.5]),
        (constraints.positive_integer, [1.0], [0.0, 1.5]),
        (constraints.greater_than_eq(1.0), [1.0], [0.9]),
        (constraints.greater_than(1.0), [1.1], [1.0]),
        (constraints.interval(0.0, 2.0), [0.0, 2.0], [-0.1, 2.1]),
        (constraints.less_than(1.0), [0.9], [1.0]),
        (constraints.lower_cholesky,
         [[[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [-1.0, 0.0, 1.0]]],
         [[[1.0, 0.0, 0.5], [2.0, 3.0, 0.0], [0.0, 0.0, 1.0]],
          [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]]),
        (constraints.positive_definite, [[[2.0, 1.0], [1.0, 2.0]]],
         [[[2.0, 1.0], [0.5, 2.0]], [[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [0.0, -1.0]]]),
        (constraints.independent(constraints.positive, 1), [[1.0, 2.0]], [[1.0, 0.0], [-1.0, 0.0]]),
    ):  # fmt: skip
        assert constraint.check(T(inside)).tolist() == [True] * len(inside), constraint
        assert constraint.check(T(outside)).tolist() == [False] * len(outside), constraint
    assert constraints.independent(constraints.boolean, 2).event_dim == 2
    assert constraints.independent(constraints.simplex, 0).check(T([0.5, 0.5])).item()
    assert repr(constraints.interval(0.0, T([1.0, 2.0]))) == (
        "<Interval: numbers from 0 to the bounds of each>"
    )


def test_maps_to_shares():
    assert isinstance(D.biject_to(constraints.simplex), D.StickBreakingTransform)
    assert isinstance(D.transform_to(constraints.simplex), D.SoftmaxTransform)
    for of in (D.biject_to, D.transform_to):
        assert of(constraints.positive) == D.ExpTransform() == of(constraints.nonnegative)
        assert of(constraints.real) is D.identity_transform is of(constraints.real_vector)
        inner = of(constraints.independent(constraints.simplex, 1))
        assert type(inner.base) is type(of(constraints.simplex)) and inner.domain.event_dim == 2
    shares = D.transform_to(constraints.simplex)(T([[0.0, 1.0, 3.0]]))
    close(shares.sum(-1), [1.0])
    close(D.SoftmaxTransform().inv(shares) - D.SoftmaxTransform().inv(shares)[:, :1], [[0, 1, 3]])


def test_which_way_a_composed_map_goes():
    up, down, none = D.ExpTransform(), D.AffineTransform(1.0, -2.0), D.AbsTransform()
    assert D.ComposeTransform([up, down]).sign == -1 and D.ComposeTransform([down, down]).sign == 1
    assert D.AffineTransform(0.0, T([2.0, -1.0])).sign.tolist() == [1.0, -1.0]
    assert D.PowerTransform(-2.0).sign == -1 and D.PowerTransform(2.0).sign == 1
    for parts in ([none, up], [up, none], [none, none]):
        assert D.ComposeTransform(parts).sign is None
        mixed = D.TransformedDistribution(D.Normal(0.0, 1.0), parts)
        for name in ("cdf", "icdf"):
            with pytest.raises(NotImplementedError, match=f"TransformedDistribution has no {name}"):
                getattr(mixed, name)(tenon.tensor(0.5))
    falling = D.TransformedDistribution(D.Normal(T(0.0), T(1.0)), [down])
    close(falling.cdf(T([0.0, 2.0])), stats.norm(1, 2).cdf([0.0, 2.0]))
    close(falling.icdf(T([0.1, 0.6])), stats.norm(1, 2).ppf([0.1, 0.6]))


def test_events_of_maps():
    reshape = D.ReshapeTransform([2, 3], [6])
    assert (reshape.domain.event_dim, reshape.codomain.event_dim) == (2, 1)
    assert reshape.forward_shape([5, 2, 3]) == (5, 6) and reshape.inverse_shape([5, 6]) == (5, 2, 3)
    x = tenon.ones([4, 2, 3], dtype=tenon.float64)
    assert reshape(x).shape == (4, 6) and reshape.inv(reshape(x)).shape == (4, 2, 3)
    assert reshape.log_abs_det_jacobian(x, reshape(x)).tolist() == [0.0] * 4
    stick = D.StickBreakingTransform()
    assert stick.forward_shape([5, 2]) == (5, 3) and stick.inv.forward_shape([5, 3]) == (5, 2)
    for parts, before, after in (
        ([reshape], 2, 1),
        ([D.ExpTransform(), reshape], 2, 1),
        ([reshape, D.ExpTransform()], 2, 1),
        ([reshape.inv, reshape], 1, 1),
        ([D.ExpTransform()], 0, 0),
        ([], 0, 0),
    ):
        whole = D.ComposeTransform(parts)
        assert (whole.domain.event_dim, whole.codomain.event_dim) == (before, after)
    tenon.manual_seed(0)
    vectors = D.TransformedDistribution(D.Normal(T([[0.0] * 3] * 2), T(1.0)), [reshape])
    assert (vectors.batch_shape, vectors.event_shape) == ((), (6,))
    value = vectors.sample([4])
    close(vectors.log_prob(value), stats.norm.logpdf(value.numpy()).sum(-1))


# -- mixtures and divergences ----------------------------------------------------------------------


def test_mixtures_of_vectors():
    loc = T([[0.0, 1.0, 2.0], [5.0, 3.0, 1.0]])
    parts = D.Independent(D.Normal(loc, T(2.0)), 1)
    mixture = D.MixtureSameFamily(D.Categorical(T([0.25, 0.75])), parts)
    assert (mixture.batch_shape, mixture.event_shape) == ((), (3,))
    mean = 0.25 * loc[0] + 0.75 * loc[1]
    close(mixture.mean, mean.numpy())
    close(mixture.variance, (4 + 0.25 * 0.75 * (loc[0] - loc[1]) ** 2).numpy())
    x = T([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]])
    density = [stats.norm(each.numpy(), 2).pdf(x.numpy()).prod(-1) for each in loc]
    close(mixture.log_prob(x), np.log(0.25 * density[0] + 0.75 * density[1]))
    tenon.manual_seed(0)
    samples = mixture.sample([5000])
    assert samples.shape == (5000, 3)
    close(samples.mean(0), mean.numpy(), 0.15)
    wide = mixture.expand([2])
    assert wide.batch_shape == (2,) and wide.sample([7]).shape == (7, 2, 3)
    assert wide.log_prob(x).shape == (2,)
    numbers = D.MixtureSameFamily(D.Categorical(T([0.3, 0.7])), D.Normal(T([0.0, 5.0]), T(1.0)))
    want = 0.3 * stats.norm(0, 1).cdf(2.0) + 0.7 * stats.norm(5, 1).cdf(2.0)
    close(numbers.cdf(T(2.0)), want)


def test_divergences_of_unlike_pairs():
    p, q = D.Uniform(T(-1.0), T(3.0)), D.Normal(T(0.5), T(1.5))
    want = scipy.integrate.quad(
        lambda x: (math.log(0.25) - stats.norm(0.5, 1.5).logpdf(x)) / 4, -1, 3
    )
    close(D.kl_divergence(p, q), want[0], 1e-9)
    close(D.kl_divergence(p, D.Uniform(T(-2.0), T(3.0))), math.log(5 / 4))
    assert D.kl_divergence(D.Uniform(T(0.0), T(2.0)), D.Uniform(T(0.0), T(1.0))).item() == INF
    a, b = D.Gamma(T(2.0), T(3.0)), D.Exponential(T(0.7))
    close(D.kl_divergence(a, b), D.kl_divergence(a, D.Gamma(T(1.0), T(0.7))).numpy())
    three, five = D.Binomial(T(3.0), T(0.5)), D.Binomial(T(5.0), T(0.5))
    assert D.kl_divergence(five, three).item() == INF
    with pytest.raises(NotImplementedError, match="binomial distributions of equal total_count"):
        D.kl_divergence(three, five)
    with pytest.raises(ValueError, match="expected as many categories, got 2 and 3"):
        D.kl_divergence(D.Categorical(T([0.5, 0.5])), D.Categorical(T([0.2, 0.3, 0.5])))
    normal = D.Normal(T([[0.0, 1.0]]), T(1.0))
    with pytest.raises(NotImplementedError, match="equal reinterpreted_batch_ndims, got 1 and 2"):
        D.kl_divergence(D.Independent(normal, 1), D.Independent(normal, 2))
    folded = D.TransformedDistribution(D.Normal(0.0, 1.0), D.AbsTransform())
    with pytest.raises(NotImplementedError, match="expected transforms that are bijections"):
        D.kl_divergence(folded, folded)
