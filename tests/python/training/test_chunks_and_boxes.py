# SPDX-License-Identifier: Apache-2.0
"""Metrics of chunks and of detected boxes."""

import pytest
import tenon
from tenon.metrics import ChunkScore, DetectionMAP, chunk_eval
from tenon.metrics.chunks import chunks_of


def test_chunks_of_each_scheme():
    # Two kinds: B0 I0 B1 I1 and outside.
    assert chunks_of([0, 1, 1, 4, 2, 3, 0], 2) == [(0, 3, 0), (4, 6, 1), (6, 7, 0)]
    assert chunks_of([1, 1, 3, 0], 2) == [(0, 2, 0), (2, 3, 1), (3, 4, 0)]  # what begins inside
    assert chunks_of([0, 0, 1, 0, 4], 2, "IOE") == [(0, 3, 0), (3, 4, 0)]
    assert chunks_of([0, 1, 2, 3, 3, 0], 1, "IOBES") == [(0, 3, 0), (3, 4, 0), (4, 5, 0), (5, 6, 0)]
    assert chunks_of([0, 0, 1, 2, 1], 2, "plain") == [(0, 2, 0), (2, 3, 1), (4, 5, 1)]
    with pytest.raises(
        ValueError, match="expected scheme 'plain', 'IOB', 'IOE', 'IOBES', got 'BIO'"
    ):
        chunks_of([], 2, "BIO")


def test_chunks_that_agree():
    target = tenon.tensor([[0, 1, 4, 2, 3], [2, 4, 4, 0, 0]])
    guess = tenon.tensor([[0, 1, 4, 2, 4], [2, 4, 4, 0, 0]])
    precision, recall, f1, found, wanted, right = chunk_eval(guess, target, 2)
    assert [x.item() for x in (found, wanted, right)] == [5, 5, 4]
    assert precision.item() == recall.item() == f1.item() == pytest.approx(0.8)
    counts = chunk_eval(guess, target, 2, excluded=[1], lengths=tenon.tensor([3, 1]))[3:]
    assert [x.item() for x in counts] == [1, 1, 1]
    score = ChunkScore(2)
    score.update(guess[:1], target[:1])
    score.update(guess[1:], target[1:])
    assert score.compute() == pytest.approx((0.8, 0.8, 0.8))
    assert chunk_eval(guess[:0], target[:0], 2)[2].item() == 0.0
    with pytest.raises(ValueError, match="expected a length for each sequence, up to 5"):
        chunk_eval(guess, target, 2, lengths=tenon.tensor([6, 1]))


BOXES = tenon.tensor([[0.0, 0.0, 2.0, 2.0], [4.0, 4.0, 6.0, 6.0]])


def test_average_precision_by_hand():
    # Of class 1: right, wrong, right. Precisions 1, 1/2, 2/3 at recalls 1/2, 1/2, 1.
    found = tenon.tensor(
        [
            [1.0, 0.9, 0.0, 0.0, 2.0, 2.0],
            [1.0, 0.8, 0.0, 0.0, 2.0, 2.0],
            [1.0, 0.7, 4.0, 4.0, 6.0, 6.0],
        ]
    )
    metric = DetectionMAP(2)
    metric.update([found], [BOXES], [tenon.tensor([1, 1])])
    assert metric.compute() == pytest.approx(0.5 + 0.5 * 2 / 3)
    eleven = DetectionMAP(2, ap_version="11point")
    eleven.update([found], [BOXES], [tenon.tensor([1, 1])])
    assert eleven.compute() == pytest.approx((6 * 1.0 + 5 * 2 / 3) / 11)
    two = DetectionMAP(2)
    two.update([found[:1]], [BOXES[:1]], [tenon.tensor([1])])
    two.update([found[1:2]], [BOXES[1:]], [tenon.tensor([1])])
    assert two.compute() == pytest.approx(0.5)
    again = DetectionMAP(2).merge(two)
    assert again.compute() == two.compute()


def test_what_is_difficult_or_background_does_not_count():
    found = tenon.tensor([[1.0, 0.9, 0.0, 0.0, 2.0, 2.0]])
    metric = DetectionMAP(3, evaluate_difficult=False)
    metric.update([found], [BOXES], [tenon.tensor([1, 2])], [tenon.tensor([1, 0])])
    assert metric.compute() == 0.0  # class 2 is there and was not found
    assert metric.counts["judged"].shape[0] == 0
    nothing = DetectionMAP(2)
    nothing.update([tenon.zeros([0, 6])], [BOXES[:0]], [tenon.zeros([0], dtype=tenon.int64)])
    assert nothing.compute() == 0.0
    with pytest.raises(ValueError, match="expected labels from 0 to 1, got"):
        nothing.update([found], [BOXES], [tenon.tensor([1, 2])])
