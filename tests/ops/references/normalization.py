# SPDX-License-Identifier: Apache-2.0
"""Normalization and attention."""

import numpy as np


def normalized(x, axes, eps):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps), mean, var


def channels(vector, ndim):
    return vector.reshape(1, -1, *[1] * (ndim - 2))


def affine(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def batch_norm(x, weight=None, bias=None, eps=1e-5):
    out, mean, var = normalized(x, (0, *range(2, x.ndim)), eps)
    vectors = [None if v is None else channels(v, x.ndim) for v in (weight, bias)]
    return affine(out, *vectors), mean.ravel(), var.ravel()


def batch_norm_inference(x, mean, var, weight=None, bias=None, eps=1e-5):
    mean, var, weight, bias = (
        None if v is None else channels(v, x.ndim) for v in (mean, var, weight, bias)
    )
    return affine((x - mean) / np.sqrt(var + eps), weight, bias)


def layer_norm(x, weight=None, bias=None, normalized_ndim=1, eps=1e-5):
    return affine(normalized(x, tuple(range(-normalized_ndim, 0)), eps)[0], weight, bias)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    out = normalized(x.reshape(x.shape[0], groups, -1), (2,), eps)[0].reshape(x.shape)
    return affine(out, *(None if v is None else channels(v, x.ndim) for v in (weight, bias)))


def rms_norm(x, weight=None, eps=1e-6):
    return affine(x / np.sqrt((x * x).mean(-1, keepdims=True) + eps), weight, None)


def scaled_dot_product_attention(
    query, key, value, mask=None, dropout=0.0, causal=False, scale=None, enable_gqa=False
):
    if enable_gqa:
        key, value = (np.repeat(a, query.shape[-3] // a.shape[-3], -3) for a in (key, value))
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(-1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1), 0) @ value
