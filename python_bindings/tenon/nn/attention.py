# SPDX-License-Identifier: Apache-2.0
"""Attention with several heads."""

from __future__ import annotations

from typing import Any

from tenon import Tensor

from . import functional as F
from .linear import Linear
from .module import Module


class MultiheadAttention(Module):
    """Attention in `num_heads` slices of the features. All tensors are [batch, length, features].

    `mask` broadcasts to [batch, heads, query length, key length]: boolean keeps where true,
    floating is added. `causal` lets a position see itself and those before it.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: expected embed_dim divisible by num_heads {num_heads},"
                f" got {embed_dim}"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.query = Linear(embed_dim, embed_dim, **options)
        self.key = Linear(embed_dim, embed_dim, **options)
        self.value = Linear(embed_dim, embed_dim, **options)
        self.out = Linear(embed_dim, embed_dim, **options)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Without a key this is self-attention; without a value the key is the value."""
        key = query if key is None else key
        value = key if value is None else value
        heads = F.scaled_dot_product_attention(
            self._split(self.query(query)),
            self._split(self.key(key)),
            self._split(self.value(value)),
            mask,
            self.dropout if self.training else 0.0,
            causal,
        )
        return self.out(heads.transpose(1, 2).reshape([*query.shape]))

    def _split(self, x: Tensor) -> Tensor:
        """[batch, length, features] to [batch, heads, length, features of one]."""
        batch, length, features = x.shape
        shape = [batch, length, self.num_heads, features // self.num_heads]
        return x.reshape(shape).transpose(1, 2)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, num_heads={self.num_heads}, dropout={self.dropout}"
