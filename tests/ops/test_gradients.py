# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives against finite differences along random directions."""

import numpy as np
import pytest
import tenon
from case import differentiable_results, is_floating
from running import arguments
from samples import CASES

STEP = 1e-6


def differentiable(case):
    """Positions of arguments to differentiate; a list of tensors counts as one position."""
    if case.grad is not None:
        return case.grad
    return tuple(
        i
        for i, value in enumerate(case.args)
        if is_floating(value) or (isinstance(value, list) and value and is_floating(value[0]))
    )


CASES_WITH_GRADIENTS = [case for case in CASES if differentiable(case)]


class Function:
    """A case as a scalar function of its differentiable tensors: a random sum of its results."""

    def __init__(self, case, device):
        self.case, self.device = case, device
        self.rng = np.random.default_rng(7)
        self.args, self.kwargs = arguments(case, device)
        self.places = []
        for i in differentiable(case):
            if isinstance(self.args[i], list):
                self.places += [(i, k) for k in range(len(self.args[i]))]
            else:
                self.places.append((i, None))
        self.point = [self.get(place) for place in self.places]
        self.weights = None

    def get(self, place):
        i, k = place
        return self.args[i] if k is None else self.args[i][k]

    def tensor(self, array, **options):
        return tenon.tensor(array, device=self.device, **options)

    def direction(self):
        return [self.tensor(self.rng.standard_normal(tuple(x.shape))) for x in self.point]

    def __call__(self, tensors):
        args = [list(value) if isinstance(value, list) else value for value in self.args]
        for (i, k), tensor in zip(self.places, tensors):
            if k is None:
                args[i] = tensor
            else:
                args[i][k] = tensor
        results = differentiable_results(
            self.case, getattr(tenon, self.case.op)(*args, **self.kwargs)
        )
        results = [r for r in results if str(r.dtype).endswith("float64")]
        if self.weights is None:
            self.weights = [self.tensor(self.rng.standard_normal(tuple(r.shape))) for r in results]
        total = 0.0
        for result, weight in zip(results, self.weights):
            total = (result * weight).sum() + total
        return total

    def moved(self, direction, step):
        return [x + d * step for x, d in zip(self.point, direction)]


def along(grads, direction):
    """Inner product of gradients and a direction."""
    return sum(float((g * d).sum().item()) for g, d in zip(grads, direction) if g is not None)


def leaves(tensors):
    return [tenon.tensor(x.to("cpu").numpy(), device=x.device, requires_grad=True) for x in tensors]


def assert_matches(got, want, scale):
    tolerance = 1e-5 * max(1.0, abs(want), scale)
    assert abs(got - want) <= tolerance, f"expected {want}, got {got}"


@pytest.mark.parametrize("case", CASES_WITH_GRADIENTS, ids=str)
def test_first_derivative(case, device):
    function = Function(case, device)
    inputs = leaves(function.point)
    grads = tenon.grad(function(inputs), inputs, allow_unused=True)
    for grad, x in zip(grads, inputs):
        assert grad is None or (tuple(grad.shape) == tuple(x.shape) and grad.dtype == x.dtype)
    for _ in range(2):
        direction = function.direction()
        ahead, behind = (function(function.moved(direction, s)).item() for s in (STEP, -STEP))
        assert_matches(along(grads, direction), (ahead - behind) / (2 * STEP), abs(ahead) * 1e-3)


@pytest.mark.parametrize("case", CASES_WITH_GRADIENTS, ids=str)
def test_second_derivative(case, device):
    function = Function(case, device)
    first, second = function.direction(), function.direction()

    def slope(tensors):
        """Derivative of the function along `first`, as something to differentiate again."""
        grads = tenon.grad(function(tensors), tensors, create_graph=True, allow_unused=True)
        total = None
        for grad, d in zip(grads, first):
            if grad is not None:
                part = (grad * d).sum()
                total = part if total is None else total + part
        return total

    inputs = leaves(function.point)
    total = slope(inputs)
    if total is None or not total.requires_grad:
        curvature = 0.0  # linear: the gradient is a constant
    else:
        curvature = along(tenon.grad(total, inputs, allow_unused=True), second)
    ahead, behind = (slope(leaves(function.moved(second, s))).item() for s in (STEP, -STEP))
    assert_matches(curvature, (ahead - behind) / (2 * STEP), abs(ahead) * 1e-3)
