# SPDX-License-Identifier: Apache-2.0
"""Matrix products and convolutions."""

import numpy as np
from case import Case, integers, normal
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


def linear(x, weight, bias=None):
    return x @ weight.T if bias is None else x @ weight.T + bias


_matmul = {
    "matrices": (normal(3, 4), normal(4, 2)),
    "vectors": (normal(4), normal(4)),
    "vector-matrix": (normal(4), normal(4, 2)),
    "matrix-vector": (normal(3, 4), normal(4)),
    "vector-batch": (normal(4), normal(2, 4, 3)),
    "batch-vector": (normal(2, 3, 4), normal(4)),
    "batches": (normal(2, 3, 4), normal(2, 4, 5)),
    "shared right": (normal(2, 3, 4), normal(4, 5)),
    "shared left": (normal(3, 4), normal(2, 4, 5)),
    "broadcast": (normal(2, 1, 3, 4), normal(3, 4, 2)),
    "empty inner": (normal(3, 0), normal(0, 2)),
    "empty batch": (normal(0, 3, 4), normal(4, 2)),
}

_einsum = [
    ("ij,jk->ik", normal(3, 4), normal(4, 2)),
    ("ij,jk", normal(3, 4), normal(4, 2)),
    ("i,i->", normal(4), normal(4)),
    ("i,j->ij", normal(4), normal(3)),
    ("bij,bjk->bik", normal(2, 3, 4), normal(2, 4, 2)),
    ("...ij,...jk->...ik", normal(2, 3, 4), normal(4, 2)),
    ("bhqd,bhkd->bhqk", normal(2, 2, 3, 4), normal(2, 2, 5, 4)),
    ("ii->i", normal(3, 3)),
    ("ii", normal(3, 3)),
    ("ijk->ki", normal(2, 3, 4)),
    ("ba", normal(2, 3)),
    ("ij,jk,kl->il", normal(2, 3), normal(3, 4), normal(4, 2)),
    ("ij,ik,il->jkl", normal(2, 3), normal(2, 4), normal(2, 2)),
    ("ij,j->i", normal(3, 4), normal(4)),
    ("i...,i...->...", normal(3, 4), normal(3, 4)),
    ("ij,kj->k", normal(1, 4), normal(3, 4)),
]

_convolutions = {
    "plain": (normal(2, 3, 5, 6), normal(4, 3, 3, 2)),
    "bias": (normal(2, 3, 5, 6), normal(4, 3, 3, 2), normal(4)),
    "stride": (normal(2, 3, 7, 6), normal(4, 3, 3, 3), None, [2, 1]),
    "padding": (normal(2, 3, 5, 6), normal(4, 3, 3, 3), None, 1, [2, 1]),
    "dilation": (normal(2, 3, 7, 8), normal(4, 3, 3, 3), None, 1, 1, [2, 3]),
    "groups": (normal(2, 4, 5, 6), normal(6, 2, 3, 3), normal(6), 2, 1, 1, 2),
    "depthwise": (normal(1, 3, 5, 5), normal(3, 1, 3, 3), None, 1, 1, 1, 3),
    "1x1": (normal(2, 3, 4, 4), normal(5, 3, 1, 1)),
}

CASES = [
    *(Case("matmul", args, reference=np.matmul, label=label) for label, args in _matmul.items()),
    Case("matmul", (integers(0, 9, 3, 4), integers(0, 9, 4, 2)), reference=np.matmul, label="int"),
    *(
        Case(
            "matmul_integer",
            (integers(0, 128, 3, 4, dtype=left), integers(0, 128, 2, 4, 5, dtype=right)),
            reference=lambda x, y: x.astype(np.int32) @ y.astype(np.int32),
            label=f"{left.__name__} {right.__name__}",
        )
        for left in (np.int8, np.uint8)
        for right in (np.int8, np.uint8)
    ),
    Case("linear", (normal(2, 3, 4), normal(5, 4), normal(5)), reference=linear),
    Case("linear", (normal(4), normal(5, 4)), reference=linear, label="vector"),
    Case("dot", (normal(4), normal(4)), reference=lambda x, y: np.asarray(np.dot(x, y))),
    Case("vecdot", (normal(3, 4), normal(4)), reference=lambda x, y: (x * y).sum(-1)),
    Case("outer", (normal(4), normal(3)), reference=np.outer),
    Case(
        "tensordot",
        (normal(2, 3, 4), normal(4, 3, 5), [1, 2], [1, 0]),
        reference=lambda x, y, a, b: np.tensordot(x, y, (a, b)),
    ),
    Case(
        "tensordot",
        (normal(2), normal(3), [], []),
        reference=lambda x, y, a, b: np.tensordot(x, y, 0),
        label="outer",
    ),
    Case("trace", (normal(3, 4), 1), reference=lambda x, k: np.asarray(np.trace(x, k))),
    *(
        Case(
            "einsum",
            (equation, list(operands)),
            label=equation,
            reference=lambda e, o: np.asarray(np.einsum(e, *o)),
            rtol=1e-11,
        )
        for equation, *operands in _einsum
    ),
    *(
        Case("conv2d", args, reference=conv2d, label=label, rtol=1e-11)
        for label, args in _convolutions.items()
    ),
    *(
        Case(
            "conv2d_input_grad",
            (conv2d(*args), args[1], list(args[0].shape), *args[3:]),
            label=label,
            reference=None,
            rtol=1e-11,
        )
        for label, args in _convolutions.items()
    ),
    *(
        Case(
            "conv2d_weight_grad",
            (conv2d(*args), args[0], list(args[1].shape), *args[3:]),
            label=label,
            reference=None,
            rtol=1e-11,
        )
        for label, args in _convolutions.items()
    ),
    Case(
        "conv1d",
        (normal(2, 3, 7), normal(4, 3, 3), normal(4), 2, 1),
        rtol=1e-11,
        reference=lambda x, w, b, s, p: conv2d(x[:, :, None], w[:, :, None], b, [1, s], [0, p])[
            :, :, 0
        ],
    ),
    Case(
        "conv_transpose2d",
        (normal(2, 3, 4, 5), normal(3, 2, 3, 3), normal(2)),
        reference=conv_transpose2d,
        rtol=1e-11,
    ),
    Case(
        "conv_transpose2d",
        (normal(2, 4, 3, 4), normal(4, 3, 3, 2), None, [2, 3], 1, [1, 0], 1, 2),
        reference=conv_transpose2d,
        label="stride and groups",
        rtol=1e-11,
    ),
]
