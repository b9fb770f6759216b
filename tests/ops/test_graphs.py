# SPDX-License-Identifier: Apache-2.0
"""Segments and messages: counts read from the data, empty graphs, sampling, and what is refused."""

import numpy as np
import pytest
import tenon
from running import skip_unserved, to_tensor

NAN = float("nan")


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_the_largest_index_says_how_many_segments(reduce, device):
    segment = getattr(tenon, f"segment_{reduce}")
    x, index = to_tensor(np.ones((3, 2)), device), to_tensor(np.array([4, 0, 4]), device)
    assert segment(x, index).shape == (5, 2)
    none = to_tensor(np.zeros(0, np.int64), device)
    assert segment(to_tensor(np.ones((0, 2)), device), none).shape == (0, 2)
    assert segment(to_tensor(np.ones((0, 2)), device), none, 3).tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "bfloat16", "bool"])
def test_extremes_of_every_dtype(dtype, device):
    skip_unserved(device, dtype)
    x = tenon.tensor([1, 0, 1, 1], device=device).to(dtype)
    index = tenon.tensor([1, 1, 0, 2], device=device)
    largest, smallest = tenon.segment_max(x, index, 4), tenon.segment_min(x, index, 4)
    assert largest.dtype == x.dtype
    assert largest.to("cpu").to("int64").tolist() == [1, 1, 1, 0]
    assert smallest.to("cpu").to("int64").tolist() == [1, 0, 1, 0]


def test_the_gradient_goes_to_the_first_of_equal_elements(device):
    x = tenon.tensor([2.0, 2.0, 1.0, 1.0], device=device, requires_grad=True)
    index = tenon.tensor([0, 0, 1, 1], device=device)
    for segment in (tenon.segment_max, tenon.segment_min):
        (grad,) = tenon.grad(segment(x, index, 2).sum(), [x])
        assert grad.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_many_rows_add_up_in_float32(device):
    """float16 alone stands still at 2048."""
    x = tenon.ones((3000,), dtype="float16", device=device)
    index = tenon.zeros((3000,), dtype="int64", device=device)
    assert tenon.segment_sum(x, index, 1).tolist() == [3000.0]
    assert tenon.segment_mean(x, index, 1).tolist() == [1.0]


def test_sampled_neighbours_are_different_neighbours(device):
    row = np.arange(100, 112)
    start = np.array([0, 5, 5, 12])
    nodes = np.array([2, 0, 1])
    args = [to_tensor(a, device) for a in (row, start, nodes)]
    tenon.manual_seed(1)
    seen = set()
    for _ in range(20):
        neighbors, count, edges = tenon.sample_neighbors(*args, 3)
        assert count.tolist() == [3, 3, 0]
        assert neighbors.tolist() == row[edges.tolist()].tolist()
        for part, low, high in (
            (neighbors.tolist()[:3], 105, 112),
            (neighbors.tolist()[3:], 100, 105),
        ):
            assert len(set(part)) == 3 and all(low <= n < high for n in part)
            seen.update(part)
    assert seen == set(row.tolist())
    everything, count, _ = tenon.sample_neighbors(*args)
    assert everything.tolist() == [*range(105, 112), *range(100, 105)]
    assert count.tolist() == [7, 5, 0]


def test_weights_say_who_is_sampled(device):
    row, start, node = (to_tensor(np.array(a), device) for a in ([7, 8, 9], [0, 3], [0]))
    weights = to_tensor(np.array([1.0, 1e-12, 3.0]), device)
    tenon.manual_seed(2)
    drawn = [tenon.sample_neighbors(row, start, node, 1, weights)[0].item() for _ in range(100)]
    assert set(drawn) == {7, 9}
    assert 55 <= drawn.count(9) <= 95  # 75 within five standard deviations


def test_nodes_that_occur_twice_are_one(device):
    nodes, neighbors, count = (
        to_tensor(np.array(a), device) for a in ([4, 2], [2, 4, 4, 9], [3, 1])
    )
    source, target, old = tenon.reindex_graph(nodes, neighbors, count)
    assert (source.tolist(), target.tolist(), old.tolist()) == (
        [1, 0, 0, 2],
        [0, 0, 0, 1],
        [4, 2, 9],
    )
    none = to_tensor(np.zeros(0, np.int64), device)
    assert [r.shape for r in tenon.reindex_graph(none, none, none)] == [(0,)] * 3


X, EDGES = tenon.ones((3, 2)), tenon.tensor([0, 2])
REFUSED = {
    "a number": (lambda: tenon.segment_sum(tenon.tensor(1.0), EDGES), "first axis of rows, got"),
    "fewer indices": (
        lambda: tenon.segment_max(X, EDGES),
        r"\[segment_max\] expected index of shape \[3\], got \(2,\)",
    ),
    "negative count": (
        lambda: tenon.segment_sum(X, tenon.tensor([0, 0, 0]), -2),
        "expected a count of at least 0, got -2",
    ),
    "reduce": (
        lambda: tenon.send_u_recv(X, EDGES, EDGES, "product"),
        "expected reduce 'sum', 'mean', 'max' or 'min', got 'product'",
    ),
    "message": (
        lambda: tenon.send_uv(X, X, EDGES, EDGES, "pow"),
        "expected message 'add', 'sub', 'mul' or 'div', got 'pow'",
    ),
    "edges": (
        lambda: tenon.send_ue_recv(X, X, EDGES, EDGES),
        r"expected y with 2 axes and a row for each of 2 edges, got shape \(3, 2\)",
    ),
    "size": (
        lambda: tenon.sample_neighbors(EDGES, EDGES, EDGES, -3),
        "expected a size of at least 0, or -1 for all neighbours, got -3",
    ),
    "weights": (
        lambda: tenon.sample_neighbors(EDGES, EDGES, EDGES, 1, tenon.ones((3,))),
        r"expected a weight for each of 2 edges, got shape \(3,\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        call()


def test_dtypes_refused():
    with pytest.raises(TypeError, match="expected an integer index, got float32"):
        tenon.segment_sum(X, tenon.ones((3,)))
    with pytest.raises(TypeError, match="expected a floating x for a mean, got int64"):
        tenon.segment_mean(EDGES, EDGES)
