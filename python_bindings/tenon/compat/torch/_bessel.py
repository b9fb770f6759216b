# SPDX-License-Identifier: Apache-2.0
"""Bessel functions of orders 0 and 1, element by element, with gradients of every order.

They are computed in float64: by their power series up to 2, by Miller's backward recurrence up to 25
(DLMF 3.6), by Hankel's expansion beyond (DLMF 10.17), and the modified functions K by the trapezoidal
rule on their integral (DLMF 10.32.9), which converges geometrically.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.autograd import Function

__all__ = """bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1
scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0""".split()

Elementwise = Callable[[Any], Tensor]

EULER = 0.5772156649015329
SMALL, LARGE = 2.0, 25.0  # where the power series end, and where Hankel's expansion starts
TERMS = 18  # of a power series: the last one is below 1e-30 at SMALL
ORDERS = 80  # where the recurrence starts: J of this order is below 1e-29 at LARGE


def _harmonic(k: int) -> float:
    return math.fsum(1 / j for j in range(1, k + 1))


def _power_series(y: Tensor, coefficients: list[float]) -> Tensor:
    result = tenon.zeros_like(y)
    for coefficient in reversed(coefficients):
        result = result * y + coefficient
    return result


def _series(x: Tensor, order: int, sign: int) -> tuple[Tensor, Tensor]:
    """J (`sign` -1) or I (`sign` 1) of the order, and the sum in Y or K beside the logarithm, up to
    SMALL (DLMF 10.2.2, 10.8.1, 10.25.2, 10.31.1)."""
    y = x * x * (0.25 * sign)
    factorials = [math.factorial(k) * math.factorial(k + order) for k in range(TERMS)]
    first = _power_series(y, [1 / each for each in factorials])
    # The sum of two digamma functions at whole numbers, without Euler's constant.
    digammas = [_harmonic(k) + _harmonic(k + order) for k in range(TERMS)]
    beside = _power_series(y, [d / f for d, f in zip(digammas, factorials, strict=True)])
    return (first * x * 0.5, beside * x * 0.5) if order else (first, beside)


def _recurrence(x: Tensor, wants_y: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """J0, J1 and the sums of J in Neumann's series of Y0 and Y1 (DLMF 10.8.3), between SMALL and LARGE."""
    above, current = tenon.zeros_like(x), tenon.ones_like(x)
    total, of_y0, of_y1 = (tenon.zeros_like(x) for _ in range(3))
    factor = 2 / x
    # `current` is J of this order up to a factor, which the sum J0 + 2 J2 + 2 J4 + ... = 1 gives.
    for order in range(ORDERS, 0, -1):
        k = order // 2
        sign = -1.0 if k % 2 else 1.0
        if order % 2 == 0:
            total = total + 2 * current
            of_y0 = of_y0 + current * (sign / k) if wants_y else of_y0
        elif k and wants_y:
            of_y1 = of_y1 + current * (sign * order / (k * (k + 1)))
        above, current = current, factor * order * current - above
    scale = 1 / (total + current)
    return current * scale, above * scale, of_y0 * scale, of_y1 * scale


