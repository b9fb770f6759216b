# SPDX-License-Identifier: Apache-2.0
"""Convolution and pooling over any number of spatial axes in plain NumPy."""

import itertools

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def windows(x, kernel, stride, padding, dilation, fill=0.0):
    """[N, C, ...] to [N, C, *output, *kernel]."""
    axes = len(kernel)
    margins = [(0, 0), (0, 0), *((p, p) for p in padding)]
    x = np.pad(x, margins, constant_values=fill)
    extents = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    view = sliding_window_view(x, extents, axis=tuple(range(2, 2 + axes)))
    steps = [slice(None), slice(None)]
    steps += [slice(None, None, s) for s in stride] + [slice(None, None, d) for d in dilation]
    return view[tuple(steps)]


def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    axes = x.ndim - 2
    settings = [(value,) * axes for value in (stride, padding, dilation)]
    results = []
    for part, kernels in zip(np.split(x, groups, 1), np.split(weight, groups, 0)):
        view = windows(part, weight.shape[2:], *settings)
        inner = (1, *range(2 + axes, 2 + 2 * axes))
        out = np.tensordot(view, kernels, (inner, tuple(range(1, kernels.ndim))))
        results.append(np.moveaxis(out, -1, 1))
    out = np.concatenate(results, 1)
    return out if bias is None else out + bias.reshape(-1, *[1] * axes)


def conv_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    axes, kernel = x.ndim - 2, weight.shape[2:]
    full = [
        (n - 1) * stride + dilation * (k - 1) + 1 + output_padding
        for n, k in zip(x.shape[2:], kernel)
    ]
    results = []
    for part, kernels in zip(np.split(x, groups, 1), np.split(weight, groups, 0)):
        out = np.zeros((x.shape[0], weight.shape[1], *full))
        for offset in itertools.product(*map(range, kernel)):
            index = tuple(
                slice(o * dilation, o * dilation + (n - 1) * stride + 1, stride)
                for o, n in zip(offset, x.shape[2:])
            )
            term = np.moveaxis(np.tensordot(part, kernels[(..., *offset)], ((1,), (0,))), -1, 1)
            out[(slice(None), slice(None), *index)] += term
        results.append(out)
    out = np.concatenate(results, 1)
    crop = tuple(slice(padding, n - padding) for n in full)
    out = out[(slice(None), slice(None), *crop)]
    return out if bias is None else out + bias.reshape(-1, *[1] * axes)


def pool(x, reduce, kernel, stride=None, padding=0, dilation=1, fill=0.0):
    axes = x.ndim - 2
    settings = [(value,) * axes for value in (stride or kernel, padding, dilation)]
    view = windows(x, (kernel,) * axes, *settings, fill)
    return reduce(view, axis=tuple(range(2 + axes, 2 + 2 * axes)))


def adaptive_pool(x, reduce, size):
    """Output i of n covers the elements from floor(i * extent / n) to ceil((i + 1) * extent / n)."""
    for axis in range(2, x.ndim):
        extent = x.shape[axis]
        bounds = [(i * extent // size, -(-(i + 1) * extent // size)) for i in range(size)]
        parts = [reduce(np.take(x, range(*b), axis), axis=axis, keepdims=True) for b in bounds]
        x = np.concatenate(parts, axis)
    return x
