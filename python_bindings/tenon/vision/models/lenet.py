# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 (LeCun et al., 1998) with rectifiers and maximum pooling."""

from __future__ import annotations

from typing import Any

from tenon import Tensor, nn

from ._blocks import untrained


class LeNet(nn.Module):
    """Classifies images [N, 1, 28, 28]."""

    def __init__(self, num_classes: int = 10) -> None:
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(
            nn.Linear(400, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, num_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        return self.fc(self.features(x).flatten(1))


@untrained
def lenet(**settings: Any) -> LeNet:
    """LeNet-5."""
    return LeNet(**settings)
