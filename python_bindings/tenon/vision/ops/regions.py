# SPDX-License-Identifier: Apache-2.0
"""Pooling of regions."""

from __future__ import annotations

import tenon
from tenon import Tensor

from ._boxes import expect


def _bins(start: Tensor, size: Tensor, bins: int, length: int) -> Tensor:
    """Weights [K, bins, length] with which the elements of an axis make the mean of each bin."""
    edges = tenon.arange(bins + 1, dtype=start.dtype, device=start.device) / bins
    bounds = start[:, None] + size[:, None] * edges
    low = tenon.floor(bounds[:, :-1]).clip(0.0, length)[:, :, None]
    high = tenon.ceil(bounds[:, 1:]).clip(0.0, length)[:, :, None]
    place = tenon.arange(length, dtype=start.dtype, device=start.device)
    inside = ((place >= low) & (place < high)).to(start.dtype)
    return inside / (high - low).clip(1.0, None)


def psroi_pool(
    x: Tensor,
    boxes: Tensor,
    boxes_num: Tensor,
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
) -> Tensor:
    """Position-sensitive means of regions (Dai et al., 2016, "R-FCN"): [K, C / (height * width), height, width].

    `x` is [N, C, H, W], and each bin of `output_size` has channels of its own: bin (i, j) of channel c is the
    mean of channel (c * height + i) * width + j over its part of the box. The first boxes_num[0] of the `boxes`
    [K, 4] lie in the first image, and so on; they are rounded to whole pixels, of which the last belongs to
    them, and scaled. A bin outside of the image is 0. Boxes get no gradients.
    """
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    expect("psroi_pool", x.ndim == 4, "x of shape [N, C, H, W]", tuple(x.shape))
    batch, channels = x.shape[:2]
    expect(
        "psroi_pool",
        height > 0 and width > 0 and channels % (height * width) == 0,
        "channels that the bins divide",
        f"{channels} channels and {height} x {width} bins",
    )
    expect(
        "psroi_pool",
        boxes.ndim == 2 and boxes.shape[1] == 4,
        "boxes of shape [K, 4]",
        tuple(boxes.shape),
    )
    counts = [int(each) for each in boxes_num.tolist()]
    expect(
        "psroi_pool",
        len(counts) == batch and min(counts, default=0) >= 0 and sum(counts) == boxes.shape[0],
        f"boxes_num of {batch} numbers that add up to {boxes.shape[0]}",
        counts,
    )
    corners = tenon.round(boxes.detach().to(x.dtype))
    start = corners[:, :2] * spatial_scale
    size = ((corners[:, 2:] + 1.0) * spatial_scale - start).clip(0.1, None)
    across = _bins(start[:, 0], size[:, 0], width, x.shape[3])
    down = _bins(start[:, 1], size[:, 1], height, x.shape[2])
    planes = x.reshape([batch, channels // (height * width), height, width, *x.shape[2:]])
    results, first = [], 0
    for image, count in enumerate(
        counts
    ):  # an image at a time: its planes are not copied for each box
        part = slice(first, first + count)
        rows = tenon.einsum("cijhw,kjw->kcijh", [planes[image], across[part]])
        results.append(tenon.einsum("kcijh,kih->kcij", [rows, down[part]]))
        first += count
    return tenon.concat(results, axis=0)
