# SPDX-License-Identifier: Apache-2.0
"""torch.sparse: functions of sparse tensors, which are those of docs/sparse.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon import sparse as _sparse
from tenon._core import Tensor

__all__ = "addmm log_softmax mm sampled_addmm softmax spdiags spsolve sum".split()


def _expect_sparse(name: str, input: Tensor) -> None:
    if not _sparse.is_sparse(input):
        raise TypeError(f"sparse.{name}(): expected a sparse tensor, got layout {input.layout}")


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, of which one or both are sparse."""
    if not (_sparse.is_sparse(mat1) or _sparse.is_sparse(mat2)):
        raise TypeError(
            f"sparse.mm(): expected a sparse matrix, got layouts {mat1.layout} and {mat2.layout}"
        )
    return _core.operator("matmul")(mat1, mat2)


def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2)."""
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (mat if beta == 1 else mat * beta) + product


def sampled_addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float = 1.0,
    alpha: float = 1.0,
    out: Tensor | None = None,
) -> Tensor:
    """alpha * (mat1 @ mat2) where `input`, of layout csr, has stored elements, and beta times these added."""
    if out is not None:
        raise NotImplementedError("sparse.sampled_addmm(): expected no out; use the result")
    product = _sparse.sddmm(input, mat1, tenon.transpose(mat2, 0, 1).contiguous())
    values = product.values() if alpha == 1 else product.values() * alpha
    if beta != 0:
        values = values + (input.values() if beta == 1 else input.values() * beta)
    return _core.with_values(input, values)


def _cast(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is None else input.to(dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """sparse.softmax: what is not stored takes no part."""
    _expect_sparse("softmax", input)
    return _sparse.softmax(_cast(input, dtype), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """sparse.log_softmax."""
    _expect_sparse("log_softmax", input)
    return _sparse.log_softmax(_cast(input, dtype), dim)


def sum(input: Tensor, dim: int | Sequence[int] | None = None, dtype: Any = None) -> Tensor:
    """The sum along axes, which is sparse where axes with indices are left, and else dense."""
    _expect_sparse("sum", input)
    input = _cast(input, dtype)
    if dim is None:
        return tenon.sum(input)
    whole = input if input.layout == "coo" else _core.convert_layout(input, "coo")
    given = [dim] if isinstance(dim, int) else list(dim)
    if any(not -whole.ndim <= axis < whole.ndim for axis in given):
        raise IndexError(f"sparse.sum(): expected axes of {whole.ndim}, got {given}")
    axes = {axis % whole.ndim for axis in given}
    indices, values = whole.indices(), whole.values()
    indexed = indices.shape[0]
    inner = [axis - indexed + 1 for axis in axes if axis >= indexed]
    if inner:
        values = tenon.sum(values, inner)
    kept = [axis for axis in range(indexed) if axis not in axes]
    if not kept:
        return tenon.sum(values, [0])
    shape = [size for axis, size in enumerate(whole.shape) if axis not in axes]
    rows = tenon.stack([indices[axis] for axis in kept])
    return _core.compose("coo", shape, [rows, values]).coalesce()


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """sparse.spdiags, of layout coo unless `layout` says otherwise."""
    return _sparse.spdiags(diagonals, offsets, shape, "coo" if layout is None else str(layout))


def spsolve(input: Tensor, other: Tensor, left: bool = True) -> Tensor:
    """sparse.linalg.solve."""
    if not left:
        raise NotImplementedError("sparse.spsolve(): expected left=True, got False")
    return _sparse.linalg.solve(input, other)
