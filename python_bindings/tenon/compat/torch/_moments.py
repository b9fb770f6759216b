# SPDX-License-Identifier: Apache-2.0
"""PyTorch's moments, comparisons and logarithms of sums, which take complex numbers too, covariances
with weights, and integrals and slopes over given points."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.torch._functions import _axes

Axes = builtins.int | Sequence[builtins.int] | None

__all__ = """allclose cov cumulative_trapezoid isclose lerp
logaddexp logsumexp sigmoid signbit std std_mean var var_mean""".split()


def _correction(correction: float | None, unbiased: bool | None) -> float:
    if unbiased is not None and not isinstance(unbiased, bool):
        raise TypeError(f"expected unbiased True or False, got {unbiased!r}")
    if correction is not None:
        if unbiased is not None:
            raise TypeError(
                f"expected correction or unbiased, got both: {correction!r} and {unbiased!r}"
            )
        return correction
    return 0.0 if unbiased is False else 1.0


def var(
    input: Tensor,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The variance, by default of a sample: of n - 1 degrees of freedom. That of complex numbers is the
    sum of those of both parts."""
    if isinstance(dim, bool):  # var(input, unbiased)
        dim, unbiased = None, dim
    less, axes = _correction(correction, unbiased), _axes(dim)
    if input.dtype.is_complex:
        of_parts = [
            _operator("var")(_operator(part)(input), axes, less, keepdim)
            for part in ("real", "imag")
        ]
        return of_parts[0] + of_parts[1]
    return _operator("var")(input, axes, less, keepdim)


