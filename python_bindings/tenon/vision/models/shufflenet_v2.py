# SPDX-License-Identifier: Apache-2.0
"""ShuffleNet V2 (Ma et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor, nn

from ._blocks import untrained


class InvertedResidual(nn.Module):
    """Half of the channels, or with stride 2 all of them, go through three convolutions; then both halves are mixed."""

    def __init__(
        self, channels: int, out: int, stride: int, activation: Callable[[], nn.Module]
    ) -> None:
        half = out // 2
        self.stride = stride
        self.branch1 = nn.Sequential()
        if stride > 1:
            self.branch1 = nn.Sequential(
                nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False),
                nn.BatchNorm2d(channels),
                nn.Conv2d(channels, half, 1, bias=False),
                nn.BatchNorm2d(half),
                activation(),
            )
        self.branch2 = nn.Sequential(
            nn.Conv2d(channels if stride > 1 else half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            activation(),
            nn.Conv2d(half, half, 3, stride, 1, groups=half, bias=False),
            nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            activation(),
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.stride == 1:
            half = x.shape[1] // 2
            parts = [x[:, :half], self.branch2(x[:, half:])]
        else:
            parts = [self.branch1(x), self.branch2(x)]
        return nn.functional.channel_shuffle(tenon.concat(parts, 1), 2)


class ShuffleNetV2(nn.Module):
    """Classifies images [N, 3, H, W], usually of 224 x 224 pixels. `stages_out_channels` are those of the first
    convolution, of three stages and of the last convolution."""

    def __init__(
        self,
        stages_repeats: Sequence[int],
        stages_out_channels: Sequence[int],
        num_classes: int = 1000,
        activation: Callable[[], nn.Module] = nn.ReLU,
    ) -> None:
        if len(stages_repeats) != 3 or len(stages_out_channels) != 5:
            raise ValueError(
                "ShuffleNetV2: expected repeats of 3 stages and 5 numbers of channels, got "
                f"{list(stages_repeats)} and {list(stages_out_channels)}"
            )
        channels = stages_out_channels[0]
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), activation()
        )
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        stages = []
        for repeats, out in zip(stages_repeats, stages_out_channels[1:4], strict=True):
            blocks = [InvertedResidual(channels, out, 2, activation)]
            blocks += [InvertedResidual(out, out, 1, activation) for _ in range(repeats - 1)]
            stages.append(nn.Sequential(*blocks))
            channels = out
        self.stage2, self.stage3, self.stage4 = stages
        last = stages_out_channels[4]
        self.conv5 = nn.Sequential(
            nn.Conv2d(channels, last, 1, bias=False), nn.BatchNorm2d(last), activation()
        )
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        x = self.maxpool(self.conv1(x))
        x = self.conv5(self.stage4(self.stage3(self.stage2(x))))
        return self.fc(tenon.mean(x, [2, 3]))


def _of_width(*channels: int, **settings: Any) -> ShuffleNetV2:
    return ShuffleNetV2([4, 8, 4], [24, *channels], **settings)


@untrained
def shufflenet_v2_x0_25(**settings: Any) -> ShuffleNetV2:
    """ShuffleNet V2 of a quarter of the channels."""
    return _of_width(24, 48, 96, 512, **settings)


@untrained
def shufflenet_v2_x0_33(**settings: Any) -> ShuffleNetV2:
    """ShuffleNet V2 of a third of the channels."""
    return _of_width(32, 64, 128, 512, **settings)


@untrained
def shufflenet_v2_x0_5(**settings: Any) -> ShuffleNetV2:
    """ShuffleNet V2 of half of the channels."""
    return _of_width(48, 96, 192, 1024, **settings)


@untrained
def shufflenet_v2_x1_0(**settings: Any) -> ShuffleNetV2:
    """ShuffleNet V2."""
    return _of_width(116, 232, 464, 1024, **settings)


@untrained
def shufflenet_v2_x1_5(**settings: Any) -> ShuffleNetV2:
    """ShuffleNet V2 of half as many channels again."""
    return _of_width(176, 352, 704, 1024, **settings)


@untrained
def shufflenet_v2_x2_0(**settings: Any) -> ShuffleNetV2:
    """ShuffleNet V2 of twice as many channels."""
    return _of_width(244, 488, 976, 2048, **settings)


@untrained
def shufflenet_v2_swish(**settings: Any) -> ShuffleNetV2:
    """ShuffleNet V2 with swish in place of rectifiers."""
    return _of_width(116, 232, 464, 1024, activation=nn.SiLU, **settings)
