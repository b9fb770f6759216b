# SPDX-License-Identifier: Apache-2.0
"""Densely connected networks (Huang et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, nn

from ._blocks import init_convolutions, untrained, zero_


class _DenseLayer(nn.Module):
    def __init__(self, channels: int, growth_rate: int, bn_size: int, drop_rate: float) -> None:
        self.norm1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(channels, bn_size * growth_rate, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, 3, padding=1, bias=False)
        self.dropout = nn.Dropout(drop_rate)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(self.relu1(self.norm1(x)))
        return self.dropout(self.conv2(self.relu2(self.norm2(x))))


class _DenseBlock(nn.ModuleDict):
    """Layers that each see the results of all before them."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.values():
            x = tenon.concat([x, layer(x)], 1)
        return x


class _Transition(nn.Sequential):
    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__(
            {
                "norm": nn.BatchNorm2d(channels),
                "relu": nn.ReLU(),
                "conv": nn.Conv2d(channels, out_channels, 1, bias=False),
                "pool": nn.AvgPool2d(2),
            }
        )


class DenseNet(nn.Module):
    """Classifies images [N, 3, H, W]. Every layer adds `growth_rate` channels."""

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Sequence[int] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0.0,
        num_classes: int = 1000,
    ) -> None:
        channels = num_init_features
        parts: dict[str, nn.Module] = {
            "conv0": nn.Conv2d(3, channels, 7, 2, 3, bias=False),
            "norm0": nn.BatchNorm2d(channels),
            "relu0": nn.ReLU(),
            "pool0": nn.MaxPool2d(3, 2, 1),
        }
        for number, count in enumerate(block_config, 1):
            layers = {
                f"denselayer{i + 1}": _DenseLayer(
                    channels + i * growth_rate, growth_rate, bn_size, drop_rate
                )
                for i in range(count)
            }
            parts[f"denseblock{number}"] = _DenseBlock(layers)
            channels += count * growth_rate
            if number < len(block_config):
                parts[f"transition{number}"] = _Transition(channels, channels // 2)
                channels //= 2
        parts["norm5"] = nn.BatchNorm2d(channels)
        self.features = nn.Sequential(parts)
        self.classifier = nn.Linear(channels, num_classes)
        init_convolutions(self, linear_std=None)
        zero_(self.classifier.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        x = nn.functional.relu(self.features(x))
        return self.classifier(tenon.mean(x, [2, 3]))


@untrained
def densenet121(**settings: Any) -> DenseNet:
    """DenseNet with 121 layers."""
    return DenseNet(32, (6, 12, 24, 16), 64, **settings)


@untrained
def densenet161(**settings: Any) -> DenseNet:
    """DenseNet with 161 layers."""
    return DenseNet(48, (6, 12, 36, 24), 96, **settings)


@untrained
def densenet169(**settings: Any) -> DenseNet:
    """DenseNet with 169 layers."""
    return DenseNet(32, (6, 12, 32, 32), 64, **settings)


@untrained
def densenet201(**settings: Any) -> DenseNet:
    """DenseNet with 201 layers."""
    return DenseNet(32, (6, 12, 48, 32), 64, **settings)


@untrained
def densenet264(**settings: Any) -> DenseNet:
    """DenseNet with 264 layers."""
    return DenseNet(32, (6, 12, 64, 48), 64, **settings)
