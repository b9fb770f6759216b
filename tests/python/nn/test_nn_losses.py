# SPDX-License-Identifier: Apache-2.0
"""Losses, similarities and distances against their definitions in NumPy, forward and gradient."""

import itertools
import math

import numpy as np
import pytest
import tenon
from tenon import nn
from test_nn import With, check, random

F = nn.functional
SIGNS = np.where(random(4, 3, seed=9) > 0, 1.0, -1.0).astype(np.float32)
BITS = (SIGNS + 1) / 2
POSITIVE = np.abs(random(4, 3, seed=8)) + 0.5


def relu(x):
    return np.maximum(x, 0.0)


def softplus(x):
    return np.log1p(np.exp(x))


def cosine(a, b, axis=1):
    return (a * b).sum(axis) / np.linalg.norm(a, axis=axis) / np.linalg.norm(b, axis=axis)


def distance(a, b, p=2.0):
    return (np.abs(a - b + 1e-6) ** p).sum(-1) ** (1 / p)


def others_margin(x, target, p=1):
    """The sum over wrong classes of MultiMarginLoss."""
    rows = np.arange(len(x))
    loss = relu(1.0 - x[rows, target][:, None] + x) ** p
    loss[rows, target] = 0.0
    return loss.sum(1) / x.shape[1]


def listed_margin(x, target):
    total = []
    for row, listed in zip(x, target):
        right = list(itertools.takewhile(lambda c: c >= 0, listed))
        wrong = [c for c in range(len(row)) if c not in right]
        total.append(sum(relu(1.0 - row[r] + row[w]) for r in right for w in wrong) / len(row))
    return np.array(total)


CLASSES = np.array([0, 2, 1, 1])
LISTED = np.array([[2, -1, 0], [0, 1, -1], [-1, 0, 1], [1, 2, 0]])
STIRLING = POSITIVE * np.log(POSITIVE) - POSITIVE + 0.5 * np.log(2 * math.pi * POSITIVE)

# class, its settings, constant arguments after x, what x gives element by element
ONE_INPUT = [
    (nn.PoissonNLLLoss, {}, (BITS,), lambda x: np.exp(x) - BITS * x),
    (
        nn.PoissonNLLLoss,
        {"full": True},
        (POSITIVE,),
        lambda x: np.exp(x) - POSITIVE * x + np.where(POSITIVE > 1, STIRLING, 0.0),
    ),
    (nn.HingeEmbeddingLoss, {}, (SIGNS,), lambda x: np.where(SIGNS == 1, x, relu(1.0 - x))),
    (nn.SoftMarginLoss, {}, (SIGNS,), lambda x: softplus(-SIGNS * x)),
    (
        nn.MultiLabelSoftMarginLoss,
        {},
        (BITS,),
        lambda x: (BITS * softplus(-x) + (1 - BITS) * softplus(x)).mean(-1),
    ),
    (nn.MultiMarginLoss, {}, (CLASSES,), lambda x: others_margin(x, CLASSES)),
    (nn.MultiMarginLoss, {"p": 2}, (CLASSES,), lambda x: others_margin(x, CLASSES, 2)),
    (nn.MultiLabelMarginLoss, {}, (LISTED,), lambda x: listed_margin(x, LISTED)),
]


@pytest.mark.parametrize("case", ONE_INPUT, ids=lambda case: f"{case[0].__name__}-{case[1]}")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_one_input(case, reduction):
    loss, settings, constants, expected = case
    reduce = {"none": lambda x: x, "mean": np.mean, "sum": np.sum}[reduction]
    module = With(loss(**settings, reduction=reduction), *constants)
    check(module, lambda x: np.asarray(reduce(expected(x))), random(4, 3))


def test_gaussian_nll():
    check(
        nn.GaussianNLLLoss(reduction="none", full=True),
        lambda x, t, v: 0.5 * (np.log(v) + (x - t) ** 2 / v + math.log(2 * math.pi)),
        random(4, 3),
        random(4, 3, seed=1),
        POSITIVE,
        differentiable=(0, 1, 2),
    )


