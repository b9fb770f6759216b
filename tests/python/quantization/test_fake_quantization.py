# SPDX-License-Identifier: Apache-2.0
"""Quantisation in the middle of training beside its formulas."""

import numpy as np
import pytest
import tenon
from tenon.quantization import fake


def _round(x):
    return np.trunc(x + 0.5 * np.sign(x))


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((3, 4))


def test_one_scale_and_one_for_each_channel(x):
    whole, scale = fake.fake_quantize_abs_max(tenon.tensor(x), 4)
    assert scale.item() == np.abs(x).max()
    np.testing.assert_allclose(whole.numpy(), _round(x * 7 / np.abs(x).max()))
    left, _ = fake.fake_quantize_dequantize_abs_max(tenon.tensor(x), 4)
    np.testing.assert_allclose(left.numpy(), whole.numpy() * np.abs(x).max() / 7)
    sizes = np.abs(x).max(0)
    whole, scale = fake.fake_channel_wise_quantize_abs_max(tenon.tensor(x), 8, 1)
    np.testing.assert_allclose(scale.numpy(), sizes)
    np.testing.assert_allclose(whole.numpy(), _round(x * 127 / sizes))
    left, _ = fake.fake_channel_wise_quantize_dequantize_abs_max(tenon.tensor(x), 8, 1)
    np.testing.assert_allclose(left.numpy(), whole.numpy() * sizes / 127)
    twice = fake.fake_channel_wise_dequantize_max_abs(
        whole, [scale, tenon.tensor(2.0, dtype=tenon.float64)], [8, 4], 1
    )
    np.testing.assert_allclose(twice.numpy(), whole.numpy() * sizes / 127 * 2 / 7)


def test_halves_go_away_from_zero_or_to_even_numbers():
    x = tenon.tensor([0.5, 1.5, -2.5, 7.0])
    assert fake.fake_quantize_abs_max(x, 4)[0].tolist() == [1.0, 2.0, -3.0, 7.0]
    assert fake.fake_quantize_abs_max(x, 4, "even")[0].tolist() == [0.0, 2.0, -2.0, 7.0]
    assert fake.fake_quantize_abs_max(tenon.zeros([2]))[0].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="expected round_half 'away' or 'even', got 'up'"):
        fake.fake_quantize_abs_max(x, 4, "up")
    with pytest.raises(ValueError, match="expected bits from 2 to 16, got 1"):
        fake.fake_quantize_abs_max(x, 1)


def test_moving_averages_and_windows(x):
    value, size = tenon.tensor(x), np.abs(x).max()
    state = (tenon.tensor(0.0), tenon.tensor(3.0), tenon.tensor(2.0))
    whole, scale, accum, count = fake.fake_quantize_moving_average_abs_max(value, *state, 0.5)
    assert accum.item() == pytest.approx(1.5 + size) and count.item() == 2.0
    assert scale.item() == pytest.approx((1.5 + size) / 2)
    np.testing.assert_allclose(
        whole.numpy(), _round(np.clip(x, -scale.item(), scale.item()) * 127 / scale.item())
    )
    same = fake.fake_quantize_dequantize_moving_average_abs_max(value, scale, is_test=True)
    np.testing.assert_allclose(same[0].numpy(), whole.numpy() * scale.item() / 127)
    with pytest.raises(ValueError, match="expected accum and state, which training needs"):
        fake.fake_quantize_moving_average_abs_max(value, scale)
    scales = tenon.tensor([9.0, 1.0, 100.0], dtype=tenon.float64)
    _, scale, window = fake.fake_quantize_range_abs_max(value, scale, scales, 1)
    assert scale.item() == 9.0 and window.tolist() == [9.0, size, 100.0]
    _, scale, window = fake.fake_quantize_range_abs_max(value, scale, window, 3)
    assert scale.item() == 100.0 and window.tolist() == [size, size, 100.0]


def test_gradients_are_those_without_the_rounding():
    x = tenon.tensor([0.2, -3.0, 1.0], requires_grad=True)
    left, *_ = fake.fake_quantize_dequantize_moving_average_abs_max(
        x, tenon.tensor(1.5), is_test=True
    )
    left.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1.0, 0.0, 1.0])


def test_the_largest_number_has_the_gradient_of_the_others():
    for function in (
        fake.fake_quantize_dequantize_abs_max,
        fake.fake_channel_wise_quantize_dequantize_abs_max,
    ):
        x = tenon.tensor([[0.2, -3.0, 1.0]], requires_grad=True)
        function(x)[0].sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), [[1.0, 1.0, 1.0]])


def test_what_is_not_finite_stays_so():
    x = tenon.tensor([float("nan"), -9.0, float("inf")])
    out = fake.fake_quantize_moving_average_abs_max(x, tenon.tensor(1.5), is_test=True)[0].tolist()
    assert np.isnan(out[0]) and out[1:] == [-127.0, 127.0]
    assert np.isnan(fake.fake_quantize_abs_max(x[:2])[0].numpy()).all()


def test_tables_of_logarithms():
    table = tenon.arange(128, dtype=tenon.float32) * 0.5
    x = tenon.tensor([0, 5, 127, -128, -1], dtype=tenon.int8)
    assert fake.dequantize_log(x, table).tolist() == [0.0, 2.5, 63.5, -0.0, -63.5]
    assert fake.dequantize_abs_max(x, tenon.tensor([254.0]), 127.0).tolist() == [
        0.0,
        10.0,
        254.0,
        -256.0,
        -2.0,
    ]


def test_a_layer_of_eight_bits_keeps_what_is_large():
    generator = np.random.default_rng(1)
    x = generator.standard_normal((4, 16)).astype(np.float32)
    x[:, 3] *= 40
    weight = generator.standard_normal((5, 16)).astype(np.float32)
    whole, scale = tenon.weight_quantize(tenon.tensor(weight))
    out = fake.llm_int8_linear(tenon.tensor(x), whole, scale, tenon.ones([5])).numpy()
    wanted = x @ (whole.numpy().astype(np.float32) * scale.numpy()[:, None]).T + 1
    # Rows of x are rounded to 127 steps, and sixteen such errors are summed.
    np.testing.assert_allclose(out, wanted, atol=0.15)
    everything = fake.llm_int8_linear(tenon.tensor(x), whole, scale, threshold=0.0).numpy()
    np.testing.assert_allclose(everything, wanted - 1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_layer_of_eight_bits_on_numbers_of_sixteen(dtype):
    x = tenon.full([2, 64], 5.0, dtype=dtype)
    weight, scale = (
        tenon.full([3, 64], 127, dtype=tenon.int8),
        tenon.full([3], 1 / 127, dtype=dtype),
    )
    out = fake.llm_int8_linear(x, weight, scale, tenon.ones([3], dtype=dtype))
    assert str(out.dtype) == dtype
    # The result is rounded to half precision; an overflow would be infinite.
    np.testing.assert_allclose(out.to("float32").numpy(), 321.0, rtol=1e-2)
