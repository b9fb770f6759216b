# SPDX-License-Identifier: Apache-2.0
"""float16 and bfloat16 loops in registers: the result of float32, rounded once."""

import numpy as np
import pytest
import tenon

DTYPES = [tenon.float16, tenon.bfloat16]
SHAPES = [
    (1,),
    (15,),
    (16,),
    (17,),
    (63,),
    (65,),
    (5000,),
    (200_000,),
    (3, 70),
    (70, 3),
    (300, 130),
]
LENGTHS = [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 999, 40_000]
OPERATORS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "maximum": tenon.maximum,
    "minimum": tenon.minimum,
    "number first": lambda x, y: 1.5 - x,
    "number last": lambda x, y: x * 1.5,
    "negative": lambda x, y: -x,
    "abs": lambda x, y: tenon.abs(x),
    "square": lambda x, y: tenon.square(x),
    "reciprocal": lambda x, y: tenon.reciprocal(x),
    "relu": lambda x, y: tenon.relu(x),
    "leaky_relu": lambda x, y: tenon.leaky_relu(x),
    "hardtanh": lambda x, y: tenon.hardtanh(x),
    "hardshrink": lambda x, y: tenon.hardshrink(x),
    "clip": lambda x, y: tenon.clip(x, -1.0, 1.0),
    "lerp": lambda x, y: tenon.lerp(x, y, 0.25),
    "where": lambda x, y: tenon.where(x > y, x, y),
    "where number": lambda x, y: tenon.where(x > y, x, 0.5),
    "masked_fill": lambda x, y: tenon.masked_fill(x, x > y, -2.0),
}


def values(length, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(length).astype(np.float32) * 4
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, -6e4, 1e30, 1e-40]
    x[rng.random(length) < 0.1] = rng.choice(special)
    return tenon.tensor(x)


def assert_rounded(got, want):
    """Equal to a float32 result that is rounded, NaN to NaN and zeros by their signs."""
    rounded = want.to(got.dtype).to(tenon.float32).numpy()
    ours = got.to(tenon.float32).numpy()
    np.testing.assert_array_equal(ours, rounded)
    numbers = ~np.isnan(ours)
    np.testing.assert_array_equal(np.signbit(ours)[numbers], np.signbit(rounded)[numbers])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name, dtype):
    function = OPERATORS[name]
    for length in LENGTHS:
        x, y = (values(length, seed).to(dtype) for seed in (1, 2))
        wide = [each.to(tenon.float32) for each in (x, y)]
        assert_rounded(function(x, y), function(*wide))
        assert_rounded(function(x[::2], y[::2]), function(*(each[::2] for each in wide)))
        assert_rounded(function(x.flip([0]), y), function(wide[0].flip([0]), wide[1]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_in_place(dtype):
    for length in LENGTHS:
        x, y = (values(length, seed).to(dtype) for seed in (3, 4))
        want = x.to(tenon.float32) - y.to(tenon.float32)
        tenon.subtract(x, y, out=x)
        assert_rounded(x, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_broadcast_rows_and_columns(dtype):
    x = values(37 * 300, 5).to(dtype).reshape(37, 300)
    for part in (x[:1], x[:, :1], x[:1, :1]):
        want = x.to(tenon.float32) + part.to(tenon.float32)
        assert_rounded(x + part, want)
        assert_rounded(part + x, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_reductions(name, dtype):
    rng = np.random.default_rng(6)
    for shape in SHAPES:
        array = rng.integers(-4, 5, shape).astype(np.float32)  # sums are exact
        x = tenon.tensor(array).to(dtype)
        for axis in (None, *range(len(shape))):
            want = getattr(np, name)(array.astype(np.float64), axis=axis).astype(np.float32)
            assert_rounded(getattr(tenon, name)(x, axis), tenon.tensor(want))
        strided = getattr(tenon, name)(x[..., ::2]).to(tenon.float32).item()
        want = getattr(np, name)(array[..., ::2].astype(np.float64)).astype(np.float32)
        assert strided == tenon.tensor(want).to(dtype).to(tenon.float32).item()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extremes_hand_on_nan(dtype):
    for length in (5, 100, 5000):
        for place in {0, length // 2, length - 1}:
            array = np.ones(length, np.float32)
            array[place] = np.nan
            x = tenon.tensor(array).to(dtype)
            assert np.isnan(x.max().to(tenon.float32).item())
            assert np.isnan(x.min().to(tenon.float32).item())
