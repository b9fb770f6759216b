# SPDX-License-Identifier: Apache-2.0
"""Non-maximum suppression of all classes of a batch of images."""

from __future__ import annotations

from collections.abc import Callable

import tenon
from tenon import Tensor

from ._boxes import counts_of, expect, kept, overlaps

Suppress = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def _each_image(
    function: str,
    bboxes: Tensor,
    scores: Tensor,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    background_label: int,
    suppress: Suppress,
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows (class, score, box) of each image, their indices in bboxes.reshape([-1, 4]) and how many of
    each image there are. `suppress` gives the indices that it keeps of the boxes of a class, which are in the
    order of their scores, and their scores after it."""
    expect(
        function,
        bboxes.ndim == 3 and bboxes.shape[2] == 4,
        "bboxes of shape [N, M, 4]",
        tuple(bboxes.shape),
    )
    batch, boxes = bboxes.shape[:2]
    expect(
        function,
        scores.ndim == 3 and (scores.shape[0], scores.shape[2]) == (batch, boxes),
        f"scores of shape [{batch}, classes, {boxes}]",
        tuple(scores.shape),
    )
    bboxes, scores = bboxes.detach(), scores.detach()
    images, indices = [], []
    for image in range(batch):
        rows, at = [], []
        for label in range(scores.shape[1]):
            if label == background_label:
                continue
            chosen = tenon.nonzero(scores[image, label] > score_threshold)[:, 0]
            order = tenon.argsort(scores[image, label][chosen], 0, descending=True)
            chosen = chosen[order[:nms_top_k] if nms_top_k > -1 else order]
            stay, score = suppress(bboxes[image][chosen], scores[image, label][chosen])
            chosen = chosen[stay]
            labels = tenon.full_like(score, label)
            rows.append(
                tenon.concat([labels[:, None], score[:, None], bboxes[image][chosen]], axis=1)
            )
            at.append(chosen + image * boxes)
        found = tenon.concat(rows, axis=0) if rows else bboxes.new_zeros([0, 6])
        where = tenon.concat(at, axis=0) if at else tenon.zeros([0], dtype="int64")
        order = tenon.argsort(found[:, 1], 0, descending=True)
        order = order[:keep_top_k] if keep_top_k > -1 else order
        images.append(found[order])
        indices.append(where[order])
    if not images:
        empty = tenon.zeros([0], dtype="int32", device=bboxes.device)
        return bboxes.new_zeros([0, 6]), empty.reshape([0, 1]), empty
    return (
        tenon.concat(images, axis=0),
        tenon.concat(indices, axis=0).to("int32")[:, None],
        counts_of(images, bboxes),
    )


def _chosen(
    results: tuple[Tensor, Tensor, Tensor], return_index: bool, return_rois_num: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    out, index, rois_num = results
    return out, index if return_index else None, rois_num if return_rois_num else None


def multiclass_nms(
    bboxes: Tensor,
    scores: Tensor,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = -1,
    return_index: bool = False,
    return_rois_num: bool = True,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Non-maximum suppression of each class of each image: (out, index, rois_num).

    `bboxes` is [N, M, 4] and `scores` [N, classes, M]. Of the boxes that score above `score_threshold` the
    best `nms_top_k` of a class compete: one that shares more than `nms_threshold` with a better one goes. The
    best `keep_top_k` of an image are left (-1: all). Rows of `out` [K, 6] are class, score and box, image by
    image and by descending score; `index` [K, 1] is each one's place among all N * M boxes, `rois_num` [N]
    how many are each image's. Unless `normalized`, corners are first and last pixels. With `nms_eta` below 1
    a threshold above 1/2 sinks by it after each box. There are no gradients.
    """
    pixel = 0.0 if normalized else 1.0

    def suppress(boxes: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        stay = kept(boxes, score, nms_threshold, pixel, nms_eta)
        return stay, score[stay]

    results = _each_image(
        "multiclass_nms",
        bboxes,
        scores,
        score_threshold,
        nms_top_k,
        keep_top_k,
        background_label,
        suppress,
    )
    return _chosen(results, return_index, return_rois_num)


def matrix_nms(
    bboxes: Tensor,
    scores: Tensor,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    return_rois_num: bool = True,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Suppression that lowers scores instead of removing boxes (Wang et al., 2020, "SOLOv2"), all pairs at
    once: (out, index, rois_num) as multiclass_nms has them.

    A box's score is multiplied by the smallest (1 - iou) / (1 - most) over the better boxes of its class:
    `iou` is what it shares with one, `most` the largest part that this one shares with a better one.
    `use_gaussian` takes exp((most^2 - iou^2) * gaussian_sigma) instead. Boxes that then score
    `post_threshold` or less go. Class `background_label` is left out (-1: none is).
    """
    pixel = 0.0 if normalized else 1.0

    def suppress(boxes: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        if boxes.shape[0] == 0:
            return tenon.zeros([0], dtype="int64", device=boxes.device), score
        iou = tenon.triu(overlaps(boxes, boxes, pixel), 1)  # [better, box]
        most = tenon.max(iou, 0)[:, None]
        if use_gaussian:
            decay = tenon.exp((most * most - iou * iou) * gaussian_sigma)
        else:
            decay = tenon.where(most < 1, (1 - iou) / tenon.where(most < 1, 1 - most, 1.0), 1.0)
        better = tenon.triu(tenon.ones_like(iou), 1) > 0
        score = score * tenon.where(better, decay, float("inf")).min(0).clip(None, 1.0)
        stay = tenon.nonzero(score > post_threshold)[:, 0]
        return stay, score[stay]

    results = _each_image(
        "matrix_nms",
        bboxes,
        scores,
        score_threshold,
        nms_top_k,
        keep_top_k,
        background_label,
        suppress,
    )
    return _chosen(results, return_index, return_rois_num)
