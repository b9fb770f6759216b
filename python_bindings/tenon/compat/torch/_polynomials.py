# SPDX-License-Identifier: Apache-2.0
"""Classical orthogonal polynomials: `input` broadcasts with the degree `n`, and the results are
floating. A negative degree gives 0. Each is computed by its recurrence of three terms (DLMF 18.9), in
as many steps as the largest degree has, so gradients of every order follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor

__all__ = """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w""".split()

Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]


def _arguments(name: str, input: Any, n: Any) -> tuple[Tensor, Tensor]:
    """`input` as floating numbers, and the degrees in int64."""
    if not isinstance(input, Tensor) and not isinstance(n, Tensor):
        raise TypeError(f"{name}(): expected a tensor for input or n, got two numbers")
    dtype = tenon.result_type(input, n)
    if dtype.is_complex:
        raise TypeError(f"{name}(): expected real numbers, got {dtype}")
    dtype = dtype if dtype.is_floating_point else tenon.get_default_dtype()
    device = (input if isinstance(input, Tensor) else n).device
    x = input if isinstance(input, Tensor) else tenon.full([], input, device=device)
    degree = n if isinstance(n, Tensor) else tenon.full([], int(n), device=device)
    return x.to(dtype), tenon.trunc(degree.detach()).to(tenon.int64) if (
        degree.dtype.is_floating_point
    ) else degree.to(tenon.int64)


def _polynomial(
    name: str, first: Callable[[Tensor], Tensor], step: Step, doc: str
) -> Callable[..., Tensor]:
    def function(input: Any, n: Any) -> Tensor:
        x, degree = _arguments(name, input, n)
        shape = list(tenon.broadcast_shapes(x.shape, degree.shape))
        before, current = tenon.ones_like(x), first(x)
        result = tenon.broadcast_to(tenon.zeros_like(x), shape)
        largest = int(tenon.max(degree).item()) if degree.numel() else -1
        if largest >= 0:
            result = tenon.where(degree == 0, before, result)
        for order in range(1, largest + 1):
            result = tenon.where(degree == order, current, result)
            before, current = current, step(order, x, current, before)
        return result

    function.__name__, function.__qualname__ = name, name
    function.__doc__ = f"{doc} `input` and `n` broadcast."
    return function


def _double(order: int, x: Tensor, current: Tensor, before: Tensor) -> Tensor:
    """P(n + 1) = 2 x P(n) - P(n - 1), which all of Chebyshev's kinds share."""
    return 2 * x * current - before


chebyshev_polynomial_t = _polynomial(
    "chebyshev_polynomial_t",
    lambda x: x * 1,
    _double,
    "Chebyshev's polynomial of the first kind, T_n(cos a) = cos(n a).",
)
chebyshev_polynomial_u = _polynomial(
    "chebyshev_polynomial_u",
    lambda x: 2 * x,
    _double,
    "Chebyshev's polynomial of the second kind, U_n(cos a) = sin((n + 1) a) / sin(a).",
)
chebyshev_polynomial_v = _polynomial(
    "chebyshev_polynomial_v",
    lambda x: 2 * x - 1,
    _double,
    "Chebyshev's polynomial of the third kind, V_n(cos a) = cos((n + 1/2) a) / cos(a / 2).",
)
chebyshev_polynomial_w = _polynomial(
    "chebyshev_polynomial_w",
    lambda x: 2 * x + 1,
    _double,
    "Chebyshev's polynomial of the fourth kind, W_n(cos a) = sin((n + 1/2) a) / sin(a / 2).",
)
hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h",
    lambda x: 2 * x,
    lambda order, x, current, before: 2 * (x * current - order * before),
    "The physicists' Hermite polynomial H_n.",
)
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he",
    lambda x: x * 1,
    lambda order, x, current, before: x * current - order * before,
    "The probabilists' Hermite polynomial He_n.",
)
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l",
    lambda x: 1 - x,
    lambda order, x, current, before: (
        ((2 * order + 1 - x) * current - order * before) / (order + 1)
    ),
    "Laguerre's polynomial L_n.",
)
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p",
    lambda x: x * 1,
    lambda order, x, current, before: (
        ((2 * order + 1) * x * current - order * before) / (order + 1)
    ),
    "Legendre's polynomial P_n.",
)


def _shifted(name: str, polynomial: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(input: Any, n: Any) -> Tensor:
        return polynomial(2 * input - 1, n)

    function.__name__, function.__qualname__ = name, name
    function.__doc__ = f"{polynomial.__name__} of `2 input - 1`, for numbers from 0 to 1."
    return function


shifted_chebyshev_polynomial_t = _shifted("shifted_chebyshev_polynomial_t", chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = _shifted("shifted_chebyshev_polynomial_u", chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = _shifted("shifted_chebyshev_polynomial_v", chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = _shifted("shifted_chebyshev_polynomial_w", chebyshev_polynomial_w)
