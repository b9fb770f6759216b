# SPDX-License-Identifier: Apache-2.0
"""torch.masked: reductions and normalisations of the elements that a mask names.

`mask` is boolean, broadcasts to `input`, and is True where an element counts; without one, all count.
A reduction of no elements is its neutral element: 0 of a sum, 1 of a product, infinity of a minimum,
and NaN of a mean. Elements that do not count have the gradient 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.torch import _arrays, _signatures

Axes = int | Sequence[int] | None

__all__ = """amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm
normalize prod softmax softmin std sum var""".split()


def _mask_of(name: str, input: Tensor, mask: Tensor | None) -> Tensor:
    """The mask in the shape of `input`."""
    if mask is None:
        return tenon.ones_like(input, dtype=tenon.bool)
    if mask.dtype != tenon.bool:
        raise TypeError(f"masked.{name}(): expected a mask of dtype bool, got {mask.dtype}")
    shape = tenon.broadcast_shapes(input.shape, mask.shape)
    if tuple(shape) != tuple(input.shape):
        raise ValueError(
            f"masked.{name}(): expected a mask that broadcasts to the shape {tuple(input.shape)} of "
            f"input, got shape {tuple(mask.shape)}"
        )
    return tenon.broadcast_to(mask, list(input.shape))


def _axes(dim: Axes) -> Any:
    if dim is None or isinstance(dim, int):
        return dim
    return list(dim) or None


def _cast(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is None else input.to(dtype)


def _filled(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input`, and `value` where the mask is False."""
    filling = tenon.full([], value, dtype=input.dtype, device=input.device)
    return tenon.where(mask, input, filling)


def _lowest(dtype: Any) -> Any:
    if dtype == tenon.bool:
        return False
    return -float("inf") if dtype.is_floating_point else tenon.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    if dtype == tenon.bool:
        return True
    return float("inf") if dtype.is_floating_point else tenon.iinfo(dtype).max


def _widened(input: Tensor, dtype: Any) -> Tensor:
    """Sums and products of whole numbers are int64 unless a dtype is requested."""
    if dtype is None and not (input.dtype.is_floating_point or input.dtype.is_complex):
        return input.to(tenon.int64)
    return _cast(input, dtype)


