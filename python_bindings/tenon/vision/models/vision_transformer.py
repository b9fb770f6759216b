# SPDX-License-Identifier: Apache-2.0
"""Vision transformers (Dosovitskiy et al., 2021)."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn import init

from ._blocks import untrained, zero_


class _Mlp(nn.Sequential):
    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, width),
            nn.Dropout(dropout),
        )
        for layer in (self[0], self[3]):
            init.xavier_uniform_(layer.weight)
            init.normal_(layer.bias, 0.0, 1e-6)


class _EncoderBlock(nn.Module):
    """Attention and a perceptron, each behind a norm and beside a shortcut."""

    def __init__(
        self, heads: int, width: int, hidden: int, dropout: float, attention_dropout: float
    ) -> None:
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(
            width, heads, attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = _Mlp(width, hidden, dropout)

    def forward(self, x: Tensor) -> Tensor:
        attended, _ = self.self_attention(self.ln_1(x), need_weights=False)
        x = x + self.dropout(attended)
        return x + self.mlp(self.ln_2(x))


class _Encoder(nn.Module):
    def __init__(
        self,
        length: int,
        layers: int,
        heads: int,
        width: int,
        hidden: int,
        dropout: float,
        attention_dropout: float,
    ) -> None:
        self.pos_embedding = nn.Parameter(tenon.normal([1, length, width], 0.0, 0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(
            {
                f"encoder_layer_{i}": _EncoderBlock(
                    heads, width, hidden, dropout, attention_dropout
                )
                for i in range(layers)
            }
        )
        self.ln = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.ln(self.layers(self.dropout(x + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """Classifies images [N, 3, image_size, image_size], cut into patches."""

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
    ) -> None:
        if image_size % patch_size:
            raise ValueError(
                f"VisionTransformer: expected image_size divisible by patch_size {patch_size}, got "
                f"{image_size}"
            )
        self.image_size, self.patch_size = image_size, patch_size
        self.class_token = nn.Parameter(tenon.zeros([1, 1, hidden_dim]))
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, patch_size)
        length = (image_size // patch_size) ** 2 + 1
        self.encoder = _Encoder(
            length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout
        )
        self.heads = nn.Sequential({"head": nn.Linear(hidden_dim, num_classes)})
        fan_in = 3 * patch_size * patch_size
        init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / fan_in))
        head = self.heads[0]
        zero_(self.conv_proj.bias, head.weight, head.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        if tuple(x.shape[-2:]) != (self.image_size, self.image_size):
            raise ValueError(
                f"VisionTransformer: expected images of {self.image_size} x {self.image_size} pixels, "
                f"got shape {tuple(x.shape)}"
            )
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)  # [N, patches, hidden_dim]
        token = tenon.expand(self.class_token, [x.shape[0], 1, patches.shape[2]])
        return self.heads(self.encoder(tenon.concat([token, patches], 1))[:, 0])


@untrained
def vit_b_16(**settings: Any) -> VisionTransformer:
    """The base model with patches of 16 x 16 pixels."""
    return _vit(16, 12, 12, 768, 3072, settings)


@untrained
def vit_b_32(**settings: Any) -> VisionTransformer:
    """The base model with patches of 32 x 32 pixels."""
    return _vit(32, 12, 12, 768, 3072, settings)


@untrained
def vit_l_16(**settings: Any) -> VisionTransformer:
    """The large model with patches of 16 x 16 pixels."""
    return _vit(16, 24, 16, 1024, 4096, settings)


def _vit(
    patch: int, layers: int, heads: int, width: int, hidden: int, settings: dict[str, Any]
) -> VisionTransformer:
    image_size = settings.pop("image_size", 224)
    return VisionTransformer(image_size, patch, layers, heads, width, hidden, **settings)
