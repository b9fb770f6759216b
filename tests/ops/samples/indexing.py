# SPDX-License-Identifier: Apache-2.0
"""Elements picked and placed by tensors of positions."""

import numpy as np
from case import Case, integers, normal


def index(x, indices, axis=0):
    return x[(slice(None),) * axis + tuple(indices)]


def index_put(x, indices, value, axis=0, accumulate=False):
    result, key = x.copy(), (slice(None),) * axis + tuple(indices)
    if accumulate:
        np.add.at(result, key, value)
    else:
        result[key] = value
    return result


def index_add(x, positions, source, axis=0):
    result = x.copy()
    np.add.at(result, (slice(None),) * axis + (positions,), source)
    return result


def scatter(x, positions, source, axis=-1):
    result = x.copy()
    key = list(np.indices(positions.shape))
    key[axis] = positions
    result[tuple(key)] = source
    return result


def scatter_add(x, positions, source, axis=-1):
    result = x.copy()
    key = list(np.indices(positions.shape))
    key[axis] = positions
    np.add.at(result, tuple(key), source)
    return result


def gather(x, positions, axis=-1):
    key = list(np.indices(positions.shape))
    key[axis] = positions
    return x[tuple(key)]


def masked_scatter(x, mask, source):
    result, mask = x.copy(), np.broadcast_to(mask, x.shape)
    result[mask] = source.ravel()[: mask.sum()]
    return result


_mask = np.array(
    [[True, False, True, True], [False, False, True, False], [True, True, False, False]]
)
_permutation = np.array([[2, 0, 1, 0], [0, 1, 2, 1]])

CASES = [
    Case("index", (normal(4, 5), [integers(0, 4, 3), integers(-5, 5, 3)]), reference=index),
    Case(
        "index",
        (normal(4, 5, 2), [integers(0, 4, 3, 1), integers(0, 5, 2)]),
        reference=index,
        label="broadcast",
    ),
    Case("index", (normal(4, 5, 2), [integers(-5, 5, 2, 2)], 1), reference=index, label="axis"),
    Case("index", (normal(4, 5), [np.zeros((0,), np.int64)]), reference=index, label="empty"),
    Case(
        "index_put",
        (normal(4, 5), [np.array([0, 2]), np.array([1, -1])], normal(2)),
        reference=index_put,
    ),
    Case("index_put", (normal(4, 5), [np.array([0, 2])], 3.0), reference=index_put, label="number"),
    Case(
        "index_put",
        (normal(4, 5), [np.array([1, 1, 2])], normal(5)),
        {"accumulate": True},
        index_put,
        label="accumulate",
    ),
    Case(
        "index_put",
        (normal(4, 5), [np.array([1, 3])], normal(4, 2)),
        {"axis": 1},
        index_put,
        label="axis",
    ),
    Case(
        "index_select", (normal(4, 5), integers(-4, 4, 6)), reference=lambda x, i: np.take(x, i, 0)
    ),
    Case(
        "index_select", (normal(4, 5), integers(0, 5, 2, 3), 1), reference=np.take, label="matrix"
    ),
    Case("index_add", (normal(4, 5), np.array([0, 2, 2]), normal(3, 5)), reference=index_add),
    Case(
        "index_add",
        (normal(4, 5), np.array([1, -1]), normal(4, 2), 1),
        reference=index_add,
        label="axis",
    ),
    Case("gather", (normal(3, 4), integers(0, 4, 2, 5)), reference=gather),
    Case("gather", (normal(3, 4), integers(0, 3, 2, 4), 0), reference=gather, label="rows"),
    Case(
        "take_along_axis",
        (normal(3, 4), integers(0, 4, 1, 5)),
        reference=lambda x, i: np.take_along_axis(x, np.broadcast_to(i, (3, 5)), -1),
    ),
    Case("scatter", (normal(3, 4), _permutation, normal(2, 4), 0), reference=scatter),
    Case("scatter", (normal(4), np.array([3, 0]), normal(2)), reference=scatter, label="vector"),
    Case("scatter", (normal(4), np.array([3, 0]), 2.5), reference=scatter, label="number"),
    Case("scatter_add", (normal(3, 4), _permutation, normal(2, 4), 0), reference=scatter_add),
    Case("nonzero", (_mask,), reference=np.argwhere),
    Case(
        "nonzero",
        (np.zeros((2, 3)),),
        reference=np.argwhere,
        label="none",
        grad=(),
        why="its results are positions",
    ),
    Case("masked_select", (normal(3, 4), _mask), reference=lambda x, m: x[m]),
    Case(
        "masked_select",
        (normal(4), _mask),
        label="broadcast",
        reference=lambda x, m: np.broadcast_to(x, m.shape)[m],
    ),
    Case("masked_scatter", (normal(3, 4), _mask, normal(9)), reference=masked_scatter),
    Case("embedding", (normal(5, 3), integers(0, 5, 2, 4)), reference=lambda w, i: w[i]),
]
