# SPDX-License-Identifier: Apache-2.0
"""Reductions and sorting."""

import numpy as np


def norm(x, ord=2.0, axis=None, keepdim=False):
    magnitude = np.abs(x)
    options = {"axis": tuple(axis) if isinstance(axis, list) else axis, "keepdims": keepdim}
    if ord == np.inf:
        return magnitude.max(**options)
    if ord == -np.inf:
        return magnitude.min(**options)
    if ord == 0:
        return (magnitude != 0).sum(**options).astype(x.dtype)
    return (magnitude**ord).sum(**options) ** (1 / ord)


def sort_with_indices(x, axis=-1, descending=False):
    # Stable and descending: sort the reversed sequence, then reverse the result and its indices.
    if not descending:
        order = np.argsort(x, axis=axis, kind="stable")
    else:
        order = (
            x.shape[axis]
            - 1
            - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        )
    return np.take_along_axis(x, order, axis), order


def topk(x, count, axis=-1, largest=True):
    values, order = sort_with_indices(x, axis, largest)
    return np.take(values, range(count), axis), np.take(order, range(count), axis)
