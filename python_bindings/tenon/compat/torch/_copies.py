# SPDX-License-Identifier: Apache-2.0
"""PyTorch's `*_copy` functions: what a view would show, in memory of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.torch import _functions, _indices, _operands

__all__ = """alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy
select_copy split_copy split_with_sizes split_with_sizes_copy squeeze_copy t_copy transpose_copy
unbind_copy unfold_copy unsafe_chunk unsafe_split unsqueeze_copy view_copy""".split()


def alias_copy(input: Tensor) -> Tensor:
    """A copy."""
    return input.clone()


def detach_copy(input: Tensor) -> Tensor:
    """A copy without history."""
    return input.detach().clone()


def as_strided_copy(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A copy of as_strided()."""
    return _operands.as_strided(input, size, stride, storage_offset).clone()


def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of a diagonal."""
    return tenon.diagonal(input, offset, dim1, dim2).clone()


def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """A copy of `input` broadcast to `size`."""
    if implicit:  # a note of PyTorch's compilers to themselves
        raise NotImplementedError("expand_copy(): expected implicit=False, got True")
    return input.expand(list(size)).clone()


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of `length` slices along `dim`."""
    return _indices.narrow(input, dim, start, length).clone()


def permute_copy(input: Tensor, dims: Sequence[int]) -> Tensor:
    """A copy with the axes in another order."""
    return tenon.permute(input, list(dims)).clone()


def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """A copy of one slice along `dim`, without that axis."""
    return tenon.select(input, dim, index).clone()


def _split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int
) -> tuple[Tensor, ...]:
    return _functions.split(tensor, split_size_or_sections, dim)


def split_copy(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of parts of one size, of which the last may be smaller."""
    return tuple(each.clone() for each in _split(tensor, split_size, dim))


def split_with_sizes(
    tensor: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Parts of these sizes along `dim`, as views."""
    return _split(tensor, list(split_sizes), dim)


def split_with_sizes_copy(
    tensor: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Copies of parts of these sizes along `dim`."""
    return tuple(each.clone() for each in split_with_sizes(tensor, split_sizes, dim))


def unsafe_split(
    tensor: Tensor, split_size: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """split(). What PyTorch calls unsafe is to write into parts in place, which Tenon keeps track of."""
    return _split(tensor, split_size, dim)


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """chunk(), as unsafe_split() is split()."""
    return _functions.chunk(input, chunks, dim)


def squeeze_copy(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """A copy without axes of length 1."""
    return _operands.squeeze(input, dim).clone()


def t_copy(input: Tensor) -> Tensor:
    """A copy of the transpose of a matrix."""
    return input.t().clone()


def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A copy with two axes exchanged."""
    return _indices.transpose(input, dim0, dim1).clone()


def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of the slices along `dim`."""
    return tuple(each.clone() for each in tenon.unbind(input, dim))


def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A copy of windows of `size` elements along `dimension`, `step` apart, in a new last axis."""
    return input.unfold(dimension, size, step).clone()


def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """A copy with a new axis of length 1."""
    return tenon.unsqueeze(input, dim).clone()


def view_copy(input: Tensor, size: Any) -> Tensor:
    """A copy in another shape, or with the bits read in another dtype."""
    if isinstance(size, (list, tuple)):
        return tenon.reshape(input, list(size)).clone()
    return input.view(size).clone()
