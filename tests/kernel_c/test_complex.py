# SPDX-License-Identifier: Apache-2.0
"""Complex elements in every family of kernels: what has no operators in C is written with functions."""

import numpy as np
import pytest
import tenon
from test_against_cpu import assert_equal

rng = np.random.default_rng(11)
DTYPES = ["complex64", "complex128"]


def numbers(*shape, dtype):
    """Whole numbers, whose sums and products are exact in any order."""
    return (rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (50000,), (3, 7000), (7000, 3), (7, 9, 11, 5)], ids=str)
def test_reductions(shape, dtype, device):
    x = numbers(*shape, dtype=dtype)
    for axis in [None, *range(len(shape))]:
        for op in (tenon.sum, tenon.any, tenon.all):
            assert_equal(device, lambda t, axis=axis, op=op: op(t, axis=axis), x)
        # The two parts are added up in another order than the CPU adds them.
        assert_equal(device, lambda t, axis=axis: tenon.mean(t, axis=axis), x, rtol=1e-5)
    units = np.array([1, 1j, -1, -1j], dtype)[rng.integers(0, 4, shape)]
    assert_equal(device, lambda t: tenon.prod(t, axis=0), units)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3000,), (3, 1500, 2), (7, 1)], ids=str)
def test_scans(shape, dtype, device):
    x = numbers(*shape, dtype=dtype)
    units = np.array([1, 1j, -1, -1j], dtype)[rng.integers(0, 4, shape)]
    for axis in range(len(shape)):
        assert_equal(device, lambda t, axis=axis: tenon.cumsum(t, axis), x)
        assert_equal(device, lambda t, axis=axis: tenon.cumsum(t, axis, True), x)
        assert_equal(device, lambda t, axis=axis: tenon.cumprod(t, axis), units)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m,n,k", [(1, 1, 1), (3, 5, 7), (33, 65, 17), (1, 100, 50), (70, 2, 70)])
def test_matrix_products(m, n, k, dtype, device):
    x, y = numbers(2, m, k, dtype=dtype), numbers(k, n, dtype=dtype)
    assert_equal(device, tenon.matmul, x, y)
    assert_equal(
        device, lambda a, b: tenon.matmul(a.conj().permute([0, 2, 1]).permute([0, 2, 1]), b), x, y
    )
    assert_equal(device, lambda a, b: tenon.linear(a, b.permute().contiguous(), b[0]), x, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_indexing(dtype, device):
    to = getattr(tenon, dtype)
    x, source = numbers(6, 7, 8, dtype=dtype), numbers(6, 5, 8, dtype=dtype)
    index = rng.integers(-7, 7, (6, 5, 8))
    unique = np.argsort(rng.random((6, 5, 8)), 1)
    calls = [
        lambda x, i, u, s: tenon.gather(x, i, 1),
        lambda x, i, u, s: tenon.scatter(x, u, s, 1),
        lambda x, i, u, s: tenon.scatter_add(x, i, s, 1),
        lambda x, i, u, s: tenon.index_select(x, i[:, 0, 0], 1),
        lambda x, i, u, s: tenon.index_add(x, i[0, :, 0], s[:, :5], 1),
        lambda x, i, u, s: tenon.index(x, [i[:, 0, 0], i[0, 0, :1]], 1),
        lambda x, i, u, s: tenon.index_put(x, [i[:, 0, 0]], s[0, 0, 0], axis=1, accumulate=True),
        lambda x, i, u, s: tenon.index_put(x, [u[:1, 0, 0]], 3 - 1j, axis=1),
        lambda x, i, u, s: tenon.nonzero(x - x[0]),
        lambda x, i, u, s: tenon.where(x == x[0], x, 2j),
        lambda x, i, u, s: tenon.concat([x, s], 1),
        lambda x, i, u, s: tenon.pad(x, [0, 0, 1, 2, 0, 3]),
        lambda x, i, u, s: tenon.flip(x.permute([2, 0, 1])) + s[0, 0, 0],
        lambda x, i, u, s: tenon.complex(x.real, s[0, 0].real),
        lambda x, i, u, s: tenon.arange(5, dtype=to, device=x.device) * x[0, 0, :5],
    ]
    for call in calls:
        assert_equal(device, call, x, index, unique, source)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_beside_tensors(dtype, device):
    x = numbers(40, dtype=dtype) + 0.5
    for number in (2, 2.5, True, 1 - 2j):
        # The CPU fuses a product with the sum behind it, and the kernels do not: a rounding more.
        assert_equal(device, lambda t, n=number: (t + n) * n - n / t, x, rtol=1e-6)
        assert_equal(device, lambda t, n=number: t == n, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_times_its_conjugate_is_real(dtype, device):
    x = (rng.standard_normal(500) + 1j * rng.standard_normal(500)).astype(dtype)
    product = tenon.tensor(x, device=device) * tenon.tensor(x.conj(), device=device)
    assert (product.to("cpu").numpy().imag == 0).all()
