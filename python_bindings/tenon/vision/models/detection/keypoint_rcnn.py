# SPDX-License-Identifier: Apache-2.0
"""Keypoint R-CNN (He et al., 2017): Faster R-CNN that also finds points of objects, such as joints of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import Tensor, nn
from tenon.nn import functional as F
from tenon.nn import init

from .._blocks import untrained
from .faster_rcnn import LEVELS, FasterRCNN
from .pyramid import LastLevelMaxPool, resnet50_pyramid
from .regions import MultiScaleRoIAlign

__all__ = ["KeypointRCNN", "keypointrcnn_resnet50_fpn"]


class KeypointRCNNHeads(nn.Sequential):
    """Convolutions of size 3 with these widths."""

    def __init__(self, in_channels: int, layers: Sequence[int]) -> None:
        modules: list[nn.Module] = []
        for before, width in zip((in_channels, *layers), layers):
            modules += [nn.Conv2d(before, width, 3, 1, 1), nn.ReLU()]
        super().__init__(*modules)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                if module.bias is not None:
                    init.zeros_(module.bias)


class KeypointRCNNPredictor(nn.Module):
    """A map of four times the size for each point."""

    def __init__(self, in_channels: int, num_keypoints: int) -> None:
        self.kps_score_lowres = nn.ConvTranspose2d(in_channels, num_keypoints, 4, 2, 1)
        init.kaiming_normal_(self.kps_score_lowres.weight, mode="fan_out", nonlinearity="relu")
        if self.kps_score_lowres.bias is not None:
            init.zeros_(self.kps_score_lowres.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(self.kps_score_lowres(x), scale_factor=2.0, mode="bilinear")


class KeypointRCNN(FasterRCNN):
    """Faster R-CNN that also finds points: targets have "keypoints" [K, P, 3], x, y and 0 if it is hidden; results have those and "keypoints_scores"
    [K, P]."""

    def __init__(
        self,
        backbone: Any,  # a module with out_channels
        num_classes: int = 2,
        min_size: int | Sequence[int] = (640, 672, 704, 736, 768, 800),
        keypoint_roi_pool: nn.Module | None = None,
        keypoint_head: nn.Module | None = None,
        keypoint_predictor: nn.Module | None = None,
        num_keypoints: int = 17,
        **settings: Any,
    ) -> None:
        super().__init__(backbone, num_classes, min_size=min_size, **settings)
        heads = self.roi_heads
        heads.keypoint_roi_pool = keypoint_roi_pool or MultiScaleRoIAlign(LEVELS, 14, 2)
        heads.keypoint_head = keypoint_head or KeypointRCNNHeads(backbone.out_channels, [512] * 8)
        heads.keypoint_predictor = keypoint_predictor or KeypointRCNNPredictor(512, num_keypoints)


@untrained
def keypointrcnn_resnet50_fpn(
    num_classes: int = 2, num_keypoints: int = 17, **settings: Any
) -> KeypointRCNN:
    """Keypoint R-CNN over a pyramid of ResNet 50."""
    backbone = resnet50_pyramid([1, 2, 3, 4], LastLevelMaxPool())
    return KeypointRCNN(backbone, num_classes, num_keypoints=num_keypoints, **settings)
