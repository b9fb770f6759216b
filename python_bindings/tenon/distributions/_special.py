# SPDX-License-Identifier: Apache-2.0
"""Special functions of distributions that are no operators, composed of operators."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.autograd import Function

_MAX_TERMS = 100_000  # of series; enough for arguments up to 1e8


def betaln(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function."""
    return tenon.lgamma(a) + tenon.lgamma(b) - tenon.lgamma(a + b)


def multigammaln(a: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions."""
    offsets = tenon.arange(p, device=a.device).to(a.dtype) / 2
    total = tenon.lgamma(a.unsqueeze(-1) - offsets).sum(axis=-1)
    return total + p * (p - 1) / 4 * math.log(math.pi)


class _Erfinv(Function):
    """Two steps of Halley's method from the approximation of Winitzki (2008), in float64."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        wide = x.to(tenon.float64)
        tail = tenon.log1p(-wide * wide)
        a = 0.147
        half = 2 / (math.pi * a) + tail / 2
        y = tenon.sign(wide) * tenon.sqrt(tenon.sqrt(half * half - tail / a) - half)
        for _ in range(3):
            # erfc keeps the digits that erf loses near 1.
            size = tenon.abs(y)
            error = tenon.where(
                size < 1, tenon.erf(size) - tenon.abs(wide), 1 - tenon.abs(wide) - tenon.erfc(size)
            )
            step = error / (2 / math.sqrt(math.pi) * tenon.exp(-size * size))
            y = tenon.sign(wide) * (size - step / (1 + size * step))
        ends = tenon.where(tenon.abs(wide) == 1, wide * math.inf, wide * math.nan)
        y = tenon.where(tenon.abs(wide) < 1, y, ends)
        y = y.to(x.dtype)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad * (math.sqrt(math.pi) / 2) * tenon.exp(y * y)


def erfinv(x: Tensor) -> Tensor:
    """The inverse of erf: infinite at -1 and 1, NaN beyond."""
    return _Erfinv.apply(x)


def gammainc(a: Tensor, x: Tensor) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x) for `a` > 0: the integral of
    t**(a - 1) exp(-t) from 0 to `x`, divided by gamma(a). Computed in float64 by its power series,
    all of whose terms are positive; the number of terms grows with the square root of `a`."""
    dtype = a.dtype
    a, x = a.to(tenon.float64), x.to(tenon.float64)
    # Beyond this limit P is 1 in float64.
    limited = tenon.clip(tenon.minimum(x, a + 12 * tenon.sqrt(a) + 60), 0.0, None)
    term = tenon.ones_like(limited + a)
    total = term
    for n in range(1, _MAX_TERMS):
        term = term * limited / (a + n)
        total = total + term
        if not bool(tenon.any(term > 1e-17 * total)):
            break
    scale = tenon.xlogy(a, limited) - limited - tenon.lgamma(a + 1)
    result = tenon.clip(tenon.exp(scale) * total, 0.0, 1.0)
    return tenon.where(x < 0, x * math.nan, result).to(dtype)


def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """The regularised incomplete beta function: the integral of t**(a - 1) (1 - t)**(b - 1) from 0 to
    `x`, divided by beta(a, b). Its continued fraction (Lentz, 1976) in float64."""
    dtype = x.dtype
    a, b, x = tenon.broadcast_tensors([each.to(tenon.float64) for each in (a, b, x)])
    # The fraction converges fast below the mean; beyond, I(a, b, x) = 1 - I(b, a, 1 - x).
    swap = x > (a + 1) / (a + b + 2)
    a, b = tenon.where(swap, b, a), tenon.where(swap, a, b)
    x = tenon.where(swap, 1 - x, x)
    tiny = 1e-300

    def nonzero(value: Tensor) -> Tensor:
        return tenon.where(tenon.abs(value) < tiny, tenon.full_like(value, tiny), value)

    c = tenon.ones_like(x)
    d = 1 / nonzero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MAX_TERMS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / nonzero(1 + numerator * d)
            c = nonzero(1 + numerator / c)
            fraction = fraction * c * d
        if not bool(tenon.any(tenon.abs(c * d - 1) > 1e-15)):
            break
    scale = tenon.exp(tenon.xlogy(a, x) + tenon.xlog1py(b, -x) - betaln(a, b))
    result = tenon.clip(scale * fraction / a, 0.0, 1.0)
    return tenon.where(swap, 1 - result, result).to(dtype)
