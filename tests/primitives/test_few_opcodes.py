# SPDX-License-Identifier: Apache-2.0
"""Opcodes that are made of others, on a device that lacks them, against the CPU: numbers of all sizes."""

import os
from pathlib import Path

import numpy as np
import pytest
import tenon

DEVICE = "few"
COUNT = 20_000


@pytest.fixture(scope="module", autouse=True)
def few():
    folder = Path(os.environ["TENON_BUILD_DIR"]) / "tests" / "primitives"
    tenon.load_plugin(str(folder / "libtenon_few.so"))


def integers(dtype, seed):
    """All bits, then numbers with fewer and fewer of them."""
    random = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    x = random.integers(info.min, info.max, COUNT, dtype, endpoint=True)
    x >>= random.integers(0, info.bits, COUNT).astype(dtype)
    x[:64] = np.resize([info.min, info.max, 0, 1, info.max - 1, info.min + 1, 7, 2], 64)
    random.shuffle(x)
    return x


def floats(seed):
    """All bits of float32: all exponents, subnormal numbers, infinities and NaN."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 2**32, COUNT, np.uint64).astype(np.uint32).view(np.float32)
    near = random.normal(size=COUNT).astype(np.float32)
    return np.where(random.random(COUNT) < 0.5, x, near)


def answers(function, *arrays):
    results = []
    for device in ("cpu", DEVICE):
        result = function(*(tenon.tensor(x, device=device) for x in arrays))
        assert result.device.type == device
        results.append(result.to("cpu").numpy())
    return results


INTEGER_FUNCTIONS = {
    name: getattr(tenon, name)
    for name in (
        "floor_divide",
        "remainder",
        "fmod",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "pow",
        "gcd",
        "lcm",
    )
}
INTEGER_FUNCTIONS["left shift"] = lambda x, y: tenon.bitwise_left_shift(x, y % 80 - 5)
INTEGER_FUNCTIONS["right shift"] = lambda x, y: tenon.bitwise_right_shift(x, y % 80 - 5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", INTEGER_FUNCTIONS)
def test_integers_are_the_same_bits(name, dtype):
    x, y = integers(dtype, 1), integers(dtype, 2)
    on_cpu, on_device = answers(INTEGER_FUNCTIONS[name], x, y)
    np.testing.assert_array_equal(on_device, on_cpu)


@pytest.mark.parametrize(
    "name", ["fmod", "remainder", "copysign", "nextafter", "round", "trunc", "floor_divide"]
)
def test_exact_functions_are_the_same_bits(name):
    function = getattr(tenon, name)
    arrays = [floats(3), floats(4)][: 1 if name in ("round", "trunc") else 2]
    on_cpu, on_device = answers(function, *arrays)
    both_nan = np.isnan(on_cpu) & np.isnan(on_device)
    same = (on_cpu.view(np.int32) == on_device.view(np.int32)) | both_nan
    assert same.all(), [(*(a[~same][0] for a in arrays), on_cpu[~same][0], on_device[~same][0])]


@pytest.mark.parametrize("name", ["cbrt", "expm1", "log2", "log10", "erfc", "hypot"])
def test_other_functions_are_within_some_units(name):
    function = getattr(tenon, name)
    arrays = [floats(5), floats(6)][: 2 if name == "hypot" else 1]
    on_cpu, on_device = answers(function, *arrays)
    np.testing.assert_allclose(on_device, on_cpu, rtol=2e-6, atol=2e-38)


def test_lgamma_is_close():
    x = np.concatenate([np.linspace(-8, 30, 20_001, dtype=np.float32), floats(7)])
    on_cpu, on_device = answers(tenon.lgamma, x)
    # Near its zeros below 0 float32 itself has few digits of it left.
    np.testing.assert_allclose(on_device, on_cpu, rtol=3e-6, atol=5e-6)


def test_rows_of_integers():
    random = np.random.default_rng(8)
    x = random.integers(-(2**63), 2**63, (50, 3))
    index, source = random.integers(0, 50, 400), random.integers(-(2**63), 2**63, (400, 3))
    for rows, added in ((x, source), (x.astype("int8"), source.astype("int8"))):
        on_cpu, on_device = answers(lambda a, i, s: tenon.index_add(a, i, s, 0), rows, index, added)
        np.testing.assert_array_equal(on_device, on_cpu)
    for function in (tenon.prod, tenon.sum, tenon.max, tenon.min):
        for axis in (0, 1):
            on_cpu, on_device = answers(lambda a, axis=axis, f=function: f(a, axis), x)
            np.testing.assert_array_equal(on_device, on_cpu)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
def test_products_of_matrices(dtype):
    random = np.random.default_rng(9)
    x, y = (random.integers(-9, 9, shape).astype(dtype) for shape in ((4, 30, 700), (4, 700, 20)))
    for a, b in ((x, y), (x[:, :0], y), (x[:, :, :0], y[:, :0]), (x[0], y[0])):
        on_cpu, on_device = answers(tenon.matmul, a, b)
        np.testing.assert_array_equal(on_device, on_cpu)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "float64"])
def test_rows_are_moved_in_other_dtypes(dtype):
    x = np.random.default_rng(10).normal(size=(20, 4)).astype(dtype)
    index = np.array([3, 19, 0, 3])
    on_cpu, on_device = answers(lambda a, i: tenon.index_select(a, i, 0), x, index)
    np.testing.assert_array_equal(on_device, on_cpu)
