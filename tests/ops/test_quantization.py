# SPDX-License-Identifier: Apache-2.0
"""Quantisation: limits of dtypes, straight-through gradients, stored weights, and what is refused."""

import numpy as np
import pytest
import tenon
from running import to_tensor

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype, low, high", [("int8", -128, 127), ("uint8", 0, 255)])
def test_numbers_beyond_the_dtype_are_its_ends(dtype, low, high, device):
    x = tenon.tensor([-INF, INF, NAN, 1e30, 2.5, 3.5], device=device)
    got = tenon.quantize_linear(x, tenon.tensor(1.0, device=device), dtype=dtype)
    assert got.tolist() == [low, high, 0, high, 2, 4]


def test_the_gradient_passes_straight_through_where_x_is_inside(device):
    x = tenon.tensor([-9.0, -1.2, 0.1, 3.9, 9.0], device=device, requires_grad=True)
    scale = tenon.tensor(1.0, device=device)
    out = tenon.fake_quantize(x, scale, quant_min=-4, quant_max=4)
    assert out.tolist() == [-4.0, -1.0, 0.0, 4.0, 4.0]
    (grad,) = tenon.grad(out.sum(), [x])
    assert grad.tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
    whole, scale = tenon.fake_quantize_abs_max(x)
    (grad,) = tenon.grad(whole.sum(), [x])
    assert grad.tolist() == [1.0] * 5
    np.testing.assert_allclose(scale.item(), 9 / 127, rtol=1e-6)


def test_zeros_and_what_is_not_finite(device):
    zeros = tenon.zeros((2, 3), device=device)
    out, scale = tenon.fake_quantize_abs_max(zeros)
    assert out.tolist() == zeros.tolist() and scale.item() == 0.0
    stored, scales = tenon.weight_quantize(zeros)
    assert tenon.weight_dequantize(stored, scales).tolist() == zeros.tolist()
    x = tenon.tensor([NAN, 1.0], device=device)
    got = tenon.fake_quantize(x, tenon.tensor(0.5, device=device)).tolist()
    assert np.isnan(got[0]) and got[1] == 1.0


@pytest.mark.parametrize("bits, group", [(8, None), (8, 16), (4, None), (4, 16)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_stored_weight_is_within_half_a_step(bits, group, dtype, device):
    weight = np.random.default_rng(0).standard_normal((6, 32))
    given = to_tensor(weight, device, dtype=dtype)
    stored, scale = tenon.weight_quantize(given, bits, group)
    assert stored.shape == (6, 32 if bits == 8 else 16) and scale.dtype == given.dtype
    back = tenon.weight_dequantize(stored, scale, bits, group)
    step = np.repeat(scale.to("cpu").to("float64").numpy().reshape(6, -1), group or 32, 1)
    error = np.abs((back - given).to("cpu").to("float64").numpy())
    assert (error <= step * ({"float32": 0.5, "float16": 0.6, "bfloat16": 0.9}[dtype]) + 1e-6).all()
    x = to_tensor(np.ones((2, 32)), device, dtype=dtype)
    got = tenon.weight_only_linear(x, stored, scale, None, bits, group)
    # The weight is not rounded on the way.
    wide = tenon.weight_dequantize(stored, scale.to("float32"), bits, group)
    # The tolerance: both are rounded to the dtype, and bfloat16 has steps of 2**-8.
    want = tenon.linear(x.to("float32"), wide).to(dtype)
    np.testing.assert_allclose(
        got.to("cpu").to("float64").numpy(), want.to("cpu").to("float64").numpy(), rtol=1e-2
    )


X, SCALE = tenon.ones((2, 3)), tenon.tensor(1.0)
REFUSED = {
    "two axes of scales": (
        lambda: tenon.quantize_linear(X, X),
        "expected one floating scale or a vector of them, got float32 of shape",
    ),
    "scales of another axis": (
        lambda: tenon.fake_quantize(X, tenon.ones((2,))),
        "expected a scale for each of 3 slices along axis 1, got 2",
    ),
    "zero points": (
        lambda: tenon.fake_quantize(X, SCALE, tenon.tensor([1, 2])),
        r"expected zero_point of the shape of scale, got \(2,\) and",
    ),
    "no levels": (
        lambda: tenon.fake_quantize(X, SCALE, quant_min=3, quant_max=3),
        "expected quant_min below quant_max, got 3 and 3",
    ),
    "one bit": (
        lambda: tenon.fake_quantize_abs_max(X, 1),
        "expected 2 to 16 bits, got 1",
    ),
    "no elements": (
        lambda: tenon.fake_quantize_abs_max(tenon.ones((0, 2))),
        r"expected elements, got shape \(0, 2\)",
    ),
    "three bits": (lambda: tenon.weight_quantize(X, 3), "expected 8 or 4 bits, got 3"),
    "odd rows": (
        lambda: tenon.weight_quantize(X, 4),
        "multiple of group_size, and even for 4 bits, got 3 and 3",
    ),
    "scale of other rows": (
        lambda: tenon.weight_dequantize(X.to("int8"), tenon.ones((3,))),
        r"expected scale of shape \(2,\), got \(3,\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        call()


def test_dtypes_refused():
    with pytest.raises(
        TypeError,
        match="expected dtype int8, uint8, int16, uint16, float8_e4m3 or float8_e5m2, got float32",
    ):
        tenon.quantize_linear(X, SCALE, dtype="float32")
    with pytest.raises(TypeError, match="expected an x of integers or float8, got float32"):
        tenon.dequantize_linear(X, SCALE)
    with pytest.raises(TypeError, match="expected quantized of dtype int8 and a floating scale"):
        tenon.weight_dequantize(X, tenon.ones((2,)))
