# SPDX-License-Identifier: Apache-2.0
"""What the functions of this package share."""

from __future__ import annotations

import tenon
from tenon import Tensor


def overlaps(x: Tensor, y: Tensor, pixel: float) -> Tensor:
    """Intersection over union [N, M] of the boxes `x` [N, 4] and `y` [M, 4], whose sides are `pixel` longer
    than the differences of their corners: 1 if these name the first and the last pixel, else 0."""
    low = tenon.maximum(x[:, None, :2], y[None, :, :2])
    high = tenon.minimum(x[:, None, 2:], y[None, :, 2:])
    shared = tenon.clip(high - low + pixel, 0.0, None).prod(-1)
    of_x, of_y = ((each[:, 2:] - each[:, :2] + pixel).prod(-1) for each in (x, y))
    union = of_x[:, None] + of_y[None, :] - shared
    return tenon.where(union > 0, shared / tenon.where(union > 0, union, 1.0), 0.0)


def kept(boxes: Tensor, scores: Tensor, threshold: float, pixel: float, eta: float = 1.0) -> Tensor:
    """The indices of the boxes that non-maximum suppression keeps, by descending score. With `eta` below 1
    a threshold above 1/2 is multiplied by it after each box that is kept."""
    if eta == 1.0 and pixel == 0.0:
        return tenon.nms(boxes, scores, threshold)
    order = tenon.argsort(scores, 0, descending=True)
    shared = overlaps(boxes[order], boxes[order], pixel).numpy()
    indices: list[int] = []
    for place in range(len(shared)):
        if all(shared[place, other] <= threshold for other in indices):
            indices.append(place)
            threshold *= eta if threshold > 0.5 else 1.0
    return order[tenon.tensor(indices, dtype="int64", device=boxes.device)]


def counts_of(parts: list[Tensor], like: Tensor) -> Tensor:
    """How many rows each part has, as int32."""
    return tenon.tensor([each.shape[0] for each in parts], dtype="int32", device=like.device)


def expect(function: str, condition: bool, expected: str, got: object) -> None:
    if not condition:
        raise ValueError(f"{function}: expected {expected}, got {got}")
