# SPDX-License-Identifier: Apache-2.0
"""Activations, dropout and losses beside their definitions in NumPy: defaults, options, edges."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.nn import functional as F

T = tenon.tensor
rng = np.random.default_rng(0)


def random(*shape):
    return rng.standard_normal(shape)


def close(got, want, tolerance=1e-9):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)


def test_activations_beside_numpy():
    x = random(2, 6, 3)
    exp = np.exp(-x)
    close(F.softmin(T(x)), exp / exp.sum(-1, keepdims=True))
    close(F.softmin(T(x), 1), exp / exp.sum(1, keepdims=True))
    close(F.threshold(T(x), 0.5, -1.0), np.where(x > 0.5, x, -1.0))
    close(F.maxout(T(x), 2), x.reshape(2, 3, 2, 3).max(2))
    close(F.maxout(T(x), 3, -1), x.max(-1, keepdims=True))
    with pytest.raises(ValueError, match="expected channels divisible by groups 4, got 6"):
        F.maxout(T(x), 4)
    silu = lambda x: x / (1 + np.exp(-x))
    close(F.swiglu(T(x), T(x + 1)), silu(x) * (x + 1))
    close(F.swiglu(T(x[..., :2])), silu(x[..., :1]) * x[..., 1:2])
    slope = (1 / 8 + 1 / 3) / 2
    close(F.rrelu(T(x)), np.where(x >= 0, x, x * slope))
    trained = F.rrelu(T(x), 0.2, 0.4, training=True).numpy()
    assert ((trained / x)[x < 0] >= 0.2).all() and ((trained / x)[x < 0] <= 0.4).all()
    assert (trained == x)[x >= 0].all() and len(set((trained / x)[x < 0])) > 2
    assert nn.RReLU(0.25, 0.25).eval()(T([-4.0])).tolist() == [-1.0]
    with pytest.raises(ValueError, match="RReLU: expected lower <= upper, got 0.5 and 0.25"):
        nn.RReLU(0.5, 0.25)
    with pytest.raises(ValueError, match=r"Softmax2d: expected 3 or 4 axes, got shape \(2,\)"):
        nn.Softmax2d()(T([1.0, 2.0]))
    y = random(3, 2, 2)
    close(nn.Softmax2d()(T(y)), np.exp(y) / np.exp(y).sum(0))
    layer = nn.PReLU(6, 0.5, dtype=tenon.float64)
    assert layer.weight.dtype == tenon.float64 and nn.PReLU().weight.dtype == tenon.float32
    with tenon.no_grad():
        layer.weight.copy_(T(np.arange(6.0)))
    close(layer(T(x)), np.where(x >= 0, x, x * np.arange(6.0).reshape(6, 1)))
    close(nn.PReLU(dtype=tenon.float64)(T(x)), np.where(x >= 0, x, x * 0.25))


def test_settings_of_activations():
    assert nn.LeakyReLU(0.5).settings == nn.LeakyReLU(negative_slope=0.5).settings
    assert nn.Hardtanh(min_val=-2.0, max=3.0)(T([-9.0, 9.0])).tolist() == [-2.0, 3.0]
    assert nn.Softmax(dim=0)(T([[0.0], [0.0]])).tolist() == [[0.5], [0.5]]
    for make, text in (
        (lambda: nn.LeakyReLU(0.5, negative_slope=0.5), "got negative_slope twice"),
        (lambda: nn.Hardtanh(-2.0, min_val=-2.0), "got min_val twice"),
        (lambda: nn.LeakyReLU(slope=0.5), r"got slope and \{'slope': 0.5\}"),
        (lambda: nn.Sigmoid(1), r"Sigmoid: expected settings \[\], got \[1\] and \{\}"),
        (lambda: nn.ReLU("yes"), "ReLU: expected inplace to be True or False, got"),
        (
            lambda: nn.GELU("erf")(T([1.0])),
            "GELU: expected approximate 'none' or 'tanh', got 'erf'",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            make()
    assert repr(nn.Hardtanh()) == "Hardtanh(min=-1.0, max=1.0)"


@pytest.mark.parametrize("hard", [False, True])
def test_random_choices_follow_their_logits(hard):
    tenon.manual_seed(0)
    logits = T(np.log([0.1, 0.2, 0.7])).expand(20000, 3)
    sample = F.gumbel_softmax(logits, 0.3, hard)
    share = tenon.one_hot(tenon.argmax(sample, -1), 3).to(tenon.float64).mean(0)
    close(share, [0.1, 0.2, 0.7], 0.02)
    close(sample.sum(-1), np.ones(20000))
    if hard:
        assert set(np.round(sample.numpy().reshape(-1), 9).tolist()) == {0.0, 1.0}
    along = F.gumbel_softmax(logits[:5].T, hard=True, axis=0)
    close(along.sum(0), np.ones(5))


def test_dropout_of_channels_is_only_for_training():
    x = tenon.ones(4, 3, 5, 5)
    for function, wanted in ((F.alpha_dropout, None), (F.feature_alpha_dropout, 1)):
        assert (
            function(x, 0.5) is x and function(x, 0.0, True) is x and function(x, 0.5, False) is x
        )
        tenon.manual_seed(0)
        got = function(x, 0.5, True).reshape([12, 25]).numpy()
        values = [len(set(row)) for row in got.tolist()]
        assert len(set(got.reshape(-1).tolist())) == 2
        assert values == [1] * 12 if wanted else max(values) == 2
        assert function(x, 1.0, True).tolist() == tenon.zeros_like(x).tolist()
    for axes in (1, 2, 3):
        function = getattr(F, f"dropout{axes}d")
        y = tenon.ones(2, 8, *[3] * axes)
        assert function(y, 0.5, False) is y and function(y, 0.0) is y
        for given in (y, y[0]):
            got = function(given, 0.75).numpy().reshape(-1, 3**axes)
            assert {tuple(row) for row in got.tolist()} <= {(0.0,) * 3**axes, (4.0,) * 3**axes}
        wrong = tenon.ones(2, *[3] * (axes + 2))
        with pytest.raises(ValueError) as error:
            function(wrong)
        assert f"dropout{axes}d: expected {axes + 1} or {axes + 2} axes, got shape" in str(
            error.value
        )
    rows = F.dropout2d(tenon.ones(100, 100), 0.5)
    assert 0.4 < (rows == 0).to(tenon.float32).mean().item() < 0.6


def test_losses_beside_numpy():
    x, y = random(4, 3), random(4, 3)
    close(F.square_error_cost(T(x), T(y)), (x - y) ** 2)
    p, label = rng.random((4, 3)), (rng.random((4, 3)) < 0.5).astype(float)
    want = -label * np.log(p + 1e-4) - (1 - label) * np.log(1 - p + 1e-4)
    close(F.log_loss(T(p), T(label)), want)
    eps = 0.1
    want = -label * np.log(p + eps) - (1 - label) * np.log(1 - p + eps)
    close(F.log_loss(T(p), T(label), eps), want)
    close(F.label_smooth(T(label)), 0.9 * label + 0.1 / 3)
    close(
        F.label_smooth(T(label), T([0.5, 0.5, 0.0]), 0.2),
        0.8 * label + 0.2 * np.array([0.5, 0.5, 0]),
        1e-7,
    )
    sigmoid = 1 / (1 + np.exp(-x))
    right = np.where(label == 1, sigmoid, 1 - sigmoid)
    focal = -np.log(right) * (1 - right) ** 2
    close(F.sigmoid_focal_loss(T(x), T(label)), (focal * np.where(label == 1, 0.25, 0.75)).sum())
    close(F.sigmoid_focal_loss(T(x), T(label), alpha=-1, reduction="none"), focal)
    zero = (focal * np.where(label == 1, 0.0, 1.0)).mean()
    close(F.sigmoid_focal_loss(T(x), T(label), alpha=0.0, reduction="mean"), zero)
    close(F.sigmoid_focal_loss(T(x), T(label), T(2.0), -1.0, 0.0), -np.log(right).sum() / 2)
    rate, count = np.exp(x), rng.integers(0, 4, (4, 3)).astype(float)
    close(F.poisson_nll_loss(T(x), T(count), reduction="none"), rate - count * x)
    close(F.poisson_nll_loss(T(rate), T(count), False), (rate - count * np.log(rate + 1e-8)).mean())
    many = np.maximum(count, 1)
    stirling = count * np.log(many) - count + 0.5 * np.log(2 * np.pi * many)
    want = rate - count * x + np.where(count > 1, stirling, 0)
    close(F.poisson_nll_loss(T(x), T(count), full=True, reduction="sum"), want.sum())
    close(F.gaussian_nll_loss(T(x), T(y), 2.0), (0.5 * (np.log(2) + (x - y) ** 2 / 2)).mean())
    variance = rng.random(4) + 0.5
    want = 0.5 * (np.log(variance[:, None]) + (x - y) ** 2 / variance[:, None] + np.log(2 * np.pi))
    close(F.gaussian_nll_loss(T(x), T(y), T(variance), True, reduction="none"), want)
    logits = x - np.log(np.exp(x).sum(1, keepdims=True))
    classes = np.array([0, 2, 1, -100])
    want = np.where(classes < 0, 0, -logits[range(4), np.maximum(classes, 0)])[:, None]
    close(F.softmax_with_cross_entropy(T(x), T(classes)), want)
    close(F.softmax_with_cross_entropy(T(x), T(classes[:, None])), want)
    close(F.softmax_with_cross_entropy(T(x.T.copy()), T(classes), axis=0), want.T)
    close(F.softmax_with_cross_entropy(T(x), T(p), True), -(p * logits).sum(1, keepdims=True))
    close(F.kl_div(T(logits), T(p), "batchmean"), (p * (np.log(p) - logits)).sum() / 4)
    soft = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    one_hot = np.eye(3)[np.array([0, 2, 1, 1])]
    dice = 1 - 2 * (soft * one_hot).sum(1) / (soft.sum(1) + 1 + 1e-5)
    close(F.dice_loss(T(soft), T(np.array([[0], [2], [1], [1]]))), dice.mean())
    for function in (F.sigmoid_focal_loss, F.soft_margin_loss, F.margin_ranking_loss):
        arguments = (T(x), T(label), T(label))[: 3 if function is F.margin_ranking_loss else 2]
        with pytest.raises(
            ValueError, match="expected reduction 'mean', 'sum' or 'none', got 'all'"
        ):
            function(*arguments, reduction="all")


def test_losses_with_margins_beside_numpy():
    a, b = random(4, 3), random(4, 3)
    sign = np.array([1.0, -1.0, 1.0, -1.0])
    want = np.maximum(0, 0.3 - sign[:, None] * (a - b))
    close(F.margin_ranking_loss(T(a), T(b), T(sign[:, None]), 0.3, "none"), want)
    close(
        F.margin_ranking_loss(T(a), T(b), T(sign[:, None])),
        np.maximum(0, -sign[:, None] * (a - b)).mean(),
    )
    want = np.where(sign[:, None] == 1, a, np.maximum(0, 1 - a))
    close(F.hinge_embedding_loss(T(a), T(np.tile(sign[:, None], 3)), reduction="none"), want)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    want = np.where(sign == 1, 1 - cosine, np.maximum(0, cosine - 0.1))
    close(F.cosine_embedding_loss(T(a), T(b), T(sign), 0.1, "none"), want)
    want = np.where(sign == 1, 1 - cosine, np.maximum(0, cosine))
    close(F.cosine_embedding_loss(T(a), T(b), T(sign)), want.mean())
    close(
        F.soft_margin_loss(T(a), T(np.tile(sign[:, None], 3)), "sum"),
        np.log1p(np.exp(-sign[:, None] * a)).sum(),
    )
    c = random(4, 3)
    distance = lambda x, y: np.linalg.norm(x - y + 1e-6, axis=1)
    want = np.maximum(0, distance(a, b) - distance(a, c) + 1)
    close(F.triplet_margin_loss(T(a), T(b), T(c), reduction="none"), want, 1e-6)
    swapped = np.maximum(0, distance(a, b) - np.minimum(distance(a, c), distance(b, c)) + 0.5)
    close(F.triplet_margin_loss(T(a), T(b), T(c), 0.5, swap=True), swapped.mean(), 1e-6)
    close(F.triplet_margin_with_distance_loss(T(a), T(b), T(c), reduction="sum"), want.sum(), 1e-6)
    close(F.pairwise_distance(T(a), T(b)), distance(a, b))
    close(F.pairwise_distance(T(a), T(b), 1.0, 0.0, True), abs(a - b).sum(1, keepdims=True))
    pairs = [np.linalg.norm(a[i] - a[j]) for i in range(4) for j in range(i + 1, 4)]
    close(F.pdist(T(a)), pairs)
    close(F.cosine_similarity(T(a), T(b)), cosine)
    close(
        F.cosine_similarity(T(a), T(b), 0),
        (a * b).sum(0) / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0),
    )
    weight, bias = random(2, 3, 3), random(2)
    want = np.einsum("ni,oij,nj->no", a, weight, b)
    close(F.bilinear(T(a), T(b), T(weight)), want)
    close(F.bilinear(T(a), T(b), T(weight), T(bias)), want + bias)
    close(
        F.bilinear(T(a.reshape(2, 2, 3)), T(b.reshape(2, 2, 3)), T(weight)), want.reshape(2, 2, 2)
    )


def test_transducers_of_several_labels_and_blanks():
    """The sum over all paths of one sequence, with any class as the blank."""
    steps, labels, classes = 3, 2, 4
    logits, targets = random(2, steps, labels + 1, classes), np.array([[1, 2], [2, 1]])
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def paths(n, t, u, length, blank):
        if t == length:
            return 0.0 if u < labels else 1.0
        total = 0.0
        if t + 1 < length or u == labels:
            total += np.exp(log_p[n, t, u, blank]) * paths(n, t + 1, u, length, blank)
        if u < labels:
            total += np.exp(log_p[n, t, u, targets[n, u]]) * paths(n, t, u + 1, length, blank)
        return total

    for blank in (0, 3):
        want = [-np.log(paths(n, 0, 0, length, blank)) for n, length in ((0, 3), (1, 2))]
        options = (T(logits), T(targets), [3, 2], [2, 2], blank)
        close(F.rnnt_loss(*options, "none"), want)
        close(F.rnnt_loss(*options), np.mean(want))
    first = F.rnnt_loss(T(logits), T(targets), T([3, 2]), T([2, 2]), reduction="none")
    close(first, F.rnnt_loss(T(logits), T(targets), [3, 2], [2, 2], 0, "none").numpy())
