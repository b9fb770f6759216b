# SPDX-License-Identifier: Apache-2.0
"""FCOS (Tian et al., 2019): each place of a pyramid says how far the sides of its object are away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn import functional as F
from tenon.nn import init

from .._blocks import untrained
from .anchors import AnchorGenerator
from .boxes import BELOW, clipped, generalized_iou_losses, indices, suppressed
from .images import ImageTransform, Target, checked, original
from .proposals import rows_of
from .pyramid import LastLevelP6P7, resnet50_pyramid

__all__ = ["FCOS", "fcos_resnet50_fpn"]


class _Tower(nn.Module):
    """Convolutions with group norms that every level shares."""

    def __init__(self, channels: int, num_convs: int) -> None:
        layers: list[nn.Module] = []
        for _ in range(num_convs):
            layers += [
                nn.Conv2d(channels, channels, 3, 1, 1),
                nn.GroupNorm(32, channels),
                nn.ReLU(),
            ]
        self.conv = nn.Sequential(*layers)

    def _init_weights(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.normal_(module.weight, 0.0, 0.01)
                if module.bias is not None:
                    init.zeros_(module.bias)


class FCOSClassificationHead(_Tower):
    """Scores of each place's classes. At first an object is as likely as 1 in 100."""

    def __init__(self, channels: int, num_anchors: int, num_classes: int, num_convs: int) -> None:
        super().__init__(channels, num_convs)
        self.num_classes = num_classes
        self.cls_logits = nn.Conv2d(channels, num_anchors * num_classes, 3, 1, 1)
        self._init_weights()
        if self.cls_logits.bias is not None:
            init.constant_(self.cls_logits.bias, -math.log((1 - 0.01) / 0.01))

    def forward(self, features: Sequence[Tensor]) -> list[Tensor]:
        return [rows_of(self.cls_logits(self.conv(x)), self.num_classes) for x in features]


