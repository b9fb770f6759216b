# SPDX-License-Identifier: Apache-2.0
"""Order statistics and running extrema at edges, against NumPy's and by definition."""

import math

import numpy as np
import pytest
import tenon

INF, NAN = math.inf, math.nan
METHODS = ["linear", "lower", "higher", "nearest", "midpoint"]


def on(device, array, dtype=None):
    return tenon.tensor(array, dtype=dtype, device=device)


def host(x):
    return x.to("cpu").numpy()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_quantile(method, axis, keepdim, device):
    array = np.random.default_rng(1).normal(size=(4, 7, 2))
    x = on(device, array, "float64")
    for q in (0.0, 0.37, 0.5, 1.0):
        want = np.quantile(array, q, axis, keepdims=keepdim, method=method)
        got = host(tenon.quantile(x, q, axis, keepdim=keepdim, method=method))
        np.testing.assert_allclose(got, want, rtol=1e-14)
        got = host(tenon.nanquantile(x, q, axis, keepdim=keepdim, method=method))
        np.testing.assert_allclose(got, want, rtol=1e-14)
    q = np.array([[0.1, 0.9, 0.25]])
    want = np.quantile(array, q, axis, keepdims=keepdim, method=method)
    got = tenon.quantile(x, on(device, q, "float64"), axis, keepdim=keepdim, method=method)
    np.testing.assert_allclose(host(got), want, rtol=1e-14)


def test_quantile_of_nan_and_infinities(device):
    x = on(device, [[1.0, NAN, 3.0], [INF, INF, 1.0], [-INF, 2.0, INF], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(host(tenon.median(x, 1)), [NAN, INF, 2, NAN])
    np.testing.assert_array_equal(host(tenon.nanmedian(x, 1)), [2, INF, 2, NAN])
    np.testing.assert_array_equal(host(tenon.quantile(x, 0.75, 1)), [NAN, INF, INF, NAN])
    got = tenon.nanquantile(x, on(device, [0.0, 1.0]), 1)
    np.testing.assert_array_equal(host(got), [[1, 1, -INF, NAN], [3, INF, INF, NAN]])


def test_order_statistics_of_little(device):
    number, empty = on(device, 3.0), on(device, np.zeros((2, 0)))
    assert tenon.median(number).item() == tenon.median(number, 0).item() == 3
    assert tenon.quantile(number, 0.2, -1, keepdim=True).shape == ()
    assert np.isnan(host(tenon.median(empty))) and np.isnan(host(tenon.nanmedian(empty, 1))).all()
    assert tenon.median(empty, 0).shape == (0,)
    assert tenon.median(on(device, [1, 2, 4, 8])).item() == 3
    assert tenon.median(on(device, [True, True, False])).item() == 1
    for function in (lambda x: tenon.kthvalue(x, 1), tenon.mode):
        values, indices = function(number)
        assert values.item() == 3 and indices.item() == 0 and values.shape == indices.shape == ()
    assert tenon.mode(on(device, np.zeros((0, 2)))).values.shape == (0,)


# float32 does not hold the product of a fraction and such a length; the host's numbers do.
def test_quantile_of_many():
    x = tenon.arange(2_000_001, dtype="float32")
    assert tenon.quantile(x, 0.7).item() == 1.4e6


def test_errors_of_order_statistics():
    x = tenon.tensor([[1.0, 2.0]])
    with pytest.raises(ValueError, match="expected q from 0 to 1, got 1.5"):
        tenon.quantile(x, 1.5)
    with pytest.raises(ValueError, match="expected q from 0 to 1, got nan"):
        tenon.quantile(x, NAN)
    with pytest.raises(ValueError, match="expected q from 0 to 1, got -1"):
        tenon.nanquantile(x, tenon.tensor([0.0, -1.0]))
    with pytest.raises(ValueError, match="'nearest' or 'midpoint', got 'cubic'"):
        tenon.quantile(x, 0.5, method="cubic")
    with pytest.raises(TypeError, match="expected real numbers, got complex64"):
        tenon.quantile(tenon.tensor([1j]), 0.5)
    with pytest.raises(IndexError, match="expected k from 1 to 2, the length of axis 1, got 3"):
        tenon.kthvalue(x, 3)
    with pytest.raises(ValueError, match=r"at least one element along axis 0, got shape \(0,\)"):
        tenon.mode(tenon.zeros([0]))
    with pytest.raises(ValueError, match=r"shape broadcasts to \(1, 2\), got \(3,\)"):
        tenon.reduce_as(x, tenon.zeros([3]))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32"])
def test_mode(dtype, device):
    array = np.random.default_rng(5).integers(0, 2 if dtype == "bool" else 4, (6, 50))
    values, indices = tenon.mode(on(device, array).to(dtype), 1)
    for row, value, index in zip(array, host(values.to("int64")), host(indices), strict=True):
        counts = np.bincount(row)
        assert value == counts.argmax() and index == np.flatnonzero(row == value)[-1]


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "uint64", "float16", "float64"])
def test_running_extrema(name, axis, dtype, device):
    if dtype == "uint64" and device != "cpu":
        pytest.skip("devices with primitives alone need not serve uint64")
    array = np.random.default_rng(7).integers(0, 2 if dtype == "bool" else 5, (3, 33, 300))
    x = on(device, array.astype(dtype))
    accumulate = (np.maximum if name == "cummax" else np.minimum).accumulate
    values, indices = getattr(tenon, name)(x, axis)
    want = accumulate(array, axis)
    np.testing.assert_array_equal(host(values), want.astype(dtype))
    numbers = np.arange(array.shape[axis]).reshape([-1 if i == axis else 1 for i in range(3)])
    last = np.maximum.accumulate(np.where(array == want, numbers, 0), axis)
    np.testing.assert_array_equal(host(indices), last)


