# SPDX-License-Identifier: Apache-2.0
"""Airy's function Ai, element by element, with gradients of every order.

It is computed in float64: by its power series from -2 to 2 (DLMF 9.4), by a modified Bessel function
above (DLMF 9.6.2), by Bessel functions of fractional order from Miller's recurrence below (DLMF 9.6.6),
and by its asymptotic expansion far below (DLMF 9.7.9).
"""

from __future__ import annotations

import math

import tenon
from tenon._core import Tensor
from tenon.compat.torch._bessel import LARGE, ORDERS, SMALL, Elementwise, _function

__all__ = ["airy_ai"]

AT_ZERO, SLOPE_AT_ZERO = 0.355028053887817239, -0.258819403792806798


def _series(x: Tensor, slope: bool) -> Tensor:
    """The two solutions of y'' = x y, from their values at 0, or their slopes."""
    cube = x * x * x
    result = tenon.zeros_like(x)
    for start, factor in ((0, AT_ZERO), (1, SLOPE_AT_ZERO)):
        coefficient, power = factor, tenon.ones_like(x)
        for k in range(20):
            degree = 3 * k + start
            if not slope:
                result = result + power * coefficient * (x if start else 1)
            elif degree:
                lowered = power if start else power * x * x
                result = result + lowered * (coefficient * degree)
            coefficient /= (degree + 2) * (degree + 3)
            # A slope of the first solution starts with the second power, which is already there.
            power = power * cube if start or not slope or k else power
    return result


def _modified(argument: Tensor, order: float) -> Tensor:
    """exp(argument) K of a fractional order, by the trapezoidal rule (DLMF 10.32.9)."""
    step = 0.35 / tenon.sqrt(argument)
    total = tenon.full_like(argument, 0.5)
    for i in range(1, 31):
        t = step * i
        half = tenon.sinh(t * 0.5)
        total = total + tenon.exp(argument * (half * half) * -2) * tenon.cosh(t * order)
    return total * step


def _recurrence(z: Tensor, order: float) -> tuple[Tensor, Tensor]:
    """J of a fractional order and of one more; the factor follows from DLMF 10.23.15."""
    above, current = tenon.zeros_like(z), tenon.ones_like(z)
    total, factor = tenon.zeros_like(z), 2 / z
    for n in range(ORDERS, -1, -1):
        if n % 2 == 0:
            k = n // 2
            weight = math.exp(math.lgamma(order + k) - math.lgamma(k + 1)) * (order + n)
            total = total + current * weight
        if n:
            above, current = current, factor * (order + n) * current - above
    scale = tenon.pow(z * 0.5, order) / total
    return current * scale, above * scale


def _oscillating(z: Tensor, y: Tensor, slope: bool) -> Tensor:
    """Ai(-y) or its slope, by J of the orders 1/3 and -1/3, or 2/3 and -2/3, at z."""
    third, third_above = _recurrence(z, 1 / 3)
    two, two_above = _recurrence(z, 2 / 3)
    if slope:
        return (two - (third * (2 / 3) / z - third_above)) * y * (1 / 3)
    return (third + two * (4 / 3) / z - two_above) * tenon.sqrt(y) * (1 / 3)


def _far(z: Tensor, y: Tensor, slope: bool) -> Tensor:
    even, odd = tenon.zeros_like(z), tenon.zeros_like(z)
    coefficient, power = 1.0, tenon.ones_like(z)
    for k in range(24):
        if k:
            coefficient *= (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1))
            power = power / z
        term = power * (coefficient * (-1.0 if k // 2 % 2 else 1.0))
        term = term * ((6 * k + 1) / (1 - 6 * k)) if slope else term
        even, odd = (even, odd + term) if k % 2 else (even + term, odd)
    # The root of 2 times cos and sin of z - pi / 4.
    cos, sin = tenon.cos(z) + tenon.sin(z), tenon.sin(z) - tenon.cos(z)
    wave = sin * even - cos * odd if slope else cos * even + sin * odd
    amplitude = tenon.pow(y, 0.25 if slope else -0.25) * (1 / math.sqrt(2 * math.pi))
    return wave * amplitude


def _argument(y: Tensor) -> Tensor:
    return y * tenon.sqrt(y) * (2 / 3)


def _values(x: Tensor, slope: bool) -> Tensor:
    near = _series(tenon.clip(x, -SMALL, SMALL), slope)
    right = tenon.clip(x, SMALL, 1e3)  # beyond, the result underflows
    z = _argument(right)
    decay = tenon.exp(-z) * (1 / math.pi)
    if slope:
        above = _modified(z, 2 / 3) * decay * right * (-1 / math.sqrt(3))
    else:
        above = _modified(z, 1 / 3) * decay * tenon.sqrt(right * (1 / 3))
    left = tenon.clip(-x, SMALL, None)
    border = (LARGE * 1.5) ** (2 / 3)
    inner, outer = tenon.clip(left, None, border), tenon.clip(left, border, None)
    below = tenon.where(
        left < border,
        _oscillating(_argument(inner), inner, slope),
        _far(_argument(outer), outer, slope),
    )
    result = tenon.where(x > SMALL, above, tenon.where(x < -SMALL, below, near))
    ends = tenon.where(x == -math.inf, tenon.zeros_like(x), result)
    return ends if not slope else result


airy_slope: Elementwise = _function(
    "airy_slope",
    lambda x: _values(x, True),
    lambda x, y: x * airy_ai(x),
    "The derivative of airy_ai.",
)
airy_ai: Elementwise = _function(
    "airy_ai",
    lambda x: _values(x, False),
    lambda x, y: airy_slope(x),
    "Airy's function Ai, the solution of y'' = x y that vanishes at infinity.",
)
