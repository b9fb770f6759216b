# SPDX-License-Identifier: Apache-2.0
"""Parts of detectors: operators of Paddle that a line leaves to a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon.jit.foreign_calls import Refused

Value = Any
Add = Callable[..., Any]


def roi_align(
    call: Add,
    x: Value,
    boxes: Value,
    boxes_num: Any,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
) -> Value:
    """`boxes_num` says how many boxes each image has."""
    count = boxes.shape[0]
    if boxes_num is None:
        raise Refused("without boxes_num, by levels of sequences")
    ends = call("cumsum", call("cast", boxes_num, "int64"), 0)
    image = call("searchsorted", ends, call("arange", 0, count, 1, dtype="int64"), True)
    size = [pooled_height, pooled_width]
    return call("roi_align", x, boxes, image, size, spatial_scale, sampling_ratio, aligned)


def yolo_box(
    call: Add,
    x: Value,
    img_size: Value,
    anchors: Any,
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool,
    scale_x_y: float,
    iou_aware: bool,
    iou_aware_factor: float,
) -> list[Value]:
    """Boxes [batch, boxes, 4] and scores [batch, boxes, classes]; those below `conf_thresh` are zeros."""
    if iou_aware:
        raise Refused("with iou_aware=True")
    batch, _, height, width = x.shape
    count = len(anchors) // 2
    x = call("reshape", x, [batch, count, 5 + class_num, height, width])

    def channel(index: int) -> Value:
        return call("select", x, 2, index)

    def column(values: list[float], shape: list[int]) -> Value:
        return call("reshape", tenon.tensor(values, dtype="float32"), shape)

    def center(index: int, cells: int, shape: list[int], size: Value) -> Value:
        inside = call("multiply", call("sigmoid", channel(index)), scale_x_y)
        inside = call("subtract", inside, 0.5 * (scale_x_y - 1.0))
        at = call("add", inside, column([float(cell) for cell in range(cells)], shape))
        return call("multiply", at, call("divide", size, float(cells)))

    def extent(index: int, sizes: Any, cells: int, size: Value) -> Value:
        own = column([float(each) for each in sizes], [1, count, 1, 1])
        part = call("multiply", size, 1.0 / (downsample_ratio * cells))
        return call("multiply", call("multiply", call("exp", channel(index)), own), part)

    sizes = call("cast", img_size, "float32")
    tall, wide = (call("reshape", call("select", sizes, 1, i), [batch, 1, 1, 1]) for i in (0, 1))
    middle = center(0, width, [1, 1, 1, width], wide), center(1, height, [1, 1, height, 1], tall)
    half = [
        call("multiply", extent(2, anchors[::2], width, wide), 0.5),
        call("multiply", extent(3, anchors[1::2], height, tall), 0.5),
    ]
    low = [call("subtract", m, h) for m, h in zip(middle, half, strict=True)]
    high = [call("add", m, h) for m, h in zip(middle, half, strict=True)]
    if clip_bbox:
        low = [call("maximum", each, 0.0) for each in low]
        high = [
            call("minimum", each, call("subtract", size, 1.0))
            for each, size in zip(high, (wide, tall), strict=True)
        ]
    confidence = call("sigmoid", channel(4))
    is_kept = call("greater_equal", confidence, conf_thresh)
    boxes = call("stack", [*low, *high], -1)
    boxes = call("where", call("unsqueeze", is_kept, [-1]), boxes, 0.0)
    classes = call("permute", call("narrow", x, 2, 5, class_num), [0, 1, 3, 4, 2])
    gate = call("unsqueeze", call("where", is_kept, confidence, 0.0), [-1])
    scores = call("multiply", call("sigmoid", classes), gate)
    return [
        call("reshape", boxes, [batch, -1, 4]),
        call("reshape", scores, [batch, -1, class_num]),
    ]
