# SPDX-License-Identifier: Apache-2.0
"""Distributions of positive numbers and of shares, made of exponential and gamma variates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor
from tenon.nn import functional as F

from . import constraints
from ._sampling import exponential_like, inside_unit, log_standard_gamma, within_range
from ._special import betainc
from ._stable import betaln, lgamma_entropy, log_poisson, xlog1py, xlogy
from .distribution import Distribution, Number, broadcast_all

_EULER = 0.5772156649015329
_MANY = 64.0  # a concentration, from which on the terms of a logarithm of a density nearly cancel


class Exponential(Distribution):
    """Waiting times at a constant `rate`."""

    arg_constraints = {"rate": constraints.positive}
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Number, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return tenon.zeros_like(self.rate)

    @property
    def variance(self) -> Tensor:
        return 1 / tenon.square(self.rate)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.rate.detach(), self._extended(sample_shape))
        return exponential_like(like) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.where(value >= 0, tenon.log(self.rate) - self.rate * value, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -tenon.expm1(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -tenon.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - tenon.log(self.rate)


class Gamma(Distribution):
    """Density in proportion to x ** (concentration - 1) exp(-rate x).

    The gradient of rsample() with respect to the concentration is implicit, and costs a series
    whose length grows with the square root of the concentration.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(
        self, concentration: Number, rate: Number, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return tenon.clip(self.concentration - 1, 0.0, None) / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / tenon.square(self.rate)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        concentration = tenon.expand(self.concentration, self._extended(sample_shape))
        return within_range(tenon.exp(log_standard_gamma(concentration) - tenon.log(self.rate)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, scaled = self.concentration, self.rate * value
        few = tenon.xlogy(a, self.rate) + xlogy(a - 1, value) - scaled - tenon.lgamma(a)
        is_many = (a >= _MANY) & (scaled > 0)
        x, y = tenon.where(is_many, value, 1.0), tenon.where(is_many, scaled, 1.0)
        return tenon.where(is_many, log_poisson(a, y) + tenon.log(a) - tenon.log(x), few)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return lgamma_entropy(a) + tenon.digamma(a) - tenon.log(self.rate)


class Chi2(Gamma):
    """The sum of the squares of `df` standard normal variates."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Number, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast_all(df)
        super().__init__(self.df / 2, 0.5, validate_args)


class InverseGamma(Distribution):
    """1 / x for x of Gamma(concentration, rate)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    _support = constraints.positive
    has_rsample = True

    def __init__(
        self, concentration: Number, rate: Number, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """Infinite where the concentration is at most 1."""
        a = self.concentration
        return tenon.where(a > 1, self.rate / tenon.clip(a - 1, 1e-30, None), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """Infinite where the concentration is at most 2."""
        a = self.concentration
        below = tenon.square(a - 1) * tenon.clip(a - 2, 1e-30, None)
        return tenon.where(a > 2, tenon.square(self.rate) / below, math.inf)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        concentration = tenon.expand(self.concentration, self._extended(sample_shape))
        return within_range(tenon.exp(tenon.log(self.rate) - log_standard_gamma(concentration)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration, self.rate
        few = a * tenon.log(b) - (a + 1) * tenon.log(value) - b / value - tenon.lgamma(a)
        many = log_poisson(a, b / value) + tenon.log(a) - tenon.log(value)
        return tenon.where(a >= _MANY, many, few)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.gammaincc(self.concentration, self.rate / value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return lgamma_entropy(a) - tenon.digamma(a) + tenon.log(self.rate)


class Beta(Distribution):
    """Density in proportion to x ** (concentration1 - 1) (1 - x) ** (concentration0 - 1)."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    _support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Number, concentration0: Number, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """NaN where no concentration is above 1: the density is largest at both ends."""
        above = tenon.clip(self.concentration1 - 1, 0.0, None)
        return above / (above + tenon.clip(self.concentration0 - 1, 0.0, None))

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a * b / (total * total * (total + 1))

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        shape = self._extended(sample_shape)
        first = log_standard_gamma(tenon.expand(self.concentration1, shape))
        second = log_standard_gamma(tenon.expand(self.concentration0, shape))
        return inside_unit(tenon.sigmoid(first - second))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        few = xlogy(a - 1, value) + xlog1py(b - 1, -value) - betaln(a, b)
        total = a + b
        is_many = (tenon.minimum(a, b) >= _MANY) & (value > 0) & (value < 1)
        x = tenon.where(is_many, value, 0.5)
        many = log_poisson(a, total * x) + log_poisson(b, total * (1 - x))
        many = many - log_poisson(total, total) + tenon.log(a / total) + tenon.log(b)
        return tenon.where(is_many, many - tenon.log(x) - tenon.log1p(-x), few)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return betainc(self.concentration1, self.concentration0, value)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        logs = tenon.digamma(a) + tenon.digamma(b) - 2 * tenon.digamma(total)
        return lgamma_entropy(a) + lgamma_entropy(b) - lgamma_entropy(total) + logs


class Dirichlet(Distribution):
    """Vectors of shares; density in proportion to the product of x ** (concentration - 1)."""

    arg_constraints = {"concentration": constraints.Independent(constraints.positive, 1)}
    _support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError(
                "Dirichlet: expected a concentration of one axis or more, got a number"
            )
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(axis=-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """NaN where no concentration is above 1: the density is largest at several corners."""
        above = tenon.clip(self.concentration - 1, 0.0, None)
        return above / above.sum(axis=-1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(axis=-1, keepdim=True)
        return (
            self.concentration * (total - self.concentration) / (tenon.square(total) * (total + 1))
        )

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        concentration = tenon.expand(self.concentration, self._extended(sample_shape))
        return inside_unit(F.softmax(log_standard_gamma(concentration), -1))

    def _log_norm(self) -> Tensor:
        a = self.concentration
        return tenon.lgamma(a).sum(axis=-1) - tenon.lgamma(a.sum(axis=-1))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        few = xlogy(a - 1, value).sum(axis=-1) - self._log_norm()
        total = a.sum(axis=-1, keepdim=True)
        is_many = (total >= _MANY) & tenon.all(value > 0, -1, keepdim=True)
        x = tenon.where(is_many, value, 1.0)
        each = log_poisson(a, total * x) + tenon.log(a) - tenon.log(x)
        whole = log_poisson(total, total) + tenon.log(total)
        many = each.sum(axis=-1) - whole.squeeze(-1)
        return tenon.where(is_many.squeeze(-1), many, few)

    def entropy(self) -> Tensor:
        a = self.concentration
        total = a.sum(axis=-1)
        count = a.shape[-1]
        each = lgamma_entropy(a) + tenon.digamma(a)
        return each.sum(axis=-1) - lgamma_entropy(total) - count * tenon.digamma(total)


class Weibull(Distribution):
    """`scale * e ** (1 / concentration)` with e of the exponential distribution of rate 1."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(
        self, scale: Number, concentration: Number, validate_args: bool | None = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, (), validate_args)

    def _moment(self, order: int) -> Tensor:
        return tenon.pow(self.scale, order) * tenon.exp(
            tenon.lgamma(1 + order / self.concentration)
        )

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        share = tenon.clip((self.concentration - 1) / self.concentration, 0.0, None)
        return self.scale * tenon.pow(share, 1 / self.concentration)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - tenon.square(self._moment(1))

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.scale.detach(), self._extended(sample_shape))
        tiny = tenon.finfo(like.dtype).smallest_normal
        log_wait = tenon.log(tenon.clip(exponential_like(like), tiny, None))
        return within_range(self.scale * tenon.exp(log_wait / self.concentration))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k = self.concentration
        ratio = value / self.scale
        inside = tenon.log(k / self.scale) + xlogy(k - 1, ratio) - tenon.pow(ratio, k)
        return tenon.where(value >= 0, inside, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -tenon.expm1(-tenon.pow(value / self.scale, self.concentration))

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * tenon.pow(-tenon.log1p(-value), 1 / self.concentration)

    def entropy(self) -> Tensor:
        k = self.concentration
        return _EULER * (1 - 1 / k) + tenon.log(self.scale / k) + 1


class Pareto(Distribution):
    """`scale * exp(e / alpha)` with e of the exponential distribution of rate 1."""

    arg_constraints = {"scale": constraints.positive, "alpha": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Number, alpha: Number, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.GreaterThanEq(self.scale)

    @property
    def mean(self) -> Tensor:
        """Infinite where alpha is at most 1."""
        a = self.alpha
        return tenon.where(a > 1, a * self.scale / tenon.clip(a - 1, 1e-30, None), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        """Infinite where alpha is at most 2."""
        a = self.alpha
        below = tenon.square(a - 1) * tenon.clip(a - 2, 1e-30, None)
        return tenon.where(a > 2, tenon.square(self.scale) * a / below, math.inf)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.scale.detach(), self._extended(sample_shape))
        return within_range(self.scale * tenon.exp(exponential_like(like) / self.alpha))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.alpha
        inside = tenon.log(a) + a * tenon.log(self.scale) - (a + 1) * tenon.log(value)
        return tenon.where(value >= self.scale, inside, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - tenon.pow(self.scale / value, self.alpha)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * tenon.exp(-tenon.log1p(-value) / self.alpha)

    def entropy(self) -> Tensor:
        return tenon.log(self.scale / self.alpha) + 1 + 1 / self.alpha
