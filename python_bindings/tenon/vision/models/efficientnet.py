# SPDX-License-Identifier: Apache-2.0
"""EfficientNet (Tan and Le, 2019)."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor, nn

from ._blocks import (
    ConvNormActivation,
    SqueezeExcitation,
    StochasticDepth,
    init_convolutions,
    make_divisible,
    untrained,
)

# Expansion, kernel, stride, channels in and out, blocks of each stage.
_STAGES = (
    (1, 3, 1, 32, 16, 1),
    (6, 3, 2, 16, 24, 2),
    (6, 5, 2, 24, 40, 2),
    (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4),
    (6, 3, 1, 192, 320, 1),
)


class MBConv(nn.Module):
    """Few channels, more of them inside, with squeeze and excitation, beside a shortcut."""

    def __init__(
        self, channels: int, out_channels: int, kernel: int, stride: int, ratio: int, depth: float
    ) -> None:
        expanded = make_divisible(channels * ratio)
        layers: list[nn.Module] = []
        if expanded != channels:
            layers.append(ConvNormActivation(channels, expanded, 1, activation=nn.SiLU))
        layers += [
            ConvNormActivation(expanded, expanded, kernel, stride, expanded, activation=nn.SiLU),
            SqueezeExcitation(expanded, max(1, channels // 4), activation=nn.SiLU),
            ConvNormActivation(expanded, out_channels, 1, activation=None),
        ]
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(depth)
        self.use_res_connect = stride == 1 and channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(x)
        return x + self.stochastic_depth(y) if self.use_res_connect else y


class EfficientNet(nn.Module):
    """Classifies images [N, 3, H, W]. `width_mult` scales channels and `depth_mult` the number of
    blocks."""

    def __init__(
        self,
        width_mult: float = 1.0,
        depth_mult: float = 1.0,
        dropout: float = 0.2,
        stochastic_depth: float = 0.2,
        num_classes: int = 1000,
    ) -> None:
        def scaled(width: int) -> int:
            return make_divisible(width * width_mult)

        total = sum(math.ceil(stage[-1] * depth_mult) for stage in _STAGES)
        features: list[nn.Module] = [ConvNormActivation(3, scaled(32), 3, 2, activation=nn.SiLU)]
        number = 0
        for ratio, kernel, stride, width, out, count in _STAGES:
            blocks: list[nn.Module] = []
            for i in range(math.ceil(count * depth_mult)):
                channels = scaled(width if i == 0 else out)
                depth = stochastic_depth * number / total
                blocks.append(
                    MBConv(channels, scaled(out), kernel, stride if i == 0 else 1, ratio, depth)
                )
                number += 1
            features.append(nn.Sequential(*blocks))
        last = 4 * scaled(320)
        features.append(ConvNormActivation(scaled(320), last, 1, activation=nn.SiLU))
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(last, num_classes))
        init_convolutions(self)
        bound = 1 / math.sqrt(num_classes)
        nn.init.uniform_(self.classifier[1].weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        return self.classifier(tenon.mean(self.features(x), [2, 3]))


@untrained
def efficientnet_b0(**settings: Any) -> EfficientNet:
    """EfficientNet B0, for images of 224 x 224 pixels."""
    return EfficientNet(1.0, 1.0, **settings)


@untrained
def efficientnet_b1(**settings: Any) -> EfficientNet:
    """EfficientNet B1, for images of 240 x 240 pixels."""
    return EfficientNet(1.0, 1.1, **settings)


@untrained
def efficientnet_b2(**settings: Any) -> EfficientNet:
    """EfficientNet B2, for images of 260 x 260 pixels."""
    return EfficientNet(1.1, 1.2, **{"dropout": 0.3, **settings})
