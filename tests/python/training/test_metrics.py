# SPDX-License-Identifier: Apache-2.0
"""Metrics against their definitions, batch by batch and merged."""

import math
import pickle

import numpy as np
import pytest
import tenon
from devices import DEVICES
from tenon import metrics

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(40, 3)).astype(np.float32)
TARGET = rng.integers(0, 3, size=40)
PREDICTED = SCORES.argmax(1)
HITS = [np.sum((PREDICTED == c) & (TARGET == c)) for c in range(3)]


def counted(metric, scores=SCORES, target=TARGET, device="cpu"):
    """Two batches in one metric, and one batch each in two that are merged, agree."""
    parts = []
    for part in (slice(0, 15), slice(15, None)):
        batch = [tenon.tensor(x[part], device=device) for x in (scores, target)]
        metric.update(*batch)
        parts.append(type(metric).__new__(type(metric)))
        vars(parts[-1]).update({**vars(metric), "counts": {}})
        parts[-1].update(*batch)
    whole = metric.compute()
    assert parts[0].merge(parts[1]).compute() == whole
    saved = pickle.loads(pickle.dumps(metric.state_dict()))
    parts[1].load_state_dict(saved)
    assert parts[1].compute() == whole
    return whole


@pytest.mark.parametrize("device", DEVICES)
def test_accuracy(device):
    want = (PREDICTED == TARGET).mean()
    assert counted(metrics.Accuracy(), device=device) == pytest.approx(want)
    assert counted(metrics.Accuracy(), PREDICTED) == pytest.approx(want)
    second = np.argsort(-SCORES, 1)[:, :2]
    want = (second == TARGET[:, None]).any(1).mean()
    assert counted(metrics.Accuracy(top_k=2)) == pytest.approx(want)
    kept = TARGET != 1
    want = (PREDICTED == TARGET)[kept].mean()
    assert counted(metrics.Accuracy(ignore_index=1)) == pytest.approx(want)


def test_confusion_matrix():
    want = [[int(np.sum((TARGET == t) & (PREDICTED == p))) for p in range(3)] for t in range(3)]
    assert counted(metrics.ConfusionMatrix(3)) == want
    binary = metrics.ConfusionMatrix()
    binary.update(tenon.tensor([0.2, 0.7, 0.5]), tenon.tensor([0, 0, 1]))
    assert binary.compute() == [[1, 1], [0, 1]]
    ignored = metrics.ConfusionMatrix(ignore_index=-1)
    ignored.update(tenon.tensor([0.2, 0.7]), tenon.tensor([-1, 1]))
    assert ignored.compute() == [[0, 0], [0, 1]]
    with pytest.raises(ValueError, match=r"expected predictions of shape \(3,\), or with an axis"):
        binary.update(tenon.zeros(4), tenon.tensor([0, 0, 1]))


def ratios(kind):
    predicted, wanted = ([np.sum(x == c) for c in range(3)] for x in (PREDICTED, TARGET))
    return [
        {
            metrics.Precision: h / p,
            metrics.Recall: h / w,
            metrics.F1: 2 * h / (p + w),
            metrics.IoU: h / (p + w - h),
        }[kind]
        for h, p, w in zip(HITS, predicted, wanted)
    ]


@pytest.mark.parametrize("kind", [metrics.Precision, metrics.Recall, metrics.F1, metrics.IoU])
def test_values_of_classes(kind):
    want = ratios(kind)
    assert counted(kind(3, average="none")) == pytest.approx(want)
    assert counted(kind(3)) == pytest.approx(np.mean(want))
    weights = [np.sum(TARGET == c) for c in range(3)]
    assert counted(kind(3, average="weighted")) == pytest.approx(np.average(want, weights=weights))
    micro = sum(HITS) / 40
    micro = micro / (2 - micro) if kind is metrics.IoU else micro
    assert counted(kind(3, average="micro")) == pytest.approx(micro)
    with pytest.raises(ValueError, match="average='binary' is for two classes, got 3"):
        kind(3, average="binary")
    with pytest.raises(ValueError, match="expected average 'binary', 'micro'"):
        kind(3, average="median")


def test_binary_values():
    scores, target = tenon.tensor([0.9, 0.8, 0.3, 0.6]), tenon.tensor([1, 0, 1, 1])
    for kind, want in ((metrics.Precision, 2 / 3), (metrics.Recall, 2 / 3), (metrics.F1, 2 / 3)):
        metric = kind()
        metric.update(scores, target)
        assert metric.compute() == pytest.approx(want)


def test_area_under_the_curve():
    scores = rng.integers(0, 10, size=50).astype(np.float32)  # with ties
    target = rng.integers(0, 2, size=50)
    above, below = scores[target == 1], scores[target == 0]
    pairs = above[:, None] - below
    want = (np.sum(pairs > 0) + 0.5 * np.sum(pairs == 0)) / pairs.size
    assert counted(metrics.AUC(), scores, target) == pytest.approx(want)
    both = np.stack([-scores, scores], 1)
    assert counted(metrics.AUC(), both, target) == pytest.approx(want)
    one = metrics.AUC()
    one.update(tenon.ones(2), tenon.tensor([1, 1]))
    with pytest.raises(ValueError, match="expected targets of both classes, got one"):
        one.compute()


