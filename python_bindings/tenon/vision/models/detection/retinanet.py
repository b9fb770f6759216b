# SPDX-License-Identifier: Apache-2.0
"""RetinaNet (Lin et al., 2017): one look at every anchor, with the focal loss."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn import functional as F
from tenon.nn import init

from .._blocks import ConvNormActivation, untrained
from .anchors import AnchorGenerator
from .boxes import BETWEEN, clipped, generalized_iou_losses, indices, matched_or_none, suppressed
from .images import ImageTransform, Target, checked, original
from .proposals import rows_of
from .pyramid import LastLevelP6P7, Norm, resnet50_pyramid

__all__ = ["RetinaNet", "retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2"]


class _Tower(nn.Module):
    """Four convolutions that every level shares."""

    def __init__(self, channels: int, norm: Norm | None) -> None:
        self.conv = nn.Sequential(
            *(ConvNormActivation(channels, channels, norm=norm) for _ in range(4))
        )

    def _init_weights(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.normal_(module.weight, 0.0, 0.01)
                if module.bias is not None:
                    init.zeros_(module.bias)


class RetinaNetClassificationHead(_Tower):
    """Scores of each anchor's classes. At first an object is as likely as 1 in 100."""

    def __init__(
        self, channels: int, num_anchors: int, num_classes: int, norm: Norm | None
    ) -> None:
        super().__init__(channels, norm)
        self.cls_logits = nn.Conv2d(channels, num_anchors * num_classes, 3, 1, 1)
        self.num_classes = num_classes
        self._init_weights()
        if self.cls_logits.bias is not None:
            init.constant_(self.cls_logits.bias, -math.log((1 - 0.01) / 0.01))

    def forward(self, features: Sequence[Tensor]) -> list[Tensor]:
        return [rows_of(self.cls_logits(self.conv(x)), self.num_classes) for x in features]


class RetinaNetRegressionHead(_Tower):
    """What each anchor's box lacks."""

    def __init__(self, channels: int, num_anchors: int, norm: Norm | None) -> None:
        super().__init__(channels, norm)
        self.bbox_reg = nn.Conv2d(channels, num_anchors * 4, 3, 1, 1)
        self._init_weights()

    def forward(self, features: Sequence[Tensor]) -> list[Tensor]:
        return [rows_of(self.bbox_reg(self.conv(x)), 4) for x in features]


