# SPDX-License-Identifier: Apache-2.0
"""Segmentation of images: fully convolutional networks (Long et al., 2015), DeepLab V3 (Chen et al.,
2017) and the lite head of MobileNet V3 (Howard et al., 2019).

Each gives a dict with the scores "out" [N, num_classes, H, W] and, with `aux_loss`, "aux".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, nn

from ._blocks import Stages, untrained
from .mobilenet_v3 import mobilenet_v3_large
from .resnet import ResNet, resnet50, resnet101

__all__ = [
    "FCN",
    "DeepLabV3",
    "LRASPP",
    "deeplabv3_mobilenet_v3_large",
    "deeplabv3_resnet101",
    "deeplabv3_resnet50",
    "fcn_resnet101",
    "fcn_resnet50",
    "lraspp_mobilenet_v3_large",
]

# Features of MobileNet V3: those of an eighth of the size, with their channels, and the last ones.
_MOBILE_LOW, _MOBILE_LOW_CHANNELS = "4", 40
_MOBILE_HIGH, _MOBILE_HIGH_CHANNELS = "16", 960


def _resized(x: Tensor, like: Tensor) -> Tensor:
    return nn.functional.interpolate(x, list(like.shape[-2:]), mode="bilinear")


class _Segmentation(nn.Module):
    """A backbone that gives "out" and perhaps "aux", and a head for each."""

    def __init__(
        self, backbone: nn.Module, classifier: nn.Module, aux_classifier: nn.Module | None = None
    ) -> None:
        self.backbone = backbone
        self.classifier = classifier
        self.aux_classifier = aux_classifier

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Scores of each pixel, by name."""
        features = self.backbone(x)
        result = {"out": _resized(self.classifier(features["out"]), x)}
        if self.aux_classifier is not None:
            result["aux"] = _resized(self.aux_classifier(features["aux"]), x)
        return result


class FCN(_Segmentation):
    """A fully convolutional network for images [N, 3, H, W]."""


class DeepLabV3(_Segmentation):
    """DeepLab V3 for images [N, 3, H, W]."""


class FCNHead(nn.Sequential):
    """Two convolutions."""

    def __init__(self, in_channels: int, channels: int) -> None:
        inner = in_channels // 4
        super().__init__(
            nn.Conv2d(in_channels, inner, 3, padding=1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(inner, channels, 1),
        )


def _normed(in_channels: int, channels: int, dilation: int = 0) -> list[nn.Module]:
    """A convolution of size 3 with this dilation, or one of size 1, with its norm and activation."""
    size = 3 if dilation else 1
    return [
        nn.Conv2d(in_channels, channels, size, 1, dilation, max(dilation, 1), bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    ]


class ASPPPooling(nn.Sequential):
    """What the mean of the whole image says, for each of its pixels."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *_normed(in_channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        return _resized(super().forward(x), x)


class ASPP(nn.Module):
    """Convolutions of several dilations beside each other."""

    def __init__(self, in_channels: int, rates: Sequence[int], channels: int = 256) -> None:
        branches: list[nn.Module] = [nn.Sequential(*_normed(in_channels, channels))]
        branches += [nn.Sequential(*_normed(in_channels, channels, rate)) for rate in rates]
        branches.append(ASPPPooling(in_channels, channels))
        self.convs = nn.ModuleList(branches)
        self.project = nn.Sequential(*_normed(len(branches) * channels, channels), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.project(tenon.concat([branch(x) for branch in self.convs], axis=1))


class DeepLabHead(nn.Sequential):
    """Convolutions of several dilations, and two more."""

    def __init__(
        self, in_channels: int, num_classes: int, rates: Sequence[int] = (12, 24, 36)
    ) -> None:
        super().__init__(
            ASPP(in_channels, rates), *_normed(256, 256, 1), nn.Conv2d(256, num_classes, 1)
        )


class LRASPPHead(nn.Module):
    """Features of the last stage, scaled by their means, beside those of an earlier one."""

    def __init__(
        self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int
    ) -> None:
        self.cbr = nn.Sequential(*_normed(high_channels, inter_channels))
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.Sigmoid(),
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, features: dict[str, Tensor]) -> Tensor:
        low, high = features["low"], features["high"]
        x = _resized(self.cbr(high) * self.scale(high), low)
        return self.low_classifier(low) + self.high_classifier(x)


class LRASPP(nn.Module):
    """The lite head of MobileNet V3 over a backbone that gives "low" and "high"."""

    def __init__(
        self,
        backbone: nn.Module,
        low_channels: int,
        high_channels: int,
        num_classes: int,
        inter_channels: int = 128,
    ) -> None:
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Scores of each pixel, by name."""
        return {"out": _resized(self.classifier(self.backbone(x)), x)}


def _of_resnet(
    model: type[_Segmentation],
    head: type[FCNHead] | type[DeepLabHead],
    network: ResNet,
    num_classes: int,
    aux_loss: bool,
) -> Any:
    returned = {"layer4": "out"} | ({"layer3": "aux"} if aux_loss else {})
    auxiliary = FCNHead(1024, num_classes) if aux_loss else None
    return model(Stages(network, returned), head(2048, num_classes), auxiliary)


_DILATED = (False, True, True)


@untrained
def fcn_resnet50(num_classes: int = 21, aux_loss: bool = False) -> FCN:
    """A fully convolutional network over ResNet 50."""
    network = resnet50(replace_stride_with_dilation=_DILATED)
    return _of_resnet(FCN, FCNHead, network, num_classes, aux_loss)


@untrained
def fcn_resnet101(num_classes: int = 21, aux_loss: bool = False) -> FCN:
    """A fully convolutional network over ResNet 101."""
    network = resnet101(replace_stride_with_dilation=_DILATED)
    return _of_resnet(FCN, FCNHead, network, num_classes, aux_loss)


@untrained
def deeplabv3_resnet50(num_classes: int = 21, aux_loss: bool = False) -> DeepLabV3:
    """DeepLab V3 over ResNet 50."""
    network = resnet50(replace_stride_with_dilation=_DILATED)
    return _of_resnet(DeepLabV3, DeepLabHead, network, num_classes, aux_loss)


@untrained
def deeplabv3_resnet101(num_classes: int = 21, aux_loss: bool = False) -> DeepLabV3:
    """DeepLab V3 over ResNet 101."""
    network = resnet101(replace_stride_with_dilation=_DILATED)
    return _of_resnet(DeepLabV3, DeepLabHead, network, num_classes, aux_loss)


@untrained
def deeplabv3_mobilenet_v3_large(num_classes: int = 21, aux_loss: bool = False) -> DeepLabV3:
    """DeepLab V3 over the large MobileNet V3."""
    returned = {_MOBILE_HIGH: "out"} | ({_MOBILE_LOW: "aux"} if aux_loss else {})
    backbone = Stages(mobilenet_v3_large(dilated=True).features, returned)
    auxiliary = FCNHead(_MOBILE_LOW_CHANNELS, num_classes) if aux_loss else None
    return DeepLabV3(backbone, DeepLabHead(_MOBILE_HIGH_CHANNELS, num_classes), auxiliary)


@untrained
def lraspp_mobilenet_v3_large(num_classes: int = 21) -> LRASPP:
    """The lite head over the large MobileNet V3."""
    features = mobilenet_v3_large(dilated=True).features
    backbone = Stages(features, {_MOBILE_LOW: "low", _MOBILE_HIGH: "high"})
    return LRASPP(backbone, _MOBILE_LOW_CHANNELS, _MOBILE_HIGH_CHANNELS, num_classes)
