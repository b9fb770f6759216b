# SPDX-License-Identifier: Apache-2.0
"""Tangents of every operator beside its gradient, of which they are derived: both give the derivative along a direction."""

import pytest
import tenon
from case import differentiable
from samples import CASES
from tenon.autograd import forward
from test_gradients import Function, along, leaves

CASES_WITH_GRADIENTS = [case for case in CASES if differentiable(case)]


def assert_same(got, want, scale):
    assert abs(got - want) <= 1e-8 * max(1.0, abs(want), scale), f"expected {want}, got {got}"


@pytest.mark.parametrize("case", CASES_WITH_GRADIENTS, ids=str)
def test_forward_mode(case):
    function = Function(case, "cpu")  # tangents are made of calls, whatever the device
    direction = function.direction()
    inputs = leaves(function.point)
    tenon.manual_seed(0)
    value = function(inputs)
    grads = tenon.grad(value, inputs, allow_unused=True)
    tenon.manual_seed(0)
    with tenon.no_grad():
        (got,), (tangent,) = forward.push(lambda xs: [function(xs)], function.point, direction)
    assert got.item() == value.item()
    assert not got.requires_grad
    scale = sum(
        abs((g * d).sum().item()) for g, d in zip(grads, direction, strict=True) if g is not None
    )
    assert_same(0.0 if tangent is None else tangent.item(), along(grads, direction), scale)
