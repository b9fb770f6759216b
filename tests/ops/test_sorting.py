# SPDX-License-Identifier: Apache-2.0
"""Orders of every length that a loop treats apart: registers, blocks of them, partitions, and their rests."""

import numpy as np
import pytest
import tenon

DTYPES = (
    """bool uint8 int8 uint16 int16 int32 uint32 int64 uint64 float16 float32 float64""".split()
)
SHAPES = [(0,), (1,), (2,), (7,), (40,), (129,), (300,), (5, 17), (33, 70), (3, 20, 50), (5000,)]
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 1e-40]


def values(kind, dtype, shape):
    rng = np.random.default_rng(len(kind))
    floating = dtype.startswith("float")
    if kind == "special":
        array = rng.choice(SPECIAL, shape)
    elif kind == "few":
        array = rng.integers(0, 4, shape)
    elif kind == "outliers":  # far apart, and many alike but for their last bits
        far = rng.standard_normal(shape) * (1e300 if floating else 1e18)
        array = np.where(rng.random(shape) < 0.1, far, rng.integers(0, 50, shape))
    else:
        array = rng.standard_normal(shape) if floating else rng.integers(-(2**63), 2**63 - 1, shape)
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(dtype)


def order(x, axis, descending):
    if not descending:
        return np.argsort(x, axis, kind="stable")
    last = x.shape[axis] - 1
    return last - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def assert_same(got, want):
    got = got.numpy()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


def assert_sorted(x):
    for axis in range(x.ndim):
        for descending in (False, True):
            indices = order(x, axis, descending)
            want = np.take_along_axis(x, indices, axis)
            both = tenon.sort_with_indices(tenon.tensor(x), axis, descending)
            assert_same(both[0], want)
            assert_same(both[1], indices)
            assert_same(tenon.sort(tenon.tensor(x), axis, descending), want)
            assert_same(tenon.argsort(tenon.tensor(x), axis, descending), indices)
            for count in {0, 1, x.shape[axis] // 2} if x.size else {0}:
                most = tenon.topk(tenon.tensor(x), count, axis, descending)
                assert_same(most[0], np.take(want, range(count), axis))
                assert_same(most[1], np.take(indices, range(count), axis))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["wide", "few", "outliers", "special"])
def test_order(kind, dtype):
    if kind == "special" and not dtype.startswith("float"):
        pytest.skip("no special values")
    for shape in SHAPES:
        assert_sorted(values(kind, dtype, shape))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("pattern", ["up", "down", "level", "two", "hill"])
def test_patterns(pattern, dtype):
    up = np.arange(20_000)
    patterns = {
        "up": up,
        "down": up[::-1],
        "level": up * 0,
        "two": up % 2,
        "hill": np.minimum(up, up[::-1]),
    }
    assert_sorted(patterns[pattern].astype(dtype))


def test_sorting_is_recorded():
    x = tenon.tensor([3.0, 1.0, 2.0], requires_grad=True)
    (tenon.sort(x) * tenon.tensor([1.0, 2.0, 3.0])).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 1.0, 2.0])


@pytest.mark.parametrize("function", [tenon.sort, tenon.argsort])
def test_no_such_axis(function):
    with pytest.raises(IndexError, match="axis"):
        function(tenon.zeros((2, 2)), 2)
