# SPDX-License-Identifier: Apache-2.0
"""Layers in plain NumPy, written from their definitions, and gradients by finite differences."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def linear(x, weight, bias):
    return x @ weight.T + bias


def _windows(x, kernel, stride, padding, dilation, fill):
    x = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2], constant_values=fill)
    size = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    windows = sliding_window_view(x, size, axis=(2, 3))
    return windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def conv2d(x, weight, bias, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    per_group, outputs = x.shape[1] // groups, weight.shape[0] // groups
    results = []
    for g in range(groups):
        windows = _windows(
            x[:, g * per_group : (g + 1) * per_group],
            weight.shape[2:],
            stride,
            padding,
            dilation,
            0.0,
        )
        results.append(
            np.einsum("nchwij,ocij->nohw", windows, weight[g * outputs : (g + 1) * outputs])
        )
    return np.concatenate(results, axis=1) + bias[:, None, None]


def max_pool2d(x, kernel, stride, padding=(0, 0)):
    return _windows(x, kernel, stride, padding, (1, 1), -np.inf).max(axis=(4, 5))


def avg_pool2d(x, kernel, stride, padding=(0, 0)):
    return _windows(x, kernel, stride, padding, (1, 1), 0.0).mean(axis=(4, 5))


def normalize(x, axes, eps):
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + eps)


def batch_norm(x, weight, bias, eps=1e-5):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    axes = (0, *range(2, x.ndim))
    return normalize(x, axes, eps) * weight.reshape(shape) + bias.reshape(shape)


def layer_norm(x, weight, bias, eps=1e-5):
    return normalize(x, tuple(range(x.ndim - weight.ndim, x.ndim)), eps) * weight + bias


def group_norm(x, groups, weight, bias, eps=1e-5):
    split = x.reshape(x.shape[0], groups, -1)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return normalize(split, 2, eps).reshape(x.shape) * weight.reshape(shape) + bias.reshape(shape)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    return softmax(scores) @ v


def cross_entropy(x, target, smoothing=0.0):
    p = np.log(softmax(x, axis=1))
    chosen = np.take_along_axis(p, np.expand_dims(target, 1), axis=1)[:, 0]
    return -((1 - smoothing) * chosen + smoothing * p.mean(axis=1)).mean()


def gradient(function, arrays, index, weights, step=1e-6):
    """d sum(function(*arrays) * weights) / d arrays[index] by central differences in float64."""
    arrays = [
        np.array(a, np.float64) if np.issubdtype(np.asarray(a).dtype, np.floating) else a
        for a in arrays
    ]
    x = arrays[index]
    result = np.zeros_like(x)
    for position in np.ndindex(x.shape):
        before = x[position]
        x[position] = before + step
        above = np.sum(function(*arrays) * weights)
        x[position] = before - step
        below = np.sum(function(*arrays) * weights)
        x[position] = before
        result[position] = (above - below) / (2 * step)
    return result
