# SPDX-License-Identifier: Apache-2.0
"""Steps of large language models around the operators: caches written in place, and experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tenon
from tenon import Tensor


def masked_multihead_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    lengths: Tensor,
    scale: float | None = None,
) -> Tensor:
    """One step of decoding: writes the new token into the caches, in place, and attends to them.

    `query` is [N, heads, features], `key` and `value` [N, kv_heads, features], the caches [N,
    kv_heads, positions, features], where `lengths` [N] positions are in use before this token. No
    gradient goes through the caches. The result is [N, heads, features].
    """
    sequences = tenon.arange(lengths.shape[0], device=lengths.device)
    with tenon.no_grad():
        # [N, positions, kv_heads, features] are views: this writes the caches themselves.
        key_cache.transpose(1, 2)[sequences, lengths] = key
        value_cache.transpose(1, 2)[sequences, lengths] = value
    return tenon.cached_attention(query, key_cache, value_cache, lengths + 1, scale)


def paged_multihead_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_blocks: Tensor,
    value_blocks: Tensor,
    block_table: Tensor,
    lengths: Tensor,
    scale: float | None = None,
) -> Tensor:
    """masked_multihead_attention whose caches are blocks [blocks, kv_heads, block_size, features].

    `block_table` [N, blocks of a sequence] says which blocks are those of each sequence, in order.
    """
    size = key_blocks.shape[2]
    sequences = tenon.arange(lengths.shape[0], device=lengths.device)
    block = block_table[sequences, tenon.floor_divide(lengths, size)]
    place = tenon.remainder(lengths, size)
    with tenon.no_grad():
        key_blocks.transpose(1, 2)[block, place] = key
        value_blocks.transpose(1, 2)[block, place] = value
    return tenon.paged_attention(query, key_blocks, value_blocks, block_table, lengths + 1, scale)


def mixture_of_experts(
    x: Tensor,
    logits: Tensor,
    experts: Sequence[Callable[[Tensor], Tensor]],
    k: int = 2,
    normalize: bool = True,
) -> Tensor:
    """Each token of `x` [tokens, features] by the `k` of `experts` that `logits` [tokens, experts]
    prefer: the sum of what they make of it, times their probabilities.

    The experts are functions of [rows, features], such as modules; one without tokens is not called.
    """
    if logits.shape != (x.shape[0], len(experts)):
        raise ValueError(
            f"mixture_of_experts: expected logits of shape {(x.shape[0], len(experts))}, got "
            f"{tuple(logits.shape)}"
        )
    weights, chosen = tenon.moe_gate(logits, k, normalize)
    rows, counts, order = tenon.moe_dispatch(x, chosen, len(experts))
    parts = tenon.split(rows, counts.tolist(), 0)
    made = [expert(part) for expert, part in zip(experts, parts) if part.shape[0] > 0]
    if not made:
        return tenon.zeros_like(x)
    return tenon.moe_combine(tenon.concat(made, 0), weights, order)
