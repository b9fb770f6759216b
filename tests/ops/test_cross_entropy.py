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
