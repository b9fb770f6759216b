# SPDX-License-Identifier: Apache-2.0
"""Sums that stay exact where their terms are infinite, or large and nearly cancel."""

from __future__ import annotations

import math

import tenon
from tenon import Tensor

_LOG_SQRT_2PI = math.log(2 * math.pi) / 2
_LARGE = 16.0  # from here on the first terms of the series below have all digits of float64


def weighted(weight: Tensor, value: Tensor) -> Tensor:
    """weight * value, and 0 where the weight is 0 and the value infinite; so are both gradients
    there."""
    left_out = (weight == 0) & ~tenon.isfinite(value)
    return weight * tenon.where(left_out, 0.0, value)


def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """x log y, and 0 where x is 0. Where y is 0 as well, both gradients are 0 and not NaN."""
    return tenon.xlogy(x, tenon.where((x == 0) & (y == 0), 1.0, y))


def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    """x log(1 + y), and 0 where x is 0. Where y is -1 as well, both gradients are 0 and not NaN."""
    return tenon.xlog1py(x, tenon.where((x == 0) & (y == -1), 0.0, y))


def log1p_square(x: Tensor) -> Tensor:
    """log(1 + x ** 2), also where the square is infinite."""
    is_large = tenon.abs(x) > 1 / tenon.finfo(x.dtype).eps  # then the 1 is rounded away
    small, large = tenon.where(is_large, 0.0, x), tenon.where(is_large, x, 1.0)
    return tenon.where(is_large, 2 * tenon.log(tenon.abs(large)), tenon.log1p(small * small))


def _lgamma_rest(x: Tensor) -> Tensor:
    """lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) for large x (Stirling)."""
    s = 1 / (x * x)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / x


def _digamma_rest(x: Tensor) -> Tensor:
    """digamma(x) - log x for large x."""
    s = 1 / (x * x)
    return -0.5 / x - s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s / 132))))


def _large(x: Tensor) -> tuple[Tensor, Tensor]:
    """Where `x` is large, and `x` there; elsewhere a number for which the series are finite."""
    is_large = x >= _LARGE
    return is_large, tenon.where(is_large, x, _LARGE)


def lgamma_difference(x: Tensor, d: Tensor) -> Tensor:
    """lgamma(x + d) - lgamma(x) for positive x and d of at least 0."""
    is_large, large = _large(x)
    series = (
        (large + d - 0.5) * tenon.log1p(d / large)
        + d * tenon.log(large)
        - d
        + (_lgamma_rest(large + d) - _lgamma_rest(large))
    )
    return tenon.where(is_large, series, tenon.lgamma(x + d) - tenon.lgamma(x))


def digamma_difference(x: Tensor, d: Tensor) -> Tensor:
    """digamma(x + d) - digamma(x) for positive x and d of at least 0."""
    is_large, large = _large(x)
    series = tenon.log1p(d / large) + (_digamma_rest(large + d) - _digamma_rest(large))
    return tenon.where(is_large, series, tenon.digamma(x + d) - tenon.digamma(x))


def betaln(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function."""
    small = tenon.minimum(a, b)
    return tenon.lgamma(small) - lgamma_difference(tenon.maximum(a, b), small)


def lgamma_entropy(a: Tensor) -> Tensor:
    """lgamma(a) + a - a digamma(a), which grows as -log(a) / 2."""
    is_large, large = _large(a)
    series = _lgamma_rest(large) - large * _digamma_rest(large) - tenon.log(large) / 2
    plain = tenon.lgamma(a) + a - a * tenon.digamma(a)
    return tenon.where(is_large, series + _LOG_SQRT_2PI, plain)


def log_poisson(k: Tensor, rate: Tensor) -> Tensor:
    """k log(rate) - rate - lgamma(k + 1): the logarithm of the Poisson probability of `k`, which
    need not be whole. The three terms nearly cancel where `k` is large (Loader, Fast and accurate
    computation of binomial probabilities, 2000). Other densities of large parameters are
    differences of such."""
    is_large, large = _large(k)
    t = (rate - large) / large
    is_near = t > -1
    deviance = tenon.where(is_near, t, 0.0)
    deviance = deviance - tenon.log1p(deviance)
    series = -large * deviance - tenon.log(large) / 2 - _LOG_SQRT_2PI - _lgamma_rest(large)
    plain = xlogy(k, rate) - rate - tenon.lgamma(k + 1)
    return tenon.where(is_large & is_near, series, plain)
