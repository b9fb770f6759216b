# SPDX-License-Identifier: Apache-2.0
"""What kernels of sparse tensors do by size: accumulators of products, orders of indices, rows of softmax. Results are those
of dense tensors, and with any number of threads the same bits."""

import re

import numpy as np
import pytest
import tenon
from tenon import geometric, sparse


@pytest.fixture
def threads():
    before = tenon.get_num_threads()
    yield tenon.set_num_threads
    tenon.set_num_threads(before)


def matrix(rows, columns, in_row, dtype=np.float32, seed=0):
    """CSR with columns in any order, some of them twice, and rows of 0 to 2 * in_row elements."""
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 2 * in_row + 1, rows))])
    indices = rng.integers(0, columns, indptr[-1])
    values = rng.standard_normal(indptr[-1]).astype(dtype)
    return sparse.csr(indptr, indices, values, (rows, columns))


def parts(x):
    return [each.numpy() for each in (x.indptr(), x.indices(), x.values())]


def same_bits(x, y):
    return all(a.tobytes() == b.tobytes() for a, b in zip(x, y, strict=True))


# Rows that are nearly full, of some elements of each 64 columns, of few of many, and too few for a sum of each column.
SIZES = [(40, 50, 90, 12), (1100, 200, 700, 6), (300, 300, 5000, 2), (40, 50, 200_000, 3)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows, inner, columns, in_row", SIZES)
def test_products_are_those_of_dense_matrices(threads, rows, inner, columns, in_row, dtype):
    x, y = matrix(rows, inner, in_row, dtype), matrix(inner, columns, in_row, dtype, 1)
    threads(1)
    indptr, indices, values = found = parts(x @ y)
    threads(2)
    assert same_bits(parts(x @ y), found)
    keys = np.repeat(np.arange(rows), np.diff(indptr)) * columns + indices
    assert (np.diff(keys) > 0).all()
    wanted = x.to_dense().numpy().astype(np.float64) @ y.to_dense().numpy().astype(np.float64)
    np.testing.assert_allclose(values, wanted.reshape(-1)[keys], rtol=1e-4, atol=1e-4)
    wanted.reshape(-1)[keys] = 0
    assert not wanted.any()


def test_products_keep_narrow_indices_and_round_small_floats_once():
    x, y = matrix(30, 40, 3), matrix(40, 50, 3, seed=1)
    narrow = sparse.csr(y.indptr(), y.indices().to(tenon.int32), y.values(), y.shape)
    assert (x @ narrow).indices().dtype == tenon.int32 and (x @ y).indices().dtype == tenon.int64
    assert same_bits(parts(x @ narrow)[2:], parts(x @ y)[2:])
    small = [each.to(tenon.bfloat16) for each in (x, y)]
    wanted = small[0].to(tenon.float32) @ small[1].to(tenon.float32)
    assert (small[0] @ small[1]).values().dtype == tenon.bfloat16
    assert same_bits(
        parts((small[0] @ small[1]).to(tenon.float32)),
        parts(wanted.to(tenon.bfloat16).to(tenon.float32)),
    )


ONE = ([0, 1], [0], [1])


@pytest.mark.parametrize(
    "x, y, count, kind, text",
    [
        (([0, 1], [-1], [1]), ([0, 1, 2], [0, 1], [7, 9]), 2, IndexError, "columns from 0 to 1, got -1 at position 0"),
        (([0, 1, 1], [0], [1]), ([0, 1, 2], [3, 1], [7, 9]), 2, IndexError, "columns from 0 to 1, got 3 at position 0"),
        (([0, 1], [0], [1]), ([0, 5, 2], [0, 1], [7, 9]), 2, ValueError, "ascends from 0 to the 2 stored elements, got 5"),
        (([0, 1], [0], [1, 2]), ONE, 1, ValueError, "as many values as indices, got 2 for 1 and 1 for 1"),
        (ONE, ONE, -1, ValueError, "count of at least 0, got -1"),
        (([0, 1, 1, 1, 1], [0], [1]), ONE, 2**62, NotImplementedError, "at most 2^63 - 1 elements"),
    ],
)  # fmt: skip
def test_products_without_a_kernel_refuse_what_is_no_matrix(x, y, count, kind, text):
    """Those of integers are computed by other operators, of which some read negative indices from the end."""
    with pytest.raises(kind, match=re.escape(text)):
        tenon.csr_product(*map(tenon.tensor, x), *map(tenon.tensor, y), count)


def test_indices_of_every_integer_dtype():
    for dtype in (np.uint8, np.uint32, np.uint64, np.int8, np.int64):
        indices = tenon.tensor(np.array([1, 0, 1], dtype))
        np.testing.assert_array_equal(tenon.csr_order(indices, 2).numpy(), [1, 0, 2])
    far = tenon.tensor(np.array([0, 2**63 + 1], np.uint64))
    with pytest.raises(IndexError, match=r"from 0 to 1, got 9223372036854775807 at position 1"):
        tenon.csr_order(far, 2)


def test_coalescing_refuses_negative_sizes():
    with pytest.raises(ValueError, match=r"expected sizes of at least 0, got -1"):
        tenon.coo_coalesce(tenon.tensor([[5, 3]]), [-1])


def test_products_refuse_columns_that_are_not_there():
    x = sparse.csr([0, 1], [2], [1.0], (1, 3))
    x.indices()[0] = 3
    with pytest.raises(
        IndexError, match=r"\[csr_product\] expected columns from 0 to 2, got 3 at position 0"
    ):
        x @ sparse.eye(3).to_sparse("csr")
    with pytest.raises(
        ValueError, match=r"expected as many values as indices, got 2 for 1 and 1 for 1"
    ):
        ptr, one = tenon.tensor([0, 1]), tenon.tensor([0])
        tenon.csr_product(ptr, one, tenon.ones([2]), ptr, one, tenon.ones([1]), 1)


@pytest.mark.parametrize("shape", [(50,), (30, 7, 5), (1_000_003, 1_000_003, 500_003)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_coalescing_keeps_the_order_of_sums(shape, dtype):
    """Of indices that are packed into a word with their position, and of the last shape of some that are not."""
    rng = np.random.default_rng(0)
    at = [np.array([0, size // 2, size - 1]) for size in shape]
    indices = np.stack([rng.choice(each, 400) for each in at]).astype(dtype)
    values = rng.standard_normal(400).astype(np.float32)
    once = sparse.coo(indices, values, shape).coalesce()
    wanted, group = np.unique(indices, axis=1, return_inverse=True)
    sums = np.zeros(wanted.shape[1], np.float32)
    np.add.at(sums, group.reshape(-1), values)
    assert once.indices().tolist() == wanted.tolist()
    assert once.values().numpy().tobytes() == sums.tobytes()
    again = once.coalesce()
    assert same_bits([again.indices().numpy()], [once.indices().numpy()])


def test_coalescing_refuses_indices_that_are_not_there():
    for wrong in (-1, 9):
        x = sparse.coo([[0, 1, 2], [0, 0, 0]], [1.0, 2.0, 3.0], (9, 2))
        x.indices()[0, 2] = wrong
        with pytest.raises(
            IndexError,
            match=rf"coo: expected indices from 0 to 8 along axis 0, got {wrong} at position 2",
        ):
            x.coalesce()
    with pytest.raises(ValueError, match="a size for each"):
        tenon.coo_coalesce(tenon.tensor([[0, 1]]), [3, 3])


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("features", [(), (4,), (3,), (8,), (70,), (2, 2)])
def test_softmax_of_rows_is_that_of_each_row(threads, features, log):
    rng = np.random.default_rng(0)
    lengths = np.concatenate([[0, 1, 3000], rng.integers(0, 40, 60), [0]])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.standard_normal((indptr[-1], *features)) * 20
    function = tenon.log_softmax if log else tenon.softmax
    for dtype, tolerance in ((tenon.float64, 1e-12), (tenon.float32, 1e-5)):
        x = tenon.tensor(values, dtype=dtype, requires_grad=True)
        plain = tenon.tensor(values, dtype=dtype, requires_grad=True)
        threads(2)
        got = tenon.csr_softmax(tenon.tensor(indptr), x, log)
        rows = [function(plain[a:b], 0) for a, b in zip(indptr, indptr[1:], strict=False) if a < b]
        wanted = tenon.concat(rows, 0)
        weights = tenon.tensor(rng.standard_normal(values.shape), dtype=dtype)
        (got * weights).sum().backward()
        (wanted * weights).sum().backward()
        for a, b in ((got, wanted), (x.grad, plain.grad)):
            a, b = a.detach().numpy(), b.detach().numpy()
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * 10)
        threads(1)
        assert same_bits(
            [tenon.csr_softmax(tenon.tensor(indptr), x, log).detach().numpy()],
            [got.detach().numpy()],
        )


def test_softmax_leaves_out_what_is_minus_infinity():
    x = tenon.tensor([-np.inf, 1.0, 1.0, 5.0], dtype=tenon.float32, requires_grad=True)
    y = tenon.csr_softmax(tenon.tensor([0, 3, 4]), x)
    (y * tenon.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert y.tolist() == [0.0, 0.5, 0.5, 1.0] and x.grad.tolist() == [0.0, -0.25, 0.25, 0.0]


def test_rows_of_a_matrix_are_sorted_if_no_column_is_there_twice():
    for indices, is_sorted in (
        ([0, 3, 1, 2, 4], True),
        ([3, 0, 1, 2, 4], False),
        ([0, 3, 1, 1, 2], False),
    ):
        for dtype in (tenon.int64, tenon.int32, tenon.uint8):
            given = tenon.tensor(indices).to(dtype)
            assert tenon.csr_is_sorted(tenon.tensor([0, 2, 2, 5]), given).item() is is_sorted
    with pytest.raises(ValueError, match=r"\[csr_is_sorted\] expected an indptr that ascends"):
        tenon.csr_is_sorted(tenon.tensor([0, 9]), tenon.tensor([0]))


@pytest.mark.parametrize("loops", [True, False])
def test_attention_on_a_matrix_is_that_on_its_edges(loops):
    rng = np.random.default_rng(0)
    at = rng.random((9, 9)) < 0.3
    at[4] = False  # without neighbours
    at[5] = np.arange(9) == 5  # with itself alone
    graph = tenon.tensor(at.astype(np.float32)).to_sparse("csr")
    edges = geometric.message_passing.edges_of(graph)
    layer = geometric.GATConv(3, 4, heads=2, add_self_loops=loops)
    results = []
    for given in (graph, edges):
        layer.zero_grad()
        x = tenon.tensor(
            rng.standard_normal((9, 3)) if not results else results[0][0],
            dtype=tenon.float32,
            requires_grad=True,
        )
        y = layer(x, given)
        (y**2).sum().backward()
        results.append([x.detach().numpy(), y, x.grad, *(p.grad for p in layer.parameters())])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(
            a if isinstance(a, np.ndarray) else a.detach().numpy(),
            b if isinstance(b, np.ndarray) else b.detach().numpy(),
            rtol=1e-4,
            atol=1e-5,
        )
    if loops:
        with pytest.raises(
            ValueError, match=r"GATConv: expected a graph of shape \(8, 8\) for features of 8 nodes"
        ):
            layer(tenon.ones([8, 3]), graph)
