# SPDX-License-Identifier: Apache-2.0
"""Makes a mismatch small: plain layouts, short axes, few attributes, simple numbers."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from .arrays import Array

_SECONDS = 8.0


def shrink(call, fails):
    """A smaller call for which `fails(call)` is still true."""
    deadline = time.monotonic() + _SECONDS

    def still(candidate):
        if time.monotonic() > deadline:
            return False
        try:
            return bool(fails(candidate))
        except Exception:
            return False

    changed = True
    while changed and time.monotonic() < deadline:
        changed = False
        for step in (_drop_attributes, _plain_layouts, _shorten_axes, _simplify_values):
            for candidate in step(call):
                if still(candidate):
                    call, changed = candidate, True
                    break
    return call


def _drop_attributes(call):
    """Without an argument that has a default."""
    for parameter in call.operator.parameters:
        if parameter.name in call.arguments and not parameter.required:
            rest = {n: v for n, v in call.arguments.items() if n != parameter.name}
            yield replace(call, arguments=rest)


def _plain_layouts(call):
    for name, index, array in call.arrays():
        if array.layout != "plain":
            yield call.with_array(name, index, array.with_layout("plain"))


def _shorten_axes(call):
    """Axes of one extent in all tensors, and in lists of numbers, made shorter together."""
    extents = sorted({e for _, _, a in call.arrays() for e in a.shape if e > 1}, reverse=True)
    for extent in extents:
        for shorter in dict.fromkeys((1, extent // 2, extent - 1)):
            if 0 < shorter < extent:
                yield _resized(call, extent, shorter)
    for name, index, array in call.arrays():
        for axis, extent in enumerate(array.shape):
            if extent > 1:
                cut = array.values.take(range(extent // 2), axis)
                yield call.with_array(name, index, array.with_values(cut))
                cut = array.values.take(range(extent // 2, extent), axis)
                yield call.with_array(name, index, array.with_values(cut))


def _resized(call, extent, shorter):
    def cut(array):
        index = tuple(slice(shorter) if e == extent else slice(None) for e in array.shape)
        return array.with_values(array.values[index])

    def renumbered(value):
        if isinstance(value, list) and all(type(v) is int for v in value):
            return [shorter if v == extent else v for v in value]
        return value

    smaller = call.map(cut)
    arguments = {
        name: value if isinstance(value, Array) else renumbered(value)
        for name, value in smaller.arguments.items()
    }
    return replace(smaller, arguments=arguments)


def _simplify_values(call):
    """All elements, then halves, then single ones, replaced by a simple number."""
    for name, index, array in call.arrays():
        values = array.values
        flat = values.reshape(-1)
        blocks = [np.arange(flat.size)]
        blocks += np.array_split(np.arange(flat.size), 2) if flat.size > 1 else []
        blocks += [np.array([i]) for i in range(flat.size)] if flat.size <= 16 else []
        for block in blocks:
            for simple in _simpler(values.dtype):
                if len(block) and not (flat[block] == simple).all() and not _is_simple(flat[block]):
                    changed = flat.copy()
                    changed[block] = simple
                    yield call.with_array(
                        name, index, array.with_values(changed.reshape(values.shape))
                    )


def _simpler(dtype):
    return [np.array(v).astype(dtype) for v in (1, 0, 2)]


def _is_simple(values):
    return bool(np.isin(values, [0, 1, 2]).all())
