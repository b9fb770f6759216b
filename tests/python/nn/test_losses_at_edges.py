# SPDX-License-Identifier: Apache-2.0
"""Losses of arguments at the ends of what they take: limits, labels of unsigned integers, certain examples."""

import numpy as np
import pytest
import tenon
from tenon.nn import functional as F


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("variance", [0.0, -2.0, -340.0])
def test_a_variance_below_eps_is_eps(variance, dtype):
    """Differences with eps lost its digits, and all of them in half precision."""
    x, target = (tenon.tensor(v, dtype=dtype) for v in ([1.0, 1.5], [1.0, 1.0]))
    given = tenon.tensor([variance, 4.0], dtype=dtype).requires_grad_()
    loss = F.gaussian_nll_loss(x, target, given, eps=0.25, reduction="none")
    wanted = 0.5 * (np.log([0.25, 4.0]) + np.array([0.0, 0.25]) / [0.25, 4.0])
    np.testing.assert_allclose(
        loss.detach().astype("float64").numpy(), wanted, rtol=1e-6 if "32" in dtype else 5e-3
    )
    # The limit has the gradient of the identity.
    loss.sum().backward()
    slopes = 0.5 * (1 / np.array([0.25, 4.0]) - np.array([0.0, 0.25]) / np.array([0.25, 4.0]) ** 2)
    # bfloat16 has eight bits.
    np.testing.assert_allclose(given.grad.astype("float64").numpy(), slopes, rtol=1e-2)


def test_labels_of_unsigned_integers_do_not_wrap():
    x, labels = tenon.tensor([0.25, 0.75]), [1, 0]
    small = tenon.tensor(labels, dtype="uint8")
    floats = tenon.tensor(labels, dtype="float32")
    assert F.log_loss(x, small).tolist() == F.log_loss(x, floats).tolist()
    assert F.soft_margin_loss(x, small).item() == F.soft_margin_loss(x, floats).item()


def test_cosines_of_one_have_the_angle_zero_in_float32():
    cosines = np.array([[1.0, 0.2], [0.3, -1.0]])
    found = []
    for dtype in ("float32", "float64"):
        x = tenon.tensor(cosines, dtype=dtype).requires_grad_()
        loss = F.margin_cross_entropy(x, tenon.tensor([0, 1]), reduction="none")
        slope = tenon.grad(loss.sum(), [x], create_graph=True)[0]
        assert np.isfinite(tenon.grad((slope * slope).sum(), [x])[0].numpy()).all()
        found.append(loss.detach().astype("float64").numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert np.isnan(F.margin_cross_entropy(tenon.tensor([[np.nan, 0.0]]), tenon.tensor([0])).item())


def test_focal_loss_of_certain_examples():
    """1 minus a probability next to 1 was 0, and its root had no gradient."""
    x = tenon.tensor([25.0, -25.0]).requires_grad_()
    y = tenon.tensor([1.0, 0.0])
    loss = F.sigmoid_focal_loss(x, y, alpha=-1.0, gamma=0.5, reduction="none")
    miss = 1 / (1 + np.exp(25.0))
    np.testing.assert_allclose(loss.detach().numpy(), [miss**1.5] * 2, rtol=1e-4)
    loss.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [-1.5 * miss**1.5, 1.5 * miss**1.5], rtol=1e-3)


@pytest.mark.parametrize("code", [1.0, 0.0])
def test_a_certain_node_of_a_tree_costs_what_it_misses(code):
    x = tenon.tensor([[20.0 if code else -20.0]]).requires_grad_()
    path, codes = tenon.tensor([[0]]), tenon.tensor([[code]])
    loss = tenon.hsigmoid_loss(x, tenon.tensor([0]), 2, tenon.tensor([[1.0]]), None, path, codes)
    np.testing.assert_allclose(loss.item(), np.log1p(np.exp(-20.0)), rtol=1e-5)
    loss.sum().backward()
    assert abs(x.grad.item()) == pytest.approx(np.exp(-20.0), rel=1e-4)


@pytest.mark.parametrize("delta", [1e25, float("inf")])
def test_huber_losses_without_a_bend_are_squares(delta):
    """Squares over `delta`, multiplied by it again, were NaN or zero."""
    x = tenon.tensor([1e-10, -2.0, 3.0]).requires_grad_()
    loss = F.huber_loss(x, tenon.zeros(3), reduction="none", delta=delta)
    np.testing.assert_allclose(loss.detach().numpy(), [5e-21, 2.0, 4.5], rtol=1e-6)
    loss.sum().backward()
    assert x.grad.tolist() == x.tolist()
