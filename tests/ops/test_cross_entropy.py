# SPDX-License-Identifier: Apache-2.0
"""cross_entropy with smoothed labels where log-probabilities are infinite or large."""

import math

import pytest
import tenon

INF = float("inf")


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("target", [0, 1])
def test_smoothed_labels_of_an_impossible_class(target, reduction, device):
    """Every class has a part in the target, and the logarithm of nothing is -inf. The difference of two
    infinite losses, and an infinite one times 0, would be NaN."""
    x = tenon.tensor([[1.0, -INF, 2.0]], device=device)
    labels = tenon.tensor([target], device=device)
    for smoothing in (0.1, 0.5, 1.0):
        loss = tenon.cross_entropy(x, labels, reduction=reduction, label_smoothing=smoothing)
        assert loss.to("cpu").reshape([-1]).tolist() == [INF]


def test_smoothed_labels_that_do_not_count(device):
    x = tenon.tensor([[1.0, -INF, 2.0], [1.0, 1.0, 1.0]], device=device)
    labels = tenon.tensor([-100, 2], device=device)
    loss = tenon.cross_entropy(x, labels, label_smoothing=0.1)
    assert math.isclose(loss.to("cpu").item(), math.log(3), rel_tol=1e-6)
    loss = tenon.cross_entropy(x, labels, label_smoothing=0.1, reduction="none").to("cpu").tolist()
    assert loss[0] == 0 and math.isclose(loss[1], math.log(3), rel_tol=1e-6)


def test_large_logits_of_small_dtypes(device):
    """The sum of the log-probabilities of all classes leaves float16's range, their mean does not."""
    x = tenon.tensor([[0.0, 60000.0, 0.0, 0.0]], dtype="float16", device=device)
    loss = tenon.cross_entropy(x, tenon.tensor([1], device=device), label_smoothing=0.5)
    assert loss.to("cpu").item() == 22496.0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("function", ["cross_entropy", "nll_loss"])
def test_gradient_where_no_target_counts(function, weighted, smoothing, device):
    """The mean of no losses is NaN, as in PyTorch; its gradients of both orders are 0."""
    if smoothing and function == "nll_loss":
        return
    x = tenon.tensor([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]], device=device).requires_grad_()
    labels = tenon.tensor([-100, -100], device=device)
    keywords = {"weight": tenon.tensor([1.0, 2.0, 3.0], device=device)} if weighted else {}
    if smoothing:
        keywords["label_smoothing"] = smoothing
    for create_graph in (False, True):
        loss = getattr(tenon, function)(x, labels, **keywords)
        assert math.isnan(loss.detach().to("cpu").item())
        (first,) = tenon.grad(loss, [x], create_graph=create_graph)
        assert first.detach().to("cpu").tolist() == [[0.0] * 3] * 2
    if first.requires_grad:  # the gradient of nll_loss is a constant
        (second,) = tenon.grad((first * first).sum() + first.sum(), [x], allow_unused=True)
        assert second is None or second.to("cpu").tolist() == [[0.0] * 3] * 2
