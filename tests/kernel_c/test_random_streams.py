# SPDX-License-Identifier: Apache-2.0
"""One seed gives one stream of numbers, on whatever device."""

import numpy as np
import pytest
import tenon


def draw(call, device):
    tenon.manual_seed(11)
    first = call(device)
    return first, call(device)  # the second goes on where the first ended


def numbers(x):
    return x.to("cpu").to(tenon.float64).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("count", [1, 5, 4096])
def test_uniform_is_the_same_to_the_bit(dtype, count, device):
    def call(place):
        return tenon.uniform([count], dtype=getattr(tenon, dtype), device=place)

    for got, want in zip(draw(call, device), draw(call, "cpu")):
        np.testing.assert_array_equal(numbers(got), numbers(want))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int32"])
def test_randint_is_the_same_to_the_bit(dtype, device):
    def call(place):
        return tenon.randint(3, 200, [999], dtype=getattr(tenon, dtype), device=place)

    for got, want in zip(draw(call, device), draw(call, "cpu")):
        np.testing.assert_array_equal(got.to("cpu").numpy(), want.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_draws_the_same_bits(dtype, device):
    """Logarithm and cosine are each device's own."""

    def call(place):
        return tenon.normal([999], 1.0, 2.0, dtype=getattr(tenon, dtype), device=place)

    slack = 1e-5 if dtype == "float32" else 1e-13
    for got, want in zip(draw(call, device), draw(call, "cpu")):
        np.testing.assert_allclose(got.to("cpu").numpy(), want.numpy(), rtol=slack, atol=slack)
