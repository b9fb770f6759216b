# SPDX-License-Identifier: Apache-2.0
"""Features of recommenders, a row, a class or a word at a time."""

import struct

import numpy as np


def data_norm(x, batch_size, batch_sum, batch_square_sum, weight=None, bias=None, slot_dim=-1):
    mean = batch_sum / batch_size
    scale = np.sqrt(batch_size / batch_square_sum)
    out = (x - mean) * scale
    out = out if weight is None else out * weight
    out = out if bias is None else out + bias
    for row, column in np.ndindex(x.shape):
        if slot_dim > 0 and abs(x[row, column // slot_dim * slot_dim]) < 1e-7:
            out[row, column] = 0
    return out, mean, scale


def nce(
    x,
    target,
    weight,
    bias=None,
    probabilities=None,
    sample_weight=None,
    negatives=None,
    count=None,
):
    target, negatives = np.asarray(target), np.asarray(negatives)
    classes, drawn = len(weight), negatives.shape[1]
    chances = np.full(classes, 1 / classes) if probabilities is None else np.asarray(probabilities)
    out = np.zeros((len(x), 1), x.dtype)
    for n, row in enumerate(x):
        for which, noise in ((target[n], False), (negatives[n], True)):
            for c in which:
                score = row @ weight[c] + (0 if bias is None else bias[c])
                s, b = 1 / (1 + np.exp(-score)), chances[c] * drawn
                out[n, 0] -= np.log((b if noise else s) / (s + b))
        out[n] *= 1 if sample_weight is None else sample_weight[n]
    return out


def filter_by_instag(x, tags, tag_lengths, filter_tags, empty_value=0):
    ends = np.cumsum(tag_lengths)
    kept = [
        n
        for n, (end, length) in enumerate(zip(ends, tag_lengths, strict=True))
        if {*np.asarray(tags)[end - length : end].tolist()} & {*np.asarray(filter_tags).tolist()}
    ]
    if not kept:
        none = np.full((1, *x.shape[1:]), empty_value, x.dtype)
        return none, np.zeros((1, 1), x.dtype), np.array([-1])
    return x[kept], np.ones((len(kept), 1), x.dtype), np.array(kept)


def fused_embedding_seq_pool(weight, indices, lengths, reduce="sum", padding_index=None):
    indices = np.asarray(indices)
    columns = indices.reshape(len(indices), -1)
    begin = np.cumsum(lengths) - lengths
    out = np.zeros((len(lengths), columns.shape[1], weight.shape[1]), weight.dtype)
    for n, k in np.ndindex(out.shape[:2]):
        rows = weight[
            [i for i in columns[begin[n] : begin[n] + lengths[n], k] if i != padding_index]
        ]
        if len(rows):
            out[n, k] = getattr(np, reduce)(rows, 0)
    return out.reshape(len(lengths), -1)


_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK = 2**64 - 1


def xxh64(data, seed):
    """The hash of bytes, whose number divides by 4, by the algorithm's specification."""
    p1, p2, p3, p4, p5 = _PRIMES

    def rotated(x, bits):
        return (x << bits | x >> 64 - bits) & _MASK

    def mixed(state, word):
        return rotated((state + word * p2) & _MASK, 31) * p1 & _MASK

    at = 0
    if len(data) >= 32:
        lanes = [seed + p1 + p2, seed + p2, seed, seed - p1]
        for at in range(0, len(data) - 31, 32):
            words = struct.unpack("<4Q", data[at : at + 32])
            lanes = [mixed(lane & _MASK, word) for lane, word in zip(lanes, words, strict=True)]
        at += 32
        hash_ = sum(map(rotated, lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            hash_ = ((hash_ ^ mixed(0, lane)) * p1 + p4) & _MASK
    else:
        hash_ = (seed + p5) & _MASK
    hash_ = (hash_ + len(data)) & _MASK
    while at + 8 <= len(data):
        hash_ ^= mixed(0, struct.unpack("<Q", data[at : at + 8])[0])
        hash_ = (rotated(hash_, 27) * p1 + p4) & _MASK
        at += 8
    if at < len(data):
        hash_ ^= struct.unpack("<I", data[at : at + 4])[0] * p1 & _MASK
        hash_ = (rotated(hash_, 23) * p2 + p3) & _MASK
    hash_ = (hash_ ^ hash_ >> 33) * p2 & _MASK
    hash_ = (hash_ ^ hash_ >> 29) * p3 & _MASK
    return hash_ ^ hash_ >> 32


def hash_(x, num_hash=1, mod_by=100000000):
    rows = x.reshape(-1, x.shape[-1])
    values = [[xxh64(row.tobytes(), seed) % mod_by for seed in range(num_hash)] for row in rows]
    return np.array(values, np.int64).reshape(*x.shape[:-1], num_hash, 1)
