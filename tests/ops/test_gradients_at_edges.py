# SPDX-License-Identifier: Apache-2.0
"""Gradients where an extent is 0, and where a definition has a kink that the function has not."""

import numpy as np
import pytest
import tenon

PRODUCTS: dict[str, list] = {
    "linear": [
        ((1, 1, 0), (0, 0)),
        ((2, 3, 0), (4, 0)),
        ((2, 3, 5), (0, 5)),
        ((2, 0, 5), (4, 5)),
        ((5,), (4, 5)),
        ((0,), (4, 0)),
        ((2, 3, 5), (4, 5)),
    ],
    "matmul": [
        ((1, 1, 0), (0, 0)),
        ((2, 3, 0), (0, 4)),
        ((2, 3, 5), (5, 0)),
        ((2, 0, 5), (5, 4)),
        ((2, 3, 5), (5, 4)),
    ],
}


@pytest.mark.parametrize("op, shapes", [(op, s) for op, all in PRODUCTS.items() for s in all])
def test_products_with_empty_extents(op, shapes):
    """Rows are joined without a -1, which says nothing beside an extent of 0."""
    rng = np.random.default_rng(1)
    x, y = (tenon.tensor(rng.standard_normal(s)).requires_grad_() for s in shapes)
    function = getattr(tenon, op)
    result = function(x, y)
    weights = rng.standard_normal(tuple(result.shape))
    dx, dy = tenon.grad((result * tenon.tensor(weights)).sum(), [x, y])
    assert (dx.shape, dy.shape) == (x.shape, y.shape)
    matrix = y.detach().numpy() if op == "matmul" else y.detach().numpy().T
    np.testing.assert_allclose(dx.numpy(), weights @ matrix.T, 1e-12, 1e-12)
    rows, columns = weights.reshape(-1, *weights.shape[-1:]) if weights.size else None, None
    if weights.size:
        columns = x.detach().numpy().reshape(len(rows), -1)
        want = columns.T @ rows if op == "matmul" else rows.T @ columns
        np.testing.assert_allclose(dy.numpy(), want, 1e-12, 1e-12)
    else:
        assert not dy.numpy().any()


@pytest.mark.parametrize("name", ["huber_loss", "smooth_l1_loss"])
def test_losses_have_their_curvature_at_the_target(name):
    """At x == target the loss is a parabola; that of its magnitude squared had no second derivative."""
    x = tenon.tensor([1.0, 1.5, 3.0, -4.0], dtype="float64").requires_grad_()
    target = tenon.ones((4,), dtype="float64")
    (first,) = tenon.grad(getattr(tenon, name)(x, target, "sum"), [x], create_graph=True)
    assert first.tolist() == [0.0, 0.5, 1.0, -1.0]
    (second,) = tenon.grad(first.sum(), [x])
    assert second.tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("size, step, dilation", [(2, 2, 2), (2, 3, 3), (3, 2, 2), (2, 1, 5)])
@pytest.mark.parametrize("axis", [0, 1])
def test_dilated_windows_that_meet(axis, size, step, dilation):
    """Windows of few elements in all may share some: their gradients are added."""
    x = tenon.zeros((7, 9), dtype="float64").requires_grad_()
    windows = tenon.sliding_window(x, axis, size, step, dilation)
    weights = np.random.default_rng(1).standard_normal(tuple(windows.shape))
    (gradient,) = tenon.grad((windows * tenon.tensor(weights)).sum(), [x])
    want = np.zeros((7, 9))
    for w in range(windows.shape[axis]):
        for k in range(size):
            row = np.moveaxis(want, axis, 0)[w * step + k * dilation]
            row += np.moveaxis(weights, axis, 0)[w][..., k]
    np.testing.assert_allclose(gradient.numpy(), want, 1e-12, 1e-12)
