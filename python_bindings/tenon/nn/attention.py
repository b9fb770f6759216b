# SPDX-License-Identifier: Apache-2.0
"""Attention with several heads (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from . import init
from .linear import Linear
from .module import Module
from .parameter import Parameter


class MultiheadAttention(Module):
    """Attention in `num_heads` slices of the features.

    Tensors are [length, batch, features], [batch, length, features] with `batch_first`, or
    [length, features]. Masks are as in PyTorch: a boolean one leaves out what is true (the operator
    tenon.scaled_dot_product_attention keeps it), a floating one is added.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: expected embed_dim divisible by num_heads {num_heads},"
                f" got {embed_dim}"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        options = {"device": device, "dtype": dtype}

        def new(*shape: int) -> Parameter:
            return Parameter(tenon.empty(list(shape), **options))

        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = None
        self.v_proj_weight = self.in_proj_bias = self.bias_k = self.bias_v = None
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = new(3 * embed_dim, embed_dim)
        else:
            self.q_proj_weight = new(embed_dim, embed_dim)
            self.k_proj_weight = new(embed_dim, self.kdim)
            self.v_proj_weight = new(embed_dim, self.vdim)
        if bias:
            self.in_proj_bias = new(3 * embed_dim)
        self.out_proj = Linear(embed_dim, embed_dim, bias, **options)
        if add_bias_kv:
            self.bias_k, self.bias_v = new(1, 1, embed_dim), new(1, 1, embed_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier uniform for the projections of query, key and value; zero biases."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result, and the weights [batch, query length, key length] (or None).

        Without a key this is self-attention; without a value the key is the value. With
        `need_weights=False` the fused operator runs, which is faster and keeps no weights.
        `is_causal` lets a query see its own key and those before it, without a mask.
        """
        key = query if key is None else key
        value = key if value is None else value
        batched = query.ndim == 3
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = self._project(query, key, value)
        extra = 0  # keys that every query sees
        if self.bias_k is not None and self.bias_v is not None:
            batch = q.shape[0]
            k = tenon.concat([k, self.bias_k.expand([batch, 1, self.embed_dim])], 1)
            v = tenon.concat([v, self.bias_v.expand([batch, 1, self.embed_dim])], 1)
            extra += 1
        if self.add_zero_attn:
            k, v = tenon.pad(k, [0, 0, 0, 1, 0, 0]), tenon.pad(v, [0, 0, 0, 1, 0, 0])
            extra += 1
        q, k, v = self._split(q), self._split(k), self._split(v)
        if is_causal and (attn_mask is not None or key_padding_mask is not None or extra):
            if attn_mask is None:
                length, keys = q.shape[2], k.shape[2] - extra
                seen = tenon.tril(tenon.ones([length, keys], device=q.device))
                attn_mask = seen == 0
            is_causal = False
        mask = self._mask(attn_mask, key_padding_mask, q, extra)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            heads, weights = _attend(q, k, v, mask, dropout, is_causal)
            weights = weights.mean(axis=1) if average_attn_weights else weights
        else:
            heads = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal)
        batch, _, length, _ = q.shape
        out = self.out_proj(heads.transpose(1, 2).reshape([batch, length, self.embed_dim]))
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        size, bias = self.embed_dim, self.in_proj_bias
        if self.in_proj_weight is not None and query is key and key is value:
            return tuple(F.linear(query, self.in_proj_weight, bias).split([size] * 3, -1))
        if self.in_proj_weight is not None:
            parts: Any = [self.in_proj_weight[i * size : (i + 1) * size] for i in range(3)]
        else:
            parts = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        biases = [None] * 3 if bias is None else [bias[i * size : (i + 1) * size] for i in range(3)]
        return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), parts, biases))

    def _split(self, x: Tensor) -> Tensor:
        """[batch, length, features] to [batch, heads, length, features of one]."""
        batch, length, features = x.shape
        shape = [batch, length, self.num_heads, features // self.num_heads]
        return x.reshape(shape).transpose(1, 2)

    def _mask(
        self, attn_mask: Tensor | None, padding: Tensor | None, q: Tensor, extra: int
    ) -> Tensor | None:
        """Both masks together, in the operator's convention: true keeps, floating is added."""
        batch, heads, length, _ = q.shape
        mask = None
        if attn_mask is not None:
            shape = [1, 1, *attn_mask.shape]
            if attn_mask.ndim == 3:
                shape = [batch, heads, *attn_mask.shape[1:]]
            mask = attn_mask.reshape(shape)
        if padding is not None:
            padding = padding.reshape([batch, 1, 1, padding.shape[-1]])
            if mask is None:
                mask = padding
            elif mask.dtype == tenon.bool and padding.dtype == tenon.bool:
                mask = tenon.logical_or(mask, padding)
            else:
                mask = _added(mask, q.dtype) + _added(padding, q.dtype)
        if mask is None:
            return None
        if extra:
            fill = False if mask.dtype == tenon.bool else 0.0
            mask = tenon.pad(mask, [0, 0, 0, 0, 0, 0, 0, extra], value=fill)
        return tenon.logical_not(mask) if mask.dtype == tenon.bool else mask

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, num_heads={self.num_heads}, dropout={self.dropout}"


def _added(mask: Tensor, dtype: Any) -> Tensor:
    """A mask to add to scores: minus infinity where a boolean one leaves out."""
    if mask.dtype != tenon.bool:
        return mask
    zeros = tenon.zeros(mask.shape, dtype=dtype, device=mask.device)
    return tenon.where(mask, -float("inf"), zeros)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool
) -> tuple[Tensor, Tensor]:
    """Attention step by step, which yields the weights [batch, heads, length, keys] as well."""
    scores = tenon.matmul(q * (1.0 / math.sqrt(q.shape[-1])), k.transpose(2, 3))
    if causal:
        keep = tenon.tril(tenon.ones(scores.shape[2:], device=q.device)) > 0
        mask = keep.reshape([1, 1, *keep.shape])
    if mask is not None and mask.dtype == tenon.bool:
        scores = tenon.where(mask, scores, -float("inf"))
    elif mask is not None:
        scores = scores + mask
    if mask is None:
        weights = tenon.softmax(scores, -1)
    else:
        # A query that sees no key gets zeros, as from the operator, where softmax is 0 / 0.
        blind = tenon.max(scores, -1, True) == -float("inf")
        weights = tenon.softmax(tenon.where(blind, 0.0, scores), -1)
        weights = tenon.where(blind, 0.0, weights)
    if dropout:
        weights = F.dropout(weights, dropout, True)
    return tenon.matmul(weights, v), weights
