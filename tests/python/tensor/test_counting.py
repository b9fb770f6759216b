# SPDX-License-Identifier: Apache-2.0
"""unique, bincount and histograms, against NumPy's."""

import numpy as np
import pytest
import tenon

RNG = np.random.default_rng(3)
ROWS = RNG.integers(0, 3, (20, 2, 2))


def same(got, want):
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert tuple(one.shape) == np.shape(other)
        np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_unique(axis):
    names = {"return_index": True, "return_inverse": True, "return_counts": True, "axis": axis}
    values, index, inverse, counts = np.unique(ROWS, **names)
    same(tenon.unique(tenon.tensor(ROWS), **names), (values, index, inverse, counts))
    assert tenon.unique(tenon.tensor(ROWS), axis=axis).tolist() == values.tolist()
    got = tenon.unique(tenon.tensor(ROWS), return_counts=True, axis=axis)
    same(got, (values, counts))


@pytest.mark.parametrize("array", [np.zeros(0), np.zeros((0, 3)), np.array(5.0)], ids=str)
def test_unique_of_little(array):
    names = {"return_inverse": True, "return_counts": True}
    same(tenon.unique(tenon.tensor(array), **names), np.unique(array, **names))


def test_unique_consecutive():
    x = tenon.tensor([1, 1, 2, 2, 2, 1, 3])
    got = tenon.unique_consecutive(x, return_inverse=True, return_counts=True)
    same(got, ([1, 2, 1, 3], [0, 0, 1, 1, 1, 2, 3], [2, 3, 1, 1]))
    rows = tenon.tensor([[1, 2], [1, 2], [3, 2]])
    got = tenon.unique_consecutive(rows, return_inverse=True, return_counts=True, axis=0)
    same(got, ([[1, 2], [3, 2]], [0, 0, 1], [2, 1]))
    columns = tenon.unique_consecutive(rows.T, axis=1)
    assert columns.tolist() == [[1, 3], [2, 2]]
    assert tenon.unique_consecutive(tenon.zeros([0])).tolist() == []


@pytest.mark.parametrize("minlength", [0, 3, 12])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int32"])
def test_bincount(minlength, dtype):
    array, weights = RNG.integers(0, 9, 50).astype(dtype), RNG.normal(size=50)
    x = tenon.tensor(array)
    same([tenon.bincount(x, minlength=minlength)], [np.bincount(array, minlength=minlength)])
    got = tenon.bincount(x, tenon.tensor(weights), minlength)
    np.testing.assert_allclose(got.numpy(), np.bincount(array, weights, minlength), rtol=1e-12)


def test_bincount_of_nothing_and_its_errors():
    assert tenon.bincount(tenon.zeros([0], dtype="int64")).tolist() == []
    with pytest.raises(ValueError, match="expected numbers of at least 0, got -1"):
        tenon.bincount(tenon.tensor([1, -1]))
    with pytest.raises(ValueError, match=r"a vector of integers, got shape \[1\] and float32"):
        tenon.bincount(tenon.tensor([1.0]))
    with pytest.raises(ValueError, match=r"weights of shape \[2\], got \[3\]"):
        tenon.bincount(tenon.tensor([1, 1]), tenon.zeros([3]))
    with pytest.raises(ValueError, match="minlength of at least 0, got -1"):
        tenon.bincount(tenon.tensor([1, 1]), minlength=-1)


@pytest.mark.parametrize("bins", [1, 4, [-1.0, 0.0, 0.25, 2.0]], ids=str)
@pytest.mark.parametrize("density", [False, True])
def test_histogram(bins, density):
    array = RNG.normal(size=(4, 25))
    wanted = tenon.tensor(bins, dtype="float64") if isinstance(bins, list) else bins
    got = tenon.histogram(tenon.tensor(array), wanted, density=density)
    for one, other in zip(got, np.histogram(array, bins, density=density), strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)


def test_histogram_with_a_range_and_weights():
    array, weights = RNG.normal(size=40), RNG.uniform(size=40)
    got = tenon.histogram(tenon.tensor(array), 5, range=(-1, 1), weights=tenon.tensor(weights))
    want = np.histogram(array, 5, (-1, 1), weights=weights)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-12)


@pytest.mark.parametrize("array", [np.zeros(0), np.full(3, 2.5), np.arange(4)], ids=str)
def test_bin_edges(array):
    got = tenon.histogram_bin_edges(tenon.tensor(array), 4)
    np.testing.assert_allclose(got.numpy(), np.histogram_bin_edges(array, 4), rtol=1e-6)


def test_histogramdd():
    points = RNG.normal(size=(60, 2))
    weights = RNG.uniform(size=60)
    edges = [-1.0, 0.5, 2.0]
    counts, bounds = tenon.histogramdd(
        tenon.tensor(points),
        [3, tenon.tensor(edges, dtype="float64")],
        weights=tenon.tensor(weights),
        density=True,
    )
    want, want_bounds = np.histogramdd(points, [3, edges], weights=weights, density=True)
    np.testing.assert_allclose(counts.numpy(), want, rtol=1e-12)
    for one, other in zip(bounds, want_bounds, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-12)


def test_errors_of_histograms():
    x = tenon.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="expected at least one bin, got 0"):
        tenon.histogram(x, 0)
    with pytest.raises(ValueError, match="expected a finite range, got 1 to inf"):
        tenon.histogram(x, 2, range=(1, float("inf")))
    with pytest.raises(ValueError, match=r"a vector of at least two bounds, got shape \[1\]"):
        tenon.histogram(x, tenon.tensor([1.0]))
    with pytest.raises(ValueError, match=r"points of shape \[n, d\], got shape \[2\]"):
        tenon.histogramdd(x)
    with pytest.raises(ValueError, match="bins and ranges for 1 columns, got 2 and no"):
        tenon.histogramdd(x.reshape(-1, 1), [2, 2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_spaced_numbers_are_those_of_numpy_on_every_instruction_set(dtype):
    """A product and a sum, each rounded: a fused multiply-add would miss the middle."""
    for count in (2, 3, 7, 11, 33, 99, 1000):
        for start, stop in ((-1, 1), (-2, 2), (0.1, 0.9), (3, -7)):
            got = tenon.linspace(start, stop, count, dtype=dtype).numpy()
            np.testing.assert_array_equal(got, np.linspace(start, stop, count, dtype=dtype))
        step = 0.1
        got = tenon.arange(-1.0, count * step, step, dtype=dtype)
        want = (-1.0 + np.arange(got.size) * step).astype(dtype)
        np.testing.assert_array_equal(got.numpy(), want)


def test_densities_have_the_digits_of_the_bounds():
    values = np.array([0.1, 0.2, 0.9])
    got, _ = tenon.histogram(tenon.tensor(values), 3, density=True)
    want, _ = np.histogram(values, 3, density=True)
    assert got.dtype == tenon.float64
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-15)
    single, _ = tenon.histogram(tenon.tensor(values.astype("float32")), 3, density=True)
    assert single.dtype == tenon.float32
