# SPDX-License-Identifier: Apache-2.0
"""What is done with stored elements as such."""

from __future__ import annotations

from collections.abc import Callable

from tenon import Tensor, _core

from .creation import is_sparse
from .rows import distinct


def map(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """`function` of the stored elements, in the structure of `x`; elements that are not stored stay zeros, whatever
    `function` is at 0. Equal indices are added up first."""
    if not is_sparse(x):
        raise TypeError(f"map(): expected a tensor of layout coo, csr, csc or bsr, got {x.layout}")
    if x.layout == "coo":
        x = x.coalesce()
    elif x.layout != "bsr":
        x = distinct(x)
    return _core.with_values(x, function(x.values()))


def same_structure(x: Tensor, y: Tensor) -> bool:
    """Whether both consist of the same index tensors, so that their stored elements correspond one to one."""
    if not is_sparse(x) or x.layout != y.layout or tuple(x.shape) != tuple(y.shape):
        return False
    pairs = zip(_core.parts_of(x)[:-1], _core.parts_of(y)[:-1])
    return all(a is b or (a.data_ptr() == b.data_ptr() and a.shape == b.shape) for a, b in pairs)
