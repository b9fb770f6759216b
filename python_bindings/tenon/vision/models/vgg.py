# SPDX-License-Identifier: Apache-2.0
"""VGG (Simonyan and Zisserman, 2015), with and without batch norm."""

from __future__ import annotations

from typing import Any

from tenon import Tensor, nn

from ._blocks import init_convolutions, untrained

# Convolutions in each of five stages, which have these widths and end in a pooling.
_WIDTHS = (64, 128, 256, 512, 512)
_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(nn.Module):
    """Classifies images [N, 3, H, W], usually of 224 x 224 pixels."""

    def __init__(
        self,
        depth: int = 16,
        batch_norm: bool = False,
        num_classes: int = 1000,
        dropout: float = 0.5,
    ) -> None:
        if depth not in _DEPTHS:
            raise ValueError(f"VGG: expected a depth of {sorted(_DEPTHS)}, got {depth}")
        layers: list[nn.Module] = []
        channels = 3
        for width, count in zip(_WIDTHS, _DEPTHS[depth]):
            for _ in range(count):
                layers.append(nn.Conv2d(channels, width, 3, padding=1))
                layers += [nn.BatchNorm2d(width)] if batch_norm else []
                layers.append(nn.ReLU())
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )
        init_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


@untrained
def vgg11(**settings: Any) -> VGG:
    """VGG with 11 layers."""
    return VGG(11, **settings)


@untrained
def vgg11_bn(**settings: Any) -> VGG:
    """VGG with 11 layers and batch norm."""
    return VGG(11, True, **settings)


@untrained
def vgg13(**settings: Any) -> VGG:
    """VGG with 13 layers."""
    return VGG(13, **settings)


@untrained
def vgg13_bn(**settings: Any) -> VGG:
    """VGG with 13 layers and batch norm."""
    return VGG(13, True, **settings)


@untrained
def vgg16(**settings: Any) -> VGG:
    """VGG with 16 layers."""
    return VGG(16, **settings)


@untrained
def vgg16_bn(**settings: Any) -> VGG:
    """VGG with 16 layers and batch norm."""
    return VGG(16, True, **settings)


@untrained
def vgg19(**settings: Any) -> VGG:
    """VGG with 19 layers."""
    return VGG(19, **settings)


@untrained
def vgg19_bn(**settings: Any) -> VGG:
    """VGG with 19 layers and batch norm."""
    return VGG(19, True, **settings)
