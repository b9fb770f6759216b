# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions of complex numbers equal NumPy's: inside, at branch cuts, near overflow, and at the special
values that Annex G of C99 lists."""

import numpy as np
import pytest
import tenon
from running import skip_unserved

# float32 has 24 bits; the functions are made of a few real ones, each of which rounds.
RTOL = {"complex64": 2e-5, "complex128": 1e-12}

FUNCTIONS = {
    name: getattr(np, numpy_name)
    for name, numpy_name in {
        **{
            each: each for each in ("exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sqrt")
        },
        **{each: each for each in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
        **{"asin": "arcsin", "acos": "arccos", "atan": "arctan"},
        **{"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"},
        **{each: each for each in ("negative", "square", "abs", "angle", "conj", "real", "imag")},
        **{
            "isnan": "isnan",
            "isinf": "isinf",
            "isfinite": "isfinite",
            "logical_not": "logical_not",
        },
    }.items()
}

FINITE = [-1e30, -100.0, -2.0, -1.0, -0.5, -1e-30, -0.0, 0.0, 1e-30, 0.3, 1.0, 2.0, 100.0, 1e30]


def pairs(parts, dtype):
    # A sum of a real and an imaginary number would lose signs of zero.
    return np.array([complex(re, im) for re in parts for im in parts], dtype)


def parts_of(array):
    return np.stack([array.real, array.imag], -1) if np.iscomplexobj(array) else array[..., None]


def assert_equal_numbers(got, want, rtol):
    """By the modulus where it is finite, infinities and NaN by their parts."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype == bool:
        np.testing.assert_array_equal(got, want)
        return
    parts, expected = parts_of(got), parts_of(want)
    finite = np.isfinite(expected).all(-1)
    np.testing.assert_allclose(got[finite], want[finite], rtol=rtol, atol=1e-37)
    np.testing.assert_array_equal(np.isnan(parts), np.isnan(expected))
    # The sign of an infinity beside a NaN is not specified.
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(np.isinf(parts), infinite)
    signed = infinite & ~np.isnan(expected).any(-1, keepdims=True)
    np.testing.assert_array_equal(parts[signed], expected[signed])


def on_device(op, device, *arrays):
    skip_unserved(device, str(arrays[0].dtype))
    return (
        getattr(tenon, op)(*(tenon.tensor(each, device=device) for each in arrays))
        .to("cpu")
        .numpy()
    )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_equal_numpys(op, dtype, device):
    rng = np.random.default_rng(3)
    inside = (rng.standard_normal(200) * 3 + 1j * rng.standard_normal(200) * 3).astype(dtype)
    # float32's squares of 1e30 overflow before they cancel, or do not where they are fused; the angle of exp2 is
    # rounded before it is reduced; NumPy's log1p of 1e-30 is 0, and its expm1 multiplies infinity by 0.
    largest = {"square": 100, "exp2": 100, "expm1": 2}.get(op, np.inf)
    least = 1e-5 if op == "log1p" else 0
    parts = [p for p in FINITE if abs(p) <= largest and (p == 0 or abs(p) >= least)]
    for x in (inside, pairs(parts, dtype)):
        assert_equal_numbers(on_device(op, device, x), FUNCTIONS[op](x), RTOL[dtype])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "op", [each for each in FUNCTIONS if each not in ("square", "exp2", "expm1")]
)
def test_special_values_equal_numpys(op, dtype, device):
    x = pairs([-np.inf, -2.0, -0.0, 0.0, 0.5, np.inf, np.nan], dtype)
    assert_equal_numbers(on_device(op, device, x), FUNCTIONS[op](x), RTOL[dtype])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("op", ["sqrt", "log", "asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_the_sign_of_zero_chooses_the_side_of_a_cut(op, dtype, device):
    x = np.array([complex(re, im) for re in (-2.0, 2.0) for im in (-0.0, 0.0)], dtype)
    x = np.concatenate(
        [x, np.array([complex(re, im) for re in (-0.0, 0.0) for im in (-2.0, 2.0)], dtype)]
    )
    got, want = parts_of(on_device(op, device, x)), parts_of(FUNCTIONS[op](x))
    np.testing.assert_allclose(got, want, rtol=RTOL[dtype], atol=RTOL[dtype])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "op", ["add", "subtract", "multiply", "divide", "pow", "equal", "not_equal"]
)
def test_arithmetic_equals_numpys(op, dtype, device):
    reference = {"pow": np.power}.get(op) or getattr(np, op)
    rng = np.random.default_rng(5)
    x, y = (
        (rng.standard_normal(300) * 2 + 1j * rng.standard_normal(300) * 2).astype(dtype)
        for _ in range(2)
    )
    y[::7] = x[::7]
    rtol = RTOL[dtype] * (5 if op == "pow" else 1)  # the exponent multiplies the logarithm's error
    assert_equal_numbers(on_device(op, device, x, y), reference(x, y), rtol)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_quotients_of_large_and_small_numbers_neither_overflow_nor_vanish(dtype, device):
    size = {"complex64": 1e30, "complex128": 1e300}[dtype]
    x = np.array([size + size * 1j, size - size * 1j, (1 + 2j) / size, 1 / size], dtype)
    y = np.array([size * (1 + 1j) / 4, size * 2j, (3 - 1j) / size, 1j / size], dtype)
    want = np.array([4, -0.5 - 0.5j, 0.1 + 0.7j, -1j], dtype)
    assert_equal_numbers(on_device("divide", device, x, y), want, RTOL[dtype])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_conversions_equal_numpys(dtype, device):
    skip_unserved(device, dtype)
    x = np.array([1.5 + 2j, -3.25 - 1j, 0, 1j, 0.25], dtype)
    tensor = tenon.tensor(x, device=device)
    for name in ("complex64", "complex128", "float32", "int32", "bool"):
        skip_unserved(device, name)
        got = tensor.to(getattr(tenon, name)).to("cpu").numpy()
        np.testing.assert_array_equal(
            got, x.real.astype(name) if name in ("float32", "int32") else x.astype(name)
        )
    for name in ("bool", "int64", "float16", "float32", "float64"):
        values = np.array([0, 1, 1], name)
        got = tenon.tensor(values, device=device).to(getattr(tenon, dtype)).to("cpu").numpy()
        np.testing.assert_array_equal(got, values.astype(dtype))
