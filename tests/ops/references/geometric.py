# SPDX-License-Identifier: Apache-2.0
"""Segments of rows and messages along edges, a row at a time."""

import numpy as np

_REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}
_MESSAGE = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def _segments(reduce):
    def reference(x, index, count=None):
        index = np.asarray(index, dtype=np.int64)
        count = int(index.max()) + 1 if count is None else count
        out = np.zeros((count, *x.shape[1:]), x.dtype)
        for i in set(index):
            out[i] = _REDUCE[reduce](x[index == i], axis=0)
        return out

    return reference


segment_sum = _segments("sum")
segment_mean = _segments("mean")
segment_max = _segments("max")
segment_min = _segments("min")


def send_u_recv(x, source, target, reduce="sum", count=None):
    return _segments(reduce)(x[np.asarray(source, int)], target, count or len(x))


def send_ue_recv(x, y, source, target, message="add", reduce="sum", count=None):
    messages = _MESSAGE[message](x[np.asarray(source, int)], y)
    return _segments(reduce)(messages, target, count or len(x))


def send_uv(x, y, source, target, message="add"):
    return _MESSAGE[message](x[np.asarray(source, int)], y[np.asarray(target, int)])


def reindex_graph(nodes, neighbors, count):
    old = list(dict.fromkeys([*map(int, nodes), *map(int, neighbors)]))
    source = [old.index(int(n)) for n in neighbors]
    target = np.repeat([old.index(int(n)) for n in nodes], np.asarray(count, int))
    return tuple(np.array(each, dtype=np.int64) for each in (source, target, old))
