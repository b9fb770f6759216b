# SPDX-License-Identifier: Apache-2.0
"""Clipping of gradients by norms of any order, together, one by one and by value."""

import math

import numpy as np
import pytest
import tenon
from tenon import optim


def parameters(*gradients):
    result = []
    for gradient in gradients:
        parameter = tenon.zeros([len(gradient)])
        parameter.requires_grad = True
        (parameter * tenon.tensor(gradient)).sum().backward()
        result.append(parameter)
    return result


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_norm_of_any_order(order):
    gradients = [3.0, -4.0], [12.0]
    params = parameters(*gradients)
    expected = np.linalg.norm(np.concatenate(gradients), order)
    norm = optim.clip_grad_norm_(iter(params), 1.0, order)
    np.testing.assert_allclose(norm.item(), expected, rtol=1e-6)
    for param, gradient in zip(params, gradients, strict=True):
        np.testing.assert_allclose(param.grad.numpy(), np.array(gradient) / expected, rtol=1e-5)


def test_small_gradients_stay():
    params = parameters([0.3, 0.4])
    optim.ClipGradByGlobalNorm(1.0)(params)
    np.testing.assert_allclose(params[0].grad.numpy(), [0.3, 0.4], rtol=1e-6)


def test_each_parameter_by_itself():
    params = parameters([3.0, 4.0], [0.5])
    optim.ClipGradByNorm(1.0)(params)
    np.testing.assert_allclose(params[0].grad.numpy(), [0.6, 0.8], rtol=1e-5)
    np.testing.assert_allclose(params[1].grad.numpy(), [0.5], rtol=1e-6)


def test_by_value():
    params = parameters([3.0, -4.0, 0.5])
    optim.ClipGradByValue(1.0, min=-2.0)(params)
    assert params[0].grad.tolist() == [1.0, -2.0, 0.5]
    optim.ClipGradByValue(0.75)(params)
    assert params[0].grad.tolist() == [0.75, -0.75, 0.5]


def test_norms_that_are_not_finite_are_errors_on_request():
    params = parameters([math.inf, 1.0])
    with pytest.raises(ValueError, match="order 2.0 of the gradients is inf; expected it to be"):
        optim.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert params[0].grad.tolist() == [math.inf, 1.0]
