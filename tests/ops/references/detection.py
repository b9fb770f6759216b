# SPDX-License-Identifier: Apache-2.0
"""Boxes and regions of images, one at a time."""

import math

import numpy as np


def box_convert(boxes, from_format, to_format):
    a, b = boxes[..., :2], boxes[..., 2:]
    begin = a - b / 2 if from_format == "cxcywh" else a
    size = b - a if from_format == "xyxy" else b
    if to_format == "cxcywh":
        begin = begin + size / 2
    return np.concatenate([begin, begin + size if to_format == "xyxy" else size], -1)


def _shared(a, b):
    width = max(min(a[2], b[2]) - max(a[0], b[0]), 0)
    return width * max(min(a[3], b[3]) - max(a[1], b[1]), 0)


def _area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


def box_iou(x, y):
    shared = np.array([[_shared(a, b) for b in y] for a in x])
    return shared / (_area(x.T)[:, None] + _area(y.T) - shared)


def generalized_box_iou(x, y):
    out = box_iou(x, y)
    for i, j in np.ndindex(*out.shape):
        hull = [*np.minimum(x[i, :2], y[j, :2]), *np.maximum(x[i, 2:], y[j, 2:])]
        union = _area(x[i]) + _area(y[j]) - _shared(x[i], y[j])
        out[i, j] -= (_area(hull) - union) / _area(hull)
    return out


def box_encode(boxes, anchors, weights=(1, 1, 1, 1)):
    box, anchor = (box_convert(b, "xyxy", "cxcywh") for b in (boxes, anchors))
    offset = (box[..., :2] - anchor[..., :2]) / anchor[..., 2:]
    return np.concatenate([offset, np.log(box[..., 2:] / anchor[..., 2:])], -1) * weights


def box_decode(deltas, anchors, weights=(1, 1, 1, 1), max_ratio=62.5):
    anchor = box_convert(anchors, "xyxy", "cxcywh")
    deltas = deltas / np.array(weights)
    center = deltas[..., :2] * anchor[..., 2:] + anchor[..., :2]
    size = np.exp(np.minimum(deltas[..., 2:], math.log(max_ratio))) * anchor[..., 2:]
    return box_convert(np.concatenate([center, size], -1), "cxcywh", "xyxy").astype(deltas.dtype)


def nms(boxes, scores, iou_threshold, categories=None, count=None):
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        rivals = [j for j in kept if categories is None or categories[i] == categories[j]]
        if not any(box_iou(boxes[[i]], boxes[[j]])[0, 0] > iou_threshold for j in rivals):
            kept.append(i)
    return np.array(kept[:count], dtype=np.int64)


def _bilinear(plane, y, x):
    h, w = plane.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return 0.0
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    top, left = int(y), int(x)
    down, right = min(top + 1, h - 1), min(left + 1, w - 1)
    v, u = y - top, x - left
    return (
        plane[top, left] * (1 - v) * (1 - u)
        + plane[top, right] * (1 - v) * u
        + plane[down, left] * v * (1 - u)
        + plane[down, right] * v * u
    )


def roi_align(x, boxes, image_index, output_size, scale=1.0, ratio=-1, aligned=False):
    bins = np.broadcast_to(output_size, 2)
    out = np.zeros((len(boxes), x.shape[1], *bins))
    for k, c, i, j in np.ndindex(*out.shape):
        begin = boxes[k, 1::-1].astype(np.float64) * scale - 0.5 * aligned
        size = boxes[k, 3:1:-1].astype(np.float64) * scale - 0.5 * aligned - begin
        size = (size if aligned else np.maximum(size, 1)) / bins
        grid = np.full(2, ratio) if ratio > 0 else np.ceil(size).astype(int)
        for a, b in np.ndindex(*np.maximum(grid, 0)):
            y = begin[0] + (i + (a + 0.5) / grid[0]) * size[0]
            z = begin[1] + (j + (b + 0.5) / grid[1]) * size[1]
            out[k, c, i, j] += _bilinear(x[image_index[k], c], y, z)
        out[k, c, i, j] /= max(grid[0] * grid[1], 1)
    return out.astype(x.dtype)


def roi_pool(x, boxes, image_index, output_size, scale=1.0):
    bins = np.broadcast_to(output_size, 2)
    out = np.zeros((len(boxes), x.shape[1], *bins), x.dtype)
    for k, c, i, j in np.ndindex(*out.shape):
        first, last = (np.sign(b) * np.floor(abs(b) + 0.5) for b in boxes[k].reshape(2, 2) * scale)
        length = np.maximum(last - first + 1, 1)
        window = []
        for axis, bin_ in ((1, i), (0, j)):
            size = length[axis] / bins[1 - axis]
            ends = first[axis] + np.array([np.floor(bin_ * size), np.ceil((bin_ + 1) * size)])
            window.append(slice(*np.clip(ends, 0, x.shape[3 - axis]).astype(int)))
        inside = x[(image_index[k], c, *window)]
        out[k, c, i, j] = inside.max() if inside.size else 0
    return out


def deform_conv2d(
    x, offset, weight, bias=None, mask=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1)
):
    filters, own, kh, kw = weight.shape
    taps = kh * kw
    parts, groups = offset.shape[1] // (2 * taps), x.shape[1] // own
    out = np.zeros((len(x), filters, *offset.shape[2:]))
    for n, f, i, j in np.ndindex(*out.shape):
        for c, tap in np.ndindex(own, taps):
            channel = f // (filters // groups) * own + c
            k = channel // (x.shape[1] // parts) * taps + tap
            row = i * stride[0] - padding[0] + tap // kw * dilation[0] + offset[n, 2 * k, i, j]
            column = (
                j * stride[1] - padding[1] + tap % kw * dilation[1] + offset[n, 2 * k + 1, i, j]
            )
            value = _surrounded(x[n, channel], row, column)
            value *= 1 if mask is None else mask[n, k, i, j]
            out[n, f, i, j] += weight[f, c, tap // kw, tap % kw] * value
        out[n, f, i, j] += 0 if bias is None else bias[f]
    return out.astype(x.dtype)


def _surrounded(plane, y, x):
    """The bilinear value of a plane in the middle of zeros."""
    total = 0.0
    for a, b in np.ndindex(2, 2):
        row, column = math.floor(y) + a, math.floor(x) + b
        if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
            total += plane[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total
