# SPDX-License-Identifier: Apache-2.0
"""PyTorch's constructors of sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor

__all__ = """sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor
spmm""".split()

Size = Sequence[int] | None


def _data(given: Any, dtype: Any = None, device: Any = None) -> Tensor:
    if not isinstance(given, Tensor):
        return tenon.tensor(given, dtype=dtype, device=device)
    given = given if dtype is None else given.to(dtype)
    return given if device is None else given.to(device)


def _options(name: str, pin_memory: bool, is_coalesced: Any = None) -> None:
    if pin_memory:
        raise NotImplementedError(f"{name}(): expected pin_memory=False, got True")
    if is_coalesced:
        raise NotImplementedError(
            f"{name}(): expected no is_coalesced=True: whether indices are sorted and distinct is "
            "found when it is needed"
        )


def _finished(made: Tensor, requires_grad: bool) -> Tensor:
    return made.requires_grad_() if requires_grad else made


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    size: Size = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """sparse.coo. Without a size the largest indices give it. Indices are always checked."""
    _options("sparse_coo_tensor", pin_memory, is_coalesced)
    values = _data(values, dtype, device)
    indices = _data(indices, tenon.int64, device)
    if indices.ndim == 1:
        indices = indices.unsqueeze(0)
    if size is None:
        if indices.shape[1] == 0:
            raise ValueError("sparse_coo_tensor(): expected a size where there are no indices")
        size = [int(most) + 1 for most in tenon.max(indices, 1).tolist()] + list(values.shape[1:])
    return _finished(tenon.sparse.coo(indices, values, list(size)), requires_grad)


def _compressed(
    layout: str,
    pointers: Any,
    indices: Any,
    values: Any,
    size: Size,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    values = _data(values, dtype, device)
    pointers, indices = _data(pointers, None, device), _data(indices, None, device)
    if pointers.ndim != 1:
        raise NotImplementedError(
            f"sparse_{layout}_tensor(): expected one matrix, got pointers of shape "
            f"{tuple(pointers.shape)}; batches are not there"
        )
    if size is None:
        block = list(values.shape[1:]) if layout == "bsr" else [1, 1]
        most = int(indices.max().item()) + 1 if indices.shape[0] else 0
        size = [(pointers.shape[0] - 1) * block[0], most * block[1]]
        size = size[::-1] if layout == "csc" else size
    make = getattr(tenon.sparse, layout)
    return _finished(make(pointers, indices, values, list(size)), requires_grad)


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Size = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """sparse.csr."""
    _options("sparse_csr_tensor", pin_memory)
    return _compressed("csr", crow_indices, col_indices, values, size, dtype, device, requires_grad)


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Size = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """sparse.csc."""
    _options("sparse_csc_tensor", pin_memory)
    return _compressed("csc", ccol_indices, row_indices, values, size, dtype, device, requires_grad)


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Size = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """sparse.bsr."""
    _options("sparse_bsr_tensor", pin_memory)
    return _compressed("bsr", crow_indices, col_indices, values, size, dtype, device, requires_grad)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Size = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """sparse.csr, csc or bsr, as `layout` says."""
    _options("sparse_compressed_tensor", pin_memory)
    name = str(layout)
    if name not in ("csr", "csc", "bsr"):
        raise ValueError(
            "sparse_compressed_tensor(): expected layout sparse_csr, sparse_csc or sparse_bsr, got "
            f"{layout}"
        )
    return _compressed(
        name, compressed_indices, plain_indices, values, size, dtype, device, requires_grad
    )


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """matmul of matrices."""
    return _core.operator("matmul")(input, mat2)