def test_losses_of_pairs():
    a, b, sign = random(4, 3), random(4, 3, seed=1), SIGNS[:, 0]
    check(
        With(nn.MarginRankingLoss(0.5, reduction="none"), SIGNS),
        lambda x, y: relu(0.5 - SIGNS * (x - y)),
        a,
        b,
        differentiable=(0, 1),
    )
    check(
        With(nn.CosineEmbeddingLoss(0.1, reduction="none"), sign),
        lambda x, y: np.where(sign == 1, 1 - cosine(x, y), relu(cosine(x, y) - 0.1)),
        a,
        b,
        differentiable=(0, 1),
    )
    check(nn.CosineSimilarity(), cosine, a, b, differentiable=(0, 1))
    check(nn.PairwiseDistance(), distance, a, b, differentiable=(0, 1))
    check(nn.PairwiseDistance(3.0), lambda x, y: distance(x, y, 3.0), a, b, differentiable=(0, 1))


@pytest.mark.parametrize("swap", [False, True])
def test_triplets(swap):
    def expected(anchor, positive, negative):
        far = distance(anchor, negative)
        if swap:
            far = np.minimum(far, distance(positive, negative))
        return relu(distance(anchor, positive) - far + 1.0)

    inputs = [random(4, 3, seed=seed) for seed in range(3)]
    module = nn.TripletMarginLoss(swap=swap, reduction="none")
    check(module, expected, *inputs, differentiable=(0, 1, 2))
    module = nn.TripletMarginWithDistanceLoss(swap=swap, reduction="none")
    check(module, expected, *inputs, differentiable=(0, 1, 2))


def test_kl_div_batchmean_divides_by_the_batch():
    check(
        With(nn.KLDivLoss(reduction="batchmean"), POSITIVE),
        lambda x: np.asarray((POSITIVE * (np.log(POSITIVE) - x)).sum() / 4),
        random(4, 3),
    )


def ctc_of_all_alignments(log_probs, target):
    """-log of the summed probability of every alignment that collapses to the target."""
    steps, labels = log_probs.shape
    total = 0.0
    for path in itertools.product(range(labels), repeat=steps):
        collapsed = [label for label, _ in itertools.groupby(path) if label]
        if collapsed == list(target):
            total += math.exp(sum(log_probs[t, label] for t, label in enumerate(path)))
    return -math.log(total)


def test_ctc_sums_all_alignments():
    x = random(4, 2, 3)
    log_probs = x - np.log(np.exp(x).sum(-1, keepdims=True))
    targets, lengths, steps = np.array([[1, 1], [2, 0]]), [2, 1], [4, 3]
    got = F.ctc_loss(
        tenon.tensor(log_probs), tenon.tensor(targets), steps, lengths, reduction="none"
    )
    want = [
        ctc_of_all_alignments(log_probs[: steps[i], i], targets[i, : lengths[i]]) for i in range(2)
    ]
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)
    mean = nn.CTCLoss()(tenon.tensor(log_probs), tenon.tensor(targets), steps, lengths)
    np.testing.assert_allclose(mean.item(), (want[0] / 2 + want[1]) / 2, rtol=1e-5)
    joined = F.ctc_loss(tenon.tensor(log_probs), tenon.tensor([1, 1, 2]), steps, lengths)
    assert joined.item() == pytest.approx(mean.item())
    assert tenon.autograd.gradcheck(
        lambda y: F.ctc_loss(tenon.log_softmax(y, -1), tenon.tensor(targets), steps, lengths),
        [tenon.tensor(x.astype(np.float64), requires_grad=True)],
    )


def test_ctc_without_an_alignment():
    log_probs = tenon.log_softmax(tenon.tensor(random(2, 1, 3), requires_grad=True), -1)
    settings = (tenon.tensor([[1, 1]]), [2], [2])
    assert nn.CTCLoss()(log_probs, *settings).item() == math.inf
    assert nn.CTCLoss(zero_infinity=True)(log_probs, *settings).item() == 0.0
    with pytest.raises(ValueError, match="expected 1 lengths of at most 2 steps"):
        nn.CTCLoss()(log_probs, tenon.tensor([[1]]), [2, 2], [1])
    with pytest.raises(ValueError, match="expected input_lengths from 0 to 2, got 3"):
        nn.CTCLoss()(log_probs, tenon.tensor([[1]]), [3], [1])


