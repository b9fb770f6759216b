# SPDX-License-Identifier: Apache-2.0
"""Operators along an axis of a 0-d tensor, made of primitives."""

import pytest
import tenon
from tenon import autograd

CASES = [
    (lambda x, axis: tenon.softmax(x, axis), 1.0, 0.0),
    (lambda x, axis: tenon.log_softmax(x, axis), 0.0, 0.0),
    (lambda x, axis: tenon.cumsum(x, axis), 2.5, 1.0),
    (lambda x, axis: tenon.cumprod(x, axis), 2.5, 1.0),
    (lambda x, axis: tenon.sort(x, axis), 2.5, 1.0),
    (lambda x, axis: tenon.topk(x, 1, axis)[0], 2.5, 1.0),
    (lambda x, axis: tenon.sum(x, axis), 2.5, 1.0),
    (lambda x, axis: tenon.max(x, axis), 2.5, 1.0),
    (lambda x, axis: tenon.logsumexp(x, axis), 2.5, 1.0),
    (lambda x, axis: tenon.gather(x, tenon.tensor(0, device="level1"), axis), 2.5, 1.0),
]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("call, value, slope", CASES)
def test_along_the_axis(call, value, slope, axis):
    x = tenon.tensor(2.5, dtype="float32", device="level1")
    out = call(x, axis)
    assert out.shape == () and out.item() == pytest.approx(value)
    x.requires_grad = True
    (grad,) = autograd.grad([call(x, axis)], [x])
    assert grad.item() == pytest.approx(slope)


def test_positions():
    x = tenon.tensor(2.5, dtype="float32", device="level1")
    assert tenon.argmax(x, 0).item() == tenon.argsort(x, -1).item() == 0
