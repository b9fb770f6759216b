# SPDX-License-Identifier: Apache-2.0
"""Convolutions."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value) * (3 - len(value))


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    (sy, sx), (py, px), (dy, dx) = pair(stride), pair(padding), pair(dilation)
    x = np.pad(x, [(0, 0), (0, 0), (py, py), (px, px)])
    span = [dy * (weight.shape[2] - 1) + 1, dx * (weight.shape[3] - 1) + 1]
    windows = sliding_window_view(x, span, axis=(2, 3))[:, :, ::sy, ::sx, ::dy, ::dx]
    n, _, oh, ow, kh, kw = windows.shape
    windows = windows.reshape(n, groups, -1, oh, ow, kh, kw)
    filters = weight.reshape(groups, -1, *weight.shape[1:])
    out = np.einsum("ngchwij,gocij->ngohw", windows, filters).reshape(n, -1, oh, ow)
    return out if bias is None else out + bias[:, None, None]


def conv_transpose2d(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1
):
    (sy, sx), (py, px), (oy, ox), (dy, dx) = (
        pair(v) for v in (stride, padding, output_padding, dilation)
    )
    n, c, h, w = x.shape
    per, kh, kw = weight.shape[1:]
    full = np.zeros(
        (
            n,
            per * groups,
            (h - 1) * sy + dy * (kh - 1) + 1 + oy,
            (w - 1) * sx + dx * (kw - 1) + 1 + ox,
        ),
        x.dtype,
    )
    for g in range(groups):
        inputs = slice(g * c // groups, (g + 1) * c // groups)
        for i in range(kh):
            for j in range(kw):
                part = np.einsum("nchw,co->nohw", x[:, inputs], weight[inputs, :, i, j])
                full[
                    :,
                    g * per : (g + 1) * per,
                    i * dy : i * dy + (h - 1) * sy + 1 : sy,
                    j * dx : j * dx + (w - 1) * sx + 1 : sx,
                ] += part
    out = full[:, :, py : full.shape[2] - py, px : full.shape[3] - px]
    return out if bias is None else out + bias[:, None, None]
