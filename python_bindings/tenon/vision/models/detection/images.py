# SPDX-License-Identifier: Apache-2.0
"""What happens to images before a detector sees them, and to its boxes afterwards."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import tenon
from tenon import Tensor, nn

Target = dict[str, Any]


class Batch(NamedTuple):
    """Images in one tensor [N, 3, H, W], padded, and the sizes that they had before the padding."""

    tensors: Tensor
    sizes: list[tuple[int, int]]


def checked(name: str, images: Sequence[Tensor], targets: Sequence[Target] | None) -> None:
    """Raise if these are no images, or no targets with boxes for each."""
    for image in images:
        if image.ndim != 3:
            raise ValueError(f"{name}: expected images [3, H, W], got shape {list(image.shape)}")
    if targets is None:
        raise ValueError(f"{name}: expected targets in training, got None; call eval() to detect")
    if len(targets) != len(images):
        raise ValueError(f"{name}: expected {len(images)} targets, got {len(targets)}")
    for target in targets:
        boxes = target["boxes"]
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise ValueError(f"{name}: expected boxes [K, 4], got shape {list(boxes.shape)}")
        if boxes.shape[0] and bool((boxes[:, 2:] <= boxes[:, :2]).any()):
            raise ValueError(f"{name}: expected boxes x0 < x1 and y0 < y1, got {boxes.tolist()}")


class ImageTransform(nn.Module):
    """Normalises images, resizes them so that the shorter side is `min_size`, the longer at most
    `max_size`, or to `fixed_size` (width and height), and pads them to multiples of `size_divisible`."""

    def __init__(
        self,
        min_size: int | Sequence[int],
        max_size: int,
        image_mean: Sequence[float] | None = None,
        image_std: Sequence[float] | None = None,
        size_divisible: int = 32,
        fixed_size: tuple[int, int] | None = None,
    ) -> None:
        self.min_size = (min_size,) if isinstance(min_size, int) else tuple(min_size)
        self.max_size = max_size
        self.image_mean = list(image_mean or (0.485, 0.456, 0.406))
        self.image_std = list(image_std or (0.229, 0.224, 0.225))
        self.size_divisible, self.fixed_size = size_divisible, fixed_size

    def _size(self, height: int, width: int) -> list[int]:
        if self.fixed_size is not None:
            return [self.fixed_size[1], self.fixed_size[0]]
        least = random.choice(self.min_size) if self.training else self.min_size[-1]
        scale = min(least / min(height, width), self.max_size / max(height, width))
        return [math.floor(height * scale), math.floor(width * scale)]

    def _resized(self, image: Tensor, target: Target | None) -> tuple[Tensor, Target | None]:
        height, width = image.shape[-2:]
        size = self._size(height, width)
        image = nn.functional.interpolate(image[None], size, mode="bilinear")[0]
        if target is None:
            return image, None
        y, x = size[0] / height, size[1] / width
        target = dict(target)
        target["boxes"] = target["boxes"] * tenon.tensor([x, y, x, y]).to(image.device)
        if "masks" in target:
            masks = target["masks"][:, None].to("float32")
            target["masks"] = nn.functional.interpolate(masks, size, mode="nearest")[:, 0]
        if "keypoints" in target:
            points = target["keypoints"]
            target["keypoints"] = points * tenon.tensor([x, y, 1.0]).to(points.device)
        return image, target

    def forward(
        self, images: Sequence[Tensor], targets: Sequence[Target] | None = None
    ) -> tuple[Batch, list[Target] | None]:
        mean = tenon.tensor(self.image_mean).reshape([3, 1, 1])
        std = tenon.tensor(self.image_std).reshape([3, 1, 1])
        resized, moved = [], []
        for place, image in enumerate(images):
            normed = (image - mean.to(image.device)) / std.to(image.device)
            normed, target = self._resized(normed, targets[place] if targets else None)
            resized.append(normed)
            moved.append(target)
        divisor = self.size_divisible
        height, width = (
            math.ceil(max(each.shape[axis] for each in resized) / divisor) * divisor
            for axis in (1, 2)
        )
        padded = [
            nn.functional.pad(each, [0, width - each.shape[2], 0, height - each.shape[1]])
            for each in resized
        ]
        sizes = [(each.shape[1], each.shape[2]) for each in resized]
        kept = [target for target in moved if target is not None]
        return Batch(tenon.stack(padded, axis=0), sizes), kept if targets is not None else None


def original(boxes: Tensor, size: Sequence[int], wanted: Sequence[int]) -> Tensor:
    """Boxes of an image of `size` in the image of `wanted` height and width that it was made of."""
    y, x = wanted[0] / size[0], wanted[1] / size[1]
    return boxes * tenon.tensor([x, y, x, y]).to(boxes.device)
