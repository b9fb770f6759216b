# SPDX-License-Identifier: Apache-2.0
"""Feature pyramids (Lin et al., 2017) over classifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenon import Tensor, nn
from tenon.nn import functional as F
from tenon.nn import init

from .._blocks import ConvNormActivation, Stages
from ..mobilenet_v3 import mobilenet_v3_large
from ..resnet import resnet50

Norm = Callable[[int], nn.Module]


class LastLevelMaxPool(nn.Module):
    """One more level: every second place of the smallest one."""

    names = ("pool",)

    def forward(self, levels: list[Tensor], deepest: Tensor) -> list[Tensor]:
        del deepest
        return [*levels, levels[-1][:, :, ::2, ::2]]


class LastLevelP6P7(nn.Module):
    """Two more levels by convolutions, of the smallest level or, if it has other channels, of the
    backbone's last features."""

    names = ("p6", "p7")

    def __init__(self, in_channels: int, out_channels: int) -> None:
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        for module in (self.p6, self.p7):
            init.kaiming_uniform_(module.weight, a=1)
            if module.bias is not None:
                init.zeros_(module.bias)
        self.use_P5 = in_channels == out_channels

    def forward(self, levels: list[Tensor], deepest: Tensor) -> list[Tensor]:
        p6 = self.p6(levels[-1] if self.use_P5 else deepest)
        return [*levels, p6, self.p7(F.relu(p6))]


class FeaturePyramidNetwork(nn.Module):
    """Adds to each level what the levels above it say."""

    def __init__(
        self,
        in_channels_list: Sequence[int],
        out_channels: int,
        extra_blocks: LastLevelMaxPool | LastLevelP6P7,
        norm_layer: Norm | None = None,
    ) -> None:
        def convolution(channels: int, size: int) -> nn.Module:
            return ConvNormActivation(
                channels, out_channels, size, norm=norm_layer, activation=None
            )

        self.inner_blocks = nn.ModuleList([convolution(each, 1) for each in in_channels_list])
        self.layer_blocks = nn.ModuleList([convolution(out_channels, 3) for _ in in_channels_list])
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_uniform_(module.weight, a=1)
                if module.bias is not None:
                    init.zeros_(module.bias)
        self.extra_blocks = extra_blocks

    def forward(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Levels, largest first."""
        above: Tensor | None = None
        levels: list[Tensor] = []
        for place in reversed(range(len(features))):
            inner = self.inner_blocks[place](features[place])
            if above is not None:
                inner = inner + F.interpolate(above, list(inner.shape[-2:]), mode="nearest")
            above = inner
            levels.insert(0, self.layer_blocks[place](inner))
        return self.extra_blocks(levels, features[-1])


class BackboneWithFPN(nn.Module):
    """A backbone whose features become a pyramid, as a dict of levels."""

    def __init__(
        self,
        body: Stages,
        in_channels_list: Sequence[int],
        extra_blocks: LastLevelMaxPool | LastLevelP6P7,
        norm_layer: Norm | None = None,
        out_channels: int = 256,
    ) -> None:
        self.body = body
        self.fpn = FeaturePyramidNetwork(in_channels_list, out_channels, extra_blocks, norm_layer)
        self.out_channels = out_channels

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        features = list(self.body(x).values())
        names = [str(place) for place in range(len(features))]
        names += self.fpn.extra_blocks.names
        return dict(zip(names, self.fpn(features)))


def resnet50_pyramid(
    layers: Sequence[int],
    extra_blocks: LastLevelMaxPool | LastLevelP6P7,
    norm_layer: Norm | None = None,
) -> BackboneWithFPN:
    """A pyramid over these of the four stages of ResNet 50."""
    returned = {f"layer{layer}": str(place) for place, layer in enumerate(layers)}
    channels = [256 * 2 ** (layer - 1) for layer in layers]
    return BackboneWithFPN(Stages(resnet50(), returned), channels, extra_blocks, norm_layer)


def mobilenet_pyramid() -> BackboneWithFPN:
    """A pyramid over the last two stages of the large MobileNet V3."""
    body = Stages(mobilenet_v3_large().features, {"13": "0", "16": "1"})
    for module in body.modules():
        if isinstance(module, nn.BatchNorm2d):  # torchvision's detectors have the usual norms here
            module.eps, module.momentum = 1e-5, 0.1
    return BackboneWithFPN(body, [160, 960], LastLevelMaxPool())
