# SPDX-License-Identifier: Apache-2.0
"""Kullback-Leibler divergences of distributions of two different families: minus the entropy of p, and minus the mean
of the logarithm of q's density under p. Where p has values that q has not they are infinite."""

from __future__ import annotations

import functools
import math

import tenon
from tenon import Tensor

from ._stable import betaln, xlogy
from .continuous import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Poisson
from .distribution import Distribution
from .gamma import Beta, Exponential, Gamma, Pareto
from .kl import register_kl
from .location_scale import Gumbel, Laplace, Uniform
from .normal import Normal

_EULER = 0.5772156649015329
_LOG_SQRT_2PI = math.log(2 * math.pi) / 2


@functools.singledispatch
def _mean_log(p: Distribution) -> Tensor:
    """The mean of log(x)."""
    raise AssertionError(type(p).__name__)


@_mean_log.register
def _(p: Beta) -> Tensor:
    return tenon.digamma(p.concentration1) - tenon.digamma(p.concentration1 + p.concentration0)


@_mean_log.register
def _(p: Pareto) -> Tensor:
    return tenon.log(p.scale) + 1 / p.alpha


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    """Of numbers from `low` to `high`, which are not negative."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


def _within(p: Uniform, inside: Tensor) -> tuple[Tensor, Tensor]:
    """The bounds of p; 0.25 and 0.75 where p is not inside, so that neither the divergence, which is infinite, nor its
    gradients are NaN."""
    return tenon.where(inside, p.low, 0.25), tenon.where(inside, p.high, 0.75)


# -- to distributions of all real numbers


def _to_normal(p: Distribution, q: Normal) -> Tensor:
    second_moment = p.variance + tenon.square(p.mean - q.loc)
    log_norm = tenon.log(q.scale) + _LOG_SQRT_2PI
    return log_norm + second_moment / (2 * tenon.square(q.scale)) - p.entropy()


for _family in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto):
    register_kl(_family, Normal)(_to_normal)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    # The mean of |x - q.loc| is that of the folded normal distribution.
    offset = p.loc - q.loc
    share = offset / p.scale
    distance = p.scale * math.sqrt(2 / math.pi) * tenon.exp(-tenon.square(share) / 2)
    distance = distance + offset * tenon.erf(share * math.sqrt(0.5))
    return tenon.log(2 * q.scale) + distance / q.scale - p.entropy()


def _to_gumbel(p: Distribution, q: Gumbel, log_mean: Tensor) -> Tensor:
    """`log_mean`: the logarithm of the mean of exp(-(x - q.loc) / q.scale)."""
    return tenon.log(q.scale) + (p.mean - q.loc) / q.scale + tenon.exp(log_mean) - p.entropy()


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, (q.loc - p.loc) / q.scale + tenon.square(p.scale / q.scale) / 2)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, q.loc / q.scale - tenon.log1p(1 / (p.rate * q.scale)))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    log_mean = q.loc / q.scale - p.concentration * tenon.log1p(1 / (p.rate * q.scale))
    return _to_gumbel(p, q, log_mean)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    width = (p.high - p.low) / q.scale
    return _to_gumbel(p, q, (q.loc - p.low) / q.scale + tenon.log(-tenon.expm1(-width) / width))


# -- to distributions of positive numbers


def _to_exponential(p: Distribution, q: Exponential) -> Tensor:
    return q.rate * p.mean - tenon.log(q.rate) - p.entropy()


for _family in (Beta, ContinuousBernoulli, Pareto):
    register_kl(_family, Exponential)(_to_exponential)


def _log_density_of_gamma(q: Gamma, mean: Tensor, mean_log: Tensor) -> Tensor:
    """Its mean where x has the mean `mean` and log(x) has `mean_log`."""
    a = q.concentration
    return a * tenon.log(q.rate) - tenon.lgamma(a) + (a - 1) * mean_log - q.rate * mean


@register_kl(Beta, Gamma)
@register_kl(Pareto, Gamma)
def _to_gamma(p: Distribution, q: Gamma) -> Tensor:
    return -p.entropy() - _log_density_of_gamma(q, p.mean, _mean_log(p))


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    log_ratio = tenon.log(p.scale / q.scale)
    share = q.alpha / p.alpha
    return tenon.where(
        p.scale >= q.scale, q.alpha * log_ratio + share - tenon.log(share) - 1, math.inf
    )


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return tenon.where(p.low >= 0, _to_exponential(p, q), math.inf)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    inside = p.low >= 0
    mean_log = _mean_log_between(*_within(p, inside))
    return tenon.where(inside, -p.entropy() - _log_density_of_gamma(q, p.mean, mean_log), math.inf)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    inside = p.low >= q.scale
    mean_log = _mean_log_between(*_within(p, inside))
    log_density = tenon.log(q.alpha) + q.alpha * tenon.log(q.scale) - (q.alpha + 1) * mean_log
    return tenon.where(inside, -p.entropy() - log_density, math.inf)


# -- to distributions of a range


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Distribution, q: Uniform) -> Tensor:
    inside = (q.low <= 0) & (q.high >= 1)
    return tenon.where(inside, q.entropy() - p.entropy(), math.inf)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    inside = (p.low >= 0) & (p.high <= 1)
    low, high = _within(p, inside)
    a, b = q.concentration1, q.concentration0
    log_density = (a - 1) * _mean_log_between(low, high) - betaln(a, b)
    log_density = log_density + (b - 1) * _mean_log_between(1 - high, 1 - low)
    return tenon.where(inside, -p.entropy() - log_density, math.inf)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return q._log_norm() - q.logits * p.mean - p.entropy()


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    inside = (p.low >= 0) & (p.high <= 1)
    return tenon.where(inside, q._log_norm() - q.logits * p.mean - p.entropy(), math.inf)


# -- of counts


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - xlogy(p.mean, q.rate) - p.entropy()


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _poisson_bounded(p: Poisson, q: Bernoulli | Binomial) -> Tensor:
    # Of rate 0 the only count is 0, which q has.
    at_zero = q.log_prob(tenon.zeros_like(q.mean))
    return tenon.where(p.rate == 0, -at_zero, math.inf)


# -- where p has values that q has not, whatever the parameters are

_UNBOUNDED = (Gumbel, Laplace, Normal)
_POSITIVE = (Exponential, Gamma, Pareto)
_UNIT = (Beta, ContinuousBernoulli)


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    return tenon.full_like(p.mean + q.mean, math.inf)


for _p, _q in (
    *((p, q) for p in _UNBOUNDED for q in (Beta, ContinuousBernoulli, Uniform, *_POSITIVE)),
    *((p, q) for p in _POSITIVE for q in (Beta, ContinuousBernoulli, Uniform)),
    *((p, Pareto) for p in (Exponential, Gamma, *_UNIT)),
):
    register_kl(_p, _q)(_infinite)
