# SPDX-License-Identifier: Apache-2.0
"""Tensors of layout 'ragged': rows of different lengths, one after another, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, _core


def ragged(rows: Sequence[Any], *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of layout 'ragged' of these rows, tensors or lists [length, ...] whose lengths differ. Its shape is
    [rows, longest row, ...]. Gradients pass to rows that are tensors."""
    if isinstance(rows, Tensor) or not isinstance(rows, Sequence):
        raise TypeError(
            f"ragged(): expected a list of rows, got {type(rows).__name__}; of a dense tensor use "
            "sparse.ragged_from_dense(x, lengths)"
        )
    if not rows:
        raise ValueError("ragged(): expected at least one row, got none")
    made = [_row(row, dtype, device) for row in rows]
    # A list without elements says nothing of its dtype.
    known = [row for given, row in zip(rows, made) if isinstance(given, Tensor) or row.numel() > 0]
    like = known[0] if known else made[0]
    made = [
        row.to(like.dtype).reshape([0, *like.shape[1:]]) if row.numel() == 0 else row
        for row in made
    ]
    for number, row in enumerate(made):
        if row.ndim < 1 or row.shape[1:] != like.shape[1:] or row.dtype != like.dtype:
            raise ValueError(
                f"ragged(): expected rows [length, ...] of one dtype that differ in their lengths "
                f"alone, got {like.dtype.name} of shape {tuple(like.shape)} and {row.dtype.name} of "
                f"shape {tuple(row.shape)} at row {number}"
            )
    bounds = [0]
    for row in made:
        bounds.append(bounds[-1] + row.shape[0])
    offsets = tenon.tensor(bounds, dtype=tenon.int64, device=like.device)
    return ragged_from_offsets(offsets, tenon.concat(made), max(row.shape[0] for row in made))


def _row(row: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(row, Tensor):
        return tenon.tensor(row, dtype=dtype, device=device)
    row = row if dtype is None else row.to(dtype)
    return row if device is None else row.to(device)


def ragged_from_offsets(offsets: Any, values: Any, longest: int | None = None) -> Tensor:
    """A tensor of layout 'ragged' of these parts and not of copies: row i has values[offsets[i] : offsets[i + 1]].
    `offsets` has one number more than there are rows and ascends from 0 to the number of values. `longest`, the second
    size of the shape, is read from the offsets if it is not given."""
    offsets, values = tenon.asarray(offsets), tenon.asarray(values)
    if offsets.ndim != 1 or offsets.shape[0] < 1 or values.ndim < 1:
        raise ValueError(
            f"ragged: expected offsets [rows + 1] and values [elements, ...], got shapes "
            f"{tuple(offsets.shape)} and {tuple(values.shape)}"
        )
    rows = offsets.shape[0] - 1
    found = 0
    if offsets.device.kind != "meta":
        _core.operator("csr_rows")(offsets, values.shape[0])  # fails with the position
        found = int((offsets[1:] - offsets[:-1]).max().item()) if rows > 0 else 0
    if longest is None:
        longest = found
    elif found > longest:
        raise ValueError(f"ragged: expected rows of at most {longest} elements, got one of {found}")
    return _core.compose("ragged", [rows, longest, *values.shape[1:]], [offsets, values])


def ragged_from_dense(x: Any, lengths: Any) -> Tensor:
    """The first `lengths[i]` elements of each row of `x` [rows, longest, ...]; both tensors, arrays or lists. Gradients
    pass."""
    x = tenon.asarray(x)
    lengths = tenon.asarray(lengths, device=x.device)
    values = tenon.sequence_unpad(x, lengths)
    zero = tenon.zeros([1], dtype=tenon.int64, device=x.device)
    offsets = tenon.concat([zero, tenon.cumsum(lengths.to(tenon.int64))])
    return ragged_from_offsets(offsets, values)


def lengths(x: Tensor) -> Tensor:
    """How many elements each row has, of layout 'ragged'."""
    begin = x.offsets()
    return begin[1:] - begin[:-1]


def ragged_attention(
    query: Tensor, key: Tensor, value: Tensor, causal: bool = False, scale: float | None = None
) -> Tensor:
    """Attention of each row for itself: `query`, `key` and `value` of layout 'ragged' and shape
    [rows, longest, heads, features]; the elements of a query's row see those of the same row of `key`. See
    varlen_attention."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.layout != "ragged" or x.ndim != 4:
            raise ValueError(
                f"ragged_attention(): expected `{name}` of layout ragged and shape [rows, longest, "
                f"heads, features], got layout {x.layout} and shape {tuple(x.shape)}"
            )
    if query.shape[0] != key.shape[0] or not _same(key.offsets(), value.offsets()):
        raise ValueError(
            "ragged_attention(): expected as many rows in `query` and `key`, and rows of the same "
            "lengths in `key` and `value`"
        )
    values = tenon.varlen_attention(
        query.values(),
        key.values(),
        value.values(),
        query.offsets(),
        key.offsets(),
        query.shape[1],
        key.shape[1],
        causal,
        scale,
    )
    shape = [*query.shape[:2], *values.shape[1:]]
    return _core.compose("ragged", shape, [query.offsets(), values])


def _same(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.shape == b.shape and bool((a == b).all().item()))
