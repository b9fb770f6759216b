# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: of the elements that are not zero, and where they are (docs/sparse.md).

A sparse tensor is a `tenon.Tensor` whose `layout` is 'coo' or 'csr'. It consists of ordinary tensors, which carry the
gradients: `x.values()`, `x.indices()`, of 'csr' `x.indptr()`. `x.to_sparse("csr")` and `x.to_dense()` convert.
"""

from tenon._core import coalesce

from .creation import coo, csr, is_sparse
from .exchange import from_scipy, to_scipy
from .stored import map, same_structure

__all__ = [
    "coalesce",
    "coo",
    "csr",
    "from_scipy",
    "is_sparse",
    "map",
    "same_structure",
    "to_scipy",
]
