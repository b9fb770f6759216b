# SPDX-License-Identifier: Apache-2.0
"""Attention of which a part is left out: by a sparse pattern, or by rows where a column ends; and softmaxes with masks."""

from __future__ import annotations

import math

import tenon
from tenon import Tensor


def sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets: Tensor,
    columns: Tensor,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
) -> Tensor:
    """Attention [N, heads, L, E] of which only the scores of a CSR pattern are computed, for each sequence and head: `offsets` [N, heads, L + 1]
    and `columns` [N, heads, stored]. `key_padding_mask` [N, L] and `attn_mask` [L, L] are 0 where there is nothing to attend to."""
    name = "sparse_attention"
    if (
        query.ndim != 4
        or list(query.shape) != list(key.shape)
        or list(value.shape[:3]) != list(key.shape[:3])
    ):
        raise ValueError(
            f"{name}: expected query, key and value [N, heads, L, E], got shapes {tuple(query.shape)}, {tuple(key.shape)} and "
            f"{tuple(value.shape)}"
        )
    batch, heads, length, features = query.shape
    if (
        list(offsets.shape) != [batch, heads, length + 1]
        or columns.ndim != 3
        or list(columns.shape[:2]) != [batch, heads]
    ):
        raise ValueError(
            f"{name}: expected offsets [{batch}, {heads}, {length + 1}] and columns [{batch}, {heads}, stored], got shapes "
            f"{tuple(offsets.shape)} and {tuple(columns.shape)}"
        )
    groups, stored = batch * heads, columns.shape[2]
    offsets, columns = offsets.cast(tenon.int64), columns.cast(tenon.int64)
    ends = offsets.reshape([groups, length + 1])
    if bool(tenon.any(ends[:, -1] != stored)) or bool(tenon.any(ends[:, 0] != 0)):
        raise ValueError(f"{name}: expected offsets from 0 to the {stored} columns of each head")
    if bool(tenon.any(tenon.logical_or(columns < 0, columns >= length))):
        raise IndexError(f"{name}: expected columns from 0 to {length - 1}")
    # All heads are one tall matrix, block after block.
    group = tenon.arange(groups, device=query.device).unsqueeze(1)
    indptr = tenon.concat(
        [
            (ends[:, :-1] + group * stored).reshape([-1]),
            tenon.full([1], groups * stored, dtype=tenon.int64, device=query.device),
        ]
    )
    indices = (columns.reshape([groups, stored]) + group * length).reshape([-1])
    rows = [x.reshape([groups * length, -1]) for x in (query, key, value)]
    score = tenon.csr_sddmm(indptr, indices, rows[0], rows[1]) * (1.0 / math.sqrt(features))
    row = tenon.csr_rows(indptr, groups * stored)
    hidden = tenon.zeros([groups * stored], dtype=tenon.bool, device=query.device)
    if attn_mask is not None:
        at = tenon.remainder(row, length) * length + tenon.remainder(indices, length)
        hidden = tenon.logical_or(hidden, tenon.index_select(attn_mask.reshape([-1]), at, 0) == 0)
    if key_padding_mask is not None:
        at = tenon.floor_divide(indices, heads * length) * length + tenon.remainder(indices, length)
        hidden = tenon.logical_or(
            hidden, tenon.index_select(key_padding_mask.reshape([-1]), at, 0) == 0
        )
    score = tenon.where(hidden, -math.inf, score)
    largest = tenon.segment_max(score.detach(), row, groups * length)
    largest = tenon.where(tenon.isfinite(largest), largest, 0.0)
    weight = tenon.exp(score - tenon.index_select(largest, row, 0))
    total = tenon.index_select(tenon.segment_sum(weight, row, groups * length), row, 0)
    weight = weight / tenon.where(total > 0, total, 1.0)
    out = tenon.csr_matmul(indptr, indices, weight, rows[2])
    return out.reshape([batch, heads, length, value.shape[3]])


def flash_attention_with_sparse_mask(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    start_rows: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = True,
) -> Tensor:
    """Attention [N, L, heads, E] in which column j is hidden from row `start_rows[n, heads, j]` on, and from rows before j with
    `is_causal`. `start_rows` is [N, heads or 1, L]."""
    name = "flash_attention_with_sparse_mask"
    if query.ndim != 4 or start_rows.ndim != 3 or start_rows.shape[2] != key.shape[1]:
        raise ValueError(
            f"{name}: expected query [N, L, heads, E] and start_rows [N, heads, keys], got shapes {tuple(query.shape)} and "
            f"{tuple(start_rows.shape)}"
        )
    row = tenon.arange(query.shape[1], device=query.device).unsqueeze(1)
    shown = row < start_rows.unsqueeze(2)
    if is_causal:
        shown = tenon.logical_and(shown, row >= tenon.arange(key.shape[1], device=query.device))
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    return tenon.scaled_dot_product_attention(q, k, v, shown, dropout_p).transpose(1, 2)


def reduced_attention_scores(query: Tensor, key: Tensor, softmax_lse: Tensor) -> Tensor:
    """How much each key [N, K, heads, E] is attended to by all queries [N, L, heads, E]: the sums [N, heads, 1, K] of the attention's
    probabilities, of which `softmax_lse` [N, heads, L] is the logarithm of the denominator."""
    score = tenon.einsum("nlhe,nkhe->nhlk", [query, key]) * (1.0 / math.sqrt(query.shape[-1]))
    if list(softmax_lse.shape) != list(score.shape[:3]):
        raise ValueError(
            f"reduced_attention_scores: expected softmax_lse of shape {tuple(score.shape[:3])}, got {tuple(softmax_lse.shape)}"
        )
    return tenon.exp(score - softmax_lse.unsqueeze(3)).sum([2], keepdim=True)


def softmax_with_mask(x: Tensor, mask: Tensor) -> Tensor:
    """The softmax of `x + mask` along the last axis."""
    return tenon.softmax(x + mask, -1)


def softmax_upper_hidden(x: Tensor) -> Tensor:
    """The softmax along the last axis of `x` [..., L, L] without what is above the diagonal: a row sees those up to its own."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"softmax_upper_hidden: expected x [..., L, L], got shape {tuple(x.shape)}"
        )
    seen = tenon.tril(tenon.ones([x.shape[-1], x.shape[-1]], dtype=tenon.bool, device=x.device))
    return tenon.softmax(tenon.where(seen, x, -math.inf), -1)
