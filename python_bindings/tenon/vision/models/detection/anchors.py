# SPDX-License-Identifier: Apache-2.0
"""Anchors: the boxes at each place of a feature map that a detector corrects."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor, nn

__all__ = ["AnchorGenerator"]


def _shapes(sizes: Sequence[float], ratios: Sequence[float]) -> Tensor:
    """Boxes [A, 4] around 0 with these sizes, for each ratio of height to width."""
    rows = []
    for ratio in ratios:
        for size in sizes:
            width, height = size / math.sqrt(ratio), size * math.sqrt(ratio)
            rows.append([-width / 2, -height / 2, width / 2, height / 2])
    return tenon.round(tenon.tensor(rows))


class AnchorGenerator(nn.Module):
    """Anchors of each level of a pyramid: `sizes` and `aspect_ratios` have a row for each."""

    def __init__(
        self,
        sizes: Sequence[Sequence[float]] = ((128, 256, 512),),
        aspect_ratios: Sequence[Sequence[float]] = ((0.5, 1.0, 2.0),),
    ) -> None:
        if len(sizes) != len(aspect_ratios):
            raise ValueError(
                "AnchorGenerator: expected as many rows of sizes as of aspect_ratios, got "
                f"{len(sizes)} and {len(aspect_ratios)}"
            )
        self.sizes, self.aspect_ratios = sizes, aspect_ratios

    def num_anchors_per_location(self) -> list[int]:
        """How many anchors each place of each level has."""
        return [len(s) * len(r) for s, r in zip(self.sizes, self.aspect_ratios)]

    def forward(self, image_size: Sequence[int], features: Sequence[Tensor]) -> list[Tensor]:
        """Anchors [H W A, 4] of each level, for images padded to `image_size`."""
        if len(features) != len(self.sizes):
            raise ValueError(
                f"AnchorGenerator: expected {len(self.sizes)} levels of features, as there are "
                f"sizes, got {len(features)}"
            )
        levels = []
        for sizes, ratios, each in zip(self.sizes, self.aspect_ratios, features):
            height, width = each.shape[-2:]
            rows = tenon.arange(height, dtype="float32") * float(image_size[0] // height)
            columns = tenon.arange(width, dtype="float32") * float(image_size[1] // width)
            y, x = tenon.meshgrid([rows, columns], indexing="ij")
            shifts = tenon.stack([x, y, x, y], axis=-1).reshape([-1, 1, 4])
            anchors = (shifts + _shapes(sizes, ratios)).reshape([-1, 4])
            levels.append(anchors.to(each.device))
        return levels
