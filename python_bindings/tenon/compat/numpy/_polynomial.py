# SPDX-License-Identifier: Apache-2.0
"""NumPy's polynomials: vectors of coefficients, the highest power first."""

from __future__ import annotations

import builtins
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.numpy import _functions as base
from tenon.compat.numpy._convert import as_float, as_tensor, unified
from tenon.compat.numpy._padding import pad
from tenon.compat.numpy._shapes import trim_zeros
from tenon.compat.numpy._statistics import convolve

__all__ = "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots".split()


def polyval(p: Any, x: Any) -> Tensor:
    """The value at `x`, by Horner's rule."""
    coefficients, at = unified([as_tensor(p), as_tensor(x)])
    result = _core.operator("zeros_like")(at)
    for i in range(coefficients.shape[0]):
        result = result * at + coefficients[i]
    return result


def _aligned(a1: Any, a2: Any) -> tuple[Tensor, Tensor]:
    x, y = unified([base.ravel(a1), base.ravel(a2)])
    longest = builtins.max(x.shape[0], y.shape[0])
    return pad(x, (longest - x.shape[0], 0)), pad(y, (longest - y.shape[0], 0))


def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum."""
    x, y = _aligned(a1, a2)
    return x + y


def polysub(a1: Any, a2: Any) -> Tensor:
    """The difference."""
    x, y = _aligned(a1, a2)
    return x - y


def polymul(a1: Any, a2: Any) -> Tensor:
    """The product."""
    return convolve(base.ravel(a1), base.ravel(a2))


def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """Quotient and remainder."""
    # Sums beside 0.0 make whole numbers float64.
    rest, divisor = (base.ravel(each) for each in unified([as_float(u), as_float(v)]))
    rest = rest.clone()
    n, m = rest.shape[0], divisor.shape[0]
    quotient = base.zeros((builtins.max(n - m + 1, 1),), rest.dtype)
    for i in range(n - m + 1):
        factor = rest[i] / divisor[0]
        quotient[i] = factor
        rest[i : i + m] = rest[i : i + m] - factor * divisor
    while rest.shape[0] > 1 and bool(base.allclose(rest[0], 0.0, rtol=1e-14)):
        rest = rest[1:]
    return quotient, rest


def polyder(p: Any, m: builtins.int = 1) -> Tensor:
    """The derivative, `m` times."""
    x = as_tensor(p)
    if m < 0:
        raise ValueError(f"polyder(): expected m of at least 0, got {m}")
    for _ in range(m):
        x, powers = unified([x[:-1], base.flip(base.arange(1, builtins.max(x.shape[0], 1)))])
        x = x * powers
    return x


def polyint(p: Any, m: builtins.int = 1, k: Any = None) -> Tensor:
    """The antiderivative, `m` times, with the constants `k`."""
    x = as_float(p) if m else as_tensor(p)
    if m < 0:
        raise ValueError(f"polyint(): expected m of at least 0, got {m}")
    constants = base.ravel(0.0 if k is None else k)
    constants = base.tile(constants, m) if constants.shape[0] == 1 else constants
    if constants.shape[0] < m:
        raise ValueError(f"polyint(): expected {m} constants, got {constants.shape[0]}")
    for i in range(m):
        x, powers = unified([x, base.flip(base.arange(1, x.shape[0] + 1))])
        x = base.concatenate([x / powers, constants[i : i + 1]])
    return x


def polyfit(x: Any, y: Any, deg: builtins.int, w: Any = None) -> Tensor:
    """The coefficients of least squares."""
    at, values = (as_float(each) + 0.0 for each in (x, y))
    if at.ndim != 1 or values.ndim not in (1, 2) or at.shape[0] != values.shape[0]:
        raise TypeError(
            f"polyfit(): expected a vector x and as many rows y, got {tuple(at.shape)} and "
            f"{tuple(values.shape)}"
        )
    matrix = base.vander(at, deg + 1)
    if w is not None:
        weight = as_float(w)
        matrix = matrix * base.expand_dims(weight, -1)
        values = values * (base.expand_dims(weight, -1) if values.ndim > 1 else weight)
    scale = _core.operator("sqrt")((matrix * matrix).sum(0))
    columns = values if values.ndim > 1 else base.expand_dims(values, -1)
    solution = tenon.linalg.lstsq(matrix / scale, columns)[0] / base.expand_dims(scale, -1)
    return solution if values.ndim > 1 else solution[:, 0]


def roots(p: Any) -> Tensor:
    """Where the polynomial is zero: the eigenvalues of its companion matrix."""
    x = as_float(p)
    front = trim_zeros(x, "f")
    inner = trim_zeros(front, "b")
    zeros = front.shape[0] - inner.shape[0]
    n = inner.shape[0] - 1
    if n < 1:
        return base.zeros((builtins.max(zeros, 0),))
    companion = base.diag(base.ones((n - 1,)), -1)
    companion[0] = -inner[1:] / inner[0]
    found = tenon.linalg.eigvals(companion)
    if bool((_core.operator("imag")(found) == 0).all()):
        found = _core.operator("real")(found)
    return base.concatenate([found, base.zeros((zeros,)).to(dtype=found.dtype)]) if zeros else found


def poly(seq_of_zeros: Any) -> Tensor:
    """The coefficients of the polynomial with these roots, or of a matrix's characteristic one."""
    x = as_tensor(seq_of_zeros)
    x = x.reshape(1) if x.ndim == 0 else x
    x = tenon.linalg.eigvals(as_float(x)) if x.ndim == 2 else x
    x = as_float(x)
    result = base.ones((1,)).to(dtype=x.dtype)
    for i in range(x.shape[0]):
        result = convolve(result, base.stack([base.ones(()).to(dtype=x.dtype), -x[i]]))
    if tenon.is_complex(result):
        # Roots in conjugate pairs have a real product.
        values = sorted(x.tolist(), key=lambda z: (z.real, z.imag))
        pairs = sorted((z.conjugate() for z in values), key=lambda z: (z.real, z.imag))
        if builtins.all(
            abs(a - b) < 1e-12 * (1 + abs(a)) for a, b in zip(values, pairs, strict=True)
        ):
            result = _core.operator("real")(result)
    return result
