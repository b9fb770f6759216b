# SPDX-License-Identifier: Apache-2.0
"""The residual network of examples/classify_digits.py."""

import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Conv2d(channels, width, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResidualNetwork(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, 1, 1)
        self.blocks = nn.Sequential(
            Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1)
        )
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(dim=[2, 3]))


def loss_of(model, images, labels):
    return F.cross_entropy(model(images), labels, label_smoothing=0.05)
