# SPDX-License-Identifier: Apache-2.0
"""GoogLeNet (Szegedy et al., 2015), with batch norms."""

from __future__ import annotations

from typing import Any, NamedTuple

import tenon
from tenon import Tensor, nn
from tenon.nn import init

from ._blocks import untrained


class GoogLeNetOutputs(NamedTuple):
    """Scores in training: of the model, and of the two classifiers on the way, from the end."""

    logits: Tensor
    aux_logits2: Tensor
    aux_logits1: Tensor


class BasicConv2d(nn.Module):
    """A convolution without bias, a batch norm and a rectifier."""

    def __init__(self, channels: int, out: int, kernel_size: Any, **settings: Any) -> None:
        self.conv = nn.Conv2d(channels, out, kernel_size, bias=False, **settings)
        self.bn = nn.BatchNorm2d(out, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.bn(self.conv(x)))


class Inception(nn.Module):
    """Four branches side by side: windows of 1, 3 and (in the paper) 5, and a maximum."""

    def __init__(
        self, channels: int, one: int, red3: int, three: int, red5: int, five: int, pool: int
    ) -> None:
        self.branch1 = BasicConv2d(channels, one, 1)
        self.branch2 = nn.Sequential(
            BasicConv2d(channels, red3, 1), BasicConv2d(red3, three, 3, padding=1)
        )
        self.branch3 = nn.Sequential(
            BasicConv2d(channels, red5, 1), BasicConv2d(red5, five, 3, padding=1)
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(3, 1, 1, ceil_mode=True), BasicConv2d(channels, pool, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        branches = (self.branch1, self.branch2, self.branch3, self.branch4)
        return tenon.concat([branch(x) for branch in branches], 1)


class InceptionAux(nn.Module):
    """A classifier on the way, which brings gradients to early layers."""

    def __init__(self, channels: int, num_classes: int, dropout: float) -> None:
        self.conv = BasicConv2d(channels, 128, 1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(nn.functional.adaptive_avg_pool2d(x, 4)).flatten(1)
        return self.fc2(self.dropout(nn.functional.relu(self.fc1(x))))


class GoogLeNet(nn.Module):
    """Classifies images [N, 3, H, W], usually of 224 x 224 pixels. In training with `aux_logits` the result is
    GoogLeNetOutputs."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        self.aux_logits = aux_logits
        self.conv1 = BasicConv2d(3, 64, 7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = BasicConv2d(64, 64, 1)
        self.conv3 = BasicConv2d(64, 192, 3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.inception3a = Inception(192, 64, 96, 128, 16, 32, 32)
        self.inception3b = Inception(256, 128, 128, 192, 32, 96, 64)
        self.maxpool3 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.inception4a = Inception(480, 192, 96, 208, 16, 48, 64)
        self.inception4b = Inception(512, 160, 112, 224, 24, 64, 64)
        self.inception4c = Inception(512, 128, 128, 256, 24, 64, 64)
        self.inception4d = Inception(512, 112, 144, 288, 32, 64, 64)
        self.inception4e = Inception(528, 256, 160, 320, 32, 128, 128)
        self.maxpool4 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.inception5a = Inception(832, 256, 160, 320, 32, 128, 128)
        self.inception5b = Inception(832, 384, 192, 384, 48, 128, 128)
        self.aux1 = InceptionAux(512, num_classes, dropout_aux) if aux_logits else None
        self.aux2 = InceptionAux(528, num_classes, dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(1024, num_classes)
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                init.trunc_normal_(module.weight, 0.0, 0.01, -2.0, 2.0)

    def forward(self, x: Tensor) -> Any:
        """Scores [N, num_classes]."""
        x = self.maxpool1(self.conv1(x))
        x = self.maxpool2(self.conv3(self.conv2(x)))
        x = self.inception4a(self.maxpool3(self.inception3b(self.inception3a(x))))
        first = second = None
        if self.training and self.aux1 is not None:
            first = self.aux1(x)
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        if self.training and self.aux2 is not None:
            second = self.aux2(x)
        x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(x))))
        scores = self.fc(self.dropout(self.avgpool(x).flatten(1)))
        if first is None or second is None:
            return scores
        return GoogLeNetOutputs(scores, second, first)


@untrained
def googlenet(**settings: Any) -> GoogLeNet:
    """GoogLeNet with batch norms."""
    return GoogLeNet(**settings)
