# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions that take more of an operand or keyword than Tenon's operator of the name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.torch.special import logit as logit

__all__ = """addbmm addmm addmv addr as_strided baddbmm broadcast_shapes bucketize corrcoef einsum
logit masked_scatter nanquantile quantile scatter_reduce searchsorted squeeze
tril_indices triu_indices""".split()


def _scaled_sum(input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """beta * input + alpha * product, where NaN in an input of the factor 0 does not count. Factors
    of whole numbers are whole numbers, as PyTorch cuts them."""
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        beta, alpha = int(beta), int(alpha)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        shape = tenon.broadcast_shapes(input.shape, product.shape)
        return tenon.broadcast_to(scaled, shape).to(input.dtype)
    return (input if beta == 1 else input * beta) + scaled


def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2)."""
    if beta == 0 or not (input.dtype.is_floating_point or input.dtype.is_complex):
        return _scaled_sum(input, mat1 @ mat2, beta, alpha)
    return tenon.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""
    return _scaled_sum(input, mat @ vec, beta, alpha)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2)."""
    return _scaled_sum(input, tenon.outer(vec1, vec2), beta, alpha)


def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2), for each matrix of the batch."""
    return _scaled_sum(input, batch1 @ batch2, beta, alpha)


def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * input + alpha * the sum of the products of a batch."""
    return _scaled_sum(input, (batch1 @ batch2).sum(0), beta, alpha)


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of elements at regular distances, in row-major order wherever they lie in memory."""
    return tenon.as_strided(input, size, stride, storage_offset or 0)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that shapes or lengths broadcast to."""
    return tenon.broadcast_shapes(*((s,) if isinstance(s, int) else tuple(s) for s in shapes))


def _as_integers(result: Tensor, out_int32: bool) -> Tensor:
    return result.to(tenon.int32) if out_int32 else result


def bucketize(
    input: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The bucket of each element between sorted boundaries."""
    return _as_integers(tenon.bucketize(input, boundaries, right=right), out_int32)


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each value would keep the sequence sorted."""
    if sorter is not None:
        sorted_sequence = tenon.take_along_axis(sorted_sequence, sorter, -1)
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted(): expected side 'left' or 'right', got {side!r}")
    if right and side == "left":
        raise ValueError("searchsorted(): expected right=False beside side='left', got True")
    right = right or side == "right"
    if sorted_sequence.ndim > 1:
        return _as_integers(_searched_rows(sorted_sequence, input, right), out_int32)
    return _as_integers(tenon.searchsorted(sorted_sequence, input, right), out_int32)


def _searched_rows(rows: Tensor, values: Tensor, right: bool) -> Tensor:
    """searchsorted() of each row of values in its own sorted row, by bisection."""
    if tuple(rows.shape[:-1]) != tuple(values.shape[:-1]):
        raise ValueError(
            f"searchsorted(): expected values of as many rows as the sequences, {tuple(rows.shape[:-1])}, got shape "
            f"{tuple(values.shape)}"
        )
    length = rows.shape[-1]
    low = tenon.zeros_like(values, dtype=tenon.int64)
    high = tenon.full_like(low, length)
    for _ in range(length.bit_length()):
        middle = (low + high) // 2
        probe = tenon.take_along_axis(rows, tenon.clip(middle, None, length - 1), -1)
        # Written so that NaN is behind every number.
        behind = tenon.logical_not(probe > values if right else probe >= values)
        open_ = low < high
        low = tenon.where(open_ & behind, middle + 1, low)
        high = tenon.where(open_ & tenon.logical_not(behind), middle, high)
    return low


def corrcoef(input: Tensor) -> Tensor:
    """The matrix of correlations of rows, a number for one row."""
    result = tenon.corrcoef(input)
    return result.reshape(()) if result.shape == (1, 1) else result


def einsum(equation: Any, *operands: Any) -> Tensor:
    """A sum of products by Einstein's convention; operands may come in a list."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return tenon.einsum(equation, *operands)


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduces the elements of `src` that `index` sends to one element."""
    return tenon.scatter_reduce(input, index, src, dim, reduce=reduce, include_self=include_self)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Elements of `source` in order where `mask` is true; input and mask broadcast."""
    shape = tenon.broadcast_shapes(input.shape, mask.shape)
    return tenon.masked_scatter(
        tenon.broadcast_to(input, shape), tenon.broadcast_to(mask, shape), source
    )


def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Quantiles along `dim`, of all elements without it."""
    return tenon.quantile(input, q, dim, keepdim=keepdim, method=interpolation)


def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Quantiles of what is not NaN."""
    return tenon.nanquantile(input, q, dim, keepdim=keepdim, method=interpolation)


def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Drops axes of length 1; those of `dim` that are longer stay."""
    if dim is None:
        return tenon.squeeze(input)
    axes = [dim] if isinstance(dim, int) else list(dim)
    for axis in axes:
        if not -max(input.ndim, 1) <= axis < max(input.ndim, 1):
            raise IndexError(
                f"squeeze(): expected dim in [{-max(input.ndim, 1)}, {max(input.ndim, 1)}), got {axis}"
            )
    ones = [axis for axis in axes if input.ndim and input.shape[axis] == 1]
    return tenon.squeeze(input, ones) if ones else input


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Rows and columns of the elements of a lower triangle."""
    return tenon.tril_indices(row, col, offset).to(device=device, dtype=dtype)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Rows and columns of the elements of an upper triangle."""
    return tenon.triu_indices(row, col, offset).to(device=device, dtype=dtype)
