# SPDX-License-Identifier: Apache-2.0
"""Methods and attributes of PyTorch's sparse and nested tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.torch import _options

_own_layout = Tensor.__dict__["layout"]


def _layout(self: Tensor) -> str:
    return _own_layout.__get__(self, Tensor)


def _part(name: str, layouts: str, part: int) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        if _layout(self) not in layouts.split():
            raise TypeError(
                f"{name}(): expected a tensor of layout {' or '.join(layouts.split())}, got "
                f"{_layout(self)}"
            )
        return _core.parts_of(self)[part]

    method.__name__, method.__doc__ = name, f"A part of layout {' or '.join(layouts.split())}."
    return method


def _to(layout: str) -> Callable[..., Tensor]:
    def method(self: Tensor, dense_dim: int | None = None) -> Tensor:
        if dense_dim:
            raise NotImplementedError(
                f"to_sparse_{layout}(): expected dense_dim=0, got {dense_dim}"
            )
        return _core.convert_layout(self, layout)

    method.__name__, method.__doc__ = f"to_sparse_{layout}", f"The tensor in layout {layout}."
    return method


def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The elements that are not 0, in layout coo unless `layout` says otherwise."""
    if sparse_dim not in (None, self.ndim) or dense_dim:
        raise NotImplementedError(
            f"to_sparse(): expected indices along all {self.ndim} axes, got sparse_dim={sparse_dim} and "
            f"dense_dim={dense_dim}"
        )
    return _to_sparse(self, "coo" if layout is None else str(layout), blocksize)


_to_sparse = Tensor.to_sparse


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The blocks that are not all 0."""
    if dense_dim:
        raise NotImplementedError(f"to_sparse_bsr(): expected dense_dim=0, got {dense_dim}")
    return _to_sparse(self, "bsr", blocksize)


def is_coalesced(self: Tensor) -> bool:
    """Whether the indices of layout coo ascend, so that none repeats."""
    indices = _part("is_coalesced", "coo", 0)(self)
    if indices.shape[1] < 2:
        return True
    number = indices[0]
    for axis in range(1, indices.shape[0]):
        number = number * self.shape[axis] + indices[axis]
    return not bool(tenon.any(number[1:] <= number[:-1]).item())


def sparse_dim(self: Tensor) -> int:
    """The number of axes with indices."""
    if _layout(self) == "coo":
        return _core.parts_of(self)[0].shape[0]
    return 2 if _layout(self) in ("csr", "csc", "bsr") else 0


def dense_dim(self: Tensor) -> int:
    """The number of axes without indices."""
    return self.ndim - sparse_dim(self)


def _nnz(self: Tensor) -> int:
    return self.nnz


def _is(*layouts: str) -> property:
    return property(
        lambda self: _layout(self) in layouts, doc=f"Whether it has layout {' or '.join(layouts)}."
    )


def sparse_attributes() -> dict[str, Any]:
    """All of them, by name."""
    rows, columns = "csr bsr", "csc"
    return {
        "layout": property(
            lambda self: _options.LAYOUTS.get(_layout(self), _layout(self)),
            doc="How elements are stored.",
        ),
        "is_sparse": _is("coo"),
        "is_sparse_csr": _is("csr"),
        "is_nested": _is("ragged"),
        "crow_indices": _part("crow_indices", rows, 0),
        "col_indices": _part("col_indices", rows, 1),
        "ccol_indices": _part("ccol_indices", columns, 0),
        "row_indices": _part("row_indices", columns, 1),
        "_indices": _part("_indices", "coo", 0),
        "_values": _part("_values", "coo", 1),
        "to_sparse": to_sparse,
        "to_sparse_coo": _to("coo"),
        "to_sparse_csr": _to("csr"),
        "to_sparse_csc": _to("csc"),
        "to_sparse_bsr": to_sparse_bsr,
        "is_coalesced": is_coalesced,
        "sparse_dim": sparse_dim,
        "dense_dim": dense_dim,
        "_nnz": _nnz,
    }
