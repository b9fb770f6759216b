# SPDX-License-Identifier: Apache-2.0
"""SqueezeNet (Iandola et al., 2016)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn import init

from ._blocks import untrained, zero_


class Fire(nn.Module):
    """A convolution to few channels, and behind it two of size 1 and 3 side by side."""

    def __init__(self, channels: int, squeeze: int, expand: int) -> None:
        self.squeeze = nn.Conv2d(channels, squeeze, 1)
        self.squeeze_activation = nn.ReLU()
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand1x1_activation = nn.ReLU()
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)
        self.expand3x3_activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        parts = [
            self.expand1x1_activation(self.expand1x1(x)),
            self.expand3x3_activation(self.expand3x3(x)),
        ]
        return tenon.concat(parts, 1)


class SqueezeNet(nn.Module):
    """Classifies images [N, 3, H, W], usually of 224 x 224 pixels. Version '1_1' computes less."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        if version not in ("1_0", "1_1"):
            raise ValueError(f"SqueezeNet: expected version '1_0' or '1_1', got {version!r}")
        pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)  # noqa: E731
        fires = [
            Fire(channels, squeeze, 4 * squeeze)
            for channels, squeeze in zip(
                (96 if version == "1_0" else 64, 128, 128, 256, 256, 384, 384, 512),
                (16, 16, 32, 32, 48, 48, 64, 64),
                strict=True,
            )
        ]
        if version == "1_0":
            first = nn.Conv2d(3, 96, 7, 2)
            parts = [*fires[:3], pool(), *fires[3:7], pool(), fires[7]]
        else:
            first = nn.Conv2d(3, 64, 3, 2)
            parts = [*fires[:2], pool(), *fires[2:4], pool(), *fires[4:]]
        self.features = nn.Sequential(first, nn.ReLU(), pool(), *parts)
        last = nn.Conv2d(512, num_classes, 1)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), last, nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_uniform_(module.weight)
                zero_(module.bias)
        init.normal_(last.weight, 0.0, 0.01)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        return self.classifier(self.features(x)).flatten(1)


@untrained
def squeezenet1_0(**settings: Any) -> SqueezeNet:
    """SqueezeNet 1.0."""
    return SqueezeNet("1_0", **settings)


@untrained
def squeezenet1_1(**settings: Any) -> SqueezeNet:
    """SqueezeNet 1.1, which takes 2.4 times less arithmetic."""
    return SqueezeNet("1_1", **settings)
