# SPDX-License-Identifier: Apache-2.0
"""Points of objects: their positions in heat maps over boxes, the loss of such maps, and how positions are read from them."""

from __future__ import annotations

import math

import tenon
from tenon import Tensor
from tenon.nn import functional as F

from .boxes import indices


def indices_in_maps(keypoints: Tensor, boxes: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Where points [K, P, 3], of which the third number is 0 if they are hidden, lie in maps of `side` x `side` over their boxes [K, 4], counted
    line by line, and which of them are seen there; both [K, P]."""
    at, hit = [], []
    for axis in (0, 1):
        low, high = boxes[:, axis][:, None], boxes[:, axis + 2][:, None]
        where = keypoints[..., axis]
        place = tenon.floor((where - low) * (side / (high - low))).to("int64")
        place = tenon.where(where == high, tenon.full_like(place, side - 1), place)
        at.append(place)
        hit.append((place >= 0) & (place < side))
    seen = hit[0] & hit[1] & (keypoints[..., 2] > 0)
    return tenon.where(seen, at[1] * side + at[0], tenon.zeros_like(at[0])), seen


def keypoints_loss(logits: Tensor, index: Tensor, seen: Tensor) -> Tensor:
    """The cross-entropy of the indices of those points that are seen, over maps [K, P, H, W]."""
    rows = logits.reshape([logits.shape[0] * logits.shape[1], -1])
    here = indices(seen.reshape([-1]))
    if here.shape[0] == 0:
        return logits.sum() * 0.0
    return F.cross_entropy(rows[here], index.reshape([-1])[here])


def found_in(maps: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """The points [K, P, 3] at the peaks of maps [K, P, H, W] over their boxes, and the scores there [K, P]. Maps are resized to whole pixels of
    the box, in which peaks are looked for."""
    points, scores = [], []
    for place, (x0, y0, x1, y1) in enumerate(boxes.tolist()):
        width, height = max(x1 - x0, 1.0), max(y1 - y0, 1.0)
        columns, lines = math.ceil(width), math.ceil(height)
        resized = F.interpolate(maps[place][:, None], [lines, columns], mode="bicubic")[:, 0]
        rows = resized.reshape([resized.shape[0], -1])
        peak = tenon.argmax(rows, 1)
        x = ((peak % columns).to(maps.dtype) + 0.5) * (width / columns) + x0
        y = ((peak // columns).to(maps.dtype) + 0.5) * (height / lines) + y0
        points.append(tenon.stack([x, y, tenon.ones_like(x)], axis=1))
        scores.append(tenon.gather(rows, peak[:, None], 1)[:, 0])
    if not points:
        count = maps.shape[1]
        return (
            tenon.zeros([0, count, 3], device=maps.device),
            tenon.zeros([0, count], device=maps.device),
        )
    return tenon.stack(points, axis=0), tenon.stack(scores, axis=0)