def std(
    input: Tensor,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The square root of var()."""
    if isinstance(dim, bool):  # std(input, unbiased)
        dim, unbiased = None, dim
    if input.dtype.is_complex:
        return _operator("sqrt")(var(input, dim, unbiased, keepdim, correction=correction))
    return _operator("std")(input, _axes(dim), _correction(correction, unbiased), keepdim)


def var_mean(
    input: Tensor,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """var() and mean()."""
    if isinstance(dim, bool):  # var_mean(input, unbiased)
        dim, unbiased = None, dim
    spread = var(input, dim, unbiased, keepdim, correction=correction)
    return spread, _operator("mean")(input, _axes(dim), keepdim)


def std_mean(
    input: Tensor,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """std() and mean()."""
    if isinstance(dim, bool):  # std_mean(input, unbiased)
        dim, unbiased = None, dim
    spread = std(input, dim, unbiased, keepdim, correction=correction)
    return spread, _operator("mean")(input, _axes(dim), keepdim)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), also of complex numbers."""
    if not input.dtype.is_complex:
        return _operator("sigmoid")(input)
    # exp() of numbers far to the left would overflow: there it is 1 - sigmoid(-x).
    left = _operator("real")(input) < 0
    decay = _operator("exp")(_operator("where")(left, input, -input))
    one = _operator("ones_like")(decay)
    return _operator("where")(left, decay, one) / (one + decay)


def logsumexp(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over `dim`, also of complex numbers."""
    axes = list(range(input.ndim)) if dim is None else _axes(dim)
    if not input.dtype.is_complex:
        return _operator("logsumexp")(input, axes, keepdim)
    if input.ndim == 0:
        return logsumexp(input.reshape(1), 0)
    largest = _operator("max")(_operator("real")(input.detach()), axes, True)
    # Infinities are no offset: inf - inf is NaN.
    largest = _operator("where")(tenon.isfinite(largest), largest, _operator("zeros_like")(largest))
    total = _operator("sum")(_operator("exp")(input - largest), axes, keepdim)
    kept = largest if keepdim else largest.reshape(list(total.shape))
    return _operator("log")(total) + kept


def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """log(exp(input) + exp(other)), also of complex numbers."""
    if not (input.dtype.is_complex or other.dtype.is_complex):
        return _operator("logaddexp")(input, other)
    x, y = _operator("broadcast_tensors")([input, other])
    ahead = _operator("real")(x) >= _operator("real")(y)
    high, low = _operator("where")(ahead, x, y), _operator("where")(ahead, y, x)
    return high + _operator("log1p")(_operator("exp")(low - high))


def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """input + weight (end - input), also of complex numbers."""
    if not input.dtype.is_complex:
        return _operator("lerp")(input, end, weight)
    return input + weight * (end - input)


def signbit(input: Tensor) -> Tensor:
    """Where a number is below 0 or is the negative zero."""
    return _operator("signbit")(input) if input.dtype.is_floating_point else input < 0


def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Where abs(input - other) <= atol + rtol * abs(other); infinities are close to themselves alone."""
    if not (input.dtype.is_complex or other.dtype.is_complex):
        return _operator("isclose")(input, other, rtol, atol, equal_nan)
    finite = tenon.isfinite(input) & tenon.isfinite(other)
    near = abs(input - other) <= atol + rtol * abs(other)
    result = _operator("equal")(input, other) | (finite & near)
    return result | (tenon.isnan(input) & tenon.isnan(other)) if equal_nan else result


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close."""
    return bool(_operator("all")(isclose(input, other, rtol, atol, equal_nan)))


def cov(
    input: Tensor,
    *,
    correction: builtins.int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariances of the rows, of which each column is an observation: it counts `fweights` times, whole
    numbers, and with the importance `aweights` (as numpy.cov). A single row gives a number."""
    if fweights is None and aweights is None:
        result = _operator("cov")(input, correction=correction)
        return result.reshape([]) if result.numel() == 1 else result
    rows = input.reshape([1, -1]) if input.ndim < 2 else input
    if not (rows.dtype.is_floating_point or rows.dtype.is_complex):
        rows = rows.to(dtype=_core.get_default_dtype())
    for name, each in (("fweights", fweights), ("aweights", aweights)):
        if each is not None and tuple(each.shape) != (rows.shape[1],) and each.ndim:
            raise ValueError(
                f"cov(): expected {name} of shape ({rows.shape[1]},), one for each column of input, got "
                f"{tuple(each.shape)}"
            )
    if fweights is not None and (fweights.dtype.is_floating_point or fweights.dtype.is_complex):
        raise TypeError(f"cov(): expected fweights of whole numbers, got {fweights.dtype}")
    weights = fweights if aweights is None else aweights
    if fweights is not None and aweights is not None:
        weights = fweights * aweights
    real = _operator("real")(rows).dtype if rows.dtype.is_complex else rows.dtype
    weights = weights.to(dtype=real).reshape([-1])  # type: ignore[union-attr]
    total = weights.sum()
    middle = (rows * weights).sum(1, True) / total
    if correction == 0:
        divisor = total
    elif aweights is None:
        divisor = total - correction
    else:
        divisor = total - correction * (weights * aweights.to(dtype=real)).sum() / total
    away = rows - middle
    other = (away * weights).T
    other = _operator("conj")(other) if rows.dtype.is_complex else other
    result = (away @ other) / _operator("clip")(divisor, 0, None)
    return result.reshape([]) if result.numel() == 1 else result


def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: builtins.int = -1
) -> Tensor:
    """Running integrals of `y` along `dim` by trapezoids, over the points `x` or points `dx` apart, 1 by default."""
    if x is not None and dx is not None:
        raise TypeError(f"cumulative_trapezoid(): expected x or dx, got both: dx={dx!r}")
    dx = 1.0 if dx is None else dx
    if x is None:
        if not isinstance(dx, Tensor):
            return _operator("cumulative_trapezoid")(y, dx=float(dx), axis=dim)
        return _operator("cumulative_trapezoid")(y, dx=1.0, axis=dim) * dx
    y = _operator("movedim")(y, dim, -1)
    x = x if x.ndim <= 1 else _operator("movedim")(x, dim, -1)
    if x.ndim == 0 or x.shape[-1] != y.shape[-1]:
        raise ValueError(
            f"cumulative_trapezoid(): expected x of length {y.shape[-1]} along dim, as y, got shape "
            f"{tuple(x.shape)}"
        )
    areas = (x[..., 1:] - x[..., :-1]) * (y[..., 1:] + y[..., :-1]) / 2
    return _operator("movedim")(_operator("cumsum")(areas, -1), -1, dim)
