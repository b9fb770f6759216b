# SPDX-License-Identifier: Apache-2.0
"""Metrics beside scikit-learn's.

    python -m tests.fuzz.peers.metrics --minutes 5

Classes, scores with ties, averages, thresholds and ignored targets are random. The data come in
random batches, to one metric or to two that are merged, and the state is saved and loaded on the
way.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
import tenon
from sklearn import metrics as peer
from tenon import metrics

from .campaign import Checks, Difference, apart, main

DIFFERENCES: list[Difference] = []


def counted(rng: random.Random, make: Any, *arrays: np.ndarray) -> Any:
    """The value of a metric that has seen the arrays in random batches."""
    n = len(arrays[0])
    ends = sorted({0, n, *(rng.randint(0, n) for _ in range(rng.randint(0, 3)))})
    parts = [make() for _ in range(rng.randint(1, 2))]
    for start, end in zip(ends, ends[1:]):
        which = rng.randrange(len(parts))
        parts[which].update(*(tenon.tensor(x[start:end].copy()) for x in arrays))
        if rng.random() < 0.3:
            again = make()
            again.load_state_dict(parts[which].state_dict())
            parts[which] = again
    whole = make()
    for part in rng.sample(parts, len(parts)):
        whole.merge(part)
    return whole.compute()


def drawn(rng: random.Random) -> tuple[Any, int, np.ndarray, np.ndarray, np.ndarray]:
    """Classes, targets, scores, and the classes that score highest."""
    numbers = np.random.default_rng(rng.getrandbits(63))
    n, classes = rng.choice([1, 2, 7, 60]), rng.randint(2, 5)
    target = numbers.integers(0, rng.choice([classes, max(classes - 1, 1)]), size=n)
    scores = numbers.permuted(np.tile(np.arange(classes) / classes, (n, 1)), axis=1)
    return numbers, classes, target, scores, scores.argmax(1)


def classification(rng: random.Random) -> Checks:
    numbers, classes, target, scores, predicted = drawn(rng)
    labels = list(range(classes))
    kept = np.ones(len(target), bool)
    ignored = None
    if rng.random() < 0.4:
        ignored = rng.choice([-1, 255])
        kept = numbers.random(len(target)) < 0.7
        if not kept.any():
            return
    seen = np.where(kept, target, ignored if ignored is not None else 0)
    given = rng.choice([scores.astype(rng.choice(["float32", "float64", "float16"])), predicted])
    options = {"ignore_index": ignored}
    t, p = target[kept], predicted[kept]

    def value(make):
        return counted(rng, make, given, seen)

    label = f"[{classes} classes, {len(target)} samples, {given.dtype}, ignored {ignored}]"
    yield (
        f"Accuracy{label}",
        apart(value(lambda: metrics.Accuracy(**options)), peer.accuracy_score(t, p), 1e-12, 0),
    )
    k = rng.randint(1, classes)
    if given is not predicted and classes > 2 and k < classes:
        want = peer.top_k_accuracy_score(t, scores[kept], k=k, labels=labels)
        got = value(lambda: metrics.Accuracy(top_k=k, **options))
        yield f"Accuracy of the best {k}{label}", apart(got, want, 1e-12, 0)
    matrix = value(lambda: metrics.ConfusionMatrix(classes, **options))
    yield f"ConfusionMatrix{label}", apart(matrix, peer.confusion_matrix(t, p, labels=labels), 0, 0)
    for ours, theirs in (
        (metrics.Precision, peer.precision_score),
        (metrics.Recall, peer.recall_score),
        (metrics.F1, peer.f1_score),
        (metrics.IoU, peer.jaccard_score),
    ):
        for average in ["micro", "macro", "weighted", "none"] + ["binary"] * (classes == 2):
            got = value(lambda ours=ours, average=average: ours(classes, average, **options))
            way = None if average == "none" else average
            among = None if average == "binary" else labels
            want = theirs(t, p, labels=among, average=way, zero_division=0)
            yield f"{ours.__name__}, {average}{label}", apart(got, want, 1e-12, 1e-15)


def thresholds(rng: random.Random) -> Checks:
    numbers = np.random.default_rng(rng.getrandbits(63))
    n, threshold = rng.randint(1, 50), rng.choice([0.25, 0.5, 0.75])
    probabilities = numbers.integers(0, 9, size=n) / 8
    target = numbers.integers(0, 2, size=n)
    got = counted(rng, lambda: metrics.ConfusionMatrix(threshold=threshold), probabilities, target)
    want = peer.confusion_matrix(target, probabilities >= threshold, labels=[0, 1])
    yield f"ConfusionMatrix from {threshold} on", apart(got, want, 0, 0)


def areas(rng: random.Random) -> Checks:
    numbers = np.random.default_rng(rng.getrandbits(63))
    n = rng.randint(2, 200)
    target = numbers.integers(0, 2, size=n)
    target[:2] = 0, 1
    scores = numbers.normal(size=n) if rng.random() < 0.5 else numbers.integers(0, 4, size=n) / 4
    dtype = rng.choice(["float32", "float64", "float16"])
    scores = scores.astype(dtype)
    got = counted(rng, metrics.AUC, scores, target)
    yield f"AUC[{dtype}]", apart(got, peer.roc_auc_score(target, scores), 1e-12, 0)


def errors(rng: random.Random) -> Checks:
    numbers = np.random.default_rng(rng.getrandbits(63))
    shape = (rng.randint(1, 30), *[3] * rng.randint(0, 1))
    dtype = rng.choice(["float16", "float32", "float64", "uint8", "int8", "int64"])
    x, y = (numbers.uniform(0, 127, size=shape).astype(dtype) for _ in range(2))
    a, b = (each.astype("float64").reshape([shape[0], -1]) for each in (x, y))
    for ours, theirs in (
        (metrics.MeanSquaredError, peer.mean_squared_error),
        (metrics.MeanAbsoluteError, peer.mean_absolute_error),
    ):
        yield (
            f"{ours.__name__}[{dtype}]",
            apart(counted(rng, ours, x, y), theirs(b, a), 1e-12, 1e-15),
        )


def perplexities(rng: random.Random) -> Checks:
    numbers, classes, target, _, _ = drawn(rng)
    logits = numbers.normal(size=(len(target), classes)) * 3
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    want = np.exp(peer.log_loss(target, shares, labels=list(range(classes))))
    yield (
        f"Perplexity[{classes} classes]",
        apart(counted(rng, metrics.Perplexity, logits, target), want, 1e-9, 0),
    )


def case(rng: random.Random) -> Checks:
    return rng.choice([classification, classification, thresholds, areas, errors, perplexities])(
        rng
    )


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # scikit-learn's on classes without samples
    sys.exit(main(case, DIFFERENCES, __doc__))
