# SPDX-License-Identifier: Apache-2.0
"""Views, joining, creation."""

import numpy as np
from case import Case, integers, normal

OPEN = 2**63 - 1


def sliced(x, axes, starts, stops, steps=None):
    axes, starts, stops = (v if isinstance(v, list) else [v] for v in (axes, starts, stops))
    steps = [1] * len(axes) if steps is None else steps if isinstance(steps, list) else [steps]
    key = [slice(None)] * x.ndim
    for axis, start, stop, step in zip(axes, starts, stops, steps):
        key[axis] = slice(start, stop, step)
    return x[tuple(key)]


def windows(x, axis, size, step=1, dilation=1):
    span = dilation * (size - 1) + 1
    view = np.lib.stride_tricks.sliding_window_view(x, span, axis)[..., ::dilation]
    return np.take(view, range(0, view.shape[axis], step), axis)


def padded(x, padding, mode="constant", value=0):
    pairs = list(zip(padding[::2], padding[1::2]))
    return np.pad(x, pairs, mode=mode, **({"constant_values": value} if mode == "constant" else {}))


def split(x, sizes, axis=0):
    if isinstance(sizes, int):
        return tuple(np.split(x, range(sizes, x.shape[axis], sizes), axis))
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


VIEWS = [
    Case("reshape", (normal(3, 4), [2, -1]), reference=np.reshape),
    Case("reshape", (normal(3, 4), [12]), reference=np.reshape, label="flat"),
    Case("view", (normal(3, 4), [2, 2, 3]), reference=np.reshape),
    Case("flatten", (normal(2, 3, 4), 1), reference=lambda x, s: x.reshape(2, 12)),
    Case("flatten", (normal(2, 3, 4),), reference=np.ravel, label="all"),
    Case("transpose", (normal(2, 3, 4),), reference=lambda x: np.swapaxes(x, -1, -2)),
    Case("transpose", (normal(2, 3, 4), 0, 2), reference=np.swapaxes, label="axes"),
    Case("permute", (normal(2, 3, 4), [2, 0, 1]), reference=np.transpose),
    Case("permute", (normal(2, 3, 4),), reference=np.transpose, label="reversed"),
    Case("movedim", (normal(2, 3, 4), [0, 1], [2, 0]), reference=np.moveaxis),
    Case("squeeze", (normal(2, 1, 3, 1),), reference=np.squeeze),
    Case("squeeze", (normal(2, 1, 3, 1), 1), reference=np.squeeze, label="axis"),
    Case("unsqueeze", (normal(2, 3), [0, -1]), reference=lambda x, a: np.expand_dims(x, tuple(a))),
    Case("unsqueeze", (normal(2, 3), 1), reference=np.expand_dims, label="lone"),
    Case("expand", (normal(3, 1), [2, 3, 4]), reference=np.broadcast_to),
    Case(
        "expand",
        (normal(3, 1), [-1, 4]),
        reference=lambda x, s: np.broadcast_to(x, (3, 4)),
        label="keep",
    ),
    Case("slice", (normal(4, 5), [0, 1], [1, 4], [OPEN, -5], [2, -1]), reference=sliced),
    Case("slice", (normal(4, 5), 1, 1, 4), reference=sliced, label="lone"),
    Case(
        "slice",
        (normal(4, 5), 1, OPEN, -OPEN - 1, -2),
        reference=lambda x, *_: x[:, ::-2],
        label="backwards",
    ),
    Case("slice", (normal(4, 5), [0], [3], [1]), reference=sliced, label="empty"),
    Case("narrow", (normal(4, 5), 1, -3, 2), reference=lambda x, a, s, n: x[:, 2:4]),
    Case("narrow", (normal(4, 5), 0, 0, 3), reference=lambda x, a, s, n: x[:3], label="first"),
    Case("select", (normal(4, 5), 1, -2), reference=lambda x, a, i: x[:, i]),
    Case("flip", (normal(4, 5), [1]), reference=lambda x, a: np.flip(x, tuple(a))),
    Case("flip", (normal(4, 5),), reference=np.flip, label="all"),
    Case("diagonal", (normal(4, 5),), reference=np.diagonal),
    Case("diagonal", (normal(2, 4, 5), -1, 1, 2), reference=np.diagonal, label="below"),
    Case("diagonal", (normal(2, 4, 5), 2, -1, 0), reference=np.diagonal, label="above"),
    Case("sliding_window", (normal(3, 7), 1, 3), reference=windows),
    Case("sliding_window", (normal(9, 2), 0, 3, 2, 2), reference=windows, label="dilated"),
    Case("split", (normal(5, 2), [2, 3]), reference=split),
    Case("split", (normal(5, 2), 2), reference=split, label="equal"),
    Case("unbind", (normal(3, 2), 1), reference=lambda x, a: tuple(x.T)),
]

