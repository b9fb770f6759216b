# SPDX-License-Identifier: Apache-2.0
"""A 0-d tensor counts as one with a single axis of length 1 for operators along an axis, as in NumPy
and PyTorch: 0 and -1 name it."""

import numpy as np
import pytest
import tenon
from tenon import autograd

VALUE = 2.5
# Operator, arguments before the axis, value, gradient.
ALONG = [
    ("softmax", [], 1.0, 0.0),
    ("log_softmax", [], 0.0, 0.0),
    ("cumsum", [], VALUE, 1.0),
    ("cumprod", [], VALUE, 1.0),
    ("sort", [], VALUE, 1.0),
    ("flip", [], VALUE, 1.0),
    ("squeeze", [], VALUE, 1.0),
]
REDUCTIONS = [
    ("sum", VALUE, 1.0),
    ("mean", VALUE, 1.0),
    ("max", VALUE, 1.0),
    ("min", VALUE, 1.0),
    ("prod", VALUE, 1.0),
    ("logsumexp", VALUE, 1.0),
    ("norm", VALUE, 1.0),
    ("any", True, None),
    ("all", True, None),
    ("count_nonzero", 1, None),
    ("argmax", 0, None),
    ("argmin", 0, None),
]
DEVICES = ["cpu", "null"]


def number(device, dtype=tenon.float64):
    return tenon.tensor(VALUE, dtype=dtype, device=device)


def gradient(call, device):
    x = number(device)
    x.requires_grad = True
    return autograd.grad([call(x)], [x])[0].to("cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name, before, value, slope", ALONG, ids=[case[0] for case in ALONG])
def test_along_the_axis(name, before, value, slope, axis, device):
    def call(x):
        return getattr(tenon, name)(x, *before, axis=axis)

    with tenon.fallback("allow"):
        out = call(number(device))
        assert out.shape == ()
        assert out.item() == pytest.approx(value)
        assert gradient(call, device).item() == pytest.approx(slope)
        assert call(number(device, tenon.float16)).item() == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name, value, slope", REDUCTIONS, ids=[case[0] for case in REDUCTIONS])
def test_reductions(name, value, slope, axis, device):
    for keepdim in (False, True):

        def call(x, keepdim=keepdim):
            return getattr(tenon, name)(x, axis=axis, keepdim=keepdim)

        with tenon.fallback("allow"):
            out = call(number(device))
            assert out.shape == ()
            assert out.item() == pytest.approx(value)
            if slope is not None:
                assert gradient(call, device).item() == pytest.approx(slope)


@pytest.mark.parametrize("axis", [0, -1])
def test_order_and_spread(axis):
    values, indices = tenon.sort_with_indices(number("cpu"), axis)
    assert (values.item(), indices.item()) == (VALUE, 0) and indices.shape == ()
    assert tenon.argsort(number("cpu"), axis).item() == 0
    values, indices = tenon.topk(number("cpu"), 1, axis)
    assert (values.item(), indices.item(), values.shape) == (VALUE, 0, ())
    with pytest.raises(ValueError, match="expected a count of 1 for a 0-d tensor, got 2"):
        tenon.topk(number("cpu"), 2, axis)
    assert tenon.var(number("cpu"), axis, 0).item() == tenon.std(number("cpu"), axis, 0).item() == 0


def test_gather_and_scatter():
    x, index = number("cpu"), tenon.tensor(0)
    for axis in (0, -1):
        assert tenon.gather(x, index, axis).item() == VALUE
        assert tenon.take_along_axis(x, index, axis).item() == VALUE
        assert tenon.scatter_add(x, index, x, axis).item() == 2 * VALUE
        with pytest.raises(IndexError):
            tenon.gather(x, tenon.tensor(1), axis)
    with pytest.raises(ValueError, match="expected different axes"):
        tenon.sum(x, axis=[0, -1])


@pytest.mark.parametrize("name", [case[0] for case in [*ALONG, *REDUCTIONS]])
@pytest.mark.parametrize("axis", [1, -2])
def test_other_axes_are_errors(name, axis):
    with pytest.raises(IndexError, match=f"expected axis 0 or -1 for a 0-d tensor, got {axis}"):
        getattr(tenon, name)(number("cpu"), axis=axis)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tenon.concat([x, x], 0),
        lambda x: tenon.unbind(x, 0),
        lambda x: tenon.select(x, 0, 0),
        lambda x: tenon.narrow(x, 0, 0, 1),
    ],
)
def test_what_takes_an_axis_apart_needs_one(call):
    with pytest.raises(IndexError, match="expected no axis for a 0-d tensor, got 0"):
        call(number("cpu"))


def test_numpy_agrees():
    x = np.array(VALUE)
    for axis in (0, -1):
        assert np.sum(x, axis=axis) == np.max(x, axis=axis) == VALUE
        assert np.argmax(x, axis=axis) == 0