def _hankel(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """J and Y from LARGE on."""
    even, odd = tenon.zeros_like(x), tenon.zeros_like(x)
    inverse = 1 / x
    coefficient, power = 1.0, tenon.ones_like(x)
    for k in range(26):
        sign = -1.0 if k // 2 % 2 else 1.0
        if k % 2:
            odd = odd + power * (sign * coefficient)
        else:
            even = even + power * (sign * coefficient)
        coefficient *= (4 * order * order - (2 * k + 1) ** 2) / (8 * (k + 1))
        power = power * inverse
    root = tenon.sqrt(inverse * (1 / math.pi))
    # Both of cos and sin of x - pi / 4, times the root of 2.
    cos, sin = tenon.cos(x) + tenon.sin(x), tenon.sin(x) - tenon.cos(x)
    if order:  # a quarter of a turn further
        cos, sin = sin, -cos
    first, second = root * (even * cos - odd * sin), root * (even * sin + odd * cos)
    ends = tenon.isinf(x)  # where the angle is unknown, and the amplitude 0
    nothing = tenon.zeros_like(x)
    return tenon.where(ends, nothing, first), tenon.where(ends, nothing, second)


def _joined(x: Tensor, small: Tensor, middle: Tensor, large: Tensor) -> Tensor:
    return tenon.where(x <= SMALL, small, tenon.where(x < LARGE, middle, large))


def _first_kind(x: Tensor, order: int) -> Tensor:
    size = tenon.abs(x)
    small = _series(tenon.clip(size, 0, SMALL), order, -1)[0]
    middle = _recurrence(tenon.clip(size, SMALL, LARGE), False)[order]
    large = _hankel(tenon.clip(size, LARGE, None), order)[0]
    result = _joined(size, small, middle, large)
    return tenon.where(x < 0, -result, result) if order else result


def _of_positive(x: Tensor, result: Tensor, at_zero: float) -> Tensor:
    """`result`, with the limit at 0, and NaN below."""
    result = tenon.where(x == 0, tenon.full_like(x, at_zero), result)
    return tenon.where(x < 0, tenon.full_like(x, math.nan), result)


def _second_kind(x: Tensor, order: int) -> Tensor:
    low = tenon.clip(x, 1e-300, SMALL)
    first, beside = _series(low, order, -1)
    logarithm = tenon.log(low * 0.5) + EULER
    small = (logarithm * first * 2 - beside) * (1 / math.pi)
    if order:
        small = small - 2 / (math.pi * low)
    inner = tenon.clip(x, SMALL, LARGE)
    j0, j1, of_y0, of_y1 = _recurrence(inner, True)
    logarithm = tenon.log(inner * 0.5) + EULER
    if order:
        middle = ((logarithm - 1) * j1 - j0 / inner - of_y1) * (2 / math.pi)
    else:
        middle = (logarithm * j0 - 2 * of_y0) * (2 / math.pi)
    large = _hankel(tenon.clip(x, LARGE, None), order)[1]
    return _of_positive(x, _joined(x, small, middle, large), -math.inf)


def _modified(x: Tensor, order: int, scaled: bool) -> Tensor:
    """K, times exp(x) if `scaled`."""
    low = tenon.clip(x, 1e-300, SMALL)
    first, beside = _series(low, order, 1)
    logarithm = tenon.log(low * 0.5) + EULER
    small = logarithm * first - beside * 0.5
    small = small + 1 / low if order else -small
    high = tenon.clip(x, SMALL, None)
    finite = tenon.clip(high, None, 1e300)
    step = 0.35 / tenon.sqrt(finite)
    total = tenon.full_like(x, 0.5)
    # exp(-x (cosh t - 1)) is below 1e-17 after 30 steps, whatever `x` is.
    for i in range(1, 31):
        t = step * i
        half = tenon.sinh(t * 0.5)  # 2 half^2 is cosh(t) - 1, without the cancellation
        term = tenon.exp(finite * (half * half) * -2)
        total = total + (term * tenon.cosh(t) if order else term)
    large = tenon.where(tenon.isinf(x), tenon.zeros_like(x), total * step)
    if scaled:
        small = small * tenon.exp(low)
    else:
        large = large * tenon.exp(-high)
    return _of_positive(x, tenon.where(x <= SMALL, small, large), math.inf)


def _divided(y: Tensor, x: Tensor, at_zero: float) -> Tensor:
    """y / x, and a limit at 0, through which gradients stay finite."""
    zero = x == 0
    quotient = y / tenon.where(zero, tenon.ones_like(x), x)
    return tenon.where(zero, tenon.full_like(x, at_zero), quotient)


def _function(
    name: str,
    value: Callable[[Tensor], Tensor],
    slope: Callable[[Tensor, Tensor], Tensor],
    doc: str,
) -> Elementwise:
    """An elementwise function by its values in float64, and its slope by argument and value."""

    class Computed(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return value(x.to(tenon.float64)).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad * slope(x, Computed.apply(x))

    def function(input: Tensor) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): expected a tensor, got {type(input).__name__}")
        if input.dtype.is_complex:
            raise TypeError(f"{name}(): expected real numbers, got {input.dtype}")
        if not input.dtype.is_floating_point:
            input = input.to(tenon.get_default_dtype())
        return Computed.apply(input)

    Computed.__name__ = function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} Whole numbers are taken in the default floating dtype."
    return function


bessel_j0: Elementwise = _function(
    "bessel_j0",
    lambda x: _first_kind(x, 0),
    lambda x, y: -bessel_j1(x),
    "The Bessel function of the first kind of order 0.",
)
bessel_j1: Elementwise = _function(
    "bessel_j1",
    lambda x: _first_kind(x, 1),
    lambda x, y: bessel_j0(x) - _divided(y, x, 0.5),
    "The Bessel function of the first kind of order 1.",
)
bessel_y0: Elementwise = _function(
    "bessel_y0",
    lambda x: _second_kind(x, 0),
    lambda x, y: -bessel_y1(x),
    "The Bessel function of the second kind of order 0; NaN of negative numbers.",
)
bessel_y1: Elementwise = _function(
    "bessel_y1",
    lambda x: _second_kind(x, 1),
    lambda x, y: bessel_y0(x) - y / x,
    "The Bessel function of the second kind of order 1; NaN of negative numbers.",
)
modified_bessel_k0: Elementwise = _function(
    "modified_bessel_k0",
    lambda x: _modified(x, 0, False),
    lambda x, y: -modified_bessel_k1(x),
    "The modified Bessel function of the second kind of order 0; NaN of negative numbers.",
)
modified_bessel_k1: Elementwise = _function(
    "modified_bessel_k1",
    lambda x: _modified(x, 1, False),
    lambda x, y: -modified_bessel_k0(x) - y / x,
    "The modified Bessel function of the second kind of order 1; NaN of negative numbers.",
)
scaled_modified_bessel_k0: Elementwise = _function(
    "scaled_modified_bessel_k0",
    lambda x: _modified(x, 0, True),
    lambda x, y: y - scaled_modified_bessel_k1(x),
    "exp(x) times modified_bessel_k0, without underflow.",
)
scaled_modified_bessel_k1: Elementwise = _function(
    "scaled_modified_bessel_k1",
    lambda x: _modified(x, 1, True),
    lambda x, y: y - scaled_modified_bessel_k0(x) - y / x,
    "exp(x) times modified_bessel_k1, without underflow.",
)


def _spherical(x: Tensor) -> Tensor:
    quotient = _divided(tenon.sin(x), x, 1.0)
    return tenon.where(tenon.isinf(x), tenon.zeros_like(x), quotient)


spherical_bessel_j0: Elementwise = _function(
    "spherical_bessel_j0",
    _spherical,
    lambda x, y: _divided(tenon.cos(x) - y, x, 0.0),
    "The spherical Bessel function of the first kind of order 0, sin(x) / x.",
)