def test_ctc_of_one_sequence():
    log_probs = tenon.log_softmax(tenon.tensor(random(5, 3)), -1)
    got = F.ctc_loss(log_probs, tenon.tensor([1, 2]), [5], [2], reduction="none")
    want = ctc_of_all_alignments(log_probs.numpy(), [1, 2])
    assert got.shape == () and got.item() == pytest.approx(want, rel=1e-5)


def test_rnnt_of_one_label():
    """The label comes before the blank of the first, or of the second step."""
    logits = random(1, 2, 2, 3)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    first = p[0, 0, 0, 2] * p[0, 0, 1, 0] * p[0, 1, 1, 0]
    second = p[0, 0, 0, 0] * p[0, 1, 0, 2] * p[0, 1, 1, 0]
    want = -math.log(first + second)
    arguments = (tenon.tensor(logits), tenon.tensor([[2]]), [2], [1])
    assert F.rnnt_loss(*arguments).item() == pytest.approx(want, rel=1e-5)
    assert nn.RNNTLoss(reduction="sum")(*arguments).item() == pytest.approx(want, rel=1e-5)


def test_adaptive_softmax_is_a_distribution():
    tenon.manual_seed(0)
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.0)
    x, target = tenon.tensor(random(6, 8)), tenon.tensor([0, 1, 3, 4, 7, 9])
    log_prob = module.log_prob(x)
    np.testing.assert_allclose(np.exp(log_prob.detach().numpy()).sum(1), np.ones(6), rtol=1e-5)
    output, loss = module(x, target)
    want = log_prob.detach().numpy()[np.arange(6), target.numpy()]
    np.testing.assert_allclose(output.detach().numpy(), want, rtol=1e-6)
    assert loss.item() == pytest.approx(-want.mean(), rel=1e-5)
    assert module.predict(x).tolist() == log_prob.detach().numpy().argmax(1).tolist()
    with pytest.raises(
        ValueError, match=r"expected cutoffs that increase from 1 to 9, got \[5, 5\]"
    ):
        nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 5])


def test_losses_of_functional():
    x, labels = tenon.tensor(random(4, 3)), tenon.tensor(CLASSES)
    soft = tenon.softmax(x, -1)
    want = tenon.nn.functional.cross_entropy(x, labels, reduction="none").numpy()
    got = F.softmax_with_cross_entropy(x, labels.unsqueeze(1))
    np.testing.assert_allclose(got.squeeze(1).numpy(), want, rtol=1e-5)
    one_hot = F.one_hot(labels, 3).cast(tenon.float32)
    got = F.softmax_with_cross_entropy(x, one_hot, soft_label=True)
    np.testing.assert_allclose(got.squeeze(1).numpy(), want, rtol=1e-5)
    assert F.square_error_cost(x, x).tolist() == np.zeros((4, 3)).tolist()
    np.testing.assert_allclose(
        F.label_smooth(one_hot).numpy(), one_hot.numpy() * 0.9 + 0.1 / 3, rtol=1e-6
    )
    overlap = soft.numpy()[np.arange(4), CLASSES]
    np.testing.assert_allclose(
        F.dice_loss(soft, labels.unsqueeze(1)).item(), (1 - 2 * overlap / 2).mean(), rtol=1e-4
    )
    focal = F.sigmoid_focal_loss(x, one_hot, alpha=-1.0, gamma=0.0)
    entropy = F.binary_cross_entropy_with_logits(x, one_hot, reduction="sum")
    np.testing.assert_allclose(focal.item(), entropy.item(), rtol=1e-5)
    p = soft.numpy()
    np.testing.assert_allclose(
        F.log_loss(soft, one_hot).numpy(),
        -np.where(one_hot.numpy() > 0, np.log(p + 1e-4), np.log(1 - p + 1e-4)),
        rtol=1e-4,
    )


def test_refusals():
    with pytest.raises(ValueError, match="MarginRankingLoss: expected reduction"):
        nn.MarginRankingLoss(reduction="max")
    with pytest.raises(ValueError, match="expected reduction 'mean', 'sum' or 'none', got 'max'"):
        F.soft_margin_loss(tenon.ones(2), tenon.ones(2), "max")
    with pytest.raises(ValueError, match="MultiMarginLoss: expected p 1 or 2, got 3"):
        nn.MultiMarginLoss(p=3)
