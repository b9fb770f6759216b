# SPDX-License-Identifier: Apache-2.0
"""What sums, products and means add up in: integers in 64 bits of their own signedness, means of
integers in float64, float16 and bfloat16 in float32."""

import numpy as np
import pytest
import tenon
from running import skip_unserved

UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
SIGNED = ["int8", "int16", "int32", "int64"]
WIDENING = {
    "sum": (tenon.sum, np.sum),
    "prod": (tenon.prod, np.prod),
    "cumsum": (tenon.cumsum, lambda x, **options: np.cumsum(x, -1, **options)),
    "cumprod": (tenon.cumprod, lambda x, **options: np.cumprod(x, -1, **options)),
}


def make(array, device):
    return tenon.tensor(array).to(device)


@pytest.mark.parametrize("name", WIDENING)
@pytest.mark.parametrize("dtype", ["bool", *UNSIGNED, *SIGNED])
def test_integers_widen_and_keep_their_sign(name, dtype, device):
    skip_unserved(device, dtype)
    ours, numpys = WIDENING[name]
    wide = "uint64" if dtype in UNSIGNED else "int64"
    high = 1 if dtype == "bool" else int(np.iinfo(dtype).max)
    for array in (
        np.array([high] * 5, dtype),
        np.array([[high, 1, high], [1, high, high]], dtype),
        np.array([high] * 5000, dtype),
        np.zeros((0,), dtype),
        np.zeros((2, 0), dtype),
    ):
        with np.errstate(over="ignore"):
            want = numpys(array, dtype=wide)
        got = ours(make(array, device))
        assert str(got.dtype) == wide
        np.testing.assert_array_equal(got.to("cpu").numpy(), want)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_sums_along_axes(dtype, device):
    skip_unserved(device, dtype)
    array = np.random.default_rng(3).integers(0, np.iinfo(dtype).max, (70, 33), dtype, True)
    for axis in (0, 1, (0, 1)):
        for x in (array, array[::2, ::-1]):
            got = tenon.sum(make(x, device), axis).to("cpu").numpy()
            np.testing.assert_array_equal(got, x.sum(axis, dtype="uint64"))


def test_sums_beyond_int64(device):
    skip_unserved(device, "uint64")
    assert tenon.sum(make(np.array([2**62] * 3, "uint64"), device)).item() == 3 * 2**62
    assert tenon.sum(make(np.array([2**63], "uint64"), device)).item() == 2**63
    assert tenon.prod(make(np.array([2**32, 2**31], "uint64"), device)).item() == 2**63
    cumulated = tenon.cumsum(make(np.array([2**62] * 3, "uint64"), device)).tolist()
    assert cumulated == [2**62, 2**63, 3 * 2**62]


def test_sums_with_results_given():
    out = tenon.zeros((), dtype="uint64")
    tenon.sum(tenon.tensor(np.array([2**63], "uint64")), out=out)
    assert out.item() == 2**63


@pytest.mark.parametrize("dtype", ["bool", *UNSIGNED, *SIGNED])
def test_means_of_integers(dtype, device):
    skip_unserved(device, dtype)
    high = 1 if dtype == "bool" else int(np.iinfo(dtype).max)
    rng = np.random.default_rng(4)
    for array in (
        np.array([high, high, 0 if high == 1 else high - 2], dtype),
        np.array([[high, 0], [high, high]], dtype),
        rng.integers(0, high, 5000, dtype, True) if high > 1 else rng.integers(0, 2, 5000) > 0,
    ):
        for axis in (None, 0):
            want = np.mean(array, axis, dtype="float64").astype("float32")
            got = tenon.mean(make(array, device), axis)
            assert got.dtype == tenon.float32
            np.testing.assert_allclose(got.to("cpu").numpy(), want, 2.5e-7)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_means_keep_the_last_digits_of_integers(dtype):
    x = tenon.tensor([16777217, 16777217, 16777221, 16777217]).to(dtype)
    assert tenon.mean(x).item() == 16777218  # of the numbers as float32: 16777216
    many = tenon.full((3_000_001,), 16777217, dtype=dtype)
    assert tenon.mean(many).item() == np.float32(16777217)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "name", ["sum", "mean", "cumsum", "norm", "std", "var", "logsumexp", "vecdot", "matmul"]
)
def test_small_floats_add_up_in_float32(name, dtype, device):
    """Ones that are added one by one in float16 stop at 2048, in bfloat16 at 256."""
    skip_unserved(device, dtype)
    x = tenon.ones((20_000,), dtype=dtype, device=device)
    halves = tenon.concat([x, -x])
    got = {
        "sum": lambda: x.sum(),
        "mean": lambda: x.mean(),
        "cumsum": lambda: x.cumsum()[-1],
        "norm": lambda: tenon.norm(x, 1.0),
        "std": lambda: halves.std(),
        "var": lambda: halves.var(),
        "logsumexp": lambda: tenon.logsumexp(x),
        "vecdot": lambda: tenon.vecdot(x, x),
        "matmul": lambda: x @ x,
    }[name]()
    want = {"mean": 1.0, "std": 1.0, "var": 1.0, "logsumexp": 1 + np.log(20_000)}.get(name, 20_000)
    np.testing.assert_allclose(
        got.to("cpu").to("float32").item(), want, 4e-3 if dtype == "bfloat16" else 5e-4
    )


def test_products_of_vectors_keep_their_dtype():
    """The standard's rule of matmul, dot and vecdot, and NumPy's of einsum: integers wrap."""
    for dtype in (*UNSIGNED, *SIGNED):
        x = tenon.tensor([100, 3]).to(dtype)
        with np.errstate(over="ignore"):
            want = (
                np.vecdot(x.numpy(), x.numpy()) if hasattr(np, "vecdot") else x.numpy() @ x.numpy()
            )
        for got in (
            tenon.vecdot(x, x),
            tenon.dot(x, x),
            tenon.matmul(x, x),
            tenon.einsum("i,i->", [x, x]),
            tenon.tensordot(x, x, [0], [0]),
        ):
            assert (str(got.dtype), got.item()) == (dtype, int(want))
        assert tenon.einsum("i->", [x]).dtype == x.dtype


def test_products_of_booleans_are_refused():
    x = tenon.tensor([True, False])
    for function in (tenon.vecdot, tenon.dot, tenon.matmul):
        with pytest.raises(TypeError, match="got bool; convert with .to"):
            function(x, x)


def test_vecdot_conjugates_its_first_operand():
    x, y = np.array([1j, 2 - 3j]), np.array([1j, 1 + 1j])
    assert tenon.vecdot(tenon.tensor([1j]), tenon.tensor([1j])).item() == 1
    np.testing.assert_allclose(tenon.vecdot(tenon.tensor(x), tenon.tensor(y)).item(), np.vdot(x, y))
    assert tenon.dot(tenon.tensor(x), tenon.tensor(y)).item() == np.dot(x, y)


@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_softmax_of_long_columns(function):
    """Sums along another axis than the last have the error of short chains of additions. Only the
    CPU's kernels promise that: the example of a vendor's adds in one chain."""
    count = 16_384
    numbers = np.repeat(np.resize([0.0, -0.7], count).astype("float32")[:, None], 2, 1)
    x, exact = tenon.tensor(numbers), numbers.astype("float64")
    sums = np.exp(exact).sum(0)
    want = np.exp(exact) / sums if function == "softmax" else exact - np.log(sums)
    got = getattr(tenon, function)(x, 0).to("cpu").numpy()
    np.testing.assert_allclose(got, want, rtol=3e-6 if function == "softmax" else 5e-7)
