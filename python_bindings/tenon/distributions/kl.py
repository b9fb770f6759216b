# SPDX-License-Identifier: Apache-2.0
"""Kullback-Leibler divergences, registered for pairs of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import tenon
from tenon import Tensor

from ._stable import betaln, weighted, xlogy
from .categorical import Categorical, OneHotCategorical
from .composed import Independent, TransformedDistribution
from .continuous import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, sum_rightmost
from .gamma import Beta, Dirichlet, Exponential, Gamma, Weibull
from .location_scale import Cauchy, Gumbel, Laplace, Uniform
from .matrices import LowRankMultivariateNormal, Wishart, log_multigamma, multi_digamma
from .normal import HalfNormal, MultivariateNormal, Normal, squared_mahalanobis

_EULER = 0.5772156649015329
Rule = TypeVar("Rule", bound=Callable[..., Tensor])

_rules: dict[tuple[type, type], Callable[..., Tensor]] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Rule], Rule]:
    """Decorator: the function computes kl_divergence(p, q) of these classes and their
    subclasses."""

    def register(rule: Rule) -> Rule:
        _rules[type_p, type_q] = rule
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence KL(p || q) in nats, [*batch_shape]: by the rule registered for the classes
    nearest to those of `p` and `q`."""
    # Classes are tried from the own one to its bases, those of p first.
    for type_p in type(p).__mro__:
        for type_q in type(q).__mro__:
            rule = _rules.get((type_p, type_q))
            if rule is not None:
                return rule(p, q)
    raise NotImplementedError(
        f"kl_divergence: expected a pair of distributions with a rule, got {type(p).__name__} and "
        f"{type(q).__name__}; write one with register_kl, or estimate the divergence by the mean of "
        "p.log_prob(x) - q.log_prob(x) over samples x of p"
    )


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = tenon.square(p.scale / q.scale)
    offset = tenon.square((p.loc - q.loc) / q.scale)
    return (ratio + offset - 1 - tenon.log(ratio)) / 2


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    ratio = tenon.square(p.scale / q.scale)
    return (ratio - 1 - tenon.log(ratio)) / 2


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    n = p.event_shape[0]
    batch = tenon.broadcast_shapes(p.batch_shape, q.batch_shape)
    p_factor = tenon.expand(p.scale_tril, [*batch, n, n])
    q_factor = tenon.expand(q.scale_tril, [*batch, n, n])
    trace = tenon.square(tenon.triangular_solve(q_factor, p_factor, upper=False))
    trace = trace.sum(axis=[-2, -1])
    offset = squared_mahalanobis(q.scale_tril, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + (trace + offset - n) / 2


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Distribution, q: Distribution) -> Tensor:
    return _multivariate_normal(_whole(p), _whole(q))