@pytest.mark.parametrize("records", ["few", "none", "all"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extrema_of_rows_with_few_records(name, records, device):
    """Blocks without a record are filled; the NaN is in the last one."""
    array = np.random.default_rng(7).normal(size=300).astype(np.float32)
    if records != "few":
        array.sort()
        array = array if (records == "all") == (name == "cummax") else array[::-1].copy()
    array[290] = NAN
    values, indices = getattr(tenon, name)(on(device, array))
    want = (np.maximum if name == "cummax" else np.minimum).accumulate(array)
    np.testing.assert_array_equal(host(values), want)
    last = np.maximum.accumulate(np.where(array == want, np.arange(300), 0))
    last[290:] = 290
    np.testing.assert_array_equal(host(indices), last)


def test_running_extrema_of_nan_and_little(device):
    x = on(device, [2.0, NAN, 5.0, NAN, 1.0])
    for function in (tenon.cummax, tenon.cummin):
        values, indices = function(x)
        np.testing.assert_array_equal(host(values), [2, NAN, NAN, NAN, NAN])
        assert indices.tolist() == [0, 1, 1, 3, 3]
        values, indices = function(on(device, 4.0))
        assert values.item() == 4 and indices.item() == 0
        assert function(on(device, np.zeros((2, 0)))).indices.shape == (2, 0)
    with pytest.raises(IndexError, match="axis"):
        tenon.cummax(x, 1)


def test_logcumsumexp_at_infinities(device):
    rows = [
        [-INF, -INF, 0.0, 1.0],
        [0.0, INF, 1.0, -INF],
        [NAN, 0.0, 1.0, 2.0],
        [1e4, -1e4, 1e4, 1.0],
        [-1e4, 1e4, 0.0, 0.0],
    ]
    want = np.logaddexp.accumulate(np.array(rows), 1)
    got = host(tenon.logcumsumexp(on(device, rows, "float64"), 1))
    np.testing.assert_allclose(got, want, rtol=1e-14)
    assert tenon.logcumsumexp(on(device, 2.0)).item() == 2
    small = tenon.logcumsumexp(on(device, [-7.5, 0.0], "float64"))[1].item()
    assert small == pytest.approx(math.log1p(math.exp(-7.5)), rel=1e-14)
    assert tenon.logcumsumexp(on(device, np.zeros((0, 3))), 0).shape == (0, 3)
    np.testing.assert_allclose(
        host(tenon.logcumsumexp(on(device, [1, 2]))), [1.0, 2.3132617], rtol=1e-6
    )


def test_gradient_of_logcumsumexp_beside_infinities(device):
    x = on(device, [-INF, 0.0, 1000.0, 0.0])
    x.requires_grad = True
    tenon.logcumsumexp(x).sum().backward()
    np.testing.assert_allclose(host(x.grad), [0.0, 1.0, 2.0, 0.0], atol=1e-7)
