# SPDX-License-Identifier: Apache-2.0
"""Reductions of rows by segment, and of rows of a table in bags, against loops."""

import numpy as np
import pytest
import tenon
from running import skip_unserved
from tenon.nn import functional as F

RNG = np.random.default_rng(9)
T = tenon.tensor
REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


def segments(name, x, index, count):
    rows = [x[index == i] for i in range(count)]
    nothing = np.zeros(x.shape[1:], x.dtype)
    return np.stack([REDUCE[name](r, 0) if len(r) else nothing for r in rows])


def close(got, want, tolerance=1e-6):
    got = got.to("cpu")
    got = got.to("float64").numpy() if got.dtype.is_floating_point else got.numpy()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("columns", [(), (1,), (3,), (16,), (70,), (2, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
def test_segments(name, columns, dtype, device):
    if name == "mean" and dtype == "int32":
        pytest.skip("means are of floating numbers")
    skip_unserved(device, dtype, "index_add")
    skip_unserved(device, dtype, "sort_with_indices")
    x = RNG.integers(-8, 9, (60, *columns)).astype("float64")
    index = RNG.permutation(np.repeat([6, 0, 3, 4], 15))  # 1, 2 and 5 have no rows
    tensor = T(x, device=device, dtype=dtype)
    got = getattr(tenon, f"segment_{name}")(tensor, T(index, device=device), 8)
    assert got.dtype == tensor.dtype
    close(got, segments(name, x, index, 8), 1e-2 if dtype == "bfloat16" else 1e-6)


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("columns", [1, 8, 100])
def test_threads_change_no_bit(name, columns):
    x = T(RNG.normal(size=(30_000, columns)).astype("float32"))
    index = T(RNG.integers(0, 900, 30_000))
    threads, found = tenon.get_num_threads(), []
    try:
        for each in (1, 2, 3, 8):
            tenon.set_num_threads(each)
            found.append(getattr(tenon, f"segment_{name}")(x, index, 1000).numpy())
    finally:
        tenon.set_num_threads(threads)
    close(T(found[0]), segments(name, x.numpy(), index.numpy(), 1000), 1e-4)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_extremes_of_what_is_no_number(device):
    x = T([[np.nan, -np.inf], [1.0, -np.inf], [2.0, 5.0]], device=device)
    index = T([0, 0, 2], device=device)
    np.testing.assert_array_equal(
        tenon.segment_max(x, index, 3).to("cpu").numpy(), [[np.nan, -np.inf], [0, 0], [2, 5]]
    )
    np.testing.assert_array_equal(
        tenon.segment_min(x, index, 3).to("cpu").numpy(), [[np.nan, -np.inf], [0, 0], [2, 5]]
    )
    flags = T([False, True, False], device=device)
    assert tenon.segment_max(flags, index, 3).tolist() == [True, False, False]


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_first_of_equal_elements_has_the_gradient(name, device):
    x = T([[2.0, 1.0], [2.0, 1.0], [2.0, 3.0]], device=device, requires_grad=True)
    index = T([1, 1, 1], device=device)
    getattr(tenon, f"segment_{name}")(x, index, 2).sum().backward()
    last = [0.0, 1.0] if name == "max" else [0.0, 0.0]
    first = [1.0, 0.0] if name == "max" else [1.0, 1.0]
    assert x.grad.tolist() == [first, [0.0, 0.0], last]


@pytest.mark.parametrize("name", REDUCE)
def test_gradients_twice(name):
    x = T(RNG.normal(size=(7, 3)), requires_grad=True)
    index = T([2, 0, 2, 4, 0, 2, 4])

    def function(x):
        return getattr(tenon, f"segment_{name}")(x * x, index, 6)

    def gradient(x):
        with tenon.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_()
            return tenon.grad((function(x) ** 2).sum(), x, create_graph=True)

    assert tenon.autograd.gradcheck(function, (x,))
    assert tenon.autograd.gradcheck(gradient, (x,))


@pytest.mark.parametrize("name", REDUCE)
def test_segments_outside(name):
    with pytest.raises(IndexError, match="expected positions from -3 to 2, got 3"):
        getattr(tenon, f"segment_{name}")(tenon.ones([2, 2]), T([0, 3]), 3)
    none = tenon.zeros([0, 2])
    assert (
        getattr(tenon, f"segment_{name}")(none, T([], dtype="int64"), 2).tolist()
        == [[0.0, 0.0]] * 2
    )


# -- bags --------------------------------------------------------------------------------------------


def bags(reduce, weight, indices, offsets, scale=None, padding=None):
    out = np.zeros((len(offsets) - 1, weight.shape[1]))
    for bag in range(len(out)):
        at = range(offsets[bag], offsets[bag + 1])
        rows = [
            weight[indices[k]] * (1 if scale is None else scale[k])
            for k in at
            if padding is None or (indices[k] - padding) % len(weight)
        ]
        if rows:
            out[bag] = REDUCE[reduce](np.stack(rows), 0)
    return out


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize("features", [1, 3, 64, 150])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("padding", [None, 4, -2])
def test_bags(reduce, features, dtype, padding, device):
    skip_unserved(device, dtype, "index_select")
    weight = RNG.integers(-9, 10, (11, features)).astype("float64")
    indices, offsets = RNG.integers(-11, 11, 40), np.array([0, 0, 7, 8, 8, 30, 38])
    scale = RNG.integers(1, 4, 40).astype("float64") if reduce == "sum" else None
    got = tenon.embedding_bag(
        T(weight, device=device, dtype=dtype),
        T(indices, device=device),
        T(offsets, device=device),
        None if scale is None else T(scale, device=device, dtype=dtype),
        reduce,
        padding,
    )
    want = bags(reduce, weight, indices, offsets, scale, padding)
    close(got, want, 2e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1])
def test_gradients_of_bags_twice(reduce, padding):
    weight = T(RNG.permutation(15).reshape(5, 3) * 0.3 + 0.1, requires_grad=True)
    indices, offsets = T([0, 4, -1, 1, 1, 2, 3]), T([0, 3, 3, 5, 6])
    scale = T(RNG.normal(size=7), requires_grad=True) if reduce == "sum" else None
    inputs = (weight,) if scale is None else (weight, scale)

    def function(weight, scale=None):
        return tenon.embedding_bag(weight * weight, indices, offsets, scale, reduce, padding)

    def gradients(*inputs):
        with tenon.enable_grad():
            inputs = [
                each if each.requires_grad else each.detach().requires_grad_() for each in inputs
            ]
            return tenon.grad((function(*inputs) ** 2).sum(), inputs, create_graph=True)

    assert tenon.autograd.gradcheck(function, inputs)
    assert tenon.autograd.gradcheck(gradients, inputs)


def test_bags_by_threads():
    weight = T(RNG.normal(size=(500, 64)).astype("float32"))
    indices = T(RNG.integers(0, 500, 20_000))
    offsets = T(np.sort(np.append(RNG.integers(0, 20_000, 999), [0, 20_000])))
    threads, found = tenon.get_num_threads(), []
    try:
        for each in (1, 4):
            tenon.set_num_threads(each)
            found.append(tenon.embedding_bag(weight, indices, offsets).numpy())
    finally:
        tenon.set_num_threads(threads)
    np.testing.assert_array_equal(*found)
    close(T(found[0]), bags("sum", weight.numpy(), indices.numpy(), offsets.numpy()), 1e-4)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"offsets": [0, 3, 2]},
            "expected ascending offsets from 0 to at most the 4 indices, got 2 at position 2",
        ),
        (
            {"offsets": [1, 4]},
            "expected ascending offsets from 0 to at most the 4 indices, got 1 at position 0",
        ),
        ({"offsets": [0, -1]}, "expected ascending offsets .* got -1 at position 1"),
        ({"offsets": [0, 5]}, "expected ascending offsets .* got 5 at position 1"),
        ({"offsets": []}, "expected offsets of one number more than there are bags, got none"),
        ({"indices": [0, 1, 2, 9]}, "expected positions from -3 to 2, got 9"),
        ({"reduce": "median"}, "expected reduce 'sum', 'mean' or 'max', got 'median'"),
        ({"padding_index": 3}, "expected padding_index from -3 to 2, got 3"),
        ({"reduce": "mean", "scale": T([1.0] * 4)}, "expected no scale beside reduce 'mean'"),
        ({"scale": T([1.0])}, "expected scale of the shape .* of indices"),
    ],
)
def test_bags_that_are_wrong(change, message):
    given = {"indices": [0, 1, 2, 2], "offsets": [0, 2, 4], **change}
    indices, offsets = (T(given.pop(name), dtype="int64") for name in ("indices", "offsets"))
    with pytest.raises((ValueError, IndexError), match=message):
        tenon.embedding_bag(tenon.ones([3, 2]), indices, offsets, **given)


def test_functional_bags(device):
    weight = T(RNG.normal(size=(6, 4)), device=device, dtype="float32")
    matrix = T(RNG.integers(0, 6, (3, 5)), device=device)
    offsets = T([0, 5, 10], device=device)
    for mode in ("sum", "mean", "max"):
        by_rows = F.embedding_bag(matrix, weight, mode=mode).to("cpu").numpy()
        by_offsets = F.embedding_bag(matrix.reshape([-1]), weight, offsets, mode).to("cpu").numpy()
        np.testing.assert_array_equal(by_rows, by_offsets)
    assert F.embedding_bag(matrix[:, :0], weight, mode="max").to("cpu").tolist() == [[0.0] * 4] * 3
    assert F.embedding_bag(matrix[:0], weight).shape == (0, 4)
