# SPDX-License-Identifier: Apache-2.0
"""Special functions of distributions that are no operators, composed of operators."""

from __future__ import annotations

import tenon
from tenon import Tensor

from ._stable import betaln

_MAX_TERMS = 100_000  # of the fraction


def betainc(a: Tensor, b: Tensor, x: Tensor, rest: Tensor | None = None) -> Tensor:
    """The regularised incomplete beta function: the integral of t**(a - 1) (1 - t)**(b - 1) from 0
    to `x`, divided by beta(a, b). Its continued fraction (Lentz, 1976) in float64. `rest` is 1 - x,
    where that is known with more digits."""
    dtype = x.dtype
    given = [a, b, x, 1 - x.to(tenon.float64) if rest is None else rest]
    a, b, x, rest = tenon.broadcast_tensors([each.to(tenon.float64) for each in given])
    # The fraction converges fast below the mean; beyond, I(a, b, x) = 1 - I(b, a, 1 - x).
    swap = x > (a + 1) / (a + b + 2)
    a, b = tenon.where(swap, b, a), tenon.where(swap, a, b)
    x, rest = tenon.where(swap, rest, x), tenon.where(swap, x, rest)
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
    scale = tenon.exp(tenon.xlogy(a, x) + tenon.xlogy(b, rest) - betaln(a, b))
    result = tenon.clip(scale * fraction / a, 0.0, 1.0)
    return tenon.where(swap, 1 - result, result).to(dtype)
