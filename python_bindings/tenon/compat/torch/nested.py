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

__all__ = "as_nested_tensor nested_tensor nested_tensor_from_jagged to_padded_tensor".split()


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
        zero = tenon.zeros([1], dtype=tenon.int64, device=values.device)
        offsets = tenon.concat([zero, tenon.cumsum(lengths.to(tenon.int64))])
    if min_seqlen is not None and offsets.shape[0] > 1:
        least = int((offsets[1:] - offsets[:-1]).min().item())
        if least < min_seqlen:
            raise ValueError(
                f"nested.nested_tensor_from_jagged(): expected rows of at least {min_seqlen}, got one "
                f"of {least}"
            )
    return _sparse.ragged_from_offsets(offsets, values, max_seqlen)


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
