# SPDX-License-Identifier: Apache-2.0
"""What is computed row by row of the stored elements alone: weights of attention along the edges of a graph."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, _core


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The softmax along the rows of a sparse matrix, over the elements that are stored: what is not stored takes no part
    and stays 0, as if it were minus infinity. `axis` 0 is along columns. Equal indices are added up first."""
    return _along("softmax", x, axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of softmax(x, axis) of the elements that are stored."""
    return _along("log_softmax", x, axis)


def _along(name: str, x: Tensor, axis: int) -> Tensor:
    if x.layout == "coo" and x.ndim == 2:
        rows = _along(name, _core.convert_layout(x, "csr"), axis)
        return _core.convert_layout(rows, "coo")
    if x.layout not in ("csr", "csc"):
        raise NotImplementedError(
            f"sparse.{name}(): expected a matrix of layout csr, csc or coo, got layout {x.layout} of "
            f"{x.ndim} axes; use to_sparse('csr')"
        )
    if not -2 <= axis < 2:
        raise IndexError(f"sparse.{name}(): expected an axis of a matrix, got {axis}")
    if (axis % 2 == 1) != (x.layout == "csr"):
        other = "csc" if x.layout == "csr" else "csr"
        return _core.convert_layout(_along(name, _core.convert_layout(x, other), axis), x.layout)
    x = distinct(x)
    indptr, _, values = _core.parts_of(x)
    # Rows of different lengths, of which each is one distribution.
    bounds = [indptr.shape[0] - 1, x.shape[axis]]
    rows = _core.compose("ragged", bounds, [indptr, values])
    return _core.with_values(x, _core.operator(name)(rows, 1).values())


def distinct(x: Tensor) -> Tensor:
    """Of layout 'csr' or 'csc': the tensor itself if its indices ascend in each row; else another one that is equal,
    without indices that repeat."""
    indptr, indices, _ = _core.parts_of(x)
    if _core.operator("csr_is_sorted")(indptr, indices).item():
        return x
    return _core.convert_layout(_core.convert_layout(x, "coo"), x.layout)


def sddmm(pattern: Tensor, x: Any, y: Any) -> Tensor:
    """The elements of x @ y.T where `pattern`, a matrix of layout 'csr', has stored elements, whose values do not matter:
    `x` is [rows, features] and `y` [columns, features], tensors, arrays or lists."""
    if pattern.layout != "csr":
        raise NotImplementedError(
            f"sparse.sddmm(): expected a pattern of layout csr, got {pattern.layout}; use "
            "to_sparse('csr')"
        )
    x, y = (tenon.asarray(each, device=pattern.device) for each in (x, y))
    if x.ndim != 2 or y.ndim != 2 or (x.shape[0], y.shape[0]) != tuple(pattern.shape):
        raise ValueError(
            f"sparse.sddmm(): expected x and y of as many rows as the pattern of shape "
            f"{tuple(pattern.shape)} has rows and columns, got shapes {tuple(x.shape)} and "
            f"{tuple(y.shape)}"
        )
    indptr, indices, _ = _core.parts_of(pattern)
    values = _core.operator("csr_sddmm")(indptr, indices, x, y)
    return _core.compose("csr", list(pattern.shape), [indptr, indices, values])


def parts_of_csr(x: Tensor) -> tuple[Any, Any, Any]:
    """`indptr`, `indices` and `values` of any sparse matrix."""
    indptr, indices, values = _core.parts_of(_core.convert_layout(x, "csr"))
    return indptr, indices, values


def transposed(x: Tensor) -> Tensor:
    """`x.T` in layout 'csr'."""
    return _core.convert_layout(tenon.transpose(x, 0, 1), "csr")
