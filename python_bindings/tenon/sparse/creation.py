# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors from their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, _core


def is_sparse(x: Tensor) -> bool:
    """Whether the tensor has layout 'coo' or 'csr'."""
    return x.layout in ("coo", "csr")


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
    indptr, indices, values = (tenon.asarray(part) for part in (indptr, indices, values))
    result = _core.compose("csr", list(shape), [indptr, indices, values])
    _check_indices("csr", indices, shape[1], "in the rows")
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
