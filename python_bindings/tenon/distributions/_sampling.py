# SPDX-License-Identifier: Apache-2.0
"""Samples of a tensor's shape and dtype, for distributions; those of tenon.random are used where they fit."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon._tensor.samplers import log_standard_gamma_sample
from tenon.autograd import Function

_MAX_TERMS = 100_000


def uniform_like(x: Tensor) -> Tensor:
    return tenon.uniform(x.shape, dtype=x.dtype, device=x.device)


def _exponential(x: Tensor) -> Tensor:
    """In float32 at least: smaller floats have few numbers near 1, from which the large variates
    come."""
    dtype = x.dtype if x.dtype == tenon.float64 else tenon.float32
    return -tenon.log1p(-tenon.uniform(x.shape, dtype=dtype, device=x.device))


def exponential_like(x: Tensor) -> Tensor:
    """Numbers of the exponential distribution of rate 1; never infinite."""
    return _exponential(x).to(x.dtype)


def gumbel_like(x: Tensor) -> Tensor:
    """Numbers of the standard Gumbel distribution; never infinite."""
    wide = _exponential(x)
    return -tenon.log(tenon.clip(wide, tenon.finfo(wide.dtype).smallest_normal, None)).to(x.dtype)


def inside_unit(x: Tensor) -> Tensor:
    """Numbers that were rounded to 0 or 1 as the nearest ones between: a density may be infinite,
    or have no finite logarithm, at the ends."""
    info = tenon.finfo(x.dtype)
    return tenon.clip(x, info.smallest_normal, 1 - info.eps / 2)


def within_range(x: Tensor) -> Tensor:
    """Positive numbers that were rounded to 0 or infinity as the nearest ones between: the density
    at 0 may be infinite, and at infinity it is 0."""
    info = tenon.finfo(x.dtype)
    return tenon.clip(x, info.smallest_normal, info.max)


class _LogStandardGamma(Function):
    """Logarithms of gamma variates; the gradient is implicit (Figurnov et al., 2018)."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        value = log_standard_gamma_sample(concentration)
        ctx.save_for_backward(concentration, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        concentration, value = ctx.saved_tensors
        return grad * _log_gamma_derivative(concentration, value).to(grad.dtype)


def _log_gamma_derivative(a: Tensor, log_x: Tensor) -> Tensor:
    """How log x of a gamma variate x moves with the concentration `a` at a fixed probability:
    -(dP/da) / (x dP/dx) of the distribution function P(a, x), from the power series of P in float64.
    """
    a, log_x = a.to(tenon.float64), log_x.to(tenon.float64)
    x = tenon.exp(log_x)
    # The terms x**n gamma(a) / gamma(a + n + 1) (log x - digamma(a + n + 1)).
    term = 1 / a
    psi = tenon.digamma(a + 1)
    total = term * (log_x - psi)
    for n in range(1, _MAX_TERMS):
        term = term * x / (a + n)
        psi = psi + 1 / (a + n)
        change = term * (log_x - psi)
        total = total + change
        if not bool(tenon.any((tenon.abs(change) > 1e-16 * tenon.abs(total)) | (psi < log_x))):
            break
    return -total


def log_standard_gamma(concentration: Tensor) -> Tensor:
    """Logarithms of independent gamma variates of rate 1, differentiable in `concentration`."""
    return _LogStandardGamma.apply(concentration)
