# SPDX-License-Identifier: Apache-2.0
"""Boxes that a detector starts from, and which truth each of them learns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import tenon
from tenon import Tensor

from ._boxes import expect

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np


def _shapes(
    min_sizes: Sequence[float],
    max_sizes: Sequence[float],
    ratios: Sequence[float],
    max_before_ratios: bool,
) -> list[tuple[float, float]]:
    """Width and height of the boxes of each place, in their order."""
    shapes = []
    for number, small in enumerate(min_sizes):
        own = [
            (small * math.sqrt(ratio), small / math.sqrt(ratio)) for ratio in ratios if ratio != 1
        ]
        between = [(math.sqrt(small * large),) * 2 for large in max_sizes[number : number + 1]]
        shapes += [(small, small), *(between + own if max_before_ratios else own + between)]
    return shapes


def prior_box(
    input: Tensor,
    image: Tensor,
    min_sizes: Sequence[float],
    max_sizes: Sequence[float] | None = None,
    aspect_ratios: Sequence[float] = (1.0,),
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = False,
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Tensor, Tensor]:
    """The boxes of SSD (Liu et al., 2016) and their variances, both [H, W, priors, 4], in parts of the image.

    Around every place of `input` [N, C, H, W], `steps` (width and height; 0: the image over the map)
    apart from `offset` of a step on, there is for each of `min_sizes`, in pixels of `image` [N, C, height, width],
    a square, one for each of `aspect_ratios` other than 1, and with `flip` for 1 / ratio, and a square of the
    mean size with that of `max_sizes`, which comes second with `min_max_aspect_ratios_order`. `clip` cuts boxes
    at the image's border.
    """
    large = list(max_sizes or ())
    expect(
        "prior_box",
        len(large) in (0, len(min_sizes)) and all(b > a for a, b in zip(min_sizes, large)),
        "a larger max_size for each min_size, or none",
        f"{list(min_sizes)} and {large}",
    )
    ratios: list[float] = []
    for ratio in aspect_ratios:
        expect("prior_box", ratio > 0, "aspect ratios above 0", ratio)
        for each in (ratio, 1 / ratio) if flip else (ratio,):
            if all(abs(each - other) > 1e-6 for other in ratios):
                ratios.append(each)
    height, width = input.shape[2:]
    image_height, image_width = image.shape[2:]
    step_x, step_y = steps[0] or image_width / width, steps[1] or image_height / height
    sizes = np.array(_shapes(min_sizes, large, ratios, min_max_aspect_ratios_order)).reshape(-1, 2)
    centres = np.stack(
        np.meshgrid((np.arange(width) + offset) * step_x, (np.arange(height) + offset) * step_y),
        axis=-1,
    )[:, :, None]
    boxes = np.concatenate([centres - sizes / 2, centres + sizes / 2], axis=-1)
    boxes /= np.array([image_width, image_height] * 2)
    boxes = np.clip(boxes, 0, 1) if clip else boxes
    made = (boxes, np.broadcast_to(np.array(variance, np.float64), boxes.shape))
    first, second = (
        tenon.tensor(each.astype(str(input.dtype)), device=input.device) for each in made
    )
    return first, second


def bipartite_match(
    dist_matrix: Tensor, match_type: str = "bipartite", dist_threshold: float = 0.5
) -> tuple[Tensor, Tensor]:
    """For each column of `dist_matrix` [rows, columns] the row it is matched with (int32, -1: none) and its
    entry there, both [1, columns].

    The largest entry of all matches its row and column, then the largest among the others, while entries are
    above 0. With `match_type` 'per_prediction' the columns that are left take their largest row if that
    entry is at least `dist_threshold`.
    """
    expect(
        "bipartite_match",
        match_type in ("bipartite", "per_prediction"),
        "a match_type 'bipartite' or 'per_prediction'",
        repr(match_type),
    )
    expect("bipartite_match", dist_matrix.ndim == 2, "a matrix", tuple(dist_matrix.shape))
    distances = dist_matrix.detach().numpy()
    rows, columns = distances.shape
    match = np.full(columns, -1, np.int32)
    left = distances.copy()
    for _ in range(min(rows, columns)):
        row, column = np.unravel_index(np.argmax(left), left.shape)
        if not left[row, column] > 0:
            break
        match[column] = row
        left[row, :] = left[:, column] = -np.inf
    if match_type == "per_prediction" and rows:
        best = distances.argmax(0)
        enough = (match < 0) & (distances.max(0) >= dist_threshold)
        match[enough] = best[enough]
    found = np.where(match >= 0, distances[match.clip(0), np.arange(columns)] if rows else 0, 0)
    device = dist_matrix.device
    return (
        tenon.tensor(match[None], device=device),
        tenon.tensor(found[None].astype(distances.dtype), device=device),
    )
