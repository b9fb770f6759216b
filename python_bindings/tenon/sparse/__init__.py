# SPDX-License-Identifier: Apache-2.0
"""Sparse and ragged tensors: of the elements that are there, and where they are (docs/sparse.md).

A sparse tensor is a `tenon.Tensor` whose `layout` is 'coo', 'csr', 'csc' or 'bsr', a ragged one has layout 'ragged'. It
consists of ordinary tensors, which carry the gradients: `x.values()`, `x.indices()`, `x.indptr()`, `x.offsets()`.
`x.to_sparse("csr")` and `x.to_dense()` convert.
"""

from tenon._core import coalesce
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors

from . import linalg, nn
from .creation import bsr, coo, csc, csr, eye, is_sparse, spdiags
from .exchange import from_scipy, to_scipy
from .ragged_rows import lengths, ragged, ragged_attention, ragged_from_dense, ragged_from_offsets
from .rows import log_softmax, sddmm, softmax
from .stored import map, same_structure

__all__ = [
    "bsr",
    "coalesce",
    "coo",
    "csc",
    "csr",
    "eye",
    "from_scipy",
    "is_sparse",
    "lengths",
    "linalg",
    "log_softmax",
    "map",
    "nn",
    "ragged",
    "ragged_attention",
    "ragged_from_dense",
    "ragged_from_offsets",
    "same_structure",
    "sddmm",
    "softmax",
    "spdiags",
    "to_scipy",
]

_expect_tensors(globals())
