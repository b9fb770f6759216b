# SPDX-License-Identifier: Apache-2.0
"""AlexNet in one tower (Krizhevsky, 2014)."""

from __future__ import annotations

from typing import Any

from tenon import Tensor, nn

from ._blocks import untrained


class AlexNet(nn.Module):
    """Classifies images [N, 3, H, W], usually of 224 x 224 pixels."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


@untrained
def alexnet(**settings: Any) -> AlexNet:
    """AlexNet in one tower."""
    return AlexNet(**settings)
