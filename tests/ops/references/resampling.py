# SPDX-License-Identifier: Apache-2.0
"""Resizing and sampling of images, an element at a time."""

import itertools
import math

import numpy as np


def _cubic(s, a):
    s = abs(s)
    if s <= 1:
        return (a + 2) * s**3 - (a + 3) * s**2 + 1
    return a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a if s < 2 else 0.0


def _weights(i, extent, count, factor, mode, corners, antialias):
    """The old elements that new element `i` is the weighted sum of, as pairs."""
    last = extent - 1
    step = extent / count if factor is None else 1 / factor
    if mode.startswith("nearest"):
        at = (i + 0.5 * mode.endswith("exact")) * step
        return [(min(math.floor(at + 1e-12), last), 1.0)]
    if mode == "area":
        window = range(i * extent // count, -(-(i + 1) * extent // count))
        return [(k, 1 / len(window)) for k in window]
    if corners:
        step = last / (count - 1) if count > 1 else 0.0
    at = i * step if corners else (i + 0.5) * step - 0.5
    if antialias:
        width, center = max(step, 1.0), step * (i + 0.5)
        if mode == "bicubic":
            radius, weigh = 2 * width, lambda d: _cubic(d, -0.5)
        else:
            radius, weigh = width, lambda d: max(1 - abs(d), 0.0)
        window = range(max(int(center - radius + 0.5), 0), min(int(center + radius + 0.5), extent))
        pairs = [(k, weigh((k + 0.5 - center) / width)) for k in window]
        total = sum(w for _, w in pairs)
        return [(k, w / total) for k, w in pairs]
    if mode == "bicubic":
        base = math.floor(at)
        return [(min(max(k, 0), last), _cubic(at - k, -0.75)) for k in range(base - 1, base + 3)]
    at = min(max(at, 0), last)
    low = math.floor(at)
    return [(low, 1 - (at - low)), (min(low + 1, last), at - low)]


def interpolate(x, size=None, scale_factor=None, mode="nearest", corners=False, antialias=False):
    spatial = x.ndim - 2
    factors = [None] * spatial
    if size is None:
        factors = list(np.broadcast_to(scale_factor, spatial))
        size = [int(n * f) for n, f in zip(x.shape[2:], factors, strict=True)]
    for axis, count, factor in zip(
        range(2, x.ndim), np.broadcast_to(size, spatial), factors, strict=True
    ):
        rows = []
        for i in range(count):
            pairs = _weights(i, x.shape[axis], count, factor, mode, corners, antialias)
            rows.append(sum(np.take(x, k, axis) * w for k, w in pairs if w != 0))
        x = np.stack(rows, axis).astype(x.dtype)
    return x


def affine_grid(theta, size, corners=False):
    n, _, *extents = size
    out = np.empty((n, *extents, len(extents)))
    for at in np.ndindex(*extents):
        point = [
            (2 * i / (e - 1) - 1 if e > 1 else 0.0) if corners else (2 * i + 1) / e - 1
            for i, e in zip(at, extents, strict=True)
        ]
        out[(slice(None), *at)] = theta @ np.array([*point[::-1], 1.0])
    return out.astype(theta.dtype)


def _inside(at, extent, padding, corners):
    """The position inside the image that stands for `at`."""
    if padding == "reflection":
        low, high = (0, extent - 1) if corners else (-0.5, extent - 0.5)
        while high > low and not low <= at <= high:
            at = 2 * low - at if at < low else 2 * high - at
        if high == low:
            at = low
    return at if padding == "zeros" else min(max(at, 0), extent - 1)


def _neighbours(at, extent, mode, padding, corners):
    if mode == "bicubic":
        base = math.floor(at)
        taps = [(k, _cubic(at - k, -0.75)) for k in range(base - 1, base + 3)]
        taps = [(_inside(k, extent, padding, corners), w) for k, w in taps]
    else:
        at = _inside(at, extent, padding, corners)
        low = math.floor(at)
        taps = (
            [(low, low + 1 - at), (low + 1, at - low)] if mode == "bilinear" else [(round(at), 1)]
        )
    return [(int(k), w) for k, w in taps if 0 <= k < extent]


def grid_sample(x, grid, mode="bilinear", padding="zeros", corners=False):
    extents = x.shape[2:]
    points = grid.reshape(len(x), -1, len(extents)).astype(np.float64)
    out = np.zeros((*x.shape[:2], points.shape[1]))
    for n, p in np.ndindex(*points.shape[:2]):
        axes = []
        for extent, at in zip(extents, points[n, p, ::-1], strict=True):
            at = (at + 1) / 2 * (extent - 1) if corners else ((at + 1) * extent - 1) / 2
            axes.append(_neighbours(at, extent, mode, padding, corners))
        for taps in itertools.product(*axes):
            place = tuple(k for k, _ in taps)
            out[n, :, p] += x[(n, slice(None), *place)] * math.prod(w for _, w in taps)
    return out.reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype)
