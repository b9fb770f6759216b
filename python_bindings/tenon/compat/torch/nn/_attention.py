# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional's attention of many heads, with its projections."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon._core import Tensor

__all__ = ["multi_head_attention_forward"]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of `num_heads` heads of `query` [L, N, E] (or [L, E]), and its weights [N, L, S], the mean over heads
    or each. True in a boolean mask hides a key; a floating mask is added. `bias_k`, `bias_v` and `add_zero_attn` add a
    key each; `static_k` and `static_v` [N * heads, S, E / heads] stand for projected keys and values."""
    alone = query.ndim == 2
    if alone:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    if width != embed_dim_to_check or width % num_heads:
        raise ValueError(
            f"multi_head_attention_forward(): expected {embed_dim_to_check} features that {num_heads} heads share, "
            f"got {width}"
        )
    if is_causal and attn_mask is None:
        raise ValueError(
            "multi_head_attention_forward(): expected attn_mask beside is_causal=True, which is a hint about it"
        )
    weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight:
        weights = tenon.chunk(_given(in_proj_weight, "in_proj_weight"), 3)
    biases: Any = (None,) * 3 if in_proj_bias is None else tenon.chunk(in_proj_bias, 3)
    q, k, v = (
        tenon.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    if bias_k is not None and bias_v is not None:
        k = tenon.concat([k, tenon.broadcast_to(bias_k, (1, batch, width))])
        v = tenon.concat([v, tenon.broadcast_to(bias_v, (1, batch, width))])
    features = width // num_heads
    heads = (batch, num_heads)
    q, k, v = (
        x.reshape([x.shape[0], batch * num_heads, features]).swapaxes(0, 1) for x in (q, k, v)
    )
    k, v = (static_k if static_k is not None else k), (static_v if static_v is not None else v)
    if add_zero_attn:
        zeros = tenon.zeros((batch * num_heads, 1, features), dtype=k.dtype, device=k.device)
        k, v = tenon.concat([k, zeros], 1), tenon.concat([v, zeros], 1)
    q, k, v = (x.reshape([*heads, x.shape[1], features]) for x in (q, k, v))
    bias = _bias(attn_mask, key_padding_mask, heads, k.shape[2], q)
    if not need_weights:
        joined = tenon.scaled_dot_product_attention(q, k, v, bias, dropout_p if training else 0.0)
        scores = None
    else:
        scores = q @ k.swapaxes(-2, -1) / math.sqrt(features)
        scores = tenon.softmax(scores if bias is None else scores + bias, -1)
        if training and dropout_p > 0:
            scores = tenon.dropout(scores, dropout_p)
        joined = scores @ v
    joined = joined.permute([2, 0, 1, 3]).reshape([length, batch, width])
    result = tenon.linear(joined, out_proj_weight, out_proj_bias)
    if scores is not None and average_attn_weights:
        scores = scores.mean(1)
    if alone:
        result = result.squeeze(1)
        scores = None if scores is None else scores.squeeze(0)
    return result, scores


def _given(weight: Tensor | None, name: str) -> Tensor:
    if weight is None:
        raise ValueError(f"multi_head_attention_forward(): expected {name}, got None")
    return weight


def _bias(
    mask: Tensor | None,
    padding: Tensor | None,
    heads: tuple[int, int],
    keys: int,
    like: Tensor,
) -> Tensor | None:
    """Both masks as one that is added to scores; keys that were added are seen."""
    total = None
    if mask is not None:
        mask = _added(mask, like)
        if mask.ndim == 3:
            mask = mask.reshape([*heads, *mask.shape[1:]])
        total = _wider(mask, keys)
    if padding is not None:
        hidden = _wider(_added(padding, like), keys).reshape([heads[0], 1, 1, keys])
        total = hidden if total is None else total + hidden
    return total


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != tenon.bool:
        return mask.to(like.dtype)
    zero = tenon.zeros((), dtype=like.dtype, device=like.device)
    return tenon.where(mask, zero - float("inf"), zero)


def _wider(mask: Tensor, keys: int) -> Tensor:
    missing = keys - mask.shape[-1]
    return tenon.pad(mask, [0] * (2 * mask.ndim - 1) + [missing]) if missing else mask
