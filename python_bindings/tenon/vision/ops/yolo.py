# SPDX-License-Identifier: Apache-2.0
"""Boxes and loss of YOLOv3 (Redmon and Farhadi, 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import tenon
from tenon import Tensor

from ._boxes import expect
from .suppression import multiclass_nms

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np


def _predicted(x: Tensor, anchors: np.ndarray, stride: int, scale: float) -> tuple[Tensor, Tensor]:
    """Centres and sizes [N, anchors, H, W, 2] in parts of the image, of the channels `x` [N, anchors, 4, H, W]."""
    height, width = x.shape[3:]
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1)
    rows = x.permute([0, 1, 3, 4, 2])
    dtype, device = str(x.dtype), x.device
    centre = tenon.sigmoid(rows[..., :2]) * scale - 0.5 * (scale - 1.0)
    centre = centre + tenon.tensor(grid.astype(dtype), device=device)
    centre = centre / tenon.tensor(np.array([width, height], dtype), device=device)
    size = anchors[:, None, None] / np.array([stride * width, stride * height])
    return centre, tenon.exp(rows[..., 2:]) * tenon.tensor(size.astype(dtype), device=device)


def _pairs(function: str, anchors: Sequence[float]) -> np.ndarray:
    expect(
        function,
        len(anchors) > 0 and len(anchors) % 2 == 0,
        "anchors as widths and heights in turn",
        list(anchors),
    )
    return np.array(anchors, np.float64).reshape(-1, 2)


def _channels(
    function: str, x: Tensor, per_place: int, class_num: int, extra: int
) -> tuple[int, int, int]:
    wanted = per_place * (5 + class_num + extra)
    expect(
        function,
        x.ndim == 4 and x.shape[1] == wanted,
        f"x of shape [N, {wanted}, H, W] for {per_place} anchors and {class_num} classes",
        tuple(x.shape),
    )
    return x.shape[0], x.shape[2], x.shape[3]


def yolo_box(
    x: Tensor,
    img_size: Tensor,
    anchors: Sequence[float],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    scale_x_y: float = 1.0,
    iou_aware: bool = False,
    iou_aware_factor: float = 0.5,
) -> tuple[Tensor, Tensor]:
    """Boxes [N, A H W, 4] in pixels and their scores [N, A H W, class_num].

    `x` [N, A (5 + class_num), H, W] has for each of the A `anchors`, in pixels of the network's input, which is
    `downsample_ratio` as large as the map, a centre, a size, a confidence and class scores; `img_size` [N, 2]
    holds heights and widths. A score is the confidence times the class's. Boxes with a confidence below
    `conf_thresh` are 0, and so are their scores. `clip_bbox` cuts boxes at the image's border, `scale_x_y`
    widens the range of centres. With `iou_aware` the first A channels are predicted overlaps, and the
    confidence is their weighted geometric mean.
    """
    shapes = _pairs("yolo_box", anchors)
    number = len(shapes)
    batch, height, width = _channels("yolo_box", x, number, class_num, int(iou_aware))
    expect(
        "yolo_box",
        tuple(img_size.shape) == (batch, 2),
        f"img_size of shape ({batch}, 2)",
        tuple(img_size.shape),
    )
    values = x[:, number if iou_aware else 0 :]
    values = values.reshape([batch, number, 5 + class_num, height, width])
    centre, size = _predicted(values[:, :, :4], shapes, downsample_ratio, scale_x_y)
    confidence = tenon.sigmoid(values[:, :, 4])
    if iou_aware:
        iou = tenon.sigmoid(x[:, :number])
        confidence = confidence ** (1.0 - iou_aware_factor) * iou**iou_aware_factor
    pixels = img_size.to(x.dtype)[:, [1, 0]].reshape([batch, 1, 1, 1, 2])
    first, second = (centre - size * 0.5) * pixels, (centre + size * 0.5) * pixels
    if clip_bbox:
        first = first.clip(0.0, None)
        second = tenon.minimum(second, pixels - 1.0)
    boxes = tenon.concat([first, second], axis=-1)
    sure = confidence >= conf_thresh
    boxes = tenon.where(sure.unsqueeze(-1), boxes, 0.0)
    classes = tenon.sigmoid(values[:, :, 5:]).permute([0, 1, 3, 4, 2])
    scores = tenon.where(sure, confidence, 0.0).unsqueeze(-1) * classes
    return boxes.reshape([batch, -1, 4]), scores.reshape([batch, -1, class_num])


def yolo_box_head(x: Tensor, anchors: Sequence[float], class_num: int) -> Tensor:
    """What the channels of a map stand for, in their order: sigmoids of centres, confidences and classes, exponentials of sizes.

    `x` is [N, A (5 + class_num), H, W] for A anchors, as yolo_box takes it; yolo_box_post takes the results.
    """
    number = len(_pairs("yolo_box_head", anchors))
    batch, height, width = _channels("yolo_box_head", x, number, class_num, 0)
    parts = x.reshape([batch, number, 5 + class_num, height, width])
    out = [
        tenon.sigmoid(parts[:, :, :2]),
        tenon.exp(parts[:, :, 2:4]),
        tenon.sigmoid(parts[:, :, 4:]),
    ]
    return tenon.concat(out, 2).reshape([batch, -1, height, width])


def yolo_box_post(
    heads: Sequence[Tensor],
    image_shape: Tensor,
    image_scale: Tensor,
    anchors: Sequence[Sequence[float]],
    class_num: int,
    conf_thresh: float,
    downsample_ratios: Sequence[int],
    clip_bbox: bool = True,
    scale_x_y: float = 1.0,
    nms_threshold: float = 0.45,
) -> tuple[Tensor, Tensor]:
    """The boxes of all maps after non-maximum suppression: rows class, score, x0, y0, x1, y1 [K, 6], and how many each image has [N].

    `heads` are results of yolo_box_head with their `anchors` and `downsample_ratios`; `image_shape` [N, 2] holds heights and widths of the network's
    inputs, and `image_scale` [N, 2] by what the pictures were scaled to them. A box has the class of its best score, and counts
    if its confidence is at least `conf_thresh`.
    """
    name = "yolo_box_post"
    counts = (len(heads), len(anchors), len(downsample_ratios))
    expect(
        name,
        len(set(counts)) == 1 and counts[0] > 0,
        "as many heads as anchors and downsample_ratios",
        counts,
    )
    boxes, scores = [], []
    pixels = image_shape.to(heads[0].dtype) / image_scale.to(heads[0].dtype)
    for head, own, ratio in zip(heads, anchors, downsample_ratios):
        shapes = _pairs(name, own)
        batch, height, width = _channels(name, head, len(shapes), class_num, 0)
        expect(
            name,
            tuple(image_shape.shape) == (batch, 2),
            f"image_shape [{batch}, 2]",
            tuple(image_shape.shape),
        )
        parts = head.reshape([batch, len(shapes), 5 + class_num, height, width]).permute(
            [0, 1, 3, 4, 2]
        )
        dtype, device = str(head.dtype), head.device
        grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(dtype)
        centre = (
            parts[..., :2] * scale_x_y - 0.5 * (scale_x_y - 1.0) + tenon.tensor(grid, device=device)
        )
        centre = centre / tenon.tensor(np.array([width, height], dtype), device=device)
        size = (shapes[:, None, None] / np.array([ratio * width, ratio * height])).astype(dtype)
        half = parts[..., 2:4] * tenon.tensor(size, device=device) * 0.5
        extent = pixels[:, [1, 0]].reshape([batch, 1, 1, 1, 2])
        first, second = (centre - half) * extent, (centre + half) * extent
        if clip_bbox:
            first = first.clip(0.0, None)
            second = tenon.minimum(second, extent - 1.0)
        boxes.append(tenon.concat([first, second], axis=-1).reshape([batch, -1, 4]))
        sure = (parts[..., 4] >= conf_thresh).unsqueeze(-1)
        best = parts[..., 5:] == tenon.max(parts[..., 5:], -1, keepdim=True)
        score = tenon.where(tenon.logical_and(sure, best), parts[..., 4:5] * parts[..., 5:], 0.0)
        scores.append(score.reshape([batch, -1, class_num]))
    out, _, number = multiclass_nms(
        tenon.concat(boxes, 1), tenon.concat(scores, 1).transpose(1, 2), 0.0, -1, -1, nms_threshold
    )
    assert number is not None  # it was requested
    return out, number


def _best_overlap(centre: Tensor, size: Tensor, truth: Tensor, exists: Tensor) -> Tensor:
    """The largest part that each predicted box [N, A, H, W] shares with a true one [N, B, 4]."""
    of = (slice(None), None, None, None)
    true_centre, true_size = truth[of][..., :2], truth[of][..., 2:]
    centre, size = centre.unsqueeze(-2), size.unsqueeze(-2)
    low = tenon.maximum(centre - size * 0.5, true_centre - true_size * 0.5)
    high = tenon.minimum(centre + size * 0.5, true_centre + true_size * 0.5)
    shared = (high - low).clip(0.0, None).prod(-1)
    union = size.prod(-1) + true_size.prod(-1) - shared
    return tenon.where(exists[of], shared / union, 0.0).max(-1)


def _anchor_of(truth: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """The anchor, among all, whose shape [.., 2] shares most with each true one."""
    shared = np.minimum(truth[..., None, :], anchors).prod(-1)
    return (shared / (truth.prod(-1)[..., None] + anchors.prod(-1) - shared)).argmax(-1)


def yolo_loss(
    x: Tensor,
    gt_box: Tensor,
    gt_label: Tensor,
    anchors: Sequence[float],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Tensor | None = None,
    use_label_smooth: bool = True,
    scale_x_y: float = 1.0,
) -> Tensor:
    """The loss [N] of one map of YOLOv3, with gradients for `x` [N, A (5 + class_num), H, W].

    `gt_box` [N, B, 4] has centres and sizes in parts of the image, without size where there is none,
    `gt_label` [N, B] their classes, `gt_score` [N, B] their weights (1). `anchors` are those of all maps, in pixels
    of the network's input, and `anchor_mask` the A of this one. A true box is learnt, if its best anchor is of this
    map, where its centre lies: cross entropy of the centre, absolute error of the logarithm of the size,
    both times 2 less its area, and cross entropies of confidence and classes, which `use_label_smooth` moves by
    1 / class_num towards each other. Elsewhere confidence learns 0, unless a predicted box shares more
    than `ignore_thresh` with a true one.
    """
    name = "yolo_loss"
    shapes, mask = _pairs(name, anchors), list(anchor_mask)
    expect(
        name,
        bool(mask) and min(mask) >= 0 and max(mask) < len(shapes),
        f"an anchor_mask of indices among {len(shapes)} anchors",
        mask,
    )
    batch, height, width = _channels(name, x, len(mask), class_num, 0)
    expect(
        name,
        gt_box.ndim == 3 and gt_box.shape[0] == batch and gt_box.shape[2] == 4,
        f"gt_box of shape [{batch}, B, 4]",
        tuple(gt_box.shape),
    )
    boxes = gt_box.shape[1]
    for text, each in (("gt_label", gt_label), ("gt_score", gt_score)):
        if each is not None:
            expect(
                name,
                tuple(each.shape) == (batch, boxes),
                f"{text} of shape {(batch, boxes)}",
                tuple(each.shape),
            )
    values = x.reshape([batch, len(mask), 5 + class_num, height, width])
    truth, labels = gt_box.detach().numpy().astype(np.float64), gt_label.numpy()
    scores = np.ones((batch, boxes)) if gt_score is None else gt_score.detach().numpy()
    exists = (truth[..., 2:] > 0).all(-1)
    expect(
        name,
        bool(((labels >= 0) & (labels < class_num))[exists].all()),
        f"labels from 0 to {class_num - 1}",
        labels[exists],
    )

    def like(array: np.ndarray) -> Tensor:
        return tenon.tensor(array.astype(str(x.dtype)), device=x.device)

    with tenon.no_grad():
        predicted = _predicted(values[:, :, :4], shapes[mask], downsample_ratio, scale_x_y)
        known = tenon.tensor(exists, device=x.device)
        ignored = (
            _best_overlap(*predicted, like(truth), known) > ignore_thresh
            if boxes
            else tenon.zeros([batch, len(mask), height, width], dtype="bool", device=x.device)
        )
    # Where the boxes that this map learns are.
    size = np.array([width, height]) * downsample_ratio
    best = _anchor_of(np.where(exists[..., None], truth[..., 2:], 1.0), shapes / size)
    learnt = exists & np.isin(best, mask)
    image, box = np.nonzero(learnt)
    true = truth[image, box]
    anchor = np.array([mask.index(each) for each in best[image, box]], np.int64)
    cell = np.floor(true[:, :2] * [width, height]).astype(np.int64).clip(0, [width - 1, height - 1])
    place = [
        tenon.tensor(each, device=x.device) for each in (image, anchor, cell[:, 1], cell[:, 0])
    ]
    rows = values.permute([0, 1, 3, 4, 2])[tuple(place)]
    weight = like(scores[image, box])
    shift = like(true[:, :2] * [width, height] - cell)
    stretch = like(np.log(true[:, 2:] * size / shapes[mask][anchor]))
    located = _cross_entropy(rows[:, :2], shift).sum(1) + (rows[:, 2:4] - stretch).abs().sum(1)
    located = located * like(2.0 - true[:, 2:].prod(1))
    low = 1.0 / class_num if use_label_smooth else 0.0
    wanted = np.full((len(image), class_num), low)
    wanted[np.arange(len(image)), labels[image, box]] = 1.0 - low
    classed = _cross_entropy(rows[:, 5:], like(wanted)).sum(1)
    loss = tenon.index_add(like(np.zeros(batch)), place[0], (located + classed) * weight, 0)
    # Confidence: 1 with the box's weight where one is learnt, 0 elsewhere.
    target = np.zeros((batch, len(mask), height, width))
    target[image, anchor, cell[:, 1], cell[:, 0]] = scores[image, box]
    positive = like((target > 0).astype(np.float64))
    at = tenon.where(
        positive > 0, like(target), tenon.where(ignored, 0.0, like(np.ones(target.shape)))
    )
    return loss + (_cross_entropy(values[:, :, 4], positive) * at).sum([1, 2, 3])


def _cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    """Of sigmoid(x), without overflow."""
    return tenon.softplus(x) - x * target