def _whole(p: Distribution) -> MultivariateNormal:
    if isinstance(p, MultivariateNormal):
        return p
    return MultivariateNormal(p.mean, p.covariance_matrix, validate_args=False)  # type: ignore[attr-defined]


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Tensor:
    n = p.event_shape[0]
    batch = tenon.broadcast_shapes(p.batch_shape, q.batch_shape)
    p_factor = tenon.expand(p.scale_tril, [*batch, n, n])
    q_factor = tenon.expand(q.scale_tril, [*batch, n, n])
    trace = tenon.square(tenon.triangular_solve(q_factor, p_factor, upper=False))
    trace = trace.sum(axis=[-2, -1])
    return (
        q.df / 2 * (q._log_det(q.scale_tril) - p._log_det(p.scale_tril))
        + p.df / 2 * (trace - n)
        + log_multigamma(q.df / 2, n)
        - log_multigamma(p.df / 2, n)
        + (p.df - q.df) / 2 * multi_digamma(p.df / 2, n)
    )


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return p.mean * (p.logits - q.logits) - p._log_norm() + q._log_norm()


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    distance = tenon.abs(p.loc - q.loc)
    return -tenon.log(ratio) + ratio * tenon.exp(-distance / p.scale) + distance / q.scale - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # Chyzak and Nielsen (2019).
    distance = tenon.square(p.scale + q.scale) + tenon.square(p.loc - q.loc)
    return tenon.log(distance) - tenon.log(4 * p.scale * q.scale)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    offset = (p.loc - q.loc) / q.scale
    return (
        -tenon.log(ratio)
        + _EULER * (ratio - 1)
        + tenon.exp(-offset + tenon.lgamma(1 + ratio))
        - 1
        + offset
    )


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = (q.low <= p.low) & (p.high <= q.high)
    return tenon.where(inside, tenon.log((q.high - q.low) / (p.high - p.low)), math.inf)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    second_moment = p.variance + tenon.square(p.mean - q.loc)
    log_norm = tenon.log(q.scale) + math.log(2 * math.pi) / 2
    return log_norm + second_moment / (2 * tenon.square(q.scale)) - p.entropy()


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - tenon.log(ratio) - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * tenon.log(p.rate / q.rate)
        + tenon.lgamma(b)
        - tenon.lgamma(a)
        + (a - b) * tenon.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _gamma(Gamma(tenon.ones_like(p.rate), p.rate, validate_args=False), q)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return _gamma(p, Gamma(tenon.ones_like(q.rate), q.rate, validate_args=False))


@register_kl(Weibull, Weibull)
def _weibull(p: Weibull, q: Weibull) -> Tensor:
    # Bauckhage (2013).
    k, m = p.concentration, q.concentration
    log_ratio = tenon.log(p.scale / q.scale)
    return (
        tenon.log(k)
        - k * tenon.log(p.scale)
        - tenon.log(m)
        + m * tenon.log(q.scale)
        + (k - m) * (tenon.log(p.scale) - _EULER / k)
        + tenon.exp(m * log_ratio + tenon.lgamma(m / k + 1))
        - 1
    )


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    a1, b1, a2, b2 = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    return (
        betaln(a2, b2)
        - betaln(a1, b1)
        + (a1 - a2) * tenon.digamma(a1)
        + (b1 - b2) * tenon.digamma(b1)
        + (a2 - a1 + b2 - b1) * tenon.digamma(a1 + b1)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    expected = tenon.digamma(a) - tenon.digamma(a.sum(axis=-1, keepdim=True))
    return q._log_norm() - p._log_norm() + ((a - b) * expected).sum(axis=-1)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    return -p.entropy() - q._log_likelihood(*p._both())


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    each = -p._trial_entropy() - q._log_likelihood(*p._both())
    if bool(tenon.any(p.total_count < q.total_count)):
        raise NotImplementedError(
            "kl_divergence: expected binomial distributions of equal total_count; there is no closed "
            "form where that of p is the smaller"
        )
    return tenon.where(p.total_count == q.total_count, p.total_count * each, math.inf)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - q._log_likelihood(tenon.ones_like(p.mean), p.mean)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return xlogy(p.rate, p.rate) - xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    if isinstance(p, OneHotCategorical) != isinstance(q, OneHotCategorical):
        raise NotImplementedError(
            f"kl_divergence: expected two distributions of indices or two of vectors, got "
            f"{type(p).__name__} and {type(q).__name__}; indices and vectors are different values"
        )
    if p.num_events != q.num_events:
        raise ValueError(
            f"kl_divergence: expected as many categories, got {p.num_events} and {q.num_events}"
        )
    impossible = (q.probs == 0) & (p.probs > 0)
    terms = weighted(p.probs, p.logits - q.logits)
    return tenon.where(impossible, math.inf, terms).sum(axis=-1)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: expected Independent distributions of equal reinterpreted_batch_ndims, "
            f"got {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return sum_rightmost(kl_divergence(p.base, q.base), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence: expected distributions with equal transforms and event shapes"
        )
    if not p._transform.bijective:
        raise NotImplementedError(
            "kl_divergence: expected transforms that are bijections, which keep the divergence"
        )
    return kl_divergence(p.base, q.base)
