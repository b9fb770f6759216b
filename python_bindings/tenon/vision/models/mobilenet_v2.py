# SPDX-License-Identifier: Apache-2.0
"""MobileNet V2 (Sandler et al., 2018)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, nn

from ._blocks import ConvNormActivation, init_convolutions, make_divisible, untrained

# Expansion, channels, blocks and first stride of each stage.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class InvertedResidual(nn.Module):
    """Few channels, more of them inside, where every channel has a convolution of its own."""

    def __init__(self, channels: int, out_channels: int, stride: int, expand_ratio: int) -> None:
        hidden = round(channels * expand_ratio)
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(ConvNormActivation(channels, hidden, 1, activation=nn.ReLU6))
        layers += [
            ConvNormActivation(hidden, hidden, 3, stride, hidden, activation=nn.ReLU6),
            nn.Conv2d(hidden, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
        ]
        self.conv = nn.Sequential(*layers)
        self.use_res_connect = stride == 1 and channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """Classifies images [N, 3, H, W]. `width_mult` scales the channels."""

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0, dropout: float = 0.2
    ) -> None:
        channels = make_divisible(32 * width_mult)
        last = make_divisible(1280 * max(1.0, width_mult))
        features: list[nn.Module] = [ConvNormActivation(3, channels, 3, 2, activation=nn.ReLU6)]
        for ratio, width, count, first in _STAGES:
            out = make_divisible(width * width_mult)
            for i in range(count):
                features.append(InvertedResidual(channels, out, first if i == 0 else 1, ratio))
                channels = out
        features.append(ConvNormActivation(channels, last, 1, activation=nn.ReLU6))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(last, num_classes))
        init_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        return self.classifier(tenon.mean(self.features(x), [2, 3]))


@untrained
def mobilenet_v2(**settings: Any) -> MobileNetV2:
    """MobileNet V2."""
    return MobileNetV2(**settings)
