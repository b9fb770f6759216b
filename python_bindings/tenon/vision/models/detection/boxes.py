# SPDX-License-Identifier: Apache-2.0
"""What detectors do with boxes: which object an anchor belongs to, which of them train, and which
boxes are left in the end."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

BELOW, BETWEEN = -1, -2


def match(
    overlaps: Tensor, high: float, low: float, allow_low_quality_matches: bool = False
) -> Tensor:
    """The object of each anchor by their `overlaps` [objects, anchors]; BELOW `low` it has none,
    and BETWEEN the thresholds it is not asked.

    With `allow_low_quality_matches` the best anchors of an object belong to their best one anyhow.
    """
    best = tenon.max(overlaps, axis=0)
    objects = tenon.argmax(overlaps, 0)
    below = tenon.where(best < low, tenon.full_like(objects, BELOW), objects)
    matches = tenon.where((best >= low) & (best < high), tenon.full_like(objects, BETWEEN), below)
    if allow_low_quality_matches:
        restored = (overlaps == tenon.max(overlaps, axis=1, keepdim=True)).any(0)
        matches = tenon.where(restored, objects, matches)
    return matches


def matched_or_none(boxes: Tensor, anchors: Tensor, **thresholds: float | bool) -> Tensor:
    """`match` by the part that anchors share with `boxes`, of which there may be none."""
    if boxes.shape[0] == 0:
        return tenon.full([anchors.shape[0]], BELOW, dtype="int64", device=anchors.device)
    return match(tenon.box_iou(boxes, anchors), **thresholds)  # type: ignore[arg-type]


def indices(mask: Tensor) -> Tensor:
    """Where a vector is true."""
    return tenon.nonzero(mask)[:, 0]


def sample(labels: Tensor, count: int, positive_fraction: float) -> tuple[Tensor, Tensor]:
    """Indices of at most `count` anchors, drawn among those of objects (labels above 0), of which
    there are at most `positive_fraction`, and among the background (0)."""
    positive, negative = indices(labels >= 1), indices(labels == 0)

    def drawn(each: Tensor, most: int) -> Tensor:
        if each.shape[0] <= most:
            return each
        return each[tenon.randperm(each.shape[0], device=each.device)[:most]]

    positive = drawn(positive, int(count * positive_fraction))
    return positive, drawn(negative, count - positive.shape[0])


def clipped(boxes: Tensor, size: Sequence[int]) -> Tensor:
    """Boxes [..., 4] cut at the border of an image of this height and width."""
    height, width = size
    limit = tenon.tensor([width, height, width, height], dtype=boxes.dtype, device=boxes.device)
    return tenon.minimum(boxes.clip(0.0, None), limit)


def large_enough(boxes: Tensor, least: float) -> Tensor:
    """Whether both sides of each box [K, 4] are `least` long."""
    return ((boxes[:, 2:] - boxes[:, :2]) >= least).all(1)


def suppressed(
    boxes: Tensor, scores: Tensor, categories: Tensor, threshold: float, most: int
) -> Tensor:
    """Indices of at most `most` boxes, best first, of which no two of one category share more than
    `threshold`."""
    if boxes.shape[0] == 0:
        return tenon.zeros([0], dtype="int64", device=boxes.device)
    return tenon.nms(boxes, scores, threshold, categories=categories)[:most]


def generalized_iou_losses(found: Tensor, boxes: Tensor) -> Tensor:
    """1 minus the generalised part that each box shares with the one beside it (Rezatofighi et al., 2019); [K]."""
    shared = tenon.maximum(found[:, :2], boxes[:, :2]), tenon.minimum(found[:, 2:], boxes[:, 2:])
    hull = tenon.minimum(found[:, :2], boxes[:, :2]), tenon.maximum(found[:, 2:], boxes[:, 2:])
    inner = (shared[1] - shared[0]).clip(0.0, None).prod(1)
    outer = (hull[1] - hull[0]).prod(1)
    both = (found[:, 2:] - found[:, :2]).prod(1) + (boxes[:, 2:] - boxes[:, :2]).prod(1) - inner
    return 1 - inner / (both + 1e-7) + (outer - both) / (outer + 1e-7)
