# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors from their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, _core

SPARSE_LAYOUTS = ("coo", "csr", "csc", "bsr")


def is_sparse(x: Any) -> bool:
    """Whether it is a tensor of layout 'coo', 'csr', 'csc' or 'bsr'."""
    return isinstance(x, Tensor) and x.layout in SPARSE_LAYOUTS


def coo(indices: Any, values: Any, shape: Sequence[int]) -> Tensor:
    """A tensor of layout 'coo', of these parts and not of copies.

    `indices` [axes, stored] are integers, for each stored element one along each of the first axes, in any order; equal
    ones may repeat and are sums. `values` is [stored], followed by the axes without indices if `shape` has more: each
    stored element is a block of these. Indices are checked here, and again where something is computed.
    """
    indices, values = tenon.asarray(indices), tenon.asarray(values)
    result = _core.compose("coo", list(shape), [indices, values])
    for axis in range(indices.shape[0]):
        _check_indices("coo", indices[axis], shape[axis], f"along axis {axis}")
    return result


def csr(indptr: Any, indices: Any, values: Any, shape: Sequence[int]) -> Tensor:
    """A matrix of layout 'csr', of these parts and not of copies.

    Row i has the elements values[indptr[i] : indptr[i + 1]] in the columns that `indices` has there, in any order; equal
    ones may repeat and are sums. `indptr` has one number more than there are rows, ascending from 0 to the number of
    stored elements. All are checked here, and again where something is computed.
    """
    return _compressed("csr", (indptr, indices, values), shape, 1, "in the rows")


def csc(indptr: Any, indices: Any, values: Any, shape: Sequence[int]) -> Tensor:
    """A matrix of layout 'csc', of these parts and not of copies: column j has the elements
    values[indptr[j] : indptr[j + 1]] in the rows that `indices` has there. See csr()."""
    return _compressed("csc", (indptr, indices, values), shape, 0, "in the columns")


def bsr(indptr: Any, indices: Any, values: Any, shape: Sequence[int]) -> Tensor:
    """A matrix of layout 'bsr', of these parts and not of copies: `values` [stored, rows of a block, columns of a block]
    are blocks, whose shape divides that of the matrix, and `indices` their columns of blocks. See csr()."""
    return _compressed("bsr", (indptr, indices, values), shape, 1, "in the rows of blocks")


def _compressed(
    layout: str, given: Sequence[Any], shape: Sequence[int], axis: int, where: str
) -> Tensor:
    indptr, indices, values = (tenon.asarray(part) for part in given)
    result = _core.compose(layout, list(shape), [indptr, indices, values])
    size = shape[axis] // (values.shape[2] if layout == "bsr" else 1)
    _check_indices(layout, indices, size, where)
    if indptr.device.kind != "meta":
        _core.operator("csr_rows")(indptr, values.shape[0])  # fails with the position
    return result


def _check_indices(layout: str, indices: Tensor, size: int, where: str) -> None:
    if indices.device.kind == "meta" or indices.shape[0] == 0:
        return
    outside = tenon.logical_or(indices < 0, indices >= size)
    if tenon.any(outside).item():
        at = int(tenon.nonzero(outside)[0].item())
        raise IndexError(
            f"{layout}: expected indices from 0 to {size - 1} {where}, got "
            f"{indices[at].item()} at position {at}"
        )


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The matrix [n, m] of layout 'csr' with ones on its diagonal; of n columns if no `m` is given."""
    columns = n if m is None else m
    count = min(n, columns)
    number = tenon.arange(n + 1, device=device)
    values = tenon.ones([count], dtype=tenon.float32 if dtype is None else dtype, device=device)
    return _core.compose(
        "csr", [n, columns], [tenon.clip(number, 0, count), number[:count], values]
    )


def spdiags(diagonals: Any, offsets: Any, shape: Sequence[int], layout: str = "csr") -> Tensor:
    """The matrix with these diagonals. Row i of `diagonals` [diagonals, length] lies on the diagonal `offsets[i]`,
    positive above the main one; element j of a row stands in column j, as in SciPy. Gradients pass."""
    diagonals = tenon.asarray(diagonals)
    if diagonals.ndim == 1:
        diagonals = diagonals.unsqueeze(0)
    shifts = [int(shift) for shift in tenon.asarray(offsets).reshape([-1]).tolist()]
    if diagonals.ndim != 2 or diagonals.shape[0] != len(shifts):
        raise ValueError(
            f"spdiags(): expected a diagonal for each of the {len(shifts)} offsets, got shape "
            f"{tuple(diagonals.shape)}"
        )
    if len(set(shifts)) != len(shifts):
        raise ValueError(f"spdiags(): expected offsets that differ, got {shifts}")
    rows, columns = shape
    index, values = [], []
    for diagonal, shift in zip(diagonals.unbind(0), shifts):
        begin = max(0, shift)
        end = max(begin, min(columns, rows + shift, diagonal.shape[0]))
        column = tenon.arange(begin, end, device=diagonals.device)
        index.append(tenon.stack([column - shift, column]))
        values.append(diagonal[begin:end])
    whole = _core.compose("coo", [rows, columns], [tenon.concat(index, 1), tenon.concat(values)])
    return _core.convert_layout(whole.coalesce(), layout)
