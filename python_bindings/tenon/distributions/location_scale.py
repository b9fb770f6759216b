# SPDX-License-Identifier: Apache-2.0
"""Continuous distributions that a location and a scale describe."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor

from . import constraints
from ._sampling import exponential_like, gumbel_like, log_standard_gamma
from ._special import betainc
from ._stable import betaln, digamma_difference, log1p_square
from .constraints import Constraint
from .distribution import Distribution, Number, broadcast_all

_EULER = 0.5772156649015329


class Uniform(Distribution):
    """Numbers from `low` to below `high`."""

    arg_constraints = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Number, high: Number, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validates:
            width = self.high - self.low
            self._check("parameter high - low", constraints.positive, width)
            self._check("parameter high - low", constraints.LessThan(math.inf), width)

    @property
    def support(self) -> Constraint:
        return constraints.Interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        return tenon.square(self.high - self.low) / 12

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        share = tenon.uniform(
            self._extended(sample_shape), dtype=self.low.dtype, device=self.low.device
        )
        value = self.low + share * (self.high - self.low)
        # Rounding must not lift a sample to `high`; what is taken off is no function of the bounds.
        last = tenon.nextafter(self.high.detach(), self.low.detach())
        excess = tenon.where(value >= self.high, value.detach() - last, 0.0)
        return value - excess

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = (value >= self.low) & (value < self.high)
        return tenon.where(inside, -tenon.log(self.high - self.low), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.clip((value - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return tenon.log(self.high - self.low)


class _LocationScale(Distribution):
    """Real numbers; `loc` moves them and `scale` stretches them."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    _support = constraints.real
    has_rsample = True

    def __init__(self, loc: Number, scale: Number, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def _standard(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (value - self.loc) / self.scale

    @property
    def mode(self) -> Tensor:
        return self.loc


class Laplace(_LocationScale):
    """Density in proportion to exp(-|x - loc| / scale)."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * tenon.square(self.scale)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.loc.detach(), self._extended(sample_shape))
        sign = 2 * (tenon.uniform_like(like) < 0.5).to(like.dtype) - 1
        return self.loc + self.scale * (sign * exponential_like(like))

    def log_prob(self, value: Tensor) -> Tensor:
        return -tenon.abs(self._standard(value)) - tenon.log(2 * self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        tail = tenon.exp(-tenon.abs(z)) / 2
        return tenon.where(z < 0, tail, 1 - tail)

    def icdf(self, value: Tensor) -> Tensor:
        centred = value - 0.5
        return self.loc - self.scale * tenon.sign(centred) * tenon.log1p(-2 * tenon.abs(centred))

    def entropy(self) -> Tensor:
        return 1 + tenon.log(2 * self.scale)


class Cauchy(_LocationScale):
    """The ratio of two normal variates; mean and variance do not exist and are NaN."""

    @property
    def mean(self) -> Tensor:
        return tenon.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return tenon.full_like(self.loc, math.nan)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        share = tenon.uniform(
            self._extended(sample_shape), dtype=self.loc.dtype, device=self.loc.device
        )
        return self.loc + self.scale * tenon.tan(math.pi * (share - 0.5))

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -math.log(math.pi) - tenon.log(self.scale) - log1p_square(z)

    def cdf(self, value: Tensor) -> Tensor:
        return tenon.atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tenon.tan(math.pi * (value - 0.5))

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + tenon.log(self.scale)


class HalfCauchy(Distribution):
    """The absolute value of a Cauchy variate of location 0."""

    arg_constraints = {"scale": constraints.positive}
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Number, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, (), validate_args)
        self._whole = Cauchy(tenon.zeros_like(self.scale), self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return tenon.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return tenon.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return tenon.full_like(self.scale, math.inf)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        return tenon.abs(self._whole.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.where(value >= 0, self._whole.log_prob(value) + math.log(2.0), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 2 * self._whole.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self._whole.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self._whole.entropy() - math.log(2.0)


class Gumbel(_LocationScale):
    """The distribution of maxima: P(x <= v) = exp(-exp(-(v - loc) / scale))."""

    @property
    def mean(self) -> Tensor:
        return self.loc + _EULER * self.scale

    @property
    def variance(self) -> Tensor:
        return tenon.square(self.scale) * (math.pi**2 / 6)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.loc.detach(), self._extended(sample_shape))
        return self.loc + self.scale * gumbel_like(like)

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -z - tenon.exp(-z) - tenon.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        return tenon.exp(-tenon.exp(-self._standard(value)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * tenon.log(-tenon.log(value))

    def entropy(self) -> Tensor:
        return tenon.log(self.scale) + (1 + _EULER)


class Logistic(_LocationScale):
    """P(x <= v) = sigmoid((v - loc) / scale)."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return tenon.square(self.scale) * (math.pi**2 / 3)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.loc.detach(), self._extended(sample_shape))
        return self.loc + self.scale * (gumbel_like(like) - gumbel_like(like))

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -tenon.softplus(z) - tenon.softplus(-z) - tenon.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        return tenon.sigmoid(self._standard(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (tenon.log(value) - tenon.log1p(-value))

    def entropy(self) -> Tensor:
        return tenon.log(self.scale) + 2


class StudentT(Distribution):
    """`loc + scale * t` with `t` of Student's distribution of `df` degrees of freedom."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    _support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Number,
        loc: Number = 0.0,
        scale: Number = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """NaN where df is at most 1."""
        return tenon.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinite where df is from 1 to 2, NaN where it is at most 1."""
        finite = tenon.square(self.scale) * self.df / tenon.clip(self.df - 2, 1e-30, None)
        finite = tenon.where(self.df > 2, finite, math.inf)
        return tenon.where(self.df > 1, finite, math.nan)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        df = tenon.expand(self.df, self._extended(sample_shape))
        z = tenon.normal(df.shape, dtype=df.dtype, device=df.device)
        # A chi-squared variate is 2 g with g of concentration df / 2.
        log_ratio = tenon.log(df / 2) - log_standard_gamma(df / 2)
        largest = tenon.finfo(df.dtype).max
        return tenon.clip(self.loc + self.scale * (z * tenon.exp(log_ratio / 2)), -largest, largest)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        norm = (
            tenon.log(self.scale)
            + tenon.log(self.df) / 2
            + betaln(self.df / 2, tenon.full_like(self.df, 0.5))
        )
        return -(self.df + 1) / 2 * log1p_square(z / tenon.sqrt(self.df)) - norm

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        df = self.df + tenon.zeros_like(z)
        half = tenon.full_like(df, 0.5)
        total = df + z * z
        tail = betainc(df / 2, half, df / total, z * z / total) / 2
        return tenon.where(z < 0, tail, 1 - tail)

    def entropy(self) -> Tensor:
        half = (self.df + 1) / 2
        return (
            tenon.log(self.scale)
            + half * digamma_difference(self.df / 2, tenon.full_like(self.df, 0.5))
            + tenon.log(self.df) / 2
            + betaln(self.df / 2, tenon.full_like(self.df, 0.5))
        )
