# SPDX-License-Identifier: Apache-2.0
"""Pooling and resampling."""

import numpy as np

from .convolutions import pair


def pool_windows(x, size, stride, padding, dilation, ceil_mode):
    """(rows, columns) of the elements of every window that lie inside the image or its padding."""
    sides = []
    for side in range(2):
        extent, k, s, p, d = (
            x.shape[2 + side],
            size[side],
            stride[side],
            padding[side],
            dilation[side],
        )
        room = extent + 2 * p - d * (k - 1) - 1
        count = -(-room // s) + 1 if ceil_mode else room // s + 1
        if ceil_mode and (count - 1) * s >= extent + p:
            count -= 1
        sides.append([[i * s - p + j * d for j in range(k)] for i in range(count)])
    return sides


def max_pool2d_with_indices(x, size, stride=None, padding=0, dilation=1, ceil_mode=False):
    size = pair(size)
    rows, columns = pool_windows(
        x, size, pair(stride or size), pair(padding), pair(dilation), ceil_mode
    )
    values = np.empty((*x.shape[:2], len(rows), len(columns)), x.dtype)
    indices = np.empty(values.shape, np.int64)
    h, w = x.shape[2:]
    for i, ys in enumerate(rows):
        for j, xs in enumerate(columns):
            inside = [(y, v) for y in ys for v in xs if 0 <= y < h and 0 <= v < w]
            flat = np.array([y * w + v for y, v in inside])
            seen = x.reshape(*x.shape[:2], -1)[:, :, flat]
            values[:, :, i, j] = seen.max(-1)
            indices[:, :, i, j] = flat[seen.argmax(-1)]
    return values, indices


def avg_pool2d(x, size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    size, padding = pair(size), pair(padding)
    rows, columns = pool_windows(x, size, pair(stride or size), padding, (1, 1), ceil_mode)
    values = np.empty((*x.shape[:2], len(rows), len(columns)), x.dtype)
    h, w = x.shape[2:]
    for i, ys in enumerate(rows):
        for j, xs in enumerate(columns):
            inside = [(y, v) for y in ys for v in xs if 0 <= y < h and 0 <= v < w]
            counted = [(y, v) for y in ys for v in xs if y < h + padding[0] and v < w + padding[1]]
            total = sum(x[:, :, y, v] for y, v in inside)
            values[:, :, i, j] = total / len(counted if count_include_pad else inside)
    return values


def adaptive(function):
    def reference(x, size):
        oh, ow = pair(size)
        h, w = x.shape[2:]
        out = np.empty((*x.shape[:2], oh, ow), x.dtype)
        for i in range(oh):
            for j in range(ow):
                part = x[
                    :, :, i * h // oh : -(-(i + 1) * h // oh), j * w // ow : -(-(j + 1) * w // ow)
                ]
                out[:, :, i, j] = function(part, axis=(2, 3))
        return out

    return reference


def interpolate2d(x, size, mode="nearest", align_corners=False):
    for axis, count in zip((2, 3), size, strict=True):
        extent = x.shape[axis]
        if mode == "nearest":
            x = np.take(x, [i * extent // count for i in range(count)], axis)
            continue
        if align_corners:
            at = np.arange(count) * (extent - 1) / max(count - 1, 1)
        else:
            at = np.clip((np.arange(count) + 0.5) * extent / count - 0.5, 0, extent - 1)
        low = np.floor(np.minimum(at, extent - 1)).astype(int)
        weight = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        high = np.take(x, np.minimum(low + 1, extent - 1), axis)
        # A neighbour of weight 0 is left out, even if it is infinite.
        x = np.take(x, low, axis) * (1 - weight) + np.where(weight == 0, 0, high * weight)
    return x


adaptive_avg_pool2d = adaptive(np.mean)
adaptive_max_pool2d = adaptive(np.max)