JOINS = [
    Case("concat", ([normal(2, 3), normal(1, 3), normal(2, 3)],), reference=np.concatenate),
    Case("concat", ([normal(2, 3), normal(2, 1)], -1), reference=np.concatenate, label="last"),
    Case(
        "concat",
        ([integers(0, 9, 2), normal(2)],),
        reference=np.concatenate,
        label="promote",
    ),
    Case("stack", ([normal(2, 3), normal(2, 3)], 1), reference=np.stack),
    Case(
        "broadcast_tensors",
        ([normal(3, 1), normal(4)],),
        reference=lambda t: tuple(np.broadcast_arrays(*t)),
    ),
    Case(
        "meshgrid",
        ([normal(3), normal(2)],),
        reference=lambda t: tuple(np.meshgrid(*t, indexing="ij")),
    ),
    Case(
        "meshgrid",
        ([normal(3), normal(2)], "xy"),
        reference=lambda t, i: tuple(np.meshgrid(*t)),
        label="xy",
    ),
    Case("tile", (normal(2, 3), [2, 1, 2]), reference=np.tile),
    Case("repeat", (normal(2, 3), 2, 1), reference=np.repeat),
    Case("repeat", (normal(2, 3), 2), reference=np.repeat, label="flat"),
    Case("roll", (normal(3, 4), [1, -1], [0, 1]), reference=np.roll),
    Case("roll", (normal(3, 4), 5), reference=np.roll, label="flat"),
    Case("pad", (normal(2, 3), [1, 0, 2, 1], "constant", 7.0), reference=padded),
    Case("pad", (normal(2, 3), [1, 0, 2, 1], "edge"), reference=padded, label="edge"),
    Case("pad", (normal(2, 3), [1, 0, 2, 1], "reflect"), reference=padded, label="reflect"),
    Case("pad", (normal(2, 3), [1, 0, 2, 1], "wrap"), reference=padded, label="wrap"),
    Case(
        "pad",
        (normal(4, 3), [-1, 1, 0, -1]),
        label="crop",
        reference=lambda x, p: np.pad(x[1:, :2], [(0, 1), (0, 0)]),
    ),
    Case("tril", (normal(3, 4), 1), reference=np.tril),
    Case("triu", (normal(2, 3, 4), -1), reference=np.triu),
]


def full(shape, value, dtype=None):
    return np.full(
        shape, value, dtype or {float: "float32", int: "int64", bool: "bool"}[type(value)]
    )


CONSTANT = "its results are constants"
CREATION = [
    Case("full", ([2, 3], 1.5), reference=full),
    Case("full", ([2, 3], 4), reference=full, label="int"),
    Case("full", ([], True), reference=full, label="bool"),
    Case("full", ([2], 3), {"dtype": "float64"}, full, label="dtype"),
    Case("full_like", (normal(2, 3), 4), reference=np.full_like, grad=(), why=CONSTANT),
    Case("zeros", ([2, 3],), reference=lambda s: np.zeros(s, np.float32)),
    Case("ones", ([2, 3],), {"dtype": "int16"}, lambda s, dtype: np.ones(s, dtype)),
    Case("zeros_like", (normal(2, 3),), reference=np.zeros_like, grad=(), why=CONSTANT),
    Case("ones_like", (integers(0, 9, 2),), reference=np.ones_like, grad=(), why=CONSTANT),
    Case("arange", (5,), reference=np.arange),
    Case("arange", (1, 8, 3), reference=np.arange, label="step"),
    Case("arange", (3, -3, -2), reference=np.arange, label="backwards"),
    Case(
        "arange",
        (0.0, 1.0, 0.25),
        reference=lambda *a: np.arange(*a, dtype=np.float32),
        label="float",
    ),
    Case("arange", (5, 2), reference=np.arange, label="empty"),
    Case("linspace", (0.0, 1.0, 5), reference=lambda *a: np.linspace(*a, dtype=np.float32)),
    Case(
        "linspace",
        (0.0, 1.0, 4),
        {"endpoint": False, "dtype": "float64"},
        np.linspace,
        label="open",
    ),
    Case(
        "linspace",
        (2.0, 5.0, 1),
        reference=lambda *a: np.linspace(*a, dtype=np.float32),
        label="one",
    ),
    Case("eye", (3,), reference=lambda n: np.eye(n, dtype=np.float32)),
    Case(
        "eye",
        (3, 4),
        {"offset": 1, "dtype": "float64"},
        lambda n, m, offset, dtype: np.eye(n, m, offset, dtype),
        label="offset",
    ),
    Case("one_hot", (integers(0, 4, 2, 3), 4), reference=lambda i, n: np.eye(n, dtype=np.int64)[i]),
]

CASES = VIEWS + JOINS + CREATION
