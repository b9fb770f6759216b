# SPDX-License-Identifier: Apache-2.0
"""Proposals of a region network (Ren et al., 2015), and their levels in a feature pyramid (Lin et al., 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor

from ._boxes import counts_of, expect, kept

LARGEST_LOG_RATIO = math.log(1000.0 / 16.0)  # of a box's sides to its anchor's


def _decoded(anchors: Tensor, deltas: Tensor, variances: Tensor | None, pixel: float) -> Tensor:
    """Boxes [K, 4] from anchors [K, 4] and what was predicted for them."""
    deltas = deltas if variances is None else deltas * variances
    size = anchors[:, 2:] - anchors[:, :2] + pixel
    centre = anchors[:, :2] + size * 0.5 + deltas[:, :2] * size
    half = tenon.exp(deltas[:, 2:].clip(None, LARGEST_LOG_RATIO)) * size * 0.5
    return tenon.concat([centre - half, centre + half - pixel], axis=1)


def generate_proposals(
    scores: Tensor,
    bbox_deltas: Tensor,
    img_size: Tensor,
    anchors: Tensor,
    variances: Tensor,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    pixel_offset: bool = False,
    return_rois_num: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The regions that may hold an object: boxes [K, 4], their scores [K, 1], and how many are each image's.

    `scores` is [N, A, H, W], `bbox_deltas` [N, 4 A, H, W], `img_size` [N, 2] holds heights and widths,
    `anchors` and `variances` are [H, W, A, 4]. The best `pre_nms_top_n` of an image are moved by their deltas and
    cut at its border; those with a side below `min_size` and those that share more than `nms_thresh` with a
    better one go, and the best `post_nms_top_n` are left. With `pixel_offset` corners are first and last
    pixels. With `eta` below 1 a threshold above 1/2 sinks by it after each box. There are no gradients.
    """
    name = "generate_proposals"
    expect(name, scores.ndim == 4, "scores of shape [N, A, H, W]", tuple(scores.shape))
    batch, per_place, height, width = scores.shape
    wanted = (batch, 4 * per_place, height, width)
    expect(
        name,
        tuple(bbox_deltas.shape) == wanted,
        f"bbox_deltas of shape {wanted}",
        tuple(bbox_deltas.shape),
    )
    for text, each in (("anchors", anchors), ("variances", variances)):
        expect(
            name,
            each.numel() == height * width * per_place * 4,
            f"{text} of shape {(height, width, per_place, 4)}",
            tuple(each.shape),
        )
    pixel = 1.0 if pixel_offset else 0.0
    with tenon.no_grad():
        flat_anchors, flat_variances = anchors.reshape([-1, 4]), variances.reshape([-1, 4])
        flat_scores = scores.permute([0, 2, 3, 1]).reshape([batch, -1])
        deltas = bbox_deltas.reshape([batch, per_place, 4, height, width])
        deltas = deltas.permute([0, 3, 4, 1, 2]).reshape([batch, -1, 4])
        boxes, found = [], []
        for image in range(batch):
            order = tenon.argsort(flat_scores[image], 0, descending=True)
            order = order[:pre_nms_top_n] if pre_nms_top_n > 0 else order
            rows = _decoded(flat_anchors[order], deltas[image][order], flat_variances[order], pixel)
            size = img_size[image].to(rows.dtype)
            limit = tenon.stack([size[1], size[0], size[1], size[0]], axis=0) - pixel
            rows = tenon.minimum(rows.clip(0.0, None), limit)
            sides = rows[:, 2:] - rows[:, :2] + pixel
            stay = tenon.nonzero((sides >= max(min_size, pixel)).all(1))[:, 0]
            rows, score = rows[stay], flat_scores[image][order][stay]
            if nms_thresh > 0:
                stay = kept(rows, score, nms_thresh, pixel, eta)
                rows, score = rows[stay], score[stay]
            count = post_nms_top_n if post_nms_top_n > 0 else rows.shape[0]
            boxes.append(rows[:count])
            found.append(score[:count, None])
        numbers = counts_of(boxes, scores) if return_rois_num else None
        return tenon.concat(boxes, axis=0), tenon.concat(found, axis=0), numbers


def _image_of(rois_num: Tensor | None, count: int) -> tuple[list[int], int]:
    """The image of each of `count` boxes, and how many images there are."""
    if rois_num is None:
        return [0] * count, 1
    counts = [int(each) for each in rois_num.tolist()]
    expect(
        "distribute_fpn_proposals",
        sum(counts) == count,
        f"a rois_num that adds up to {count}",
        counts,
    )
    return [image for image, each in enumerate(counts) for _ in range(each)], len(counts)


def distribute_fpn_proposals(
    fpn_rois: Tensor,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    pixel_offset: bool = False,
    rois_num: Tensor | None = None,
) -> tuple[list[Tensor], Tensor, list[Tensor] | None]:
    """The boxes `fpn_rois` [K, 4] by the level of a pyramid that suits their size, the order [K, 1] (int32)
    in which the levels' rows, one level after the other, are those of `fpn_rois`, and, given `rois_num` of the
    images, how many are each image's on each level.

    A box whose area has the root `refer_scale` is of `refer_level`, one of twice that of the next. With
    `pixel_offset` corners are first and last pixels.
    """
    expect(
        "distribute_fpn_proposals",
        max_level >= min_level,
        "min_level <= max_level",
        f"{min_level} and {max_level}",
    )
    pixel = 1.0 if pixel_offset else 0.0
    rois = fpn_rois.detach()
    area = (rois[:, 2:] - rois[:, :2] + pixel).clip(0.0, None).prod(1)
    level = tenon.floor(tenon.log2(tenon.sqrt(area) / refer_scale + 1e-8)) + refer_level
    level = level.clip(min_level, max_level).to("int64")
    image, images = _image_of(rois_num, rois.shape[0])
    image_of = tenon.tensor(image, dtype="int64", device=rois.device)
    indices = [tenon.nonzero(level == each)[:, 0] for each in range(min_level, max_level + 1)]
    restore = tenon.argsort(tenon.concat(indices, axis=0), 0).to("int32")[:, None]
    numbers = None
    if rois_num is not None:
        numbers = [tenon.bincount(image_of[each], None, images).to("int32") for each in indices]
    return [fpn_rois[each] for each in indices], restore, numbers


def collect_fpn_proposals(
    multi_rois: Sequence[Tensor],
    multi_scores: Sequence[Tensor],
    min_level: int,
    max_level: int,
    post_nms_top_n: int,
    rois_num_per_level: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The `post_nms_top_n` best of the boxes of all levels, image by image, and how many are each image's."""
    levels = max_level - min_level + 1
    expect(
        "collect_fpn_proposals",
        len(multi_rois) == len(multi_scores) == levels,
        f"boxes and scores of {levels} levels",
        f"{len(multi_rois)} and {len(multi_scores)}",
    )
    rois = tenon.concat(list(multi_rois), axis=0)
    scores = tenon.concat([each.reshape([-1]) for each in multi_scores], axis=0).detach()
    counts: Sequence[Tensor | None] = rois_num_per_level or [None] * levels
    image = [_image_of(each, rows.shape[0]) for each, rows in zip(counts, multi_rois)]
    image_of = tenon.tensor(
        [each for part, _ in image for each in part], dtype="int64", device=rois.device
    )
    best = tenon.argsort(scores, 0, descending=True)[:post_nms_top_n]
    best = best[tenon.argsort(image_of[best], 0)]
    if rois_num_per_level is None:
        return rois[best], None
    images = max(number for _, number in image)
    return rois[best], tenon.bincount(image_of[best], None, images).to("int32")
