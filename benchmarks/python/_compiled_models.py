# SPDX-License-Identifier: Apache-2.0
"""Models for torch_compile.py beside those of _training_models.py: the usual kinds, small enough for a processor."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


def convolutions(_):
    """Plain convolutions with normalisation."""
    layers, inputs = [], 3
    for outputs in (32, 64, 128):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
        inputs = outputs
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 10))


def depthwise(_):
    """Convolutions of each channel and of each pixel (Howard et al., 2017)."""

    def block(inputs, outputs, stride):
        return nn.Sequential(
            nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
            nn.BatchNorm2d(inputs),
            nn.Hardswish(),
            nn.Conv2d(inputs, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.Hardswish(),
        )

    sizes = ((16, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1))
    stem = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()]
    blocks = [block(*size) for size in sizes]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))


class UNet(nn.Module):
    """Down and up again, with connections between (Ronneberger et al., 2015)."""

    def __init__(self):
        super().__init__()

        def double(inputs, outputs):
            first, second = (
                nn.Conv2d(inputs, outputs, 3, padding=1),
                nn.Conv2d(outputs, outputs, 3, padding=1),
            )
            return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())

        self.down1, self.down2, self.middle = double(3, 16), double(16, 32), double(32, 64)
        self.up2 = nn.ConvTranspose2d(64, 32, 2, stride=2)
        self.up1 = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.join2, self.join1, self.head = double(64, 32), double(32, 16), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        y = self.middle(functional.max_pool2d(second, 2))
        y = self.join2(torch.cat([self.up2(y), second], 1))
        return self.head(self.join1(torch.cat([self.up1(y), first], 1)))


class Layer(nn.Module):
    """A layer of a transformer, normalised before (GPT-2, ViT) or after its parts (BERT)."""

    def __init__(self, size, heads, *, causal=False, first=True):
        super().__init__()
        self.heads, self.causal, self.first = heads, causal, first
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def attend(self, x):
        batch, length, size = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, size // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, size))

    def feed(self, x):
        return self.down(functional.gelu(self.up(x)))

    def forward(self, x):
        if self.first:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))


class Tokens(nn.Module):
    """A language model, or with `classes` a classifier of texts."""

    def __init__(self, words, size, layers, heads, *, causal, classes=None):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, size), nn.Embedding(128, size)
        self.layers = nn.ModuleList(
            Layer(size, heads, causal=causal, first=causal) for _ in range(layers)
        )
        self.classes = classes
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, classes or words)

    def forward(self, x):
        y = self.words(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for layer in self.layers:
            y = layer(y)
        if self.classes:
            return self.head(y[:, 0])
        return self.head(self.norm(y)).flatten(0, 1)


def gpt(_):
    """GPT-2 of 4 layers and 256 features."""
    return Tokens(1000, 256, 4, 8, causal=True)


def bert(_):
    """BERT of 2 layers and 64 features."""
    return Tokens(1000, 64, 2, 4, causal=False, classes=3)


class Patches(nn.Module):
    """Images cut into patches of 8 x 8, then `layers` (Dosovitskiy et al., 2020; Tolstikhin et al., 2021)."""

    def __init__(self, size, layers):
        super().__init__()
        self.cut = nn.Conv2d(3, size, 8, 8)
        self.positions = nn.Parameter(torch.randn(64, size) * 0.02)
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, 100)

    def forward(self, x):
        y = self.cut(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.layers(y)).mean(1))


def vit(_):
    return Patches(192, [Layer(192, 3) for _ in range(4)])


class Mixing(nn.Module):
    """Mixes the patches of each feature, then the features of each patch."""

    def __init__(self, size):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.patches = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
        self.features = nn.Sequential(nn.Linear(size, 512), nn.GELU(), nn.Linear(512, size))

    def forward(self, x):
        x = x + self.patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.features(self.norm2(x))


def mixer(_):
    return Patches(128, [Mixing(128) for _ in range(4)])


class Recommender(nn.Module):
    """Features that are numbers of categories, then a perceptron (Cheng et al., 2016)."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(1000, 16) for _ in range(8))
        self.deep = nn.Sequential(
            nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2)
        )

    def forward(self, x):
        parts = [table(x[:, i]) for i, table in enumerate(self.tables)]
        return self.deep(torch.cat(parts, 1))


def recommender(_):
    return Recommender()


def unet(_):
    return UNet()