class FCOSRegressionHead(_Tower):
    """Distances to the four sides in units of the level, and how near to the middle a place is."""

    def __init__(self, channels: int, num_anchors: int, num_convs: int) -> None:
        super().__init__(channels, num_convs)
        self.bbox_reg = nn.Conv2d(channels, num_anchors * 4, 3, 1, 1)
        self.bbox_ctrness = nn.Conv2d(channels, num_anchors, 3, 1, 1)
        self._init_weights()

    def forward(self, features: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        inner = [self.conv(x) for x in features]
        return (
            [rows_of(F.relu(self.bbox_reg(x)), 4) for x in inner],
            [rows_of(self.bbox_ctrness(x), 1) for x in inner],
        )


class FCOSHead(nn.Module):
    """Both heads."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int = 4
    ) -> None:
        self.classification_head = FCOSClassificationHead(
            in_channels, num_anchors, num_classes, num_convs
        )
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, num_convs)

    def forward(
        self, features: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        return (self.classification_head(features), *self.regression_head(features))


def _encoded(boxes: Tensor, anchors: Tensor) -> Tensor:
    """Distances from the middle of each anchor to the sides of its box, in sizes of the anchor."""
    middle = (anchors[:, :2] + anchors[:, 2:]) / 2
    size = anchors[:, 2:] - anchors[:, :2]
    return tenon.concat([(middle - boxes[:, :2]) / size, (boxes[:, 2:] - middle) / size], axis=1)


def _decoded(distances: Tensor, anchors: Tensor) -> Tensor:
    """The boxes that these distances mean."""
    middle = (anchors[:, :2] + anchors[:, 2:]) / 2
    size = anchors[:, 2:] - anchors[:, :2]
    return tenon.concat(
        [middle - distances[:, :2] * size, middle + distances[:, 2:] * size], axis=1
    )


class FCOS(nn.Module):
    """Finds objects in a list of images [3, H, W], as `FasterRCNN` does; classes count from 0, and none is the background. A place trains an
    object if it lies near its middle, `center_sampling_radius` positions away, and the object has the size of its level."""

    def __init__(
        self,
        backbone: Any,  # a module with out_channels
        num_classes: int,
        min_size: int | Sequence[int] = 800,
        max_size: int = 1333,
        image_mean: Sequence[float] | None = None,
        image_std: Sequence[float] | None = None,
        anchor_generator: AnchorGenerator | None = None,
        head: nn.Module | None = None,
        center_sampling_radius: float = 1.5,
        score_thresh: float = 0.2,
        nms_thresh: float = 0.6,
        detections_per_img: int = 100,
        topk_candidates: int = 1000,
    ) -> None:
        self.transform = ImageTransform(min_size, max_size, image_mean, image_std)
        self.backbone = backbone
        self.anchor_generator = anchor_generator or AnchorGenerator(
            ((8,), (16,), (32,), (64,), (128,)), ((1.0,),) * 5
        )
        each = self.anchor_generator.num_anchors_per_location()[0]
        if each != 1:
            raise ValueError(
                f"FCOS: expected an anchor_generator with one anchor at each place, got {each}"
            )
        self.head = head or FCOSHead(backbone.out_channels, each, num_classes)
        self.center_sampling_radius = center_sampling_radius
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates

    def _matches(self, boxes: Tensor, levels: Sequence[Tensor]) -> Tensor:
        """The object of each place, the smallest of those that it suits; BELOW for none."""
        anchors = tenon.concat(list(levels), axis=0)
        if boxes.shape[0] == 0:
            return tenon.full([anchors.shape[0]], BELOW, dtype="int64", device=anchors.device)
        middle = (anchors[:, :2] + anchors[:, 2:]) / 2
        size = anchors[:, 2] - anchors[:, 0]
        centres = (boxes[:, :2] + boxes[:, 2:]) / 2
        away = tenon.max((middle[:, None] - centres[None]).abs(), axis=2)
        suits = away < self.center_sampling_radius * size[:, None]
        distances = tenon.concat(
            [middle[:, None] - boxes[None, :, :2], boxes[None, :, 2:] - middle[:, None]], axis=2
        )
        suits = suits & (tenon.min(distances, axis=2) > 0)
        low, high = size * 4, size * 8
        low[: levels[0].shape[0]] = 0.0
        high[anchors.shape[0] - levels[-1].shape[0] :] = math.inf
        farthest = tenon.max(distances, axis=2)
        suits = suits & (farthest > low[:, None]) & (farthest < high[:, None])
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        rank = suits.to(boxes.dtype) * (1e8 - areas[None])
        chosen = tenon.argmax(rank, 1)
        return tenon.where(tenon.max(rank, axis=1) < 1e-5, tenon.full_like(chosen, BELOW), chosen)

    def _losses(
        self,
        scores: Tensor,
        distances: Tensor,
        nearness: Tensor,
        levels: Sequence[Tensor],
        targets: Sequence[Target],
    ) -> dict[str, Tensor]:
        anchors = tenon.concat(list(levels), axis=0)
        of_classes, of_boxes, of_middles, count = [], [], [], 0
        for score, distance, near, target in zip(scores, distances, nearness, targets):
            boxes, labels = target["boxes"], target["labels"].to("int64")
            matches = self._matches(boxes, levels)
            here = indices(matches >= 0)
            wanted = tenon.zeros_like(score)
            if here.shape[0]:
                count += here.shape[0]
                own = boxes[matches[here]]
                wanted[here, labels[matches[here]]] = 1.0
                found = _decoded(distance[here], anchors[here])
                of_boxes.append(generalized_iou_losses(found, own).sum())
                sides = _encoded(own, anchors[here])
                across, down = sides[:, [0, 2]], sides[:, [1, 3]]
                middle = tenon.sqrt(
                    tenon.min(across, axis=1)
                    / tenon.max(across, axis=1)
                    * (tenon.min(down, axis=1) / tenon.max(down, axis=1))
                )
                of_middles.append(
                    F.binary_cross_entropy_with_logits(near[here, 0], middle, reduction="sum")
                )
            else:
                of_boxes.append(distance.sum() * 0.0)
                of_middles.append(near.sum() * 0.0)
            of_classes.append(F.sigmoid_focal_loss(score, wanted))
        parts = {
            "classification": of_classes,
            "bbox_regression": of_boxes,
            "bbox_ctrness": of_middles,
        }
        return {name: sum(each[1:], each[0]) / max(1, count) for name, each in parts.items()}

    def _detections(
        self,
        scores: Sequence[Tensor],
        distances: Sequence[Tensor],
        nearness: Sequence[Tensor],
        levels: Sequence[Tensor],
        size: Sequence[int],
    ) -> dict[str, Tensor]:
        boxes, found, labels = [], [], []
        for logits, distance, near, anchors in zip(scores, distances, nearness, levels):
            classes = logits.shape[-1]
            score = tenon.sqrt(tenon.sigmoid(logits) * tenon.sigmoid(near)).reshape([-1])
            stay = indices(score > self.score_thresh)
            best, order = tenon.topk(score[stay], min(self.topk_candidates, stay.shape[0]))
            place = stay[order]
            anchor = place // classes
            found.append(best)
            labels.append(place % classes)
            boxes.append(clipped(_decoded(distance[anchor], anchors[anchor]), size))
        rows, score, label = (tenon.concat(each, axis=0) for each in (boxes, found, labels))
        stay = suppressed(rows, score, label, self.nms_thresh, self.detections_per_img)
        return {"boxes": rows[stay], "scores": score[stay], "labels": label[stay]}

    def forward(self, images: Sequence[Tensor], targets: Sequence[Target] | None = None) -> Any:
        """Losses in training, otherwise what was found in each image."""
        if self.training:
            checked("FCOS", images, targets)
        elif targets is not None:
            raise ValueError("FCOS: expected targets in training only, got some")
        batch, moved = self.transform(images, targets)
        features = list(self.backbone(batch.tensors).values())
        rows = self.head(features)
        levels = self.anchor_generator(batch.tensors.shape[-2:], features)
        if moved is not None:
            scores, distances, nearness = (tenon.concat(each, axis=1) for each in rows)
            return self._losses(scores, distances, nearness, levels, moved)
        found = []
        for place, (size, image) in enumerate(zip(batch.sizes, images)):
            own = [[x[place] for x in each] for each in rows]
            each = self._detections(own[0], own[1], own[2], levels, size)
            each["boxes"] = original(each["boxes"], size, image.shape[-2:])
            found.append(each)
        return found


@untrained
def fcos_resnet50_fpn(num_classes: int = 91, **settings: Any) -> FCOS:
    """FCOS over a pyramid of ResNet 50."""
    return FCOS(resnet50_pyramid([2, 3, 4], LastLevelP6P7(256, 256)), num_classes, **settings)
