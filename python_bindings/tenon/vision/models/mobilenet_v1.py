# SPDX-License-Identifier: Apache-2.0
"""MobileNet (Howard et al., 2017)."""

from __future__ import annotations

from typing import Any

from tenon import Tensor, nn

from ._blocks import ConvNormActivation, init_convolutions, untrained

# Channels behind each pair of a depthwise and a pointwise convolution, and the stride of the first.
_BLOCKS = (
    ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2))
    + ((512, 1),) * 5
    + (
        (1024, 2),
        (1024, 1),
    )
)


class MobileNetV1(nn.Module):
    """Classifies images [N, 3, H, W], usually of 224 x 224 pixels. `scale` multiplies the channels of all layers."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000) -> None:
        channels = int(32 * scale)
        layers: list[nn.Module] = [ConvNormActivation(3, channels, 3, 2)]
        for width, stride in _BLOCKS:
            out = int(width * scale)
            layers += [
                ConvNormActivation(channels, channels, 3, stride, groups=channels),
                ConvNormActivation(channels, out, 1),
            ]
            channels = out
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, num_classes)
        init_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        return self.fc(self.avgpool(self.features(x)).flatten(1))


@untrained
def mobilenet_v1(**settings: Any) -> MobileNetV1:
    """MobileNet of the first version."""
    return MobileNetV1(**settings)
