# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives against finite differences along random directions."""

import numpy as np
import pytest
import tenon
from case import differentiable, differentiable_results
from running import arguments, skip_unserved
from samples import CASES

STEP = 1e-6


CASES_WITH_GRADIENTS = [case for case in CASES if differentiable(case)]


class Function:
    """A case as a scalar function of its differentiable tensors: a random sum of its results."""

    def __init__(self, case, device):
        self.case, self.device = case, device
        self.rng = np.random.default_rng(7)
        self.args, self.kwargs = arguments(case, device)
        self.slots = []
        for i in differentiable(case):
            if isinstance(self.args[i], list):
                self.slots += [(i, k) for k in range(len(self.args[i]))]
            else:
                self.slots.append((i, None))
        self.point = [self.get(slot) for slot in self.slots]
        self.weights = None

    def get(self, slot):
        i, k = slot
        return self.args[i] if k is None else self.args[i][k]

    def tensor(self, array, **options):
        return tenon.tensor(array, device=self.device, **options)

    def direction(self):
        return [self.tensor(self.rng.standard_normal(tuple(x.shape))) for x in self.point]

    def __call__(self, tensors):
        args = [list(value) if isinstance(value, list) else value for value in self.args]
        for (i, k), tensor in zip(self.slots, tensors, strict=True):
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
        for result, weight in zip(results, self.weights, strict=True):
            total = (result * weight).sum() + total
        return total

    def moved(self, direction, step):
        return [x + d * step for x, d in zip(self.point, direction, strict=True)]


def along(grads, direction):
    """Inner product of gradients and a direction."""
    return sum(
        float((g * d).sum().item()) for g, d in zip(grads, direction, strict=True) if g is not None
    )


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
    for grad, x in zip(grads, inputs, strict=True):
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
        for grad, d in zip(grads, first, strict=True):
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


def every_second(x):
    """The same numbers with others between them: what a view shows of it has a rule's gradient."""
    return tenon.select(tenon.stack([x, x], -1), -1, 0)


@pytest.mark.parametrize("case", CASES_WITH_GRADIENTS, ids=str)
def test_gradient_of_strided_arguments(case, device):
    function = Function(case, device)
    directions = [function.direction() for _ in range(2)]
    found = []
    for slot in (lambda x: x, every_second):
        inputs = leaves(function.point)
        total = function([slot(x) for x in inputs])
        grads = tenon.grad(total, inputs, allow_unused=True)
        found.append([along(grads, direction) for direction in directions])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9)


def test_equal_operands_share_the_gradient(device):
    for name, x_part, y_part in (("maximum", 0.0, 3.0), ("minimum", 3.0, 0.0)):
        x, y = leaves(tenon.tensor(v, device=device) for v in ([1.0, 2.0, 3.0], [1.0, 5.0, 3.0]))
        weights = tenon.tensor([2.0, 3.0, 5.0], dtype=tenon.float64, device=device)
        result = (getattr(tenon, name)(x, y) * weights).sum()
        for grad, part in zip(tenon.grad(result, [x, y]), (x_part, y_part), strict=True):
            assert grad.tolist() == [1.0, part, 2.5]


@pytest.mark.parametrize("name", ["max", "min"])
def test_equal_extremes_share_the_gradient(name, device):
    sign = 1.0 if name == "max" else -1.0
    (x,) = leaves([tenon.tensor([[3.0, 5.0, 5.0], [7.0, 7.0, 7.0]], device=device) * sign])
    weights = tenon.tensor([4.0, 9.0], dtype=tenon.float64, device=device)
    (grad,) = tenon.grad((getattr(tenon, name)(x, 1) * weights).sum(), [x])
    assert grad.tolist() == [[0.0, 2.0, 2.0], [3.0, 3.0, 3.0]]


# The sums over rows are made in parts, which are added up.
@pytest.mark.parametrize("shape", [(3, 50), (700, 90), (3000, 64)], ids=str)
def test_layer_norm_parameters_of_many_rows(shape, device):
    skip_unserved(device, "float64")
    rng = np.random.default_rng(5)
    x, upstream = rng.standard_normal(shape), rng.standard_normal(shape)
    parameters = [tenon.ones(shape[1:], dtype=tenon.float64, device=device) for _ in range(2)]
    parameters = leaves(parameters)
    result = tenon.layer_norm(tenon.tensor(x, device=device), *parameters)
    got = tenon.grad((result * tenon.tensor(upstream, device=device)).sum(), parameters)
    normalized = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    for grad, want in zip(got, ((normalized * upstream).sum(0), upstream.sum(0)), strict=True):
        np.testing.assert_allclose(grad.to("cpu").numpy(), want, rtol=1e-9, atol=1e-9)
