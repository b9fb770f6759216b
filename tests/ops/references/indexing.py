# SPDX-License-Identifier: Apache-2.0
"""Elements that tensors of indices choose."""

import numpy as np


def index_put(x, indices, value, axis=0, accumulate=False):
    result, key = x.copy(), (slice(None),) * axis + tuple(indices)
    if accumulate:
        np.add.at(result, key, value)
    else:
        result[key] = value
    return result


def index_add(x, indices, source, axis=0):
    result = x.copy()
    np.add.at(result, (slice(None),) * axis + (indices,), source)
    return result


def scatter(x, indices, source, axis=-1):
    result = x.copy()
    key = list(np.indices(indices.shape))
    key[axis] = indices
    result[tuple(key)] = source
    return result


def scatter_add(x, indices, source, axis=-1):
    result = x.copy()
    key = list(np.indices(indices.shape))
    key[axis] = indices
    np.add.at(result, tuple(key), source)
    return result


def gather(x, indices, axis=-1):
    key = list(np.indices(indices.shape))
    key[axis] = indices
    return x[tuple(key)]


def masked_scatter(x, mask, source):
    result, mask = x.copy(), np.broadcast_to(mask, x.shape)
    result[mask] = source.ravel()[: mask.sum()]
    return result
