# SPDX-License-Identifier: Apache-2.0
"""Distributions of numbers from 0 to 1 and of ratios that have closed forms beside Beta's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor

from . import constraints
from ._sampling import exponential_like, inside_unit, log_standard_gamma, within_range
from ._special import betainc
from ._stable import betaln, xlogy
from .distribution import Distribution, Number, broadcast_all

_EULER = 0.5772156649015329


class Kumaraswamy(Distribution):
    """Numbers from 0 to 1 like those of Beta, with P(x <= v) = 1 - (1 - v ** concentration1) **
    concentration0 (Kumaraswamy, 1980)."""

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

    def _moment(self, order: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return b * tenon.exp(betaln(1 + order / a, b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """NaN where a concentration is below 1 or both are 1: the density is largest at an end."""
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)
        share = tenon.where(inside, (a - 1) / (a * b - 1), math.nan)
        return tenon.pow(share, 1 / a)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - tenon.square(self._moment(1))

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like = tenon.expand(self.concentration1.detach(), self._extended(sample_shape))
        share = -tenon.expm1(-exponential_like(like) / self.concentration0)
        return inside_unit(tenon.pow(share, 1 / self.concentration1))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return tenon.log(a * b) + xlogy(a - 1, value) + xlogy(b - 1, self._above(value))

    def _above(self, value: Tensor) -> Tensor:
        """1 - value ** concentration1, also where that power rounds to 1."""
        return -tenon.expm1(self.concentration1 * tenon.log(value))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -tenon.expm1(self.concentration0 * tenon.log(self._above(value)))

    def icdf(self, value: Tensor) -> Tensor:
        share = -tenon.expm1(tenon.log1p(-value) / self.concentration0)
        return tenon.pow(share, 1 / self.concentration1)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = tenon.digamma(b + 1) + _EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - tenon.log(a * b)


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variates of `df1` and `df2` degrees of freedom, each divided by
    these."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(self, df1: Number, df2: Number, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """NaN where df2 is at most 2."""
        return tenon.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        first = tenon.clip(self.df1 - 2, 0.0, None) / self.df1
        return first * self.df2 / (self.df2 + 2)

    @property
    def variance(self) -> Tensor:
        """NaN where df2 is at most 4."""
        first, second = self.df1, self.df2
        numerator = 2 * tenon.square(second) * (first + second - 2)
        value = numerator / (first * tenon.square(second - 2) * (second - 4))
        return tenon.where(second > 4, value, math.nan)

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        shape = self._extended(sample_shape)
        first, second = tenon.expand(self.df1, shape), tenon.expand(self.df2, shape)
        log_ratio = log_standard_gamma(first / 2) - log_standard_gamma(second / 2)
        return within_range(tenon.exp(log_ratio + tenon.log(second / first)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        ratio = self.df1 / self.df2
        half = self.df1 / 2
        # log(1 + ratio * value), also where the product is infinite.
        logs = tenon.log(ratio) + tenon.log(tenon.where(value > 0, value, 1.0))
        is_large = logs > 60  # then the 1 is rounded away
        log_sum = tenon.log1p(ratio * tenon.where(is_large, 0.0, value))
        log_sum = tenon.where(is_large, logs, log_sum)
        return (
            half * tenon.log(ratio)
            + xlogy(half - 1, value)
            - (self.df1 + self.df2) / 2 * log_sum
            - betaln(half, self.df2 / 2)
        )

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        scaled = self.df1 * value
        total = scaled + self.df2
        return betainc(self.df1 / 2, self.df2 / 2, scaled / total, self.df2 / total)
