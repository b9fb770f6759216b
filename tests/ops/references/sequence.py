# SPDX-License-Identifier: Apache-2.0
"""Sequences of labels: sums over alignments by enumeration, dynamic programs a cell at a time."""

import itertools
import math

import numpy as np


def _log_sum(values):
    values = list(values)
    most = max(values, default=-math.inf)
    if most == -math.inf:
        return most
    return most + math.log(sum(math.exp(v - most) for v in values))


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    """The sum over every path whose labels, without repetitions and blanks, are the target."""
    losses = []
    for n, (steps, length) in enumerate(
        zip(map(int, input_lengths), map(int, target_lengths), strict=True)
    ):
        target = [int(label) for label in np.asarray(targets)[n, :length]]
        scores = []
        for path in itertools.product(range(log_probs.shape[2]), repeat=steps):
            if [k for k, _ in itertools.groupby(path) if k != blank] == target:
                scores.append(sum(float(log_probs[t, n, k]) for t, k in enumerate(path)))
        loss = -_log_sum(scores)
        losses.append(0.0 if zero_infinity and loss == math.inf else loss)
    return np.array(losses, dtype=log_probs.dtype)


def rnnt_loss(log_probs, targets, input_lengths, target_lengths, blank=0):
    """The sum over every order of blanks, which end steps, and labels."""
    losses = []
    for n, (steps, length) in enumerate(
        zip(map(int, input_lengths), map(int, target_lengths), strict=True)
    ):
        target = [int(label) for label in np.asarray(targets)[n, :length]]
        scores = []
        for where in itertools.combinations(range(steps - 1 + length), length):
            t = u = 0
            score = 0.0
            for move in range(steps - 1 + length):
                label = target[u] if move in where else blank
                score += float(log_probs[n, t, u, label])
                t, u = (t, u + 1) if move in where else (t + 1, u)
            scores.append(score + float(log_probs[n, t, u, blank]))
        losses.append(-_log_sum(scores))
    return np.array(losses, dtype=log_probs.dtype)


def viterbi_decode(potentials, transition, lengths, include_bos_eos_tag=True):
    """The best of all sequences of tags."""
    batch, steps, tags = potentials.shape
    scores, paths = np.empty(batch, potentials.dtype), np.zeros((batch, steps), np.int64)
    for n, length in enumerate(map(int, lengths)):

        def score(path, n=n):
            total = sum(potentials[n, t, k] for t, k in enumerate(path))
            total += sum(transition[a, b] for a, b in itertools.pairwise(path))
            if include_bos_eos_tag:
                total += transition[-1, path[0]] + transition[path[-1], -2]
            return total

        best = max(itertools.product(range(tags), repeat=length), key=score)
        scores[n], paths[n, :length] = score(best), best
    return scores, paths


def gather_tree(ids, parents):
    out = ids.copy()
    for n, k in np.ndindex(*ids.shape[1:]):
        beam = k
        for t in reversed(range(len(ids))):
            out[t, n, k] = ids[t, n, beam]
            beam = parents[t, n, beam]
    return out


def edit_distance(x, target, input_lengths, target_lengths, normalized=False):
    out = []
    for a, b, n, m in zip(
        x, target, map(int, input_lengths), map(int, target_lengths), strict=True
    ):
        table = np.zeros((n + 1, m + 1), int)
        for i, j in np.ndindex(*table.shape):
            if i == 0 or j == 0:
                table[i, j] = i + j
            else:
                replaced = table[i - 1, j - 1] + (a[i - 1] != b[j - 1])
                table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, replaced)
        distance = float(table[n, m])
        if normalized and distance:
            distance = distance / m if m else math.inf
        out.append(distance)
    return np.array(out, np.float32)


def ctc_align(x, lengths=None, blank=0, merge_repeated=True, padding_value=0):
    out, counts = np.full(x.shape, padding_value, x.dtype), []
    for n, row in enumerate(x):
        row = list(row if lengths is None else row[: int(lengths[n])])
        if merge_repeated:
            row = [k for k, _ in itertools.groupby(row)]
        row = [k for k in row if k != blank]
        out[n, : len(row)] = row
        counts.append(len(row))
    return out, np.array(counts, np.int64)


def sequence_pad(x, lengths, count=None, value=0):
    count = max(map(int, lengths)) if count is None else count
    out = np.full((len(lengths), count, *x.shape[1:]), value, x.dtype)
    begin = 0
    for n, length in enumerate(map(int, lengths)):
        inside = x[begin : begin + length][:count]
        out[n, : len(inside)] = inside
        begin += length
    return out


def sequence_unpad(x, lengths):
    return np.concatenate([row[: int(n)] for row, n in zip(x, lengths, strict=True)])


def sequence_reverse(x, lengths):
    rows = [
        np.concatenate([row[: int(n)][::-1], row[int(n) :]])
        for row, n in zip(x, lengths, strict=True)
    ]
    return np.stack(rows)


def beam_search(words, scores, candidates, candidate_scores, beams, end, accumulated=True):
    words, size = np.asarray(words), candidate_scores.shape[2]
    results = []
    for n in range(len(words)):
        offers = []
        for b, word in enumerate(words[n]):
            if word == end:
                offers.append((scores[n, b], end, b))
                continue
            for k in range(size):
                score = candidate_scores[n, b, k]
                named = k if candidates is None else np.asarray(candidates)[n, b, k]
                offers.append((score if accumulated else scores[n, b] + np.log(score), named, b))
        offers.sort(key=lambda offer: -offer[0])
        results.append(list(zip(*offers[:beams], strict=True)))
    return tuple(np.array([each[part] for each in results]) for part in range(3))


def beam_search_decode(words, scores, parents, end):
    words = np.asarray(words)
    steps, batch, beams = words.shape
    sequences = gather_tree(words, np.asarray(parents)).transpose(1, 2, 0)
    along = gather_tree(scores, np.asarray(parents)).transpose(1, 2, 0)
    lengths = np.full((batch, beams), steps)
    for n, b in np.ndindex(batch, beams):
        found = np.flatnonzero(sequences[n, b] == end)
        if len(found):
            lengths[n, b] = found[0] + 1
            sequences[n, b, found[0] :] = end
    return sequences, along, lengths


def ctc_greedy_decode(x, lengths=None, blank=0, merge_repeated=True, padding_value=0):
    labels = np.full(x.shape[:2], padding_value)
    counts = np.zeros(len(x), np.int64)
    for n, scores in enumerate(x):
        path = scores[: len(scores) if lengths is None else int(lengths[n])].argmax(-1).tolist()
        if merge_repeated:
            path = [label for label, _ in itertools.groupby(path)]
        kept = [label for label in path if label != blank]
        labels[n, : len(kept)], counts[n] = kept, len(kept)
    return labels, counts


def sequence_pool(x, lengths, reduce="sum", padding_value=0.0):
    out = np.full((len(lengths), *x.shape[1:]), padding_value, x.dtype)
    end = 0
    for n, length in enumerate(map(int, lengths)):
        rows, end = x[end : end + length], end + length
        if length == 0:
            continue
        if reduce in ("first", "last"):
            out[n] = rows[0 if reduce == "first" else -1]
        elif reduce == "sqrt":
            out[n] = rows.sum(0) / math.sqrt(length)
        else:
            out[n] = getattr(rows, reduce)(0)
    return out
