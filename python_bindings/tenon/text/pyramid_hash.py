# SPDX-License-Identifier: Apache-2.0
"""Embeddings of runs of words by hashes, without a vocabulary of them."""

from __future__ import annotations

import tenon
from tenon import Tensor

# The primes of XXH32.
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_MASK = 0xFFFFFFFF


def _rotated(x: Tensor, bits: int) -> Tensor:
    return ((x << bits) | (x >> (32 - bits))) & _MASK


def _times(x: Tensor, factor: int) -> Tensor:
    """The lower 32 bits of a product, in int64 without overflow."""
    low, high = factor & 0xFFFF, factor >> 16
    return (x * low + (((x * high) & 0xFFFF) << 16)) & _MASK


def xxh32_of_words(words: Tensor, seed: int = 0) -> Tensor:
    """XXH32 of the bytes of each row of `words` [rows, count], which are numbers of 32 bits in little-endian order; int64 [rows]."""
    words = words.cast(tenon.int64) & _MASK
    count = words.shape[1]
    at = 0
    if count >= 4:
        state = [
            tenon.full_like(words[:, 0], (seed + start) & _MASK)
            for start in (_P1 + _P2, _P2, 0, -_P1)
        ]
        while at + 4 <= count:
            for lane in range(4):
                added = (state[lane] + _times(words[:, at + lane], _P2)) & _MASK
                state[lane] = _times(_rotated(added, 13), _P1)
            at += 4
        lanes = [_rotated(x, bits) for x, bits in zip(state, (1, 7, 12, 18))]
        hash_ = (lanes[0] + lanes[1] + lanes[2] + lanes[3]) & _MASK
    else:
        hash_ = tenon.full(
            [words.shape[0]], (seed + _P5) & _MASK, dtype=tenon.int64, device=words.device
        )
    hash_ = (hash_ + 4 * count) & _MASK
    for each in range(at, count):
        hash_ = _times(_rotated((hash_ + _times(words[:, each], _P3)) & _MASK, 17), _P4)
    hash_ = _times(hash_ ^ (hash_ >> 15), _P2)
    hash_ = _times(hash_ ^ (hash_ >> 13), _P3)
    return hash_ ^ (hash_ >> 16)


def pyramid_hash(
    x: Tensor, lengths: Tensor, weight: Tensor, features: int, chunk: int, layers: int = 2
) -> tuple[Tensor, Tensor]:
    """Embeddings of all runs of 2 to `layers` words of each sequence (Rao et al., 2019, "pyramid hash").

    `x` [N, T] are numbers of words, of which the first `lengths[n]` count. A run's embedding [features] consists of `features / chunk`
    pieces of `chunk` neighbouring numbers of the vector `weight`; where piece j begins is the run's hash with seed j. Returns the
    embeddings [runs, features], sequence by sequence and shorter runs first, and how many each sequence has [N]; a sequence without runs has
    none.
    """
    if x.ndim != 2 or list(lengths.shape) != [x.shape[0]]:
        raise ValueError(
            f"pyramid_hash: expected x [N, T] and lengths [N], got {tuple(x.shape)} and {tuple(lengths.shape)}"
        )
    if chunk < 1 or features < 1 or features % chunk or layers < 2:
        raise ValueError(
            f"pyramid_hash: expected features as a multiple of chunk and at least two layers, got {features}, {chunk} and {layers}"
        )
    flat = weight.reshape([-1])
    space = flat.shape[0] - chunk + 1
    if space < 1:
        raise ValueError(
            f"pyramid_hash: expected a weight of at least {chunk} numbers, got {flat.shape[0]}"
        )
    ends = lengths.tolist()
    if any(not 0 <= end <= x.shape[1] for end in ends):
        raise ValueError(f"pyramid_hash: expected lengths from 0 to {x.shape[1]}, got {ends}")
    batch, device = x.shape[0], x.device
    parts, keys = [], []
    sequence = tenon.arange(batch, device=device).unsqueeze(1)
    for size in range(2, min(layers, x.shape[1]) + 1):
        starts = tenon.arange(x.shape[1] - size + 1, device=device)
        chosen = tenon.nonzero((starts + size <= lengths.unsqueeze(1)).reshape([-1])).reshape([-1])
        runs = tenon.stack([x[:, i : i + len(starts)] for i in range(size)], -1).reshape([-1, size])
        runs = tenon.index_select(runs, chosen, 0)
        starts_of_pieces = [xxh32_of_words(runs, seed) % space for seed in range(features // chunk)]
        index = tenon.stack(starts_of_pieces, 1).unsqueeze(2) + tenon.arange(chunk, device=device)
        parts.append(tenon.index_select(flat, index.reshape([-1]), 0).reshape([-1, features]))
        keys.append(
            tenon.index_select(
                tenon.expand(sequence, [batch, len(starts)]).reshape([-1]), chosen, 0
            )
        )
    if not parts:
        return tenon.zeros([0, features], dtype=weight.dtype, device=device), tenon.zeros(
            [batch], dtype=tenon.int64, device=device
        )
    key = tenon.concat(keys)
    rows = tenon.index_select(tenon.concat(parts), tenon.argsort(key, 0), 0)
    return rows, tenon.expert_counts(key, batch)