def sum(
    input: Tensor,
    dim: Axes = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum over `dim` of the elements that count."""
    x = _widened(input, dtype)
    return tenon.sum(_filled(x, _mask_of("sum", x, mask), 0), _axes(dim), bool(keepdim))


def prod(
    input: Tensor,
    dim: Axes = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product over `dim` of the elements that count."""
    x = _widened(input, dtype)
    return tenon.prod(_filled(x, _mask_of("prod", x, mask), 1), _axes(dim), bool(keepdim))


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sums along `dim`, to which other elements add nothing."""
    x = _widened(input, dtype)
    return tenon.cumsum(_filled(x, _mask_of("cumsum", x, mask), 0), dim)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running products along `dim`, which other elements leave as they are."""
    x = _widened(input, dtype)
    return tenon.cumprod(_filled(x, _mask_of("cumprod", x, mask), 1), dim)


def amax(
    input: Tensor,
    dim: Axes = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest elements over `dim` of those that count."""
    x = _cast(input, dtype)
    filled = _filled(x, _mask_of("amax", x, mask), _lowest(x.dtype))
    return tenon.max(filled, _axes(dim), bool(keepdim))


def amin(
    input: Tensor,
    dim: Axes = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest elements over `dim` of those that count."""
    x = _cast(input, dtype)
    filled = _filled(x, _mask_of("amin", x, mask), _highest(x.dtype))
    return tenon.min(filled, _axes(dim), bool(keepdim))


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest element along `dim` of those that count is."""
    x = _cast(input, dtype)
    filled = _filled(x, _mask_of("argmax", x, mask), _lowest(x.dtype))
    return tenon.argmax(filled, dim, bool(keepdim))


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest element along `dim` of those that count is."""
    x = _cast(input, dtype)
    filled = _filled(x, _mask_of("argmin", x, mask), _highest(x.dtype))
    return tenon.argmin(filled, dim, bool(keepdim))


def _count(mask: Tensor, dim: Axes, keepdim: bool, like: Tensor) -> Tensor:
    return tenon.sum(mask.to(tenon.int64), _axes(dim), keepdim).to(like.dtype)


def _inexact(name: str, input: Tensor, dtype: Any) -> Tensor:
    x = _cast(input, dtype)
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise TypeError(
            f"masked.{name}(): expected floating or complex numbers, got {x.dtype}; pass dtype=float32"
        )
    return x


def mean(
    input: Tensor,
    dim: Axes = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean over `dim` of the elements that count; NaN if none does."""
    x = _inexact("mean", input, dtype)
    counted = _mask_of("mean", x, mask)
    total = tenon.sum(_filled(x, counted, 0), _axes(dim), bool(keepdim))
    return total / _count(counted, dim, bool(keepdim), x)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The lower median along `dim` of the elements that count; NaN if none does."""
    if not isinstance(dim, int):
        raise TypeError(f"masked.median(): expected dim to be a whole number, got {dim!r}")
    x = _inexact("median", input, dtype)
    counted = _mask_of("median", x, mask)
    return _arrays.nanmedian(_filled(x, counted, float("nan")), dim, keepdim).values


def var(
    input: Tensor,
    dim: Axes = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance over `dim` of the elements that count, by default of a sample: divided by one less
    than their number."""
    x = _cast(input, dtype)
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = x.to(tenon.float32)
    counted = _mask_of("var", x, mask)
    less = (0 if unbiased is False else 1) if correction is None else correction
    count = _count(counted, dim, True, x)
    middle = tenon.sum(_filled(x, counted, 0), _axes(dim), True) / count
    away = _filled(x - middle, counted, 0)
    squares = tenon.real(away * tenon.conj(away)) if x.dtype.is_complex else away * away
    total = tenon.sum(squares, _axes(dim), bool(keepdim))
    real_count = _count(counted, dim, bool(keepdim), total)
    # PyTorch gives the variance of complex numbers their dtype, though it is real.
    return (total / tenon.clip(real_count - less, 0, None)).to(x.dtype)


def std(
    input: Tensor,
    dim: Axes = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square root of var()."""
    return tenon.sqrt(
        var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    )


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Axes = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm of order `ord` over `dim` of the elements that count."""
    x = _inexact("norm", input, dtype)
    order = 2.0 if ord is None else float(ord)
    # In the norm of the smallest magnitude an element that does not count must be the largest.
    filled = _filled(x, _mask_of("norm", x, mask), float("inf") if order < 0 else 0)
    return tenon.linalg.vector_norm(filled, axis=_axes(dim), keepdims=bool(keepdim), ord=order)


def logsumexp(
    input: Tensor,
    dim: Axes = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of the exponentials of the elements that count."""
    x = _cast(input, dtype)
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = x.to(tenon.float32)
    axes = list(range(x.ndim)) if dim is None else _axes(dim)
    counted = _mask_of("logsumexp", x, mask)
    return tenon.logsumexp(_filled(x, counted, -float("inf")), axes, bool(keepdim))


def _normalised(name: str, sign: int) -> Callable[..., Tensor]:
    function = getattr(tenon, name.replace("softmin", "softmax"))

    def masked(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
        x = _inexact(name, input, dtype) * sign if sign < 0 else _inexact(name, input, dtype)
        counted = _mask_of(name, x, mask)
        return function(_filled(x, counted, -float("inf")), dim)

    masked.__name__ = name
    masked.__doc__ = (
        f"{name} along `dim` of the elements that count; a row in which none does is NaN."
    )
    return masked


softmax, log_softmax = _normalised("softmax", 1), _normalised("log_softmax", 1)
softmin = _normalised("softmin", -1)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements that count divided by their norm of order `ord` along `dim`, which is at least
    `eps`; the others are 0."""
    x = _inexact("normalize", input, dtype)
    length = norm(x, ord, dim, keepdim=True, mask=mask)
    filled = _filled(x, _mask_of("normalize", x, mask), 0)
    return filled / tenon.clip(length, eps, None)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), of the numbers that count."""
    x, y = _inexact("logaddexp", input, dtype), _inexact("logaddexp", other, dtype)
    nothing = -float("inf")
    return tenon.logaddexp(
        _filled(x, _mask_of("logaddexp", x, input_mask), nothing),
        _filled(y, _mask_of("logaddexp", y, other_mask), nothing),
    )


_signatures.adapt_all("masked", __all__, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
