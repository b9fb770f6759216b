# SPDX-License-Identifier: Apache-2.0
"""MobileNet V3 (Howard et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import tenon
from tenon import Tensor, nn

from ._blocks import (
    ConvNormActivation,
    SqueezeExcitation,
    init_convolutions,
    make_divisible,
    untrained,
)

# Kernel, channels inside, channels out, squeeze and excitation, hard swish, stride of each block.
_Block = tuple[int, int, int, bool, bool, int]
_LARGE: Sequence[_Block] = (
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
)
_SMALL: Sequence[_Block] = (
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)
_norm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)


class InvertedResidual(nn.Module):
    """Few channels, more of them inside, where every channel has a convolution of its own."""

    def __init__(
        self,
        channels: int,
        kernel: int,
        expanded: int,
        out_channels: int,
        use_se: bool,
        use_hs: bool,
        stride: int,
        dilation: int = 1,
    ) -> None:
        activation = nn.Hardswish if use_hs else nn.ReLU
        layers: list[nn.Module] = []
        if expanded != channels:
            layers.append(
                ConvNormActivation(channels, expanded, 1, norm=_norm, activation=activation)
            )
        layers.append(
            ConvNormActivation(
                expanded,
                expanded,
                kernel,
                stride if dilation == 1 else 1,
                expanded,
                norm=_norm,
                activation=activation,
                dilation=dilation,
            )
        )
        if use_se:
            squeezed = make_divisible(expanded // 4)
            layers.append(SqueezeExcitation(expanded, squeezed, scale_activation=nn.Hardsigmoid))
        layers.append(ConvNormActivation(expanded, out_channels, 1, norm=_norm, activation=None))
        self.block = nn.Sequential(*layers)
        self.use_res_connect = stride == 1 and channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x) if self.use_res_connect else self.block(x)


class MobileNetV3(nn.Module):
    """Classifies images [N, 3, H, W]. `width_mult` scales the channels. With `dilated` the last
    stage keeps the size and dilates its convolutions."""

    def __init__(
        self,
        blocks: Sequence[_Block],
        last_channel: int,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        dropout: float = 0.2,
        dilated: bool = False,
    ) -> None:
        def scaled(width: int) -> int:
            return make_divisible(width * width_mult)

        channels = scaled(16)
        features: list[nn.Module] = [
            ConvNormActivation(3, channels, 3, 2, norm=_norm, activation=nn.Hardswish)
        ]
        for place, (kernel, expanded, out, use_se, use_hs, stride) in enumerate(blocks):
            dilation = 2 if dilated and place >= len(blocks) - 3 else 1
            features.append(
                InvertedResidual(
                    channels,
                    kernel,
                    scaled(expanded),
                    scaled(out),
                    use_se,
                    use_hs,
                    stride,
                    dilation,
                )
            )
            channels = scaled(out)
        last = 6 * channels
        features.append(ConvNormActivation(channels, last, 1, norm=_norm, activation=nn.Hardswish))
        self.features = nn.Sequential(*features)
        self.classifier: Any = nn.Sequential(
            nn.Linear(last, scaled(last_channel)),
            nn.Hardswish(),
            nn.Dropout(dropout),
            nn.Linear(scaled(last_channel), num_classes),
        )
        init_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, num_classes]."""
        return self.classifier(tenon.mean(self.features(x), [2, 3]))


class MobileNetV3Large(MobileNetV3):
    """The large MobileNet V3, by PaddlePaddle's parameters: `scale` of the channels, and scores of images. With `num_classes=0` the result is
    the last features, of every place or, with `with_pool`, their means [N, C, 1, 1]."""

    blocks: Sequence[_Block] = _LARGE
    last_channel = 1280

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        if num_classes > 0 and not with_pool:
            raise ValueError(
                f"{type(self).__name__}: expected num_classes=0 without a pool, as classes are those of whole images, got {num_classes}"
            )
        super().__init__(self.blocks, self.last_channel, max(num_classes, 0), width_mult=scale)
        self.with_pool = with_pool
        if num_classes <= 0:
            self.classifier = None

    def forward(self, x: Tensor) -> Tensor:
        if self.classifier is not None:
            return super().forward(x)
        features = self.features(x)
        return tenon.mean(features, [2, 3], keepdim=True) if self.with_pool else features


class MobileNetV3Small(MobileNetV3Large):
    """The small MobileNet V3; see MobileNetV3Large."""

    blocks = _SMALL
    last_channel = 1024


def reduced_large() -> MobileNetV3:
    """The large MobileNet V3 with half of the channels in its last three blocks, as a backbone."""
    end = [
        (kernel, expanded // 2 if place else expanded, out // 2, *rest)
        for place, (kernel, expanded, out, *rest) in enumerate(_LARGE[-3:])
    ]
    return MobileNetV3([*_LARGE[:-3], *end], 640)  # type: ignore[list-item]


@untrained
def mobilenet_v3_large(**settings: Any) -> MobileNetV3:
    """The large MobileNet V3."""
    return MobileNetV3(_LARGE, 1280, **settings)


@untrained
def mobilenet_v3_small(**settings: Any) -> MobileNetV3:
    """The small MobileNet V3."""
    return MobileNetV3(_SMALL, 1024, **settings)
