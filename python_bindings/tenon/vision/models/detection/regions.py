# SPDX-License-Identifier: Apache-2.0
"""Heads that look at the proposed regions: their classes, their boxes, their masks and their points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn import functional as F

from .boxes import (
    BETWEEN,
    clipped,
    indices,
    large_enough,
    matched_or_none,
    sample,
    suppressed,
)
from .images import Target
from .keypoints import found_in, indices_in_maps, keypoints_loss

BOX_WEIGHTS = [10.0, 10.0, 5.0, 5.0]


class MultiScaleRoIAlign(nn.Module):
    """Features of boxes, from the level of a pyramid that suits a box's size."""

    def __init__(self, featmap_names: Sequence[str], output_size: int, sampling_ratio: int) -> None:
        self.featmap_names = list(featmap_names)
        self.output_size, self.sampling_ratio = output_size, sampling_ratio

    def forward(
        self, features: dict[str, Tensor], boxes: Sequence[Tensor], sizes: Sequence[Sequence[int]]
    ) -> Tensor:
        """[K, C, output_size, output_size] of all `boxes`, which belong to images of `sizes`."""
        levels = [features[name] for name in self.featmap_names if name in features]
        largest = max(size[0] for size in sizes)
        scales = [2.0 ** round(math.log2(each.shape[-2] / largest)) for each in levels]
        rows = tenon.concat(list(boxes), axis=0)
        image = tenon.concat(
            [tenon.full([each.shape[0]], place, dtype="int64") for place, each in enumerate(boxes)],
            axis=0,
        ).to(rows.device)
        size = [self.output_size, self.output_size]
        if len(levels) == 1:
            return tenon.roi_align(levels[0], rows, image, size, scales[0], self.sampling_ratio)
        first, last = -math.log2(scales[0]), -math.log2(scales[-1])
        root = tenon.sqrt((rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1]))
        level_of = tenon.floor(4 + tenon.log2(root / 224) + 1e-6).clip(first, last) - first
        parts, order = [], []
        for level, (each, scale) in enumerate(zip(levels, scales)):
            here = indices(level_of == level)
            order.append(here)
            if here.shape[0]:
                parts.append(
                    tenon.roi_align(each, rows[here], image[here], size, scale, self.sampling_ratio)
                )
        if not parts:
            return tenon.zeros([0, levels[0].shape[1], *size], device=rows.device)
        return tenon.concat(parts, axis=0)[tenon.argsort(tenon.concat(order, axis=0), 0)]


def pasted(masks: Tensor, boxes: Tensor, size: Sequence[int]) -> Tensor:
    """Masks [K, 1, H, W] of an image, from those [K, 1, M, M] of its boxes."""
    height, width = size
    side = masks.shape[-1]
    masks = F.pad(masks, [1, 1, 1, 1])  # so that they fade at the border
    centre = (boxes[:, 2:] + boxes[:, :2]) * 0.5
    half = (boxes[:, 2:] - boxes[:, :2]) * 0.5 * ((side + 2) / side)
    corners = tenon.concat([centre - half, centre + half], axis=1).to("int64").tolist()
    pasted = []
    for place, (x0, y0, x1, y1) in enumerate(corners):
        shape = [max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1)]
        mask = F.interpolate(masks[place][None], shape, mode="bilinear")[0, 0]
        left, top = max(x0, 0), max(y0, 0)
        right, bottom = min(x1 + 1, width), min(y1 + 1, height)
        if right <= left or bottom <= top:
            pasted.append(tenon.zeros([height, width], device=masks.device))
            continue
        seen = mask[top - y0 : bottom - y0, left - x0 : right - x0]
        pasted.append(F.pad(seen, [left, width - right, top, height - bottom]))
    if not pasted:
        return tenon.zeros([0, 1, height, width], device=masks.device)
    return tenon.stack(pasted, axis=0)[:, None]


