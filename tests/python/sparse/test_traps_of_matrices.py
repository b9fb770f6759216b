# SPDX-License-Identifier: Apache-2.0
"""Faults that sparse matrices of other libraries once had, by name: README.md says where they were reported."""

import pickle

import numpy as np
import pytest
import tenon
from tenon import sparse
from twice import check_gradients_twice

T = tenon.tensor
LAYOUTS = ["csr", "csc", "bsr", "coo"]
X = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 3.0]], np.float32)


def of(x, layout):
    return T(x).to_sparse("bsr", (1, 2)) if layout == "bsr" else T(x).to_sparse(layout)


def test_column_outside():
    for wrong in (3, -1, 2**31, 2**62):
        with pytest.raises(IndexError, match=f"got {wrong} at position 1"):
            sparse.csr([0, 1, 2], [0, wrong], [1.0, 2.0], (2, 3))
        with pytest.raises(IndexError, match=f"got {wrong} at position 1"):
            tenon.csr_matmul(T([0, 1, 2]), T([0, wrong]), T([1.0, 2.0]), tenon.ones([3, 1]))


def test_indptr_ends_early():
    with pytest.raises(ValueError, match="ascends from 0 to the 3 stored elements, got 2 at"):
        sparse.csr([0, 1, 2], [0, 1, 2], [1.0, 2.0, 3.0], (2, 3))