def test_means():
    mean = metrics.Mean()
    mean.update(2.0)
    mean.update(tenon.tensor([1.0, 3.0]), weight=2)
    assert mean.compute() == pytest.approx(10 / 5)
    x, y = SCORES[:, 0], SCORES[:, 1]
    assert counted(metrics.MeanSquaredError(), x, y) == pytest.approx(((x - y) ** 2).mean())
    assert counted(metrics.MeanAbsoluteError(), x, y) == pytest.approx(np.abs(x - y).mean())
    log_probs = SCORES - np.log(np.exp(SCORES).sum(1, keepdims=True))
    want = math.exp(-log_probs[np.arange(40), TARGET].mean())
    assert counted(metrics.Perplexity()) == pytest.approx(want, rel=1e-5)


def test_bleu():
    reference = "the cat is on the mat".split()
    bleu = metrics.BLEU(2)
    bleu.update(["the the cat".split()], [[reference]])
    want = math.sqrt(3 / 3 * 1 / 2) * math.exp(1 - 6 / 3)
    assert bleu.compute() == pytest.approx(want)
    perfect = metrics.BLEU()
    perfect.update([reference], [[reference, "a".split()]])
    assert perfect.compute() == 1.0
    assert perfect.merge(perfect).compute() == 1.0
    nothing = metrics.BLEU()
    nothing.update(["dog".split()], [[reference]])
    assert nothing.compute() == 0.0
    with pytest.raises(ValueError, match="expected references for 1 translations, got 0"):
        bleu.update([["a"]], [])


def test_metrics_begin_again():
    metric = metrics.Accuracy()
    assert repr(metric) == "Accuracy(no batches)"
    with pytest.raises(ValueError, match="Accuracy.compute: expected a batch first"):
        metric.compute()
    metric.update(tenon.tensor([1, 2]), tenon.tensor([1, 1]))
    assert repr(metric) == "Accuracy(0.5)"
    metric.reset()
    assert not metric.counts
    with pytest.raises(TypeError, match="Accuracy.merge: expected a Accuracy, got Mean"):
        metric.merge(metrics.Mean())


def test_means_keep_the_digits_of_numbers():
    mean = metrics.Mean()
    mean.update(1700000001.0)
    mean.update([0.1, 0.1])
    assert mean.compute() == pytest.approx((1700000001.0 + 0.2) / 3, rel=1e-15)
    ignored = metrics.Perplexity()
    ignored.update(tenon.zeros([1, 2]), tenon.tensor([-100]))
    with pytest.raises(
        ValueError, match="Perplexity.compute: expected values that count, got none"
    ):
        ignored.compute()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "float32"])
def test_errors_are_those_of_the_numbers_in_any_dtype(dtype):
    x, y = (tenon.tensor(each).to(getattr(tenon, dtype)) for each in ([3, 100], [5, 0]))
    squared, absolute = metrics.MeanSquaredError(), metrics.MeanAbsoluteError()
    for metric in (squared, absolute):
        metric.update(x, y)
    assert squared.compute() == 5002 and absolute.compute() == 51
    with pytest.raises(
        ValueError, match=r"expected prediction and target of one shape, got \(2, 1\) and \(2,\)"
    ):
        squared.update(x.unsqueeze(-1), y)


def test_classes_that_are_none_are_refused():
    """They would be counted as others."""
    matrix = metrics.ConfusionMatrix(2)
    matrix.update(tenon.tensor([3, 0]), tenon.tensor([0, 1]))
    with pytest.raises(ValueError, match="expected classes from 0 to 1, got 1 pairs with others"):
        matrix.compute()
    ignored = metrics.ConfusionMatrix(2, ignore_index=7)
    ignored.update(tenon.tensor([3, 0]), tenon.tensor([7, 1]))
    assert ignored.compute() == [[0, 0], [1, 0]]
    with pytest.raises(ValueError, match="expected classes as integers, or scores of 3 classes"):
        metrics.F1(3).update(tenon.tensor([0.0, 2.0]), tenon.tensor([0, 2]))
    with pytest.raises(ValueError, match="expected scores of two classes or more"):
        metrics.Accuracy().update(tenon.zeros([4, 1]), tenon.tensor([0, 1, 1, 0]))
    with pytest.raises(ValueError, match=r"Accuracy.update: expected predictions of shape \(2,\)"):
        metrics.Accuracy().update(tenon.tensor([0, 1, 1]), tenon.tensor([0, 1]))


def test_areas_refuse_what_has_no_order():
    with pytest.raises(ValueError, match="AUC.update: expected targets of 0 and 1, got others"):
        metrics.AUC().update(tenon.tensor([0.1, 0.2]), tenon.tensor([-1, 1]))
    with pytest.raises(ValueError, match="AUC.update: expected scores that have an order, got NaN"):
        metrics.AUC().update(tenon.tensor([0.1, math.nan]), tenon.tensor([0, 1]))
