# SPDX-License-Identifier: Apache-2.0
"""Some eigenvalues of a large symmetric matrix by products with it alone (Knyazev, 2001)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor


def _expected(what: str, got: Any) -> ValueError:
    return ValueError(f"lobpcg(): expected {what}, got {got}")


def _orthonormal(basis: Tensor, image: Tensor) -> Tensor:
    """A basis, in coordinates of `basis` [..., m, n] whose products with the metric are `image`, that is orthonormal in it; directions of no
    length are zeros."""
    gram = basis.mT.conj() @ image
    gram = (gram + gram.mT.conj()) * 0.5
    values, vectors = _core.operator("eigh")(gram)
    least = values[..., -1:] * (tenon.finfo(values.dtype).eps * 8 * gram.shape[-1])
    seen = values > least
    root = tenon.where(seen, tenon.rsqrt(tenon.where(seen, values, 1.0)), 0.0)
    return vectors * root.unsqueeze(-2).to(vectors.dtype)


def _length(x: Tensor, axes: list[int]) -> Tensor:
    """The root of the sum of squares, real."""
    sums = (x.conj() * x).sum(axes)
    return tenon.sqrt(sums.real if sums.dtype.is_complex else sums)


def _applied(a: Tensor | Callable[[Tensor], Tensor] | None) -> Callable[[Tensor], Tensor]:
    if a is None:
        return lambda x: x
    return (lambda x: a @ x) if isinstance(a, Tensor) else a


def random_start(a: Tensor, n: int) -> Tensor:
    """Vectors [..., m, n] of the dtype of matrices `a` [..., m, m], whose numbers are real."""
    dtype = a.real.dtype if a.dtype.is_complex else a.dtype
    return tenon.randn([*a.shape[:-1], n], dtype=dtype, device=a.device).to(a.dtype)


def lobpcg(
    a: Tensor,
    k: int | None = None,
    b: Tensor | None = None,
    x: Tensor | None = None,
    *,
    preconditioner: Tensor | None = None,
    iterations: int | None = None,
    tolerance: float | None = None,
    largest: bool = True,
) -> tuple[Tensor, Tensor]:
    """The `k` largest eigenvalues [..., k] of the symmetric or Hermitian `a` [..., m, m], largest first, or the smallest, smallest first, and their
    vectors [..., m, k], of length 1 in the metric `b`, the positive definite matrix of a generalised problem.

    `a` may be sparse where it is one matrix. `x` [..., m, n], n of at least k, is where the search starts, random by default; `preconditioner` is an
    approximate inverse of `a`. It ends when the residuals `a @ v - value * b @ v` of k vectors are at most `tolerance` times (the size of a
    plus the value's times the size of b) of their length, the square root of the dtype's precision by default, or after that many `iterations`,
    1000 by default; -1 is no limit. m is at least 3 n. Gradients pass through the vectors' quotient: those of eigenvalues are exact when it has converged, those
    of vectors are not given.
    """
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise _expected("a square matrix", f"shape {tuple(a.shape)}")
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        raise TypeError(f"lobpcg(): expected a floating or complex matrix, got {a.dtype.name}")
    m = a.shape[-1]
    n = k if k is not None else 1
    if x is not None:
        if x.ndim != a.ndim or tuple(x.shape[:-1]) != tuple(a.shape[:-1]):
            raise _expected(f"x of shape {(*a.shape[:-1], 'n')}", tuple(x.shape))
        n = x.shape[-1]
    k = n if k is None else k
    if not 1 <= k <= n or 3 * n > m:
        raise _expected(
            f"k from 1 to n and at least 3 n rows of a, with n {n}", f"k {k} and {m} rows"
        )
    metric, start, inverse = (
        None if each is None else each.detach() for each in (b, x, preconditioner)
    )
    vectors = _search(a.detach(), metric, start, inverse, k, n, iterations, tolerance, largest)
    product = _applied(a)(vectors)
    values = (vectors.conj() * product).sum(-2)
    if b is not None:
        values = values / (vectors.conj() * (b @ vectors)).sum(-2)
    return (values.real if values.dtype.is_complex else values), vectors


def _search(
    a: Tensor,
    b: Tensor | None,
    start: Tensor | None,
    preconditioner: Tensor | None,
    k: int,
    n: int,
    iterations: int | None,
    tolerance: float | None,
    largest: bool,
) -> Tensor:
    multiply, metric, improve = _applied(a), _applied(b), _applied(preconditioner)
    tolerance = tenon.finfo(a.dtype).eps ** 0.5 if tolerance is None else tolerance
    if start is None:
        start = random_start(a, n)
    x = start @ _orthonormal(start, metric(start))
    if bool((_length(x, [-2]) == 0).any().item()):
        raise _expected(
            "n vectors to start from that are independent in the metric",
            "some that depend on others",
        )
    sizes = [_length(multiply(x), [-2, -1]), _length(metric(x), [-2, -1])]
    direction: Tensor | None = None
    limit = 1000 if iterations is None else iterations
    for _ in range(limit) if limit >= 0 else itertools.count():
        product, image = multiply(x), metric(x)
        values = (x.conj() * product).sum(-2)
        residual = product - image * values.unsqueeze(-2)
        length = _length(residual, [-2])
        scale = sizes[0].unsqueeze(-1) + values.abs() * sizes[1].unsqueeze(-1)
        held = length <= tolerance * scale * _length(x, [-2])
        if bool(held[..., :k].all().item()):
            break
        parts = [x, improve(residual)] + ([] if direction is None else [direction])
        basis = tenon.concat(_apart(parts, metric), axis=-1)
        basis = basis @ _orthonormal(basis, metric(basis))
        # Directions of no length have the worst value there is, so that none of them is chosen.
        small = basis.mT.conj() @ multiply(basis)
        small = (small + small.mT.conj()) * 0.5
        absent = _length(basis, [-2]) == 0
        worst = _length(small, [-2, -1]).unsqueeze(-1) * (-2.0 if largest else 2.0)
        fill = tenon.where(absent, worst - (1.0 if largest else -1.0), tenon.zeros_like(worst))
        small = small + tenon.diag_embed(fill).to(small.dtype)
        _, turned = _core.operator("eigh")(small)
        turned = tenon.flip(turned, [-1])[..., :n] if largest else turned[..., :n]
        following = basis @ turned
        # What is new beside the vectors before.
        direction = following - x @ (x.mT.conj() @ metric(following))
        x = following
    return x[..., :k]


def _apart(parts: list[Tensor], metric: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Vectors of length 1, those behind the first part without what the first one has of them."""
    x = parts[0]
    apart = [x]
    for each in parts[1:]:
        for _ in range(2):
            each = each - x @ (x.mT.conj() @ metric(each))
        length = _length(each, [-2]).unsqueeze(-2)
        apart.append(each / tenon.where(length > 0, length, 1.0).to(each.dtype))
    return apart


__all__ = ["lobpcg"]