def test_column_twice():
    a = sparse.csr([0, 2, 3], [1, 1, 0], [1.0, 2.0, 4.0], (2, 2))
    assert (a @ T([[1.0, 10.0], [100.0, 1000.0]])).tolist() == [[300.0, 3000.0], [4.0, 40.0]]
    assert a.to_dense().tolist() == [[0.0, 3.0], [4.0, 0.0]]
    assert (a @ a).to_dense().tolist() == [[12.0, 0.0], [0.0, 12.0]]
    assert a.T.to_sparse("csr").to_dense().tolist() == [[0.0, 4.0], [3.0, 0.0]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_gradient(layout):
    a = of(X, layout).requires_grad_()
    (a @ tenon.ones([4, 2])).sum().backward()
    assert a.grad.layout == layout and a.grad.nnz == a.nnz
    # Whole it would be 4 TB.
    size = 1_000_000
    wide = sparse.coo([[5], [7]], [2.0], (size, size)).requires_grad_()
    (wide @ tenon.ones([size, 1])).sum().backward()
    assert wide.grad.values().tolist() == [1.0]


def test_csr_gradient():
    indptr, indices = T([0, 2, 3]), T([0, 2, 3])
    values = T([1.0, 2.0, 3.0], tenon.float64, requires_grad=True)
    y = T(np.arange(8.0).reshape(4, 2), requires_grad=True)
    check_gradients_twice(lambda v, y: sparse.csr(indptr, indices, v, (2, 4)) @ y, (values, y))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_sparse(layout):
    """Gradients of both factors of a product, each with the structure of its factor."""
    a, b = (of(x, layout).requires_grad_() for x in (X, np.ascontiguousarray(X.T)))
    (a @ b).to_dense().sum().backward()
    for factor, dense in ((a, np.ones((2, 2)) @ X), (b, X.T @ np.ones((2, 2)))):
        assert factor.grad.layout == layout and factor.grad.nnz == factor.nnz
        there = factor.detach().to_dense().numpy() != 0
        np.testing.assert_allclose(factor.grad.to_dense().numpy()[there], dense[there])


def test_twice_through_coalesce():
    values = T([1.0, 2.0, 3.0], tenon.float64, requires_grad=True)
    indices = T([[1, 0, 1], [0, 1, 0]])
    check_gradients_twice(
        lambda v: sparse.coo(indices, v, (2, 2)).coalesce().values() ** 3, (values,)
    )


def test_coalesced_after_write():
    """Nothing remembers that indices were sorted and differed."""
    indices = np.array([[0, 1], [0, 1]])
    x = sparse.coo(indices, [1.0, -3.0], (2, 2)).coalesce()
    x.indices()[...] = T([[1, 1], [0, 0]])
    assert tenon.abs(x).to_dense().tolist() == [[0.0, 0.0], [2.0, 0.0]]
    assert x.coalesce().nnz == 1
    indices = np.array([[0, 1], [0, 1]])
    shared = sparse.coo(indices, [1.0, -3.0], (2, 2))
    assert tenon.abs(shared).to_dense().tolist() == [[1.0, 0.0], [0.0, 3.0]]
    indices[:] = 1  # through NumPy, whose writes nothing counts
    assert tenon.abs(shared).to_dense().tolist() == [[0.0, 0.0], [0.0, 2.0]]


def test_stale_sorted_flag():
    indices = np.array([0, 1, 2])
    a = sparse.csr([0, 3], indices, [1.0, 2.0, 4.0], (1, 3))
    assert (a @ a.T).to_dense().item() == 21.0
    indices[:] = [2, 0, 0]
    assert a.to_dense().tolist() == [[6.0, 0.0, 1.0]]
    assert tenon.square(a).to_dense().tolist() == [[36.0, 0.0, 1.0]]
    assert (a @ a.T).to_dense().item() == 37.0
    assert a[:, 2:].to_dense().tolist() == [[1.0]]


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_expanded_values(layout):
    """One number in memory that stands for all of them."""
    values = tenon.expand(T([2.0]), [3])
    parts = {
        "csr": ([0, 2, 3], [0, 2, 3], values, (2, 4)),
        "csc": ([0, 1, 1, 2, 3], [0, 0, 1], values, (2, 4)),
        "coo": ([[0, 0, 1], [0, 2, 3]], values, (2, 4)),
    }
    a = getattr(sparse, layout)(*parts[layout])
    expected = 2.0 * (X != 0)
    assert a.to_dense().tolist() == expected.tolist()
    assert (a @ tenon.ones([4, 1])).tolist() == [[4.0], [2.0]]
    assert (a * 3.0).to_dense().tolist() == (3.0 * expected).tolist()
    again = pickle.loads(pickle.dumps(a))
    assert again.to_dense().tolist() == expected.tolist()
    assert (a.clone() + a).to_dense().tolist() == (2.0 * expected).tolist()


def test_over_2_31():
    """Sizes, and numbers of elements if all were stored, that int32 and int64 cannot hold."""
    wide = 2**33
    a = sparse.coo([[0, 1, 0], [wide - 1, 2**31, wide - 1]], [1.0, 2.0, 4.0], (2, wide))
    whole = a.coalesce()
    assert whole.indices().tolist() == [[0, 1], [wide - 1, 2**31]]
    assert whole.values().tolist() == [5.0, 2.0]
    assert a.T.coalesce().indices().tolist() == [[2**31, wide - 1], [1, 0]]
    rows = a.to_sparse("csr")
    assert rows.indices().tolist() == [wide - 1, 2**31] and rows.nnz == 2
    assert (rows * 2.0).values().tolist() == [10.0, 4.0]
    with pytest.raises((ValueError, OverflowError)):
        sparse.coo([[0], [0]], [1.0], (2**40, 2**40)).coalesce()


def test_padding_collides():
    """What fills a structure up is no element: there are as many as there were, and one at 0, 0 stays."""
    a = sparse.coo([[0, 1, 0], [0, 1, 0]], [0.0, 2.0, 0.0], (2, 2)).coalesce()
    assert a.indices().tolist() == [[0, 1], [0, 1]] and a.values().tolist() == [0.0, 2.0]
    b = sparse.coo([[1], [1]], [5.0], (2, 2))
    both = (a + b).coalesce()
    assert both.nnz == 2 and both.to_dense().tolist() == [[0.0, 0.0], [0.0, 7.0]]
    assert (a * b).nnz == 1


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_abs_of_duplicates(layout):
    """1 and -3 at the same place are -2, of which the absolute value is 2 and not 4."""
    parts = {
        "csr": ([0, 2], [0, 0], [1.0, -3.0], (1, 1)),
        "csc": ([0, 2], [0, 0], [1.0, -3.0], (1, 1)),
        "coo": ([[0, 0], [0, 0]], [1.0, -3.0], (1, 1)),
    }
    a = getattr(sparse, layout)(*parts[layout])
    assert tenon.abs(a).to_dense().item() == 2.0
    assert tenon.norm(a).item() == 2.0
    assert sparse.map(tenon.abs, a).to_dense().item() == 2.0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_detach_keeps_parts(layout):
    a = of(X, layout).requires_grad_()
    d = a.detach()
    assert d.layout == layout and not d.requires_grad
    assert d.values().data_ptr() == a.values().data_ptr()
    assert d.indices().data_ptr() == a.indices().data_ptr()
    assert (a * 1.0).detach().to_dense().tolist() == X.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_zeros_like_of_csr(layout):
    """Zeros of which nothing is stored, and no tensor that has a shape only."""
    a = of(X, layout)
    z = tenon.zeros_like(a)
    assert z.layout == layout and z.nnz == 0 and tuple(z.shape) == (2, 4) and z.dtype == a.dtype
    assert z.indices().dtype == a.indices().dtype
    assert z.values().shape[1:] == a.values().shape[1:]
    assert z.to_dense().tolist() == np.zeros((2, 4)).tolist()
    assert (z + a).to_dense().tolist() == X.tolist()
    assert (z @ tenon.ones([4, 1])).tolist() == [[0.0], [0.0]]
    other = tenon.zeros_like(a, dtype=tenon.float64, device="cpu")
    assert other.layout == layout and other.dtype == tenon.float64 and other.nnz == 0
    ones = tenon.ones_like(a)  # of which all would be stored
    assert ones.layout == "strided" and ones.tolist() == np.ones((2, 4)).tolist()


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_writes_into_parts_are_not_lost(layout):
    """What is taken from a sparse tensor is no view."""
    x = T([[1.0, 0.0], [0.0, 2.0]])
    a = x.to_sparse(layout, (1, 1)) if layout == "bsr" else x.to_sparse(layout)
    before = a.to_dense().tolist()
    for key, value in ((0, a[1]), (slice(0, 1), 7.0), ((0, 1), 7.0), (0, 7.0)):
        with pytest.raises(
            NotImplementedError, match=f"layout {layout}, of which a part is a copy"
        ):
            a[key] = value
    with pytest.raises(NotImplementedError, match="write into values"):
        a[0:1] *= 2.0
    assert a.to_dense().tolist() == before
    r = tenon.ragged([[1.0, 2.0], [3.0]])
    r[0] = 5.0
    assert r.values().tolist() == [5.0, 5.0, 3.0]
    with pytest.raises(NotImplementedError, match="row of a ragged one"):
        r[0:1] = 5.0


def test_quotients_of_two_and_dtypes_of_outputs():
    twice = sparse.coo([[0, 0]], T([1.0, 3.0]), (2,))
    with pytest.raises(NotImplementedError, match="divide.*its value at 0 is not 0"):
        twice / twice
    whole = T([1, 2]).to_sparse()
    with pytest.raises(
        TypeError, match="the result is float32 and does not fit an output of dtype int64"
    ):
        whole.sin_()
    assert whole.to_dense().tolist() == [1, 2]


def test_rows_outside_count_from_the_end_once():
    a = T([[1.0, 2.0]]).to_sparse("csr")
    assert a[[0, -1]].to_dense().tolist() == [[1.0, 2.0]] * 2
    for row in (-2, 1):
        with pytest.raises(IndexError):
            a[[0, row]]


def test_scales_that_are_sparse():
    one = T([1.0])
    for args in ((one, one.to_sparse(), one), (one, one, one.to_sparse())):
        with pytest.raises(NotImplementedError, match="check_finite_and_unscale.*layout coo"):
            tenon.check_finite_and_unscale(*args)


def test_equal_indices_are_added_before_conversions():
    """Truths and integers: sums of truths are truths, those of narrow integers wrap around."""
    truths = sparse.coo([[0, 0]], T([True, True]), (2,))
    assert (truths / 2.0).to_dense().tolist() == [0.5, 0.0]
    assert (truths * 3).to_dense().tolist() == [3, 0] and truths.sum().item() == 1
    assert (truths + T([1.0, 2.0])).tolist() == [2.0, 2.0]
    assert truths.to(tenon.float32).to_dense().tolist() == [1.0, 0.0]
    narrow = sparse.coo([[0, 0]], T([200, 100], dtype=tenon.uint8), (2,))
    assert (narrow / 2.0).to_dense().tolist() == [22.0, 0.0]
    assert (narrow + narrow.to(tenon.int64)).to_dense().tolist() == [88, 0]
