# SPDX-License-Identifier: Apache-2.0
"""Steps of transformers: attention sequence by sequence, experts token by token."""

import math

import numpy as np

from .normalization import layer_norm, rms_norm, scaled_dot_product_attention


def rotary_tables(positions, features, base=10000.0):
    angle = positions[..., None] * base ** (-2 * np.arange(features // 2) / features)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def rotary_embedding(x, cos, sin, interleaved=False):
    half = x.shape[-1] // 2
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = (first + 1j * second) * (cos + 1j * sin)
    out = np.concatenate([turned.real, turned.imag], -1)
    if interleaved:
        out[..., ::2], out[..., 1::2] = turned.real, turned.imag
    return out.astype(x.dtype)


def add_rms_norm(x, residual, weight=None, eps=1e-6):
    return rms_norm(x + residual, weight, eps), x + residual


def add_layer_norm(x, residual, weight=None, bias=None, eps=1e-5):
    return layer_norm(x + residual, weight, bias, 1, eps), x + residual


def bias_act(x, bias=None, activation="gelu"):
    x = x if bias is None else x + bias
    gate = 1.0
    if activation.endswith("glu"):
        x, gate = np.split(x, 2, -1)
    erf = np.vectorize(math.erf)
    kinds = {
        "re": lambda: np.maximum(x, 0),
        "ge": lambda: x * (1 + erf(x / math.sqrt(2))) / 2,
        "si": lambda: x / (1 + np.exp(-x)),
        "sw": lambda: x / (1 + np.exp(-x)),
    }
    return (kinds[activation[:2]]() * gate).astype(x.dtype)


def _attend(query, keys, values, mask=None, scale=None):
    """Rows [length, heads, features]; several heads of the query share one of the keys."""
    query, keys, values = (np.swapaxes(a, 0, 1) for a in (query, keys, values))
    shared = len(query) // len(keys)
    keys, values = (np.repeat(a, shared, 0) for a in (keys, values))
    out = scaled_dot_product_attention(query, keys, values, mask, scale=scale)
    return np.swapaxes(out, 0, 1)


def varlen_attention(
    query, key, value, query_offsets, key_offsets, max_query, max_key, causal=False, scale=None
):
    parts = []
    for n in range(len(query_offsets) - 1):
        rows = slice(*query_offsets[n : n + 2])
        seen = slice(*key_offsets[n : n + 2])
        q, k = len(query[rows]), len(key[seen])
        mask = np.tri(q, k, k - q, dtype=bool) if causal else None
        parts.append(_attend(query[rows], key[seen], value[seen], mask, scale))
    return np.concatenate(parts)


def cached_attention(query, keys, values, lengths, scale=None):
    parts = []
    for n, length in enumerate(map(int, lengths)):
        seen = (np.swapaxes(a[n, :, :length], 0, 1) for a in (keys, values))
        parts.append(_attend(query[n : n + 1], *seen, scale=scale))
    return np.concatenate(parts)


def paged_attention(
    query,
    keys,
    values,
    block_table,
    lengths,
    scale=None,
    offsets=None,
    window=None,
    softcap=None,
):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    offsets = range(len(query) + 1) if offsets is None else list(map(int, offsets))
    group = query.shape[1] // keys.shape[1]
    out = np.zeros((*query.shape[:2], values.shape[3]), query.dtype)
    for n, (first, end) in enumerate(zip(offsets[:-1], offsets[1:])):
        key, value = (
            np.concatenate([pool[int(b)] for b in block_table[n]], 1).repeat(group, 0)
            for pool in (keys, values)
        )
        for row in range(first, end):
            last = int(lengths[n]) - end + row + 1
            seen = slice(max(0, last - (window or last)), last)
            if last == 0:
                continue
            scores = np.einsum("hd,hkd->hk", query[row], key[:, seen]) * scale
            if softcap:
                scores = softcap * np.tanh(scores / softcap)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            out[row] = np.einsum("hk,hkd->hd", weights, value[:, seen])
    return out


def moe_gate(logits, k, normalize=True):
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    experts = np.argsort(-weights, -1, kind="stable")[:, :k]
    best = np.take_along_axis(weights, experts, -1)
    return best / best.sum(-1, keepdims=True) if normalize else best, experts


def moe_dispatch(x, experts, count):
    order = np.argsort(experts.ravel(), kind="stable")
    counts = np.bincount(experts.ravel(), minlength=count).astype(np.int64)
    return x[order // experts.shape[1]], counts, order


def moe_combine(rows, weights, order):
    out = np.zeros((len(weights), rows.shape[1]), rows.dtype)
    for row, choice in zip(rows, np.asarray(order, int), strict=True):
        token, which = divmod(choice, weights.shape[1])
        out[token] += row * weights[token, which]
    return out
