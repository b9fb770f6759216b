# SPDX-License-Identifier: Apache-2.0
"""binary_cross_entropy_with_logits keeps the digits of small losses, and of their gradients."""

import numpy as np
import pytest
import tenon

LOGITS = [-80.0, -30.0, -8.900625, -4.73, -1.5, -1e-3, 0.0, 0.3, 2.0, 5.12, 8.9, 30.0, 80.0]


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x):
    return np.exp(-softplus(-x))


def wanted(x, target, positive):
    """Value, first and second derivative for targets 0 and 1, where nothing cancels."""
    if target == 1:
        return positive * softplus(-x), -positive * sigmoid(-x), positive * sigmoid(x) * sigmoid(-x)
    return softplus(x), sigmoid(x), sigmoid(x) * sigmoid(-x)


@pytest.mark.parametrize("target", [0.0, 1.0])
@pytest.mark.parametrize("positive", [None, 1.0, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients(dtype, positive, target, device):
    numbers = np.array(LOGITS, dtype)
    x = tenon.tensor(numbers, dtype=dtype, device=device).requires_grad_()
    targets = tenon.full(x.shape, target, dtype=dtype, device=device)
    weight = None if positive is None else tenon.tensor([positive], dtype=dtype, device=device)
    losses = tenon.binary_cross_entropy_with_logits(x, targets, pos_weight=weight, reduction="none")
    (first,) = tenon.grad(losses.sum(), [x], create_graph=True)
    (second,) = tenon.grad(first.sum(), [x])
    expected = wanted(numbers.astype("float64"), target, 1.0 if positive is None else positive)
    relative = {"float32": 2e-6, "float64": 4e-15}[dtype]
    for got, want in zip((losses, first), expected[:2], strict=True):
        got = got.detach().to("cpu").to("float64").numpy()
        np.testing.assert_allclose(got, want, rtol=relative, atol=1e-37)
    # The derivative of a sigmoid near 1 is that of `1 - sigmoid`, to a rounding of 1.
    got = second.to("cpu").to("float64").numpy()
    scale = 1.0 if positive is None else positive
    np.testing.assert_allclose(got, expected[2], rtol=relative, atol=relative * scale)


def test_a_target_between_the_classes(device):
    x = tenon.tensor([-3.0, 0.0, 4.0], dtype="float64", device=device)
    loss = tenon.binary_cross_entropy_with_logits(
        x,
        tenon.full([3], 0.25, dtype="float64", device=device),
        pos_weight=tenon.tensor([2.0], dtype="float64", device=device),
        reduction="none",
    )
    numbers = np.array([-3.0, 0.0, 4.0])
    want = 2 * 0.25 * softplus(-numbers) + 0.75 * softplus(numbers)
    np.testing.assert_allclose(loss.to("cpu").numpy(), want, rtol=1e-14)
