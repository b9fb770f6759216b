# SPDX-License-Identifier: Apache-2.0
"""Placing with a reduction, against loops."""

import math

import numpy as np
import pytest
import tenon

INF, NAN = math.inf, math.nan
MERGE = {
    "sum": np.sum,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "mean": lambda values: np.sum(values) / len(values),
}


def reference(x, index, source, axis, reduce, include_self):
    """One list of numbers for each element of x, merged at the end."""
    lists = {place: [x[place]] if include_self else [] for place in np.ndindex(x.shape)}
    for place in np.ndindex(index.shape):
        target = list(place)
        target[axis] = index[place] % x.shape[axis]
        lists[tuple(target)].append(source[place])
    out = x.copy()
    for place, values in lists.items():
        if values:
            merged = MERGE[reduce](values)
            out[place] = math.floor(merged) if out.dtype.kind in "iu" else merged
    return out


@pytest.mark.parametrize("reduce", MERGE)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_reduce(reduce, include_self, dtype, axis, device):
    rng = np.random.default_rng(11)
    shape = (3, 9) if axis else (9, 3)
    x, source = rng.integers(1, 6, (4, 5)).astype(dtype), rng.integers(1, 4, shape).astype(dtype)
    x = x[:, :4] if axis else x[:, :3]
    index = rng.integers(-x.shape[axis], x.shape[axis], shape)
    tensors = [tenon.tensor(array, device=device) for array in (x, index, source)]
    got = tenon.scatter_reduce(*tensors, axis, reduce=reduce, include_self=include_self)
    want = reference(x, index, source, axis, reduce, include_self)
    np.testing.assert_allclose(got.to("cpu").numpy(), want, rtol=1e-6)
    assert got.dtype == tensors[0].dtype


@pytest.mark.parametrize("reduce", ["amax", "amin", "prod"])
def test_nan_and_infinities(reduce, device):
    x = tenon.tensor([1.0, NAN, -INF, INF], device=device)
    source = tenon.tensor([NAN, 2.0, 3.0, -1.0], device=device)
    got = tenon.scatter_reduce(x, tenon.tensor([0, 1, 2, 3], device=device), source, reduce=reduce)
    want = {
        "amax": [NAN, NAN, 3, INF],
        "amin": [NAN, NAN, -INF, -1],
        "prod": [NAN, NAN, -INF, -INF],
    }
    np.testing.assert_array_equal(got.to("cpu").numpy(), want[reduce])


def test_little(device):
    x, none = (
        tenon.tensor([1.0, 2.0], device=device),
        tenon.zeros([0], dtype="int64", device=device),
    )
    for reduce in MERGE:
        got = tenon.scatter_reduce(x, none, tenon.zeros([0], device=device), reduce=reduce)
        assert got.tolist() == [1, 2]
    number, index = tenon.tensor(3.0, device=device), tenon.tensor(0, device=device)
    assert tenon.scatter_reduce(number, index, number, reduce="prod").item() == 9
    assert tenon.scatter_reduce(number, index, 5.0, reduce="amax").item() == 5


# Products of three have mixed second derivatives at zeros.
def test_second_derivatives_of_products_at_zeros(device):
    source = tenon.tensor([0.0, 0.0, 3.0], dtype="float64", device=device, requires_grad=True)
    x = tenon.tensor([2.0], dtype="float64", device=device)
    index = tenon.tensor([0, 0, 0], device=device)
    out = tenon.scatter_reduce(x, index, source, reduce="prod").sum()
    (first,) = tenon.grad([out], [source], create_graph=True)
    assert first.tolist() == [0, 0, 0]
    (second,) = tenon.grad([first[0]], [source])
    assert second.tolist() == [0, 6, 0]


def test_gradients_of_products_beside_infinities(device):
    source = tenon.tensor([INF, 2.0, 3.0, 5.0], device=device, requires_grad=True)
    x = tenon.tensor([1.0, 7.0], device=device, requires_grad=True)
    index = tenon.tensor([0, 1, 1, 0], device=device)
    tenon.scatter_reduce(x, index, source, reduce="prod").sum().backward()
    assert source.grad.tolist() == [5, 21, 14, INF] and x.grad.tolist() == [INF, 6]


def test_gradient_of_ties_is_shared(device):
    x = tenon.tensor([2.0, 1.0], device=device, requires_grad=True)
    source = tenon.tensor([2.0, 2.0, 5.0], device=device, requires_grad=True)
    index = tenon.tensor([0, 0, 1], device=device)
    tenon.scatter_reduce(x, index, source, reduce="amax").sum().backward()
    np.testing.assert_allclose(x.grad.to("cpu").numpy(), [1 / 3, 0])
    np.testing.assert_allclose(source.grad.to("cpu").numpy(), [1 / 3, 1 / 3, 1])


def test_errors():
    x, index = tenon.zeros([3]), tenon.tensor([0, 1])
    with pytest.raises(ValueError, match="'amax' or 'amin', got 'max'"):
        tenon.scatter_reduce(x, index, tenon.zeros([2]), reduce="max")
    with pytest.raises(
        ValueError, match="'assign', 'sum', 'prod', 'mean', 'amax' or 'amin', got 'mul'"
    ):
        tenon.put_along_axis(x, index, 1.0, 0, reduce="mul")
    for reduce in MERGE:
        with pytest.raises(IndexError, match="expected index from -3 to 2, got 3"):
            tenon.scatter_reduce(x, tenon.tensor([3]), tenon.ones([1]), reduce=reduce)
    with pytest.raises(ValueError, match=r"of index's shape \(2,\), got \(3,\)"):
        tenon.scatter_reduce(x, index, tenon.zeros([3]), reduce="sum")
    with pytest.raises(ValueError, match=r"1 to 1 coordinates, got shape \(2, 2\)"):
        tenon.gather_nd(x, tenon.zeros([2, 2], dtype="int64"))
    with pytest.raises(ValueError, match=r"expected a source of shape \(2,\), got \(3,\)"):
        tenon.index_reduce(x, 0, index, x, reduce="sum")


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2", "float16"])
def test_extremes_alone_of_dtypes_without_infinity(reduce, dtype):
    x = tenon.tensor([7.0, 8.0, 9.0]).to(dtype)
    source = tenon.tensor([1.0, -2.0]).to(dtype)
    got = tenon.put_along_axis(
        x, tenon.tensor([0, 2]), source, 0, reduce=reduce, include_self=False
    )
    assert got.to("float32").tolist() == [1.0, 8.0, -2.0]


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (3, 4)], ids=str)
def test_the_value_that_stays_has_the_gradient(shape, device):
    x = np.arange(20.0).reshape(5, 4)
    rows = [3, 1, 3]
    value = np.arange(1.0, 1 + math.prod(shape)).reshape(shape)
    weights = np.random.default_rng(4).normal(size=x.shape)
    given, leaf = tenon.tensor(x, device=device), tenon.tensor(value, device=device)
    leaf.requires_grad = True
    out = tenon.index_put(given, [tenon.tensor(rows, device=device)], leaf)
    (out * tenon.tensor(weights, device=device)).sum().backward()
    # Which of the values for row 3 stays is open on devices that write them at once.
    kept = [0 if (out[3] == leaf.detach().expand(3, 4)[0]).all().item() and len(shape) else 2, 1]
    want = np.zeros((3, 4))
    want[kept[0]], want[1] = weights[3], weights[1]
    while want.ndim > len(shape):
        want = want.sum(0)
    for axis, extent in enumerate(shape):
        want = want if extent != 1 else want.sum(axis, keepdims=True)
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), want, rtol=1e-6)
