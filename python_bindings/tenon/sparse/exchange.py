# SPDX-License-Identifier: Apache-2.0
"""To and from SciPy, without copies where both have the layout."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor

from .creation import bsr, coo, csc, csr, is_sparse


def from_scipy(matrix: Any) -> Tensor:
    """A tensor over the memory of a sparse array of SciPy: of 'csr', 'csc' and 'bsr' as it is, of other formats as 'coo',
    whose indices are put together from SciPy's."""
    if not hasattr(matrix, "format") or not hasattr(matrix, "tocoo"):
        raise TypeError(
            f"from_scipy(): expected a sparse array of SciPy, got {type(matrix).__name__}"
        )
    if matrix.format in ("csr", "csc", "bsr"):
        make = {"csr": csr, "csc": csc, "bsr": bsr}[matrix.format]
        return make(matrix.indptr, matrix.indices, matrix.data, matrix.shape)
    other = matrix.tocoo()
    along = [tenon.asarray(index).to(tenon.int64) for index in _indices(other)]
    return coo(tenon.stack(along), other.data, other.shape)


def to_scipy(x: Tensor) -> Any:
    """A `scipy.sparse` array of the tensor's layout over its memory; on the host, and without gradients."""
    if not is_sparse(x):
        raise TypeError(
            f"to_scipy(): expected a tensor of layout coo, csr, csc or bsr, got {x.layout}"
        )
    import scipy.sparse  # optional

    x = x.detach()
    if x.layout != "coo":
        parts = (x.values().numpy(), x.indices().numpy(), x.indptr().numpy())
        make = getattr(scipy.sparse, f"{x.layout}_array")
        return make(parts, shape=tuple(x.shape), copy=False)
    if x.values().ndim != 1:
        raise ValueError(
            f"to_scipy(): expected a tensor with indices along all {x.ndim} axes, got some along "
            f"{x.indices().shape[0]}; SciPy has no blocks in this format"
        )
    indices = x.indices().numpy()
    return scipy.sparse.coo_array(
        (x.values().numpy(), tuple(indices)), shape=tuple(x.shape), copy=False
    )


def _indices(matrix: Any) -> list[Any]:
    return list(matrix.coords) if hasattr(matrix, "coords") else [matrix.row, matrix.col]
