# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.functional: attention of tensors [batch, length, heads, features]."""

from __future__ import annotations

from typing import Any

import tenon
from tenon._core import Tensor

__all__ = "flash_attn_qkvpacked flashmask_attention".split()


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None = None,
) -> Tensor:
    q, k, v = (tenon.transpose(x, 1, 2) for x in (query, key, value))
    grouped = q.shape[1] != k.shape[1]
    out = tenon.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, grouped)
    return tenon.transpose(out, 1, 2)


def _expect_axes(name: str, query: Tensor, key: Tensor, value: Tensor) -> None:
    for label, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim != 4:
            raise ValueError(
                f"{name}(): expected {label} [batch, length, heads, features], got shape {tuple(x.shape)}"
            )


def _expect_none(name: str, reason: str, **given: Any) -> None:
    for label, value in given.items():
        if value is not None and value is not False:
            raise NotImplementedError(f"{name}(): expected no {label}, {reason}")


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    *,
    fixed_seed_offset: Any = None,
    training: bool = True,
    softmax_scale: float | None = None,
) -> tuple[Tensor, None]:
    """The attention, and None in the place of its probabilities."""
    name = "flash_attention"
    _expect_axes(name, query, key, value)
    _expect_none(name, "as probabilities are not kept", return_softmax=return_softmax)
    _expect_none(
        name, "as numbers are drawn of tenon's stream", fixed_seed_offset=fixed_seed_offset
    )
    made = _attend(query, key, value, None, dropout if training else 0.0, causal, softmax_scale)
    return made, None


def flash_attn_qkvpacked(
    qkv: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    *,
    fixed_seed_offset: Any = None,
    training: bool = True,
) -> tuple[Tensor, None]:
    """flash_attention() of queries, keys and values in one tensor [batch, length, 3, heads, features]. More heads of
    queries than of keys are refused: which of them belong together is not said."""
    if qkv.ndim != 5 or qkv.shape[2] != 3:
        raise ValueError(
            "flash_attn_qkvpacked(): expected qkv [batch, length, 3, heads, features], got shape "
            f"{tuple(qkv.shape)}; call scaled_dot_product_attention() for groups of heads"
        )
    query, key, value = tenon.unbind(qkv, 2)
    return flash_attention(
        query,
        key,
        value,
        dropout,
        causal,
        return_softmax,
        fixed_seed_offset=fixed_seed_offset,
        training=training,
    )


def _window(name: str, window_size: Any, row: Tensor, column: Tensor, causal: bool) -> Tensor:
    """Which keys are near enough to a query."""
    if isinstance(window_size, int):
        window_size = (window_size, window_size)
    if not isinstance(window_size, (list, tuple)) or len(window_size) != 2:
        raise ValueError(f"{name}(): expected window_size a number or two, got {window_size!r}")
    before, behind = window_size
    near = column >= row - before
    return near if causal else near & (column <= row + behind)


def flashmask_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    startend_row_indices: Tensor | None = None,
    *,
    dropout: float = 0.0,
    causal: bool = False,
    window_size: Any = None,
    return_softmax_lse: bool = False,
    return_seed_offset: bool = False,
    fixed_seed_offset: Any = None,
    training: bool = True,
    softmax_scale: float | None = None,
    block_mask: Any = None,
) -> Tensor:
    """Attention in which rows of queries are hidden from each key (FlashMask; Wang et al., 2024).

    `startend_row_indices` [batch, key heads or 1, keys, n] are, with `causal`, where the hidden rows begin (n 1) and end
    (n 2) below the diagonal; without it, where those below begin and those above end (n 2), or both begins and ends
    (n 4). A query that sees nothing gives zeros. The mask is made whole: [batch, heads, queries, keys].
    """
    name = "flashmask_attention"
    _expect_axes(name, query, key, value)
    _expect_none(
        name,
        "as only the result is kept",
        return_softmax_lse=return_softmax_lse,
        return_seed_offset=return_seed_offset,
    )
    _expect_none(
        name, "as numbers are drawn of tenon's stream", fixed_seed_offset=fixed_seed_offset
    )
    _expect_none(name, "give the rows of each key", block_mask=block_mask)
    if (causal or window_size is not None) and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"{name}(): expected as many keys as queries with causal or window_size, got {key.shape[1]} and "
            f"{query.shape[1]}"
        )
    row = tenon.arange(query.shape[1], device=query.device).unsqueeze(1)
    column = tenon.arange(key.shape[1], device=query.device)
    shown = (row >= column) if causal else tenon.ones_like(row >= column)
    if window_size is not None:
        shown = shown & _window(name, window_size, row, column, causal)
    if startend_row_indices is not None:
        shown = shown & ~_hidden(name, startend_row_indices, query, key, row, column, causal)
    return _attend(query, key, value, shown, dropout if training else 0.0, False, softmax_scale)


def _hidden(
    name: str, rows: Tensor, query: Tensor, key: Tensor, row: Tensor, column: Tensor, causal: bool
) -> Tensor:
    """[batch, heads or 1, queries, keys]"""
    counts = (1, 2) if causal else (2, 4)
    batch, _, keys, heads = key.shape[0], key.shape[1], key.shape[1], key.shape[2]
    fits = rows.ndim == 4 and rows.shape[0] == batch and rows.shape[2] == keys
    if not fits or rows.shape[1] not in (1, heads) or rows.shape[3] not in counts:
        raise ValueError(
            f"{name}(): expected startend_row_indices [{batch}, 1 or {heads}, {keys}, {counts[0]} or {counts[1]}] "
            f"with causal={causal}, got shape {tuple(rows.shape)}"
        )
    if rows.shape[1] > 1 and query.shape[2] != heads:
        rows = tenon.repeat(rows, query.shape[2] // heads, 1)
    bounds = [part.unsqueeze(2) for part in tenon.unbind(rows.to(tenon.int64), -1)]
    below, above = row > column, row < column
    if causal:
        hidden = row >= bounds[0]
        return hidden & (row < bounds[1]) if len(bounds) == 2 else hidden
    if len(bounds) == 2:
        return (below & (row >= bounds[0])) | (above & (row < bounds[1]))
    first = below & (row >= bounds[0]) & (row < bounds[1])
    return first | (above & (row >= bounds[2]) & (row < bounds[3]))
