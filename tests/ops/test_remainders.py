# SPDX-License-Identifier: Apache-2.0
"""Remainders and neighbours of floating-point numbers on the CPU, bit for bit as NumPy has them.

Small quotients take one division and one fused multiplication, others std::fmod: the arguments are at the
borders between the two, at whole quotients and their neighbours, and at the ends of the range.
"""

import numpy as np
import pytest
import tenon

FUNCTIONS = {
    "fmod": np.fmod,
    "remainder": np.remainder,
    "floor_divide": np.floor_divide,
    "nextafter": np.nextafter,
}


def arguments(kind, dtype):
    random, n = np.random.default_rng(0), 4000
    limits = np.finfo(dtype)
    whole = random.integers(-50, 50, n)
    divisors = (random.integers(1, 20, n) * random.choice([-1, 1], n)).astype(dtype)
    if kind == "sizes":
        x, y = (random.normal(size=n) * 10 ** random.uniform(-size, size, n) for size in (6, 4))
    elif kind == "special":
        ends = [limits.max, limits.tiny, limits.smallest_subnormal, np.inf, np.nan]
        values = np.array([0.0, 0.5, 1.0, 3.0, 7.5, *ends], dtype)
        x, y = (each.ravel() for each in np.meshgrid(*[np.concatenate([values, -values])] * 2))
    elif kind == "whole quotients":
        x, y = whole * divisors, divisors
    elif kind == "beside whole quotients":
        products = (whole * divisors).astype(dtype)
        x, y = np.nextafter(products, random.choice([-np.inf, np.inf], n).astype(dtype)), divisors
    elif kind == "subnormal":
        x, y = (
            limits.smallest_subnormal * random.integers(1, k, n).astype(dtype) for k in (999, 50)
        )
    else:  # large quotients
        x, y = divisors * 2.0 ** (limits.nmant + random.integers(-4, 4, n)) + whole, divisors / 3
    return np.asarray(x).astype(dtype), np.asarray(y).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "kind",
    [
        "sizes",
        "special",
        "whole quotients",
        "beside whole quotients",
        "subnormal",
        "large quotients",
    ],
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_of_numpy(name, kind, dtype):
    x, y = arguments(kind, dtype)
    ours, theirs = getattr(tenon, name), FUNCTIONS[name]
    with np.errstate(all="ignore"):
        check(ours(tenon.tensor(x), tenon.tensor(y)).numpy(), theirs(x, y))
        for k in (0, 7, len(x) - 1):  # one operand for all elements
            one = slice(k, k + 1)
            check(ours(tenon.tensor(x), tenon.tensor(y[one])).numpy(), theirs(x, y[one]))
            check(ours(tenon.tensor(x[one]), tenon.tensor(y)).numpy(), theirs(x[one], y))


def check(got, expected):
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)  # NaN equals NaN
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_in_place(name):
    """The output may be an operand, also where a block has large quotients and is computed again."""
    x, y = arguments("sizes", "float32")
    expected = FUNCTIONS[name](x, y)
    for target in (0, 1):
        pair = [tenon.tensor(x), tenon.tensor(y)]
        getattr(tenon, name)(*pair, out=pair[target])
        check(pair[target].numpy(), expected)
