# SPDX-License-Identifier: Apache-2.0
"""linear_fp8 and the quantisation to float8: exact numbers, all forms of scales, rounded activations, rows in batches."""

import numpy as np
import pytest
import tenon

LARGEST = {"float8_e4m3": 448.0, "float8_e5m2": 57344.0}


@pytest.fixture(autouse=True)
def only_where_float8_is_cast(request):
    if "device" in request.fixturenames and request.getfixturevalue("device").startswith(
        ("kunlun", "level1")
    ):
        pytest.skip("Kunlun and the primitives of level 1 have no casts of float8")


def stored(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    return tenon.tensor(rng.standard_normal(shape).astype(np.float32) * 20).to(dtype)


def wide(tensor):
    return tensor.to("cpu").to("float64").numpy()


@pytest.mark.parametrize("dtype", LARGEST)
def test_every_byte_is_the_number_that_it_stands_for(dtype):
    """A row of each of the 256 codes, picked by a product with the identity."""
    codes = tenon.bitcast(tenon.arange(256).to("uint8").reshape([16, 16]), dtype)
    got = tenon.linear_fp8(tenon.eye(16), codes, 1.0).numpy().T
    want = codes.to("float32").numpy()
    clean = np.isfinite(want).all(1)  # NaN and infinity times 0 reach their whole row
    np.testing.assert_array_equal(got[clean], want[clean])
    for row in np.flatnonzero(~clean):
        assert np.isnan(got[row]).any()


@pytest.mark.parametrize("dtype", LARGEST)
@pytest.mark.parametrize("columns", [64, 40])  # with a kernel and without
@pytest.mark.parametrize("form", ["number", "rows", "column", "blocks"])
@pytest.mark.parametrize("rows", [1, 7, 90])
def test_products_of_stored_numbers(dtype, columns, form, rows, device):
    rng = np.random.default_rng(columns)
    weight = stored(dtype, (21, columns)).to(device)
    shape, block = {
        "number": ((), None),
        "rows": ((21,), None),
        "column": ((21, 1), None),
        "blocks": ((6, -(-columns // 32)), [4, 32]),
    }[form]
    scale = tenon.tensor(rng.uniform(0.5, 2, shape).astype(np.float32), device=device)
    x = tenon.tensor(rng.standard_normal((rows, columns)).astype(np.float32), device=device)
    bias = tenon.tensor(rng.standard_normal(21).astype(np.float32), device=device)
    got = tenon.linear_fp8(x, weight, scale, bias, block=block)
    factors = wide(scale)
    if block:
        factors = np.repeat(np.repeat(factors, 4, 0), 32, 1)[:21, :columns]
    elif factors.ndim:
        factors = factors.reshape(21, 1)
    want = wide(x) @ (wide(weight) * factors).T + wide(bias)
    error = np.abs(wide(got) - want).max()
    assert error <= 2e-5 * np.abs(want).max()


def test_a_row_has_the_same_bits_in_every_batch():
    weight, scale = stored("float8_e4m3", (50, 128)), tenon.rand(50)
    x = tenon.randn([100, 128])
    for activations in ("float", "float8"):
        whole = tenon.linear_fp8(x, weight, scale, activations=activations).numpy()
        for rows in (slice(0, 1), slice(7, 8), slice(3, 9), slice(20, 90)):
            part = tenon.linear_fp8(x[rows], weight, scale, activations=activations)
            assert part.numpy().tobytes() == whole[rows].tobytes()


@pytest.mark.parametrize("block", [None, [16, 32]])
def test_activations_are_rounded_by_their_rows(block):
    """What is rounded is what quantize_linear gives, with the largest magnitude of a row or a group as 448."""
    x = tenon.randn([5, 80]) * tenon.tensor([[1e-3], [1.0], [1e4], [0.0], [3.0]])
    weight = stored("float8_e4m3", (6, 80))
    scale = tenon.ones([1, 3]) if block else tenon.tensor(1.0)
    got = tenon.linear_fp8(x, weight, scale, block=block, activations="float8")
    near = []
    for part in tenon.split(x, 32, 1) if block else [x]:
        step = tenon.abs(part).max([1], keepdim=True) / 448
        step = tenon.where(step == 0, 1.0, step)
        codes = (part / step).to("float8_e4m3").to("float32")
        near.append(codes * step)
    want = wide(tenon.concat(near, 1)) @ wide(weight).T
    np.testing.assert_allclose(wide(got), want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    fixed = tenon.linear_fp8(
        x[4:],
        weight,
        scale[:, :1] if block else scale,
        None,
        0.01,
        block=block and [16, 80],
        activations="float8",
    )
    codes = tenon.clip(x[4:] / 0.01, -448, 448).to("float8_e4m3").to("float32") * 0.01
    np.testing.assert_allclose(wide(fixed), wide(codes) @ wide(weight).T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("block", [None, [4, 2]])
def test_rows_of_the_smallest_numbers_stay_numbers(block):
    """Their largest magnitude over 448 is 0 in float32, and 0 / 0 is no number."""
    x = tenon.tensor([[0.0, -1e-43], [1.0, 2.0]])
    weight, scale = stored("float8_e4m3", (4, 2)), tenon.ones([1, 1])
    got = tenon.linear_fp8(x, weight, scale, block=block, activations="float8").numpy()
    want = wide(weight)
    np.testing.assert_allclose(got[0], np.zeros(4), atol=1e-40, equal_nan=False)
    np.testing.assert_allclose(got[1], want @ [1.0, 2.0], rtol=1e-6)


def test_infinity_is_the_largest_number_of_a_given_scale():
    weight = tenon.tensor([[1.0, 0.5], [-2.0, 4.0]]).to("float8_e4m3")
    x = tenon.tensor([[float("inf"), 1.0], [1.0, float("-inf")], [float("nan"), 1.0]])
    got = tenon.linear_fp8(x, weight, 1.0, None, 1.0, activations="float8").numpy()
    want = np.array([[448.0, 1.0], [1.0, -448.0]]) @ np.array([[1.0, 0.5], [-2.0, 4.0]]).T
    np.testing.assert_array_equal(got[:2], want)
    assert np.isnan(got[2]).all()


def test_small_floats_are_rounded_once():
    weight, scale = stored("float8_e4m3", (32, 64)), tenon.rand(32)
    x = tenon.randn([3, 64])
    for dtype in ("float16", "bfloat16"):
        got = tenon.linear_fp8(x.to(dtype), weight, scale, tenon.ones(32).to(dtype))
        want = tenon.linear_fp8(x.to(dtype).to("float32"), weight, scale, tenon.ones(32))
        assert got.dtype == getattr(tenon, dtype)
        assert (got == want.to(dtype)).all()


def test_gradients_pass_straight_through():
    x = tenon.randn([4, 32], requires_grad=True)
    weight, scale = stored("float8_e4m3", (8, 32)), tenon.rand(8)
    grads = []
    for activations in ("float", "float8"):
        out = tenon.linear_fp8(x, weight, scale, activations=activations)
        grads.append(tenon.grad(out.sum(), [x])[0].numpy())
    want = (wide(weight) * wide(scale)[:, None]).sum(0)
    np.testing.assert_allclose(grads[0], np.broadcast_to(want, (4, 32)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(grads[1], grads[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", LARGEST)
def test_quantising_to_float8(dtype, device):
    x = tenon.tensor([[1.0, -3.3, 1e9], [float("nan"), 0.0, -1e9]], device=device)
    codes = tenon.quantize_linear(x, tenon.tensor(0.5, device=device), dtype=dtype)
    assert codes.dtype == getattr(tenon, dtype)
    back = wide(tenon.dequantize_linear(codes, tenon.tensor(0.5, device=device)))
    limit = LARGEST[dtype] / 2
    assert back[0, 0] == 1 and back[0, 2] == limit and back[1, 2] == -limit
    assert np.isnan(back[1, 0]) and abs(back[0, 1] + 3.3) < 0.3
    with pytest.raises(ValueError, match="expected no zero_point beside"):
        tenon.quantize_linear(x, 0.5, 1, dtype=dtype)
    with pytest.raises(ValueError, match="expected no zero_point beside"):
        tenon.dequantize_linear(codes, 0.5, 1)


def test_what_linear_fp8_refuses():
    x, weight = tenon.ones((2, 32)), stored("float8_e4m3", (8, 32))
    for pattern, call in {
        "expected tensors of floating dtypes, got uint8": lambda: tenon.linear_fp8(
            x, weight.to("float32").to("uint8"), 1.0
        ),
        r"expected x.shape\[-1\] to be the 32 columns": lambda: tenon.linear_fp8(
            x[:, :5], weight, 1.0
        ),
        r"one for each row of weight, shape \[8\] or \[8, 1\], got \(4,\)": lambda: (
            tenon.linear_fp8(x, weight, tenon.ones(4))
        ),
        r"a scale for each block, shape \(2, 2\), got \(8,\)": lambda: tenon.linear_fp8(
            x, weight, tenon.ones(8), block=[4, 16]
        ),
        "expected block to be two numbers": lambda: tenon.linear_fp8(
            x, weight, tenon.ones(8), block=[4]
        ),
        r"expected bias of shape \[8\]": lambda: tenon.linear_fp8(x, weight, 1.0, tenon.ones(7)),
        "expected activations 'float' or 'float8', got 'int8'": lambda: tenon.linear_fp8(
            x, weight, 1.0, activations="int8"
        ),
        "expected x_scale with activations 'float8' alone": lambda: tenon.linear_fp8(
            x, weight, 1.0, None, 1.0
        ),
        "expected x_scale to be one number": lambda: tenon.linear_fp8(
            x, weight, 1.0, None, tenon.ones(2), activations="float8"
        ),
    }.items():
        with pytest.raises((TypeError, ValueError), match=pattern):
            call()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("recorded", [False, True])
def test_what_no_kernel_serves_is_checked_as_well(dtype, recorded):
    x = tenon.ones([2, 3]).astype(dtype).requires_grad_(recorded)
    weight = tenon.ones([4, 3]).astype(dtype)
    with pytest.raises(ValueError, match=r"expected bias of shape \[4\]"):
        tenon.linear_fp8(x, weight, 1.0, tenon.ones([1]).astype(dtype))
    with pytest.raises(TypeError, match="expected tensors of floating dtypes, got int32"):
        tenon.linear_fp8(tenon.ones([2, 3]).astype("int32"), weight, 1.0)


def test_blocks_larger_than_the_weight_are_one():
    x, weight = tenon.randn([2, 32]), stored("float8_e4m3", (8, 32))
    got = tenon.linear_fp8(x, weight, tenon.full([1, 1], 2.0), block=[2**40, 2**40])
    np.testing.assert_allclose(got.numpy(), tenon.linear_fp8(x, weight, 2.0).numpy(), rtol=1e-6)
