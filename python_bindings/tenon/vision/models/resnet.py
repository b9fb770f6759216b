# SPDX-License-Identifier: Apache-2.0
"""Residual networks (He et al., 2016), with groups (Xie et al., 2017) and wide ones (Zagoruyko and
Komodakis, 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import Tensor, nn

from ._blocks import init_convolutions, untrained, zero_


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    expansion = 1

    def __init__(
        self,
        channels: int,
        width: int,
        stride: int,
        downsample: nn.Module | None,
        groups: int,
        base_width: int,
        dilation: int = 1,
    ) -> None:
        if groups != 1 or base_width != 64 or dilation != 1:
            raise ValueError(
                f"BasicBlock: expected groups 1, base_width 64 and dilation 1, got {groups}, "
                f"{base_width} and {dilation}"
            )
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + shortcut)


class Bottleneck(nn.Module):
    """A convolution of few channels between two of size 1, beside a shortcut. The stride is that of
    the middle one, which is the better place (ResNet 1.5)."""

    expansion = 4

    def __init__(
        self,
        channels: int,
        width: int,
        stride: int,
        downsample: nn.Module | None,
        groups: int,
        base_width: int,
        dilation: int = 1,
    ) -> None:
        inner = width * base_width // 64 * groups
        self.conv1 = nn.Conv2d(channels, inner, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(
            inner, inner, 3, stride, dilation, dilation, groups=groups, bias=False
        )
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, width * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet(nn.Module):
    """Classifies images [N, 3, H, W], usually of 224 x 224 pixels. `layers` counts the blocks of
    each of four stages; with `zero_init_residual` every block begins as the identity."""

    layer1: nn.Sequential
    layer2: nn.Sequential
    layer3: nn.Sequential
    layer4: nn.Sequential

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] = (False, False, False),
    ) -> None:
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels, dilation = 64, 1
        dilated = [False, *replace_stride_with_dilation]
        for number, (count, width) in enumerate(zip(layers, (64, 128, 256, 512)), 1):
            blocks: list[nn.Module] = []
            for i in range(count):
                stride = 2 if number > 1 and i == 0 and not dilated[number - 1] else 1
                downsample = None
                if stride != 1 or channels != width * block.expansion:
                    downsample = nn.Sequential(
                        nn.Conv2d(channels, width * block.expansion, 1, stride, bias=False),
                        nn.BatchNorm2d(width * block.expansion),
                    )
                blocks.append(
                    block(channels, width, stride, downsample, groups, width_per_group, dilation)
                )
                channels = width * block.expansion
                if i == 0 and dilated[number - 1]:
                    dilation *= 2  # The first block still sees the map of the stage before.
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, num_classes)
        init_convolutions(self, linear_std=None)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, (BasicBlock, Bottleneck)):
                    last = module.bn2 if isinstance(module, BasicBlock) else module.bn3
                    zero_(last.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


@untrained
def resnet18(**settings: Any) -> ResNet:
    """ResNet with 18 layers."""
    return ResNet(BasicBlock, [2, 2, 2, 2], **settings)


@untrained
def resnet34(**settings: Any) -> ResNet:
    """ResNet with 34 layers."""
    return ResNet(BasicBlock, [3, 4, 6, 3], **settings)


@untrained
def resnet50(**settings: Any) -> ResNet:
    """ResNet with 50 layers."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **settings)


@untrained
def resnet101(**settings: Any) -> ResNet:
    """ResNet with 101 layers."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **settings)


@untrained
def resnet152(**settings: Any) -> ResNet:
    """ResNet with 152 layers."""
    return ResNet(Bottleneck, [3, 8, 36, 3], **settings)


@untrained
def resnext50_32x4d(**settings: Any) -> ResNet:
    """ResNeXt with 50 layers in 32 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4, **settings)


@untrained
def wide_resnet50_2(**settings: Any) -> ResNet:
    """ResNet with 50 layers, whose blocks are twice as wide inside."""
    return ResNet(Bottleneck, [3, 4, 6, 3], width_per_group=128, **settings)


@untrained
def resnext50_64x4d(**settings: Any) -> ResNet:
    """ResNeXt with 50 layers in 64 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 6, 3], groups=64, width_per_group=4, **settings)


@untrained
def resnext101_32x4d(**settings: Any) -> ResNet:
    """ResNeXt with 101 layers in 32 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4, **settings)


@untrained
def resnext101_32x8d(**settings: Any) -> ResNet:
    """ResNeXt with 101 layers in 32 groups of 8 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=8, **settings)


@untrained
def resnext101_64x4d(**settings: Any) -> ResNet:
    """ResNeXt with 101 layers in 64 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], groups=64, width_per_group=4, **settings)


@untrained
def resnext152_32x4d(**settings: Any) -> ResNet:
    """ResNeXt with 152 layers in 32 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 8, 36, 3], groups=32, width_per_group=4, **settings)


@untrained
def resnext152_64x4d(**settings: Any) -> ResNet:
    """ResNeXt with 152 layers in 64 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 8, 36, 3], groups=64, width_per_group=4, **settings)


@untrained
def wide_resnet101_2(**settings: Any) -> ResNet:
    """ResNet with 101 layers, whose blocks are twice as wide inside."""
    return ResNet(Bottleneck, [3, 4, 23, 3], width_per_group=128, **settings)
