# SPDX-License-Identifier: Apache-2.0
"""The U-net and its loss of examples/diffusion_digits.py."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, width, condition):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, channels), nn.GroupNorm(8, width)
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.condition = nn.Linear(condition, width)
        same = channels == width
        self.shortcut = nn.Identity() if same else nn.Conv2d(channels, width, 1)

    def forward(self, x, condition):
        y = self.conv1(F.silu(self.norm1(x)))
        y = y + self.condition(condition).unsqueeze(-1).unsqueeze(-1)
        return self.conv2(F.silu(self.norm2(y))) + self.shortcut(x)


class UNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.digit = nn.Embedding(10, width)
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.down1 = Block(width, width, width)
        self.shrink = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.down2 = Block(2 * width, 2 * width, width)
        self.middle = Block(2 * width, 2 * width, width)
        self.grow = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.up = Block(2 * width, width, width)
        self.norm = nn.GroupNorm(8, width)
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, time, digit):
        frequencies = torch.exp(torch.linspace(0.0, math.log(1000.0), self.width // 2))
        angles = time.unsqueeze(-1) * frequencies
        condition = self.time(torch.cat([torch.sin(angles), torch.cos(angles)], 1))
        condition = F.silu(condition + self.digit(digit))
        first = self.down1(self.enter(x), condition)
        second = self.middle(self.down2(self.shrink(first), condition), condition)
        merged = torch.cat([first, self.grow(second)], 1)
        return self.leave(F.silu(self.norm(self.up(merged, condition))))


def loss_of(model, images, digit, time, noise):
    share = torch.square(torch.cos((time + 0.008) / 1.008 * (math.pi / 2))).reshape(-1, 1, 1, 1)
    noisy = torch.sqrt(share) * images + torch.sqrt(1 - share) * noise
    return F.mse_loss(model(noisy, time, digit), noise)
