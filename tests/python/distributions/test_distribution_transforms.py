# SPDX-License-Identifier: Apache-2.0
"""Transforms of tenon.distributions: inverses, and determinants against Jacobians."""

import math

import numpy as np
import pytest
import scipy.stats as stats
import tenon
from tenon import distributions as D
from tenon.distributions import constraints


def T(value):
    return tenon.tensor(value, dtype=tenon.float64)


NUMBERS = [
    D.AffineTransform(0.5, -2.0),
    D.AffineTransform(T(0.5), T(2.0)),
    D.ExpTransform(),
    D.PowerTransform(1.5),
    D.PowerTransform(-0.5),
    D.SigmoidTransform(),
    D.TanhTransform(),
    D.SoftplusTransform(),
    D.ExpTransform().inv,
    D.ComposeTransform([D.AffineTransform(0.1, 0.3), D.TanhTransform()]),
    D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)]).inv.inv,
]
VECTORS = [
    D.StickBreakingTransform(),
    D.IndependentTransform(D.ExpTransform(), 1),
    D.AffineTransform(T([0.0, 1.0, 2.0]), T([1.0, -2.0, 3.0]), event_dim=1),
    D.ReshapeTransform([3], [3, 1]),
    D.ComposeTransform([D.SigmoidTransform(), D.StickBreakingTransform()]),
    D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.StickBreakingTransform()]),
]


def jacobian(function, x):
    """Derivatives of a vector, one row for each result."""
    x = x.detach()
    x.requires_grad = True
    y = function(x).reshape([-1])
    rows = [tenon.grad(y[i], x, retain_graph=True)[0].reshape([-1]) for i in range(y.shape[0])]
    return tenon.stack(rows).numpy()


@pytest.mark.parametrize("transform", NUMBERS, ids=str)
def test_maps_of_numbers(transform):
    x = T([0.2, 0.9, 3.0])
    y = transform(x)
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-12)
    slopes = np.diag(jacobian(transform, x))
    np.testing.assert_allclose(
        transform.log_abs_det_jacobian(x, y).numpy(), np.log(np.abs(slopes)), rtol=1e-9
    )
    np.testing.assert_allclose(
        transform.inv.log_abs_det_jacobian(y, x).numpy(), -np.log(np.abs(slopes)), rtol=1e-9
    )
    sign = transform.sign
    sign = sign.item() if isinstance(sign, tenon.Tensor) else sign
    assert sign == np.sign(slopes[0])
    assert tenon.all(transform.codomain.check(y)).item()


@pytest.mark.parametrize("transform", VECTORS, ids=str)
def test_maps_of_vectors(transform):
    x = T([[0.2, -0.9, 3.0], [1.0, 0.5, -2.0]])
    y = transform(x)
    assert y.shape == transform.forward_shape(x.shape)
    assert transform.inverse_shape(y.shape) == x.shape
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-10)
    got = transform.log_abs_det_jacobian(x, y)
    assert got.shape == (2,)
    for row, value in zip(x, got.tolist()):
        # Shares that sum to one have as many dimensions as the vectors they are made of.
        matrix = jacobian(transform, row)[: x.shape[1]]
        np.testing.assert_allclose(value, np.linalg.slogdet(matrix)[1], rtol=1e-9)


def test_extreme_values():
    x = T([-800.0, 800.0])
    assert D.TanhTransform().log_abs_det_jacobian(x, tenon.tanh(x)).tolist() == pytest.approx(
        [2 * math.log(2) - 1600] * 2
    )
    assert tenon.all(tenon.isfinite(D.SigmoidTransform().log_abs_det_jacobian(x, x))).item()
    shares = D.StickBreakingTransform()(T([50.0, -50.0, 0.0]))
    assert abs(shares.sum().item() - 1) < 1e-12


def test_maps_that_are_no_bijections():
    assert D.AbsTransform()(T([-2.0])).tolist() == [2.0]
    np.testing.assert_allclose(D.SoftmaxTransform()(T([1.0, 2.0])).sum().item(), 1.0)
    for transform in (D.AbsTransform(), D.SoftmaxTransform()):
        assert not transform.bijective
        with pytest.raises(NotImplementedError, match="it is no bijection"):
            transform.log_abs_det_jacobian(T([1.0]), T([1.0]))


def test_equality_and_repr():
    assert D.AffineTransform(0.5, 2.0) == D.AffineTransform(0.5, 2.0)
    assert D.AffineTransform(0.5, T(2.0)) == D.AffineTransform(0.5, T(2.0))
    assert D.AffineTransform(0.5, 2.0) != D.AffineTransform(0.5, 3.0)
    assert (
        D.ExpTransform().inv == D.ExpTransform().inv
        and D.ExpTransform().inv.inv == D.ExpTransform()
    )
    assert str(D.ComposeTransform([D.ExpTransform()])) == "ComposeTransform([ExpTransform()])"


