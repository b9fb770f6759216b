# SPDX-License-Identifier: Apache-2.0
"""torch.nested in its layout `jagged`: tensors of layout 'ragged' (docs/sparse.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon import sparse as _sparse
from tenon._core import Tensor
from tenon.compat.torch._options import jagged

__all__ = """as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged
to_padded_tensor""".split()


def _expect_jagged(name: str, layout: Any) -> None:
    if layout != jagged:
        raise NotImplementedError(
            f"nested.{name}(): expected layout=torch.jagged, got {layout}; the strided one, whose "
            "tensors differ along any axis, is not there"
        )


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A leaf of layout 'ragged' of these rows."""
    _expect_jagged("nested_tensor", layout)
    if pin_memory:
        raise NotImplementedError("nested.nested_tensor(): expected pin_memory=False, got True")
    rows = [row.detach() if isinstance(row, Tensor) else row for row in tensor_list]
    made = _sparse.ragged(rows, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(
    ts: Sequence[Tensor] | Tensor, dtype: Any = None, device: Any = None, layout: Any = None
) -> Tensor:
    """A tensor of layout 'ragged' of these rows, to which gradients pass."""
    _expect_jagged("as_nested_tensor", layout)
    rows = list(ts.unbind(0)) if isinstance(ts, Tensor) else ts
    return _sparse.ragged(rows, dtype=dtype, device=device)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A tensor of layout 'ragged' of these parts: rows by their offsets, or by their lengths."""
    if jagged_dim not in (None, 1):
        raise NotImplementedError(
            f"nested.nested_tensor_from_jagged(): expected jagged_dim=1, got {jagged_dim}"
        )
    if (offsets is None) == (lengths is None):
        raise NotImplementedError(
            "nested.nested_tensor_from_jagged(): expected either offsets or lengths; rows with "
            "holes behind them, which have both, are not there"
        )
    if offsets is None:
        assert lengths is not None
        offsets = _offsets(lengths)
    if min_seqlen is not None and offsets.shape[0] > 1:
        least = int((offsets[1:] - offsets[:-1]).min().item())
        if least < min_seqlen:
            raise ValueError(
                f"nested.nested_tensor_from_jagged(): expected rows of at least {min_seqlen}, got one "
                f"of {least}"
            )
    return _sparse.ragged_from_offsets(offsets, values, max_seqlen)


def _offsets(lengths: Tensor) -> Tensor:
    zero = tenon.zeros([1], dtype=tenon.int64, device=lengths.device)
    return tenon.concat([zero, tenon.cumsum(lengths.to(tenon.int64))])


def narrow(
    tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Any = None
) -> Tensor:
    """Of each row [length, ...] of a dense tensor the elements from `start` on, of layout 'ragged': one number for all
    rows, or one for each. A copy, to which gradients pass, and not a view."""
    _expect_jagged("narrow", layout)
    if tensor.layout != "strided" or tensor.ndim < 2 or dim not in (1, 1 - tensor.ndim):
        raise NotImplementedError(
            f"nested.narrow(): expected a dense tensor [rows, length, ...] and dim=1, got layout "
            f"{tensor.layout}, shape {tuple(tensor.shape)} and dim={dim}"
        )
    rows, size = tensor.shape[:2]
    begin, count = (
        tenon.asarray(each, device=tensor.device).to(tenon.int64).expand([rows])
        for each in (start, length)
    )
    outside = tenon.logical_or(tenon.minimum(begin, count) < 0, begin + count > size)
    if tenon.any(outside).item():
        at = int(tenon.nonzero(outside)[0].item())
        raise ValueError(
            f"nested.narrow(): expected parts of rows of {size} elements, got start "
            f"{begin[at].item()} and length {count[at].item()} of row {at}"
        )
    place = tenon.arange(size, device=tensor.device)
    inside = tenon.logical_and(
        place >= begin.unsqueeze(1), place < (begin + count).unsqueeze(1)
    ).reshape([-1])
    flat = tensor.reshape([rows * size, *tensor.shape[2:]])
    values = tenon.index_select(flat, tenon.nonzero(inside).reshape([-1]), 0)
    return _sparse.ragged_from_offsets(_offsets(count), values)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements of each row of a matrix where `mask`, which is broadcast, is true, of layout 'ragged'."""
    if tensor.layout != "strided" or tensor.ndim != 2 or mask.dtype != tenon.bool:
        raise NotImplementedError(
            f"nested.masked_select(): expected a dense matrix and a mask of bool, got layout "
            f"{tensor.layout}, shape {tuple(tensor.shape)} and a mask of {mask.dtype.name}"
        )
    mask = mask.expand(tensor.shape)
    counts = tenon.sum(mask.to(tenon.int64), [1])
    return _sparse.ragged_from_offsets(_offsets(counts), tenon.masked_select(tensor, mask))


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Sequence[int] | None = None
) -> Tensor:
    """The dense tensor with `padding` behind the rows; as large as `output_size` if it is given."""
    if input.layout != "ragged":
        raise TypeError(
            f"nested.to_padded_tensor(): expected a tensor of layout ragged, got {input.layout}"
        )
    dense = input.to_dense(padding)
    if output_size is None:
        return dense
    if len(output_size) != dense.ndim or any(a < b for a, b in zip(output_size, dense.shape)):
        raise ValueError(
            f"nested.to_padded_tensor(): expected an output_size of at least {tuple(dense.shape)}, got "
            f"{tuple(output_size)}"
        )
    for axis, size in enumerate(dense.shape):
        if output_size[axis] == size:
            continue
        shape = list(dense.shape)
        shape[axis] = output_size[axis] - size
        rest = tenon.full(shape, padding, dtype=dense.dtype, device=dense.device)
        dense = _core.operator("concat")([dense, rest], axis)
    return dense
