# SPDX-License-Identifier: Apache-2.0
"""The network that proposes regions (Ren et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tenon
from tenon import Tensor, nn
from tenon.nn import functional as F
from tenon.nn import init

from .._blocks import ConvNormActivation
from .anchors import AnchorGenerator
from .boxes import (
    BELOW,
    BETWEEN,
    clipped,
    indices,
    large_enough,
    matched_or_none,
    sample,
    suppressed,
)
from .images import Batch, Target


class RPNHead(nn.Module):
    """Says of each anchor whether there is an object, and how far its box is away."""

    def __init__(self, in_channels: int, num_anchors: int, conv_depth: int = 1) -> None:
        self.conv = nn.Sequential(
            *(ConvNormActivation(in_channels, in_channels, norm=None) for _ in range(conv_depth))
        )
        self.cls_logits = nn.Conv2d(in_channels, num_anchors, 1)
        self.bbox_pred = nn.Conv2d(in_channels, num_anchors * 4, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d) and module.bias is not None:
                init.normal_(module.weight, 0.0, 0.01)
                init.zeros_(module.bias)

    def forward(self, features: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        inner = [self.conv(each) for each in features]
        return [self.cls_logits(each) for each in inner], [self.bbox_pred(each) for each in inner]


def rows_of(x: Tensor, width: int) -> Tensor:
    """[N, A width, H, W] as rows [N, H W A, width], in the order of anchors."""
    batch, channels, height, columns = x.shape
    x = x.reshape([batch, channels // width, width, height, columns]).permute([0, 3, 4, 1, 2])
    return x.reshape([batch, -1, width])


class Limits(NamedTuple):
    """How many proposals are left before and after suppression."""

    pre_nms_top_n: int
    post_nms_top_n: int


class RegionProposalNetwork(nn.Module):
    """Boxes that may hold an object, and in training the losses of what it says of anchors."""

    def __init__(
        self,
        anchor_generator: AnchorGenerator,
        head: nn.Module,
        training: Limits,
        testing: Limits,
        fg_iou_thresh: float = 0.7,
        bg_iou_thresh: float = 0.3,
        batch_size_per_image: int = 256,
        positive_fraction: float = 0.5,
        nms_thresh: float = 0.7,
        score_thresh: float = 0.0,
    ) -> None:
        self.anchor_generator, self.head = anchor_generator, head
        self.limits = {True: training, False: testing}
        self.fg_iou_thresh, self.bg_iou_thresh = fg_iou_thresh, bg_iou_thresh
        self.batch_size_per_image, self.positive_fraction = batch_size_per_image, positive_fraction
        self.nms_thresh, self.score_thresh = nms_thresh, score_thresh

    def _proposals(
        self, levels: list[Tensor], scores: list[Tensor], deltas: list[Tensor], size: Sequence[int]
    ) -> Tensor:
        """The best boxes of an image, whose scores and deltas of each level are given."""
        limits = self.limits[self.training]
        boxes, found, of_level = [], [], []
        for level, (anchors, score, delta) in enumerate(zip(levels, scores, deltas)):
            count = min(limits.pre_nms_top_n, score.shape[0])
            best, order = tenon.topk(score, count)
            boxes.append(tenon.box_decode(delta[order], anchors[order]))
            found.append(best)
            of_level.append(tenon.full_like(order, level))
        rows = clipped(tenon.concat(boxes, axis=0), size)
        score = tenon.sigmoid(tenon.concat(found, axis=0))
        level_of = tenon.concat(of_level, axis=0)
        stay = indices(large_enough(rows, 1e-3) & (score >= self.score_thresh))
        rows, score, level_of = rows[stay], score[stay], level_of[stay]
        return rows[suppressed(rows, score, level_of, self.nms_thresh, limits.post_nms_top_n)]

    def _losses(
        self, anchors: Tensor, scores: Tensor, deltas: Tensor, targets: Sequence[Target]
    ) -> dict[str, Tensor]:
        chosen, truths, errors = [], [], []
        count = 0
        for place, target in enumerate(targets):
            boxes = target["boxes"]
            matches = matched_or_none(
                boxes,
                anchors,
                high=self.fg_iou_thresh,
                low=self.bg_iou_thresh,
                allow_low_quality_matches=True,
            )
            labels = (matches >= 0).to("float32")
            labels = tenon.where(matches == BETWEEN, tenon.full_like(labels, BELOW), labels)
            positive, negative = sample(labels, self.batch_size_per_image, self.positive_fraction)
            both = tenon.concat([positive, negative], axis=0)
            chosen.append(scores[place][both])
            truths.append(labels[both])
            count += both.shape[0]
            if positive.shape[0]:
                wanted = tenon.box_encode(boxes[matches[positive]], anchors[positive])
                errors.append(
                    F.smooth_l1_loss(deltas[place][positive], wanted, reduction="sum", beta=1 / 9)
                )
        asked, true = tenon.concat(chosen, axis=0), tenon.concat(truths, axis=0)
        total = sum(errors[1:], errors[0]) if errors else deltas.sum() * 0.0
        return {
            "loss_objectness": F.binary_cross_entropy_with_logits(asked, true),
            "loss_rpn_box_reg": total / count,
        }

    def forward(
        self,
        images: Batch,
        features: Sequence[Tensor],
        targets: Sequence[Target] | None = None,
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Boxes [K, 4] of each image, and the losses if there are targets."""
        logits, moves = self.head(features)
        levels = self.anchor_generator(images.tensors.shape[-2:], features)
        scores, deltas = [rows_of(x, 1)[..., 0] for x in logits], [rows_of(x, 4) for x in moves]
        with tenon.no_grad():
            proposals = [
                self._proposals(
                    levels, [x[place] for x in scores], [x[place] for x in deltas], size
                )
                for place, size in enumerate(images.sizes)
            ]
        if targets is None:
            return proposals, {}
        anchors = tenon.concat(levels, axis=0)
        every_score, every_delta = tenon.concat(scores, axis=1), tenon.concat(deltas, axis=1)
        return proposals, self._losses(anchors, every_score, every_delta, targets)