def test_transformed_distributions():
    base = D.Normal(T(0.5), T(0.8))
    log_normal = D.TransformedDistribution(base, [D.AffineTransform(0.0, -1.0), D.ExpTransform()])
    oracle = stats.lognorm(0.8, scale=math.exp(-0.5))
    x = np.array([0.2, 1.0, 4.0])
    np.testing.assert_allclose(log_normal.log_prob(T(x)).numpy(), oracle.logpdf(x))
    np.testing.assert_allclose(log_normal.cdf(T(x)).numpy(), oracle.cdf(x))
    np.testing.assert_allclose(
        log_normal.icdf(T([0.1, 0.9])).numpy(), oracle.ppf([0.1, 0.9]), rtol=1e-7
    )
    tenon.manual_seed(0)
    assert stats.kstest(log_normal.rsample([4000]).numpy(), oracle.cdf).pvalue > 1e-3


def test_maps_of_vectors_make_events_of_the_batch():
    shares = D.TransformedDistribution(
        D.Normal(tenon.zeros([4, 2]), 1.0), D.StickBreakingTransform()
    )
    assert (shares.batch_shape, shares.event_shape) == ((4,), (3,))
    samples = shares.sample([6])
    assert samples.shape == (6, 4, 3) and shares.log_prob(samples).shape == (6, 4)
    moved = D.TransformedDistribution(
        D.MultivariateNormal(tenon.zeros([3]), tenon.eye(3)), D.AffineTransform(1.0, 2.0)
    )
    assert moved.log_prob(tenon.ones([5, 3])).shape == (5,)
    want = 3 * stats.norm(1, 2).logpdf(1)
    np.testing.assert_allclose(moved.log_prob(tenon.ones([3])).item(), want, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="TransformedDistribution has no cdf"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.AbsTransform()).cdf(tenon.tensor(1.0))


def test_divergences_survive_bijections():
    p, q = D.Normal(0.0, 1.0), D.Normal(1.0, 1.0)
    first, second = (D.TransformedDistribution(d, D.SigmoidTransform()) for d in (p, q))
    assert D.kl_divergence(first, second).item() == 0.5
    other = D.TransformedDistribution(q, D.TanhTransform())
    with pytest.raises(NotImplementedError, match="expected distributions with equal transforms"):
        D.kl_divergence(first, other)


@pytest.mark.parametrize(
    "constraint, shape",
    [
        (constraints.real, [3]),
        (constraints.positive, [3]),
        (constraints.greater_than(2.0), [3]),
        (constraints.greater_than_eq(-2.0), [3]),
        (constraints.less_than(2.0), [3]),
        (constraints.unit_interval, [3]),
        (constraints.interval(-1.0, 5.0), [3]),
        (constraints.simplex, [3]),
        (constraints.lower_cholesky, [3, 3]),
        (constraints.independent(constraints.positive, 1), [2, 3]),
    ],
    ids=str,
)
def test_transforms_to_constraints(constraint, shape):
    tenon.manual_seed(0)
    x = tenon.normal(shape, dtype=tenon.float64)
    y = D.biject_to(constraint)(x)
    assert tenon.all(constraint.check(y)).item()
    back = D.biject_to(constraint).inv(y)
    if constraint is constraints.lower_cholesky:
        x = tenon.tril(x)
        rows, columns = np.tril_indices(3)
        derivatives = jacobian(D.LowerCholeskyTransform(), x)
        kept = derivatives[np.ix_(rows * 3 + columns, rows * 3 + columns)]
        got = D.LowerCholeskyTransform().log_abs_det_jacobian(x, y).item()
        np.testing.assert_allclose(got, np.linalg.slogdet(kept)[1])
    np.testing.assert_allclose(back.numpy(), x.numpy(), rtol=1e-9)
    assert tenon.all(constraint.check(D.transform_to(constraint)(x))).item()


def test_constraints_without_a_transform():
    with pytest.raises(NotImplementedError, match="no smooth map leads there"):
        D.biject_to(constraints.boolean)
    with pytest.raises(
        NotImplementedError, match="there is a transform, got numbers above 0, along"
    ):
        D.transform_to(constraints.stack([constraints.positive]))


@pytest.mark.parametrize(
    "constraint, inside, outside",
    [
        (constraints.real, 1.0, math.nan),
        (constraints.positive, 1.0, 0.0),
        (constraints.unit_interval, 1.0, 1.1),
        (constraints.nonnegative_integer, 2.0, 2.5),
        (constraints.less_than(3.0), 2.0, 3.0),
        (constraints.simplex, [0.5, 0.5], [0.5, 0.6]),
        (constraints.one_hot, [0.0, 1.0], [1.0, 1.0]),
        (constraints.multinomial(3), [1.0, 2.0], [1.0, 1.0]),
        (constraints.lower_cholesky, [[1.0, 0.0], [2.0, 3.0]], [[1.0, 1.0], [2.0, 3.0]]),
        (constraints.positive_definite, [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]),
        (constraints.independent(constraints.positive, 1), [1.0, 2.0], [1.0, -1.0]),
    ],
    ids=str,
)
def test_constraints(constraint, inside, outside):
    assert constraint.check(T(inside)).item() and not constraint.check(T(outside)).item()
