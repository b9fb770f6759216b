# SPDX-License-Identifier: Apache-2.0
"""Views, joining, creation."""

import numpy as np


def slice_(x, axes, starts, stops, steps=None):
    axes, starts, stops = (v if isinstance(v, list) else [v] for v in (axes, starts, stops))
    steps = [1] * len(axes) if steps is None else steps if isinstance(steps, list) else [steps]
    key = [slice(None)] * x.ndim
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        key[axis] = slice(start, stop, step)
    return x[tuple(key)]


def sliding_window(x, axis, size, step=1, dilation=1):
    span = dilation * (size - 1) + 1
    view = np.lib.stride_tricks.sliding_window_view(x, span, axis)[..., ::dilation]
    return np.take(view, range(0, view.shape[axis], step), axis)


def pad(x, padding, mode="constant", value=0):
    pairs = list(zip(padding[::2], padding[1::2], strict=True))
    x = x[
        tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape, strict=True))
    ]
    pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    return np.pad(x, pairs, mode=mode, **({"constant_values": value} if mode == "constant" else {}))


def split(x, sizes, axis=0):
    if isinstance(sizes, int):
        return tuple(np.split(x, range(sizes, x.shape[axis], sizes), axis))
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def full(shape, value, dtype=None):
    return np.full(
        shape, value, dtype or {float: "float32", int: "int64", bool: "bool"}[type(value)]
    )
