# SPDX-License-Identifier: Apache-2.0
"""An element has one result, whichever loop computes it: whole vectors, their rest, strides, one element,
a block with arguments of another kind, several threads."""

import numpy as np
import pytest
import tenon

UNARY = """exp exp2 expm1 log log2 log10 log1p tanh sinh cosh erf erfc sigmoid silu gelu softplus mish
    sin cos tan asin acos atan asinh acosh atanh sqrt rsqrt cbrt lgamma digamma""".split()
BINARY = ["pow", "atan2", "logaddexp"]
DTYPES = ["float32", "float64", "bfloat16"]
ROWS, COLUMNS = 27, 37


def ordinary(seed):
    return np.random.default_rng(seed).uniform(-8, 8, ROWS * COLUMNS)


def mixed(seed):
    """Special values and large arguments among ordinary ones."""
    values = ordinary(seed)
    values[500::7] = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e6, -3e30, 1e-40], 72)
    return values


def tensor(values, dtype):
    return tenon.tensor(np.ascontiguousarray(values)).to(getattr(tenon, dtype))


def bits(result):
    """As float64, where NaN is NaN, and zeros have signs."""
    values = result.to(tenon.float64).numpy()
    return np.where(np.isnan(values), np.nan, values), np.signbit(values) & ~np.isnan(values)


def assert_same(got, want):
    for a, b in zip(bits(got), bits(want), strict=True):
        np.testing.assert_array_equal(a, b)


def assert_one_result(function, *arguments):
    whole = function(*arguments)
    for part in (slice(None, None, 2), slice(None, None, -1), slice(3, 20), slice(501, 758)):
        assert_same(function(*(each[part] for each in arguments)), whole[part])
    for i in (0, 499, 500, 507, 998):
        assert_same(function(*(each[i] for each in arguments)), whole[i])
    squares = [each.reshape(ROWS, COLUMNS).T for each in arguments]
    assert_same(function(*squares), whole.reshape(ROWS, COLUMNS).T)
    many = [tenon.concat([each] * 300) for each in arguments]
    assert_same(function(*many), tenon.concat([whole] * 300))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    for values in (ordinary(1), mixed(2)):
        assert_one_result(getattr(tenon, name), tensor(values, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    for values in (ordinary, mixed):
        assert_one_result(getattr(tenon, name), tensor(values(3), dtype), tensor(values(4), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [2.5, -0.75, 41.0])
def test_power_by_a_number(exponent, dtype):
    for values in (abs(ordinary(5)), mixed(6)):
        x = tensor(values, dtype)
        y = tensor(np.full(values.shape, exponent), dtype)
        assert_same(tenon.pow(x, exponent), tenon.pow(x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1, 1, 0])
def test_simple_powers_by_a_number(exponent, dtype):
    x = tensor(mixed(7), dtype)
    with np.errstate(all="ignore"):
        want = np.float_power(x.numpy().astype(np.float64), exponent).astype(dtype)
    tolerance = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose((x**exponent).numpy(), want, rtol=tolerance)


# Shapes of every algorithm (TENON_CPU_TRACE=1 names it), whose last tile on several threads has few rows or
# columns, or would have another algorithm by itself.
PRODUCTS = [
    (130, 129, 130),
    (64, 2000, 300),
    (300, 1100, 514),
    (20, 256, 4100),
    (5, 700, 3000),
    (3000, 700, 5),
]
PRODUCTS += [
    (1, 900, 4001),
    (4001, 900, 1),
    (33, 300, 700),
    (700, 40, 1030),
    (12, 3000, 130),
    (257, 1600, 97),
]


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "int8"])
@pytest.mark.parametrize("layout", ["plain", "right transposed", "left transposed"])
def test_products_do_not_depend_on_the_number_of_threads(dtype, layout):
    before = tenon.get_num_threads()
    try:
        for m, k, n in PRODUCTS:
            rng = np.random.default_rng(m)
            x, y = (
                tensor(rng.normal(size=(m, k)), "float32"),
                tensor(rng.normal(size=(k, n)), "float32"),
            )
            if layout == "right transposed":
                y = tensor(rng.normal(size=(n, k)), "float32").T
            elif layout == "left transposed":
                x = tensor(rng.normal(size=(k, m)), "float32").T
            x, y = (tenon.clamp(20 * a, -100, 100) if dtype == "int8" else a for a in (x, y))
            x, y = x.to(getattr(tenon, dtype)), y.to(getattr(tenon, dtype))
            product = tenon.matmul_integer if dtype == "int8" else tenon.matmul
            tenon.set_num_threads(1)
            want = product(x, y)
            for threads in (2, 3, 5):
                tenon.set_num_threads(threads)
                assert_same(product(x, y), want)
    finally:
        tenon.set_num_threads(before)
