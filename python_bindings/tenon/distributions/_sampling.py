# SPDX-License-Identifier: Apache-2.0
"""Samplers by rejection, for all elements of a tensor at once.

Every pass proposes a value for each element and keeps those of the elements that had none. All draw
from the device's generator, so that tenon.manual_seed fixes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor
from tenon.autograd import Function

_MAX_TERMS = 100_000


def uniform_like(x: Tensor) -> Tensor:
    return tenon.uniform(x.shape, dtype=x.dtype, device=x.device)


def exponential_like(x: Tensor) -> Tensor:
    """Numbers of the exponential distribution of rate 1; never infinite."""
    return -tenon.log1p(-uniform_like(x))


def gumbel_like(x: Tensor) -> Tensor:
    """Numbers of the standard Gumbel distribution; never infinite."""
    tiny = tenon.finfo(x.dtype).smallest_normal
    return -tenon.log(tenon.clip(exponential_like(x), tiny, None))


def _accept(
    like: Tensor, propose: Callable[[], tuple[Tensor, Tensor]], wanted: Tensor | None = None
) -> Tensor:
    """Values of `propose()`, which returns candidates and whether each is accepted, for the elements
    that are `wanted`; zero for others."""
    result = tenon.zeros_like(like)
    missing = tenon.ones_like(like, dtype="bool") if wanted is None else wanted
    while bool(tenon.any(missing)):
        candidate, accepted = propose()
        result = tenon.where(missing & accepted, candidate, result)
        missing = missing & ~accepted
    return result


class _LogStandardGamma(Function):
    """Logarithms of gamma variates; the gradient is implicit (Figurnov et al., 2018)."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        # Marsaglia and Tsang (2000). Below 1 they draw with concentration + 1 and multiply by
        # u ** (1 / concentration), which only its logarithm holds for small concentrations.
        is_small = concentration < 1
        d = tenon.where(is_small, concentration + 1, concentration) - 1 / 3
        c = 1 / tenon.sqrt(9 * d)

        def propose() -> tuple[Tensor, Tensor]:
            z = tenon.normal(d.shape, dtype=d.dtype, device=d.device)
            root = 1 + c * z
            log_cube = 3 * tenon.log(tenon.clip(root, 1e-30, None))
            log_u = -exponential_like(d)
            bound = z * z / 2 + d - d * tenon.exp(log_cube) + d * log_cube
            return log_cube, (root > 0) & (log_u < bound)

        value = tenon.log(d) + _accept(d, propose)
        boost = exponential_like(d) / concentration
        value = tenon.where(is_small, value - boost, value)
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


def poisson(rate: Tensor) -> Tensor:
    """Poisson variates, in the dtype of `rate`."""
    with tenon.no_grad():
        wide = rate.to(tenon.float64)
        is_large = wide >= 10
        count = _poisson_by_inversion(tenon.where(is_large, tenon.zeros_like(wide), wide))
        if bool(tenon.any(is_large)):
            large = tenon.where(is_large, wide, tenon.full_like(wide, 10.0))
            count = tenon.where(is_large, _poisson_by_rejection(large), count)
        return count.to(rate.dtype)


def _poisson_by_inversion(rate: Tensor) -> Tensor:
    """The first count whose cumulative probability exceeds a uniform number; for rates below 10."""
    u = uniform_like(rate)
    probability = below = tenon.exp(-rate)
    count = tenon.zeros_like(rate)
    for k in range(1, 100):  # beyond lies less than float64 resolves
        missing = u >= below
        if not bool(tenon.any(missing)):
            break
        count = tenon.where(missing, count + 1, count)
        probability = probability * rate / k
        below = below + probability
    return count


def _poisson_by_rejection(rate: Tensor) -> Tensor:
    """Transformed rejection (PTRS; Hörmann, 1993), for rates of at least 10."""
    b = 0.931 + 2.53 * tenon.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)

    def propose() -> tuple[Tensor, Tensor]:
        u = uniform_like(rate) - 0.5
        v = tenon.clip(uniform_like(rate), 1e-30, None)
        us = tenon.clip(0.5 - tenon.abs(u), 1e-30, None)
        k = tenon.floor((2 * a / us + b) * u + rate + 0.43)
        quick = (us >= 0.07) & (v <= squeeze)
        possible = (k >= 0) & ~((us < 0.013) & (v > us))
        log_ratio = tenon.log(v * inverse_alpha / (a / (us * us) + b))
        log_probability = k * tenon.log(rate) - rate - tenon.lgamma(k + 1)
        return k, quick | (possible & (log_ratio <= log_probability))

    return _accept(rate, propose)


def binomial(total_count: Tensor, probs: Tensor) -> Tensor:
    """Binomial variates, in the dtype of `probs`."""
    with tenon.no_grad():
        n, p = total_count.to(tenon.float64), probs.to(tenon.float64)
        flip = p > 0.5
        p = tenon.where(flip, 1 - p, p)
        is_large = n * p >= 10
        count = _binomial_by_waiting(tenon.where(is_large, tenon.zeros_like(n), n), p)
        if bool(tenon.any(is_large)):
            large_n = tenon.where(is_large, n, tenon.full_like(n, 40.0))
            large_p = tenon.where(is_large, p, tenon.full_like(p, 0.5))
            count = tenon.where(is_large, _binomial_by_rejection(large_n, large_p), count)
        return tenon.where(flip, n - count, count).to(probs.dtype)


def _binomial_by_waiting(n: Tensor, p: Tensor) -> Tensor:
    """Counts successes by the geometric waiting times between them; for few expected successes."""
    log_q = tenon.log1p(-p)
    used, count = tenon.zeros_like(n), tenon.zeros_like(n)
    while True:
        wait = tenon.floor(-exponential_like(used) / log_q) + 1
        used = tenon.where(log_q == 0, n + 1, used + wait)  # with p of 0 there is no success
        success = used <= n
        if not bool(tenon.any(success)):
            return count
        count = tenon.where(success, count + 1, count)


def _binomial_by_rejection(n: Tensor, p: Tensor) -> Tensor:
    """Transformed rejection (BTRS; Hörmann, 1993), for n p of at least 10 and p of at most 1/2."""
    q = 1 - p
    stddev = tenon.sqrt(n * p * q)
    b = 1.15 + 2.53 * stddev
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * stddev
    log_odds = tenon.log(p / q)
    m = tenon.floor((n + 1) * p)

    def log_factorials(k: Tensor) -> Tensor:
        return tenon.lgamma(k + 1) + tenon.lgamma(n - k + 1)

    def propose() -> tuple[Tensor, Tensor]:
        u = uniform_like(p) - 0.5
        v = tenon.clip(uniform_like(p), 1e-30, None)
        us = tenon.clip(0.5 - tenon.abs(u), 1e-30, None)
        k = tenon.floor((2 * a / us + b) * u + c)
        quick = (us >= 0.07) & (v <= v_r)
        inside = (k >= 0) & (k <= n)
        k = tenon.minimum(tenon.clip(k, 0.0, None), n)
        log_ratio = tenon.log(v * alpha / (a / (us * us) + b))
        bound = log_factorials(m) - log_factorials(k) + (k - m) * log_odds
        return k, inside & (quick | (log_ratio <= bound))

    return _accept(p, propose)