class RoIHeads(nn.Module):
    """Classes and boxes of proposals and, with heads for them, the objects' masks and points."""

    def __init__(
        self,
        box_roi_pool: nn.Module,
        box_head: nn.Module,
        box_predictor: nn.Module,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.5,
        batch_size_per_image: int = 512,
        positive_fraction: float = 0.25,
        bbox_reg_weights: Sequence[float] | None = None,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 100,
    ) -> None:
        self.box_roi_pool, self.box_head, self.box_predictor = box_roi_pool, box_head, box_predictor
        self.fg_iou_thresh, self.bg_iou_thresh = fg_iou_thresh, bg_iou_thresh
        self.batch_size_per_image, self.positive_fraction = batch_size_per_image, positive_fraction
        self.bbox_reg_weights = list(bbox_reg_weights or BOX_WEIGHTS)
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img = detections_per_img
        self.mask_roi_pool: nn.Module | None = None
        self.mask_head: nn.Module | None = None
        self.mask_predictor: nn.Module | None = None
        self.keypoint_roi_pool: nn.Module | None = None
        self.keypoint_head: nn.Module | None = None
        self.keypoint_predictor: nn.Module | None = None

    def _sampled(self, proposals: Tensor, target: Target) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Regions that train, with their objects, labels and what their boxes lack."""
        boxes, labels = target["boxes"], target["labels"].to("int64")
        proposals = tenon.concat([proposals, boxes], axis=0)
        matches = matched_or_none(boxes, proposals, high=self.fg_iou_thresh, low=self.bg_iou_thresh)
        objects = matches.clip(0, None)
        if boxes.shape[0]:
            found = tenon.where(matches >= 0, labels[objects], tenon.zeros_like(matches))
        else:
            found, boxes = tenon.zeros_like(matches), tenon.zeros([1, 4], device=boxes.device)
        found = tenon.where(matches == BETWEEN, tenon.full_like(found, -1), found)
        positive, negative = sample(found, self.batch_size_per_image, self.positive_fraction)
        chosen = tenon.sort(tenon.concat([positive, negative], axis=0), 0)
        regions, objects = proposals[chosen], objects[chosen]
        wanted = tenon.box_encode(boxes[objects], regions, self.bbox_reg_weights)
        return regions, objects, found[chosen], wanted

    def _detections(
        self, scores: Tensor, deltas: Tensor, regions: Tensor, size: Sequence[int]
    ) -> dict[str, Tensor]:
        classes = scores.shape[1]
        decoded = tenon.box_decode(
            deltas.reshape([-1, 4]),
            tenon.concat([regions[:, None]] * classes, axis=1).reshape([-1, 4]),
            self.bbox_reg_weights,
        )
        boxes = clipped(decoded, size).reshape([-1, classes, 4])[:, 1:].reshape([-1, 4])
        score = tenon.softmax(scores, 1)[:, 1:].reshape([-1])
        label = tenon.tile(tenon.arange(1, classes, device=scores.device), [regions.shape[0]])
        stay = indices((score > self.score_thresh) & large_enough(boxes, 1e-2))
        boxes, score, label = boxes[stay], score[stay], label[stay]
        stay = suppressed(boxes, score, label, self.nms_thresh, self.detections_per_img)
        return {"boxes": boxes[stay], "labels": label[stay], "scores": score[stay]}

    def _mask_logits(
        self, features: dict[str, Tensor], boxes: Sequence[Tensor], sizes: Sequence[Sequence[int]]
    ) -> Tensor:
        assert self.mask_roi_pool and self.mask_head and self.mask_predictor
        pooled = self.mask_roi_pool(features, boxes, sizes)
        return self.mask_predictor(self.mask_head(pooled))

    def _mask_loss(
        self,
        features: dict[str, Tensor],
        sampled: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]],
        targets: Sequence[Target],
        sizes: Sequence[Sequence[int]],
    ) -> Tensor:
        boxes, labels, drawn = [], [], []
        for (regions, objects, found, _), target in zip(sampled, targets):
            here = indices(found > 0)
            boxes.append(regions[here])
            labels.append(found[here])
            drawn.append((target["masks"].to("float32")[:, None], objects[here]))
        logits = self._mask_logits(features, boxes, sizes)
        if logits.shape[0] == 0:
            return logits.sum() * 0.0
        side = logits.shape[-1]
        wanted = [
            tenon.roi_align(masks, each, objects, [side, side], 1.0)[:, 0]
            for each, (masks, objects) in zip(boxes, drawn)
            if each.shape[0]
        ]
        label = tenon.concat(labels, axis=0)
        rows = logits[tenon.arange(label.shape[0], device=label.device), label]
        return F.binary_cross_entropy_with_logits(rows, tenon.concat(wanted, axis=0))

    def _keypoint_logits(
        self, features: dict[str, Tensor], boxes: Sequence[Tensor], sizes: Sequence[Sequence[int]]
    ) -> Tensor:
        assert self.keypoint_roi_pool and self.keypoint_head and self.keypoint_predictor
        pooled = self.keypoint_roi_pool(features, boxes, sizes)
        return self.keypoint_predictor(self.keypoint_head(pooled))

    def _keypoint_loss(
        self,
        features: dict[str, Tensor],
        sampled: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]],
        targets: Sequence[Target],
        sizes: Sequence[Sequence[int]],
    ) -> Tensor:
        boxes, objects = [], []
        for regions, own, found, _ in sampled:
            here = indices(found > 0)
            boxes.append(regions[here])
            objects.append(own[here])
        logits = self._keypoint_logits(features, boxes, sizes)
        if logits.shape[0] == 0:
            return logits.sum() * 0.0
        placed = [
            indices_in_maps(target["keypoints"][own], each, logits.shape[-1])
            for target, own, each in zip(targets, objects, boxes)
            if each.shape[0]
        ]
        at, seen = (tenon.concat(list(each), axis=0) for each in zip(*placed))
        return keypoints_loss(logits, at, seen)

    def forward(
        self,
        features: dict[str, Tensor],
        proposals: Sequence[Tensor],
        sizes: Sequence[Sequence[int]],
        targets: Sequence[Target] | None = None,
    ) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
        """What was found in each image, or the losses if there are targets."""
        sampled = []
        if targets is not None:
            with tenon.no_grad():
                sampled = [self._sampled(*each) for each in zip(proposals, targets)]
            proposals = [each[0] for each in sampled]
        pooled = self.box_roi_pool(features, proposals, sizes)
        scores, deltas = self.box_predictor(self.box_head(pooled))
        if targets is not None:
            labels = tenon.concat([each[2] for each in sampled], axis=0)
            wanted = tenon.concat([each[3] for each in sampled], axis=0)
            here = indices(labels > 0)
            rows = deltas.reshape([labels.shape[0], -1, 4])[here, labels[here]]
            error = F.smooth_l1_loss(rows, wanted[here], reduction="sum", beta=1 / 9)
            losses = {
                "loss_classifier": F.cross_entropy(scores, labels),
                "loss_box_reg": error / labels.shape[0],
            }
            if self.mask_head is not None:
                losses["loss_mask"] = self._mask_loss(features, sampled, targets, sizes)
            if self.keypoint_head is not None:
                losses["loss_keypoint"] = self._keypoint_loss(features, sampled, targets, sizes)
            return [], losses
        found, first = [], 0
        for regions, size in zip(proposals, sizes):
            last = first + regions.shape[0]
            found.append(self._detections(scores[first:last], deltas[first:last], regions, size))
            first = last
        if self.mask_head is not None:
            logits = self._mask_logits(features, [each["boxes"] for each in found], sizes)
            first = 0
            for each in found:
                label = each["labels"]
                part = logits[first : first + label.shape[0]]
                rows = tenon.arange(label.shape[0], device=label.device)
                each["masks"] = tenon.sigmoid(part[rows, label])[:, None]
                first += label.shape[0]
        if self.keypoint_head is not None:
            logits = self._keypoint_logits(features, [each["boxes"] for each in found], sizes)
            first = 0
            for each in found:
                count = each["boxes"].shape[0]
                points, peaks = found_in(logits[first : first + count], each["boxes"])
                each["keypoints"], each["keypoints_scores"] = points, peaks
                first += count
        return found, {}