class RetinaNetHead(nn.Module):
    """Both heads."""

    def __init__(
        self, channels: int, num_anchors: int, num_classes: int, norm: Norm | None = None
    ) -> None:
        self.classification_head = RetinaNetClassificationHead(
            channels, num_anchors, num_classes, norm
        )
        self.regression_head = RetinaNetRegressionHead(channels, num_anchors, norm)

    def forward(self, features: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return self.classification_head(features), self.regression_head(features)


def _l1(deltas: Tensor, anchors: Tensor, boxes: Tensor) -> Tensor:
    return F.l1_loss(deltas, tenon.box_encode(boxes, anchors), reduction="sum")


def _giou(deltas: Tensor, anchors: Tensor, boxes: Tensor) -> Tensor:
    return generalized_iou_losses(tenon.box_decode(deltas, anchors), boxes).sum()


class RetinaNet(nn.Module):
    """Finds objects in a list of images [3, H, W], as `FasterRCNN` does; classes count from 0, and
    none is the background."""

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
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.4,
        topk_candidates: int = 1000,
        box_loss: Callable[[Tensor, Tensor, Tensor], Tensor] = _l1,
    ) -> None:
        channels = backbone.out_channels
        self.transform = ImageTransform(min_size, max_size, image_mean, image_std)
        self.backbone = backbone
        self.anchor_generator = anchor_generator or default_anchors()
        each = self.anchor_generator.num_anchors_per_location()[0]
        self.head = head or RetinaNetHead(channels, each, num_classes)
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates
        self.fg_iou_thresh, self.bg_iou_thresh = fg_iou_thresh, bg_iou_thresh
        self.box_loss = box_loss

    def _losses(
        self, scores: Tensor, deltas: Tensor, anchors: Tensor, targets: Sequence[Target]
    ) -> dict[str, Tensor]:
        of_classes, of_boxes = [], []
        for score, delta, target in zip(scores, deltas, targets):
            boxes, labels = target["boxes"], target["labels"].to("int64")
            matches = matched_or_none(
                boxes,
                anchors,
                high=self.fg_iou_thresh,
                low=self.bg_iou_thresh,
                allow_low_quality_matches=True,
            )
            here, asked = indices(matches >= 0), indices(matches != BETWEEN)
            count = max(1, here.shape[0])
            wanted = tenon.zeros_like(score)
            if here.shape[0]:
                wanted[here, labels[matches[here]]] = 1.0
                lacking = self.box_loss(delta[here], anchors[here], boxes[matches[here]])
                of_boxes.append(lacking / count)
            else:
                of_boxes.append(delta.sum() * 0.0)
            of_classes.append(F.sigmoid_focal_loss(score[asked], wanted[asked]) / count)
        return {
            "classification": sum(of_classes[1:], of_classes[0]) / len(targets),
            "bbox_regression": sum(of_boxes[1:], of_boxes[0]) / len(targets),
        }

    def _detections(
        self, scores: list[Tensor], deltas: list[Tensor], levels: list[Tensor], size: Sequence[int]
    ) -> dict[str, Tensor]:
        boxes, found, labels = [], [], []
        for logits, delta, anchors in zip(scores, deltas, levels):
            classes = logits.shape[-1]
            score = tenon.sigmoid(logits).reshape([-1])
            stay = indices(score > self.score_thresh)
            best, order = tenon.topk(score[stay], min(self.topk_candidates, stay.shape[0]))
            place = stay[order]
            anchor = place // classes
            found.append(best)
            labels.append(place % classes)
            boxes.append(clipped(tenon.box_decode(delta[anchor], anchors[anchor]), size))
        rows, score, label = (tenon.concat(each, axis=0) for each in (boxes, found, labels))
        stay = suppressed(rows, score, label, self.nms_thresh, self.detections_per_img)
        return {"boxes": rows[stay], "scores": score[stay], "labels": label[stay]}

    def forward(self, images: Sequence[Tensor], targets: Sequence[Target] | None = None) -> Any:
        """Losses in training, otherwise what was found in each image."""
        if self.training:
            checked("RetinaNet", images, targets)
        elif targets is not None:
            raise ValueError("RetinaNet: expected targets in training only, got some")
        batch, moved = self.transform(images, targets)
        features = list(self.backbone(batch.tensors).values())
        scores, deltas = self.head(features)
        levels = self.anchor_generator(batch.tensors.shape[-2:], features)
        if moved is not None:
            every_score, every_delta = tenon.concat(scores, axis=1), tenon.concat(deltas, axis=1)
            return self._losses(every_score, every_delta, tenon.concat(levels, axis=0), moved)
        found = []
        for place, (size, image) in enumerate(zip(batch.sizes, images)):
            each = self._detections(
                [x[place] for x in scores], [x[place] for x in deltas], levels, size
            )
            each["boxes"] = original(each["boxes"], size, image.shape[-2:])
            found.append(each)
        return found


def default_anchors() -> AnchorGenerator:
    """Three sizes and three ratios at each place of five levels."""
    sizes = [(x, int(x * 2 ** (1 / 3)), int(x * 2 ** (2 / 3))) for x in (32, 64, 128, 256, 512)]
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * 5)


@untrained
def retinanet_resnet50_fpn(num_classes: int = 91, **settings: Any) -> RetinaNet:
    """RetinaNet over a pyramid of ResNet 50."""
    return RetinaNet(resnet50_pyramid([2, 3, 4], LastLevelP6P7(256, 256)), num_classes, **settings)


@untrained
def retinanet_resnet50_fpn_v2(num_classes: int = 91, **settings: Any) -> RetinaNet:
    """RetinaNet with group norms and the loss of what boxes share (Zhang et al., 2020)."""
    head = RetinaNetHead(256, 9, num_classes, functools.partial(nn.GroupNorm, 32))
    backbone = resnet50_pyramid([2, 3, 4], LastLevelP6P7(2048, 256))
    defaults: dict[str, Any] = {"head": head, "box_loss": _giou}
    return RetinaNet(backbone, num_classes, **(defaults | settings))
