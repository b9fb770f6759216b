# SPDX-License-Identifier: Apache-2.0
"""Layouts 'csc' and 'bsr', products and elementwise operators of two sparse tensors, transposes and slices."""

import copy
import pickle

import numpy as np
import pytest
import tenon
from tenon import sparse
from twice import check_gradients_twice

T = tenon.tensor
RNG = np.random.default_rng(17)
LAYOUTS = ["coo", "csr", "csc", "bsr"]


def dense(rows=6, columns=4, density=0.4, dtype=np.float32):
    x = np.where(RNG.random((rows, columns)) < density, RNG.normal(size=(rows, columns)), 0.0)
    return x.astype(dtype)


def of(x, layout):
    x = x if isinstance(x, tenon.Tensor) else T(x)
    return x.to_sparse(layout, (2, 2) if layout == "bsr" else None)


def repeated(x):
    """Of layout coo, with every element as the sum of two."""
    once = T(x).to_sparse()
    indices = tenon.concat([once.indices(), once.indices()], axis=1)
    return sparse.coo(indices, tenon.concat([once.values() / 4, once.values() * 0.75]), x.shape)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back_printing_pickling_saving(layout, tmp_path):
    x = dense()
    s = of(x, layout)
    assert s.layout == layout and sparse.is_sparse(s) and tuple(s.shape) == x.shape
    for other in LAYOUTS:
        np.testing.assert_allclose(of(s, other).to_dense().numpy(), x, rtol=1e-6)
    assert f"layout={layout}" in repr(s) and "values=tensor(" in repr(s)
    for again in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert again.layout == layout and again.to_dense().tolist() == s.to_dense().tolist()
    tenon.save({"a": s}, tmp_path / "s.safetensors")
    assert tenon.load(tmp_path / "s.safetensors")["a"].to_dense().tolist() == x.tolist()
    s.requires_grad_()
    (s.to_dense() * 2.0).sum().backward()
    assert s.grad.layout == layout and (s.grad.values() == 2.0).all().item()


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("features", [None, 3])
def test_products_with_dense_matrices_and_gradients(layout, features):
    x = dense()
    y = RNG.normal(size=(4,) if features is None else (4, features)).astype(np.float32)
    a, b = T(x, requires_grad=True), T(y, requires_grad=True)
    s, v = of(x, layout).requires_grad_(), T(y, requires_grad=True)
    expected, result = a @ b, s @ v
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), atol=1e-5)
    weight = T(RNG.normal(size=expected.shape).astype(np.float32))
    (expected * weight).sum().backward()
    (result * weight).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), b.grad.numpy(), atol=1e-5)
    stored = sparse.map(tenon.ones_like, s.detach()).to_dense().numpy()
    np.testing.assert_allclose(s.grad.to_dense().numpy(), a.grad.numpy() * stored, atol=1e-5)
    left = RNG.normal(size=(2, 6)).astype(np.float32)
    np.testing.assert_allclose((T(left) @ s.detach()).numpy(), left @ x, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transposes(layout):
    x = dense()
    s = of(x, layout)
    t = s.T
    assert tuple(t.shape) == (4, 6)
    np.testing.assert_array_equal(t.to_dense().numpy(), x.T)
    assert t.layout == {"csr": "csc", "csc": "csr"}.get(layout, layout)
    if layout in ("csr", "csc"):
        assert t.values().data_ptr() == s.values().data_ptr()  # no copies
    np.testing.assert_array_equal(tenon.transpose(s, 0, 1).to_dense().numpy(), x.T)
    np.testing.assert_array_equal(s.mT.T.to_dense().numpy(), x)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "repeated"])
def test_rows_columns_and_slices(layout):
    x = dense(6, 4)
    s = repeated(x) if layout == "repeated" else of(x, layout)
    for key in (0, -1, (slice(None), 2), (3, 1), slice(1, 4), slice(None, None, 2), slice(4, 2)):
        result = s[key]
        found = result.to_dense() if result.layout != "strided" else result
        np.testing.assert_allclose(found.numpy(), x[key], rtol=1e-6, err_msg=str(key))
    both = s[1:5, 1:3]
    np.testing.assert_allclose(both.to_dense().numpy(), x[1:5, 1:3], rtol=1e-6)
    with pytest.raises(IndexError, match="index 6 is out of range for axis 0 of length 6"):
        s[6]


def test_rows_by_index_and_their_gradients():
    x = dense(6, 4)
    s = of(x, "csr").requires_grad_()
    rows = [2, 2, -1, 0]
    picked = s[rows]
    assert picked.layout == "csr"
    np.testing.assert_array_equal(picked.detach().to_dense().numpy(), x[rows])
    np.testing.assert_array_equal(
        tenon.index_select(s.detach(), T(rows), 0).to_dense().numpy(), x[rows]
    )
    picked.to_dense().sum().backward()
    counts = np.array([1, 0, 2, 0, 0, 1])[:, None] * (x != 0)
    np.testing.assert_array_equal(s.grad.to_dense().numpy(), counts)
    with pytest.raises(IndexError):
        s[[7]]


@pytest.mark.parametrize("left", [*LAYOUTS, "repeated"])
@pytest.mark.parametrize("right", LAYOUTS)
def test_products_of_two_sparse_matrices(left, right):
    x, y = dense(6, 4), dense(4, 8)
    a = repeated(x) if left == "repeated" else of(x, left)
    product = a @ of(y, right)
    is_coo = left in ("coo", "repeated") and right == "coo"
    assert product.layout == ("csc" if left == right == "csc" else "coo" if is_coo else "csr")
    np.testing.assert_allclose(product.to_dense().numpy(), x @ y, atol=1e-5)
    if product.layout == "csr":
        indptr, indices = product.indptr().tolist(), product.indices().tolist()
        for i in range(6):
            row = indices[indptr[i] : indptr[i + 1]]
            assert row == sorted(set(row))


def test_gradients_of_sparse_products_twice():
    x, y = dense(5, 6, dtype=np.float64), dense(6, 4, dtype=np.float64)
    a, b = of(x, "csr"), of(y, "csr")

    def product(u, v):
        left = tenon.sparse.csr(a.indptr(), a.indices(), u, a.shape)
        right = tenon.sparse.csr(b.indptr(), b.indices(), v, b.shape)
        return (left @ right).values()

    u = a.values().detach().requires_grad_()
    v = b.values().detach().requires_grad_()
    check_gradients_twice(product, (u, v))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int32"])
def test_dtypes_of_sparse_products(dtype):
    x, y = np.round(dense(5, 6) * 4), np.round(dense(6, 4) * 4)
    a, b = T(x).to(dtype), T(y).to(dtype)
    result, expected = (a.to_sparse("csr") @ b.to_sparse("csr")).to_dense(), a @ b
    assert result.dtype == expected.dtype
    assert result.to(tenon.complex64).tolist() == expected.to(tenon.complex64).tolist()


@pytest.mark.parametrize("left", [*LAYOUTS, "repeated"])
@pytest.mark.parametrize("right", LAYOUTS)
def test_elementwise_of_two(left, right):
    x, y = dense(), dense()
    a, b = (repeated(x) if left == "repeated" else of(x, left)), of(y, right)
    cases = (tenon.add, tenon.subtract, tenon.multiply, tenon.maximum, tenon.minimum)
    for function in cases:
        result = function(a, b)
        assert sparse.is_sparse(result), function
        expected = function(T(x), T(y)).numpy()
        np.testing.assert_allclose(result.to_dense().numpy(), expected, atol=1e-6)
    product = a * b
    if "bsr" not in (left, right):
        assert product.nnz == ((x != 0) & (y != 0)).sum()  # an intersection
    assert tenon.not_equal(a, b).to_dense().tolist() == (x != y).tolist()
    for function in (tenon.divide, tenon.equal, tenon.greater_equal):
        with pytest.raises(NotImplementedError, match=r"to_dense\(\)"):
            function(a, b)
    with pytest.raises(NotImplementedError, match="same shape"):
        a * of(dense(2, 4), "csr")


@pytest.mark.parametrize("layout", [*LAYOUTS, "repeated"])
def test_products_with_dense_tensors_keep_the_structure(layout):
    x, y = dense(), RNG.normal(size=(6, 4)).astype(np.float32)
    s = repeated(x) if layout == "repeated" else of(x, layout)
    for other in (y, y[:1], y[:, :1], y[0]):
        assert s.nnz > 0
        for result in (s * T(other), T(other) * s):
            assert result.layout == s.layout and result.nnz == s.nnz
            np.testing.assert_allclose(result.to_dense().numpy(), x * other, atol=1e-6)
        np.testing.assert_allclose((s / T(other)).to_dense().numpy(), x / other, rtol=1e-5)
    with pytest.raises(NotImplementedError, match=r"to_dense\(\)"):
        T(y) / s
    y[0, 0] = 0.0
    with pytest.raises(NotImplementedError, match="by a tensor that has zeros"):
        s / T(y)


def test_gradients_of_intersections_and_unions():
    x, y = dense(), dense()
    for function in (tenon.multiply, tenon.maximum):
        grads = []
        for convert in (lambda t: t, lambda t: t.to_sparse("csr")):
            a, b = T(x, requires_grad=True), T(y, requires_grad=True)
            result = function(convert(a), convert(b))
            result = result if result.layout == "strided" else result.to_dense()
            (result * T(np.arange(24.0, dtype=np.float32).reshape(6, 4))).sum().backward()
            grads.append((a.grad.numpy() * (x != 0), b.grad.numpy() * (y != 0)))
        for expected, got in zip(*grads):
            np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
def test_reductions(layout):
    for dtype in (np.float32, np.int32, np.uint8):
        x = np.abs(np.round(dense() * 50)).astype(dtype)
        s = of(x, layout)
        for axis in (None, 0, 1, -1):
            expected = T(x).sum() if axis is None else T(x).sum(axis)
            result = s.sum() if axis is None else s.sum(axis)
            assert result.dtype == expected.dtype and result.tolist() == expected.tolist()
    x = dense()
    np.testing.assert_allclose(tenon.norm(of(x, layout)).item(), np.linalg.norm(x), rtol=1e-5)
    np.testing.assert_allclose(of(x, layout).mean(0).numpy(), x.mean(0), rtol=1e-5)


def test_softmax_of_stored_elements():
    x = dense(density=0.5)
    x[2] = 0.0  # a row without elements
    masked = np.where(x != 0, x, -np.inf)
    powers = np.where(x != 0, np.exp(masked), 0.0)
    total = powers.sum(1, keepdims=True)
    expected = np.divide(powers, total, out=np.zeros_like(x), where=total > 0)
    for layout in ("coo", "csr", "csc"):
        s = sparse.softmax(of(x, layout), -1)
        assert s.layout == layout
        np.testing.assert_allclose(s.to_dense().numpy(), expected, atol=1e-6)
        logs = sparse.log_softmax(of(x, layout), 1)
        np.testing.assert_allclose(np.exp(logs.values().numpy()), s.values().numpy(), atol=1e-6)
        down = sparse.softmax(of(np.ascontiguousarray(x.T), layout), 0)
        np.testing.assert_allclose(down.to_dense().numpy(), expected.T, atol=1e-6)
    a = of(dense(dtype=np.float64), "csr")
    v = a.values().detach().requires_grad_()
    assert tenon.autograd.gradcheck(
        lambda u: sparse.softmax(sparse.csr(a.indptr(), a.indices(), u, a.shape)).values(), (v,)
    )
    with pytest.raises(NotImplementedError, match="expected a matrix of layout csr, csc or coo"):
        sparse.softmax(of(x, "bsr"))


def test_attention_along_a_pattern():
    q, k, v = (T(RNG.normal(size=(n, 3)).astype(np.float32)) for n in (6, 4, 4))
    mask = dense(density=0.6)
    scores = np.where(mask != 0, q.numpy() @ k.numpy().T, -np.inf)
    weights = np.nan_to_num(np.exp(scores) / np.exp(scores).sum(1, keepdims=True))
    result = sparse.softmax(sparse.sddmm(of(mask, "csr"), q, k)) @ v
    np.testing.assert_allclose(result.numpy(), weights @ v.numpy(), atol=1e-5)
    with pytest.raises(NotImplementedError, match="expected a pattern of layout csr, got csc"):
        sparse.sddmm(of(mask, "csc"), q, k)


def test_eye_and_diagonals():
    assert sparse.eye(3).to_dense().tolist() == np.eye(3).tolist()
    assert sparse.eye(2, 4, dtype=tenon.float64).to_dense().tolist() == np.eye(2, 4).tolist()
    assert sparse.eye(4, 2).to_dense().tolist() == np.eye(4, 2).tolist()
    diagonals = T([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    s = sparse.spdiags(diagonals, [0, -1, 2], (4, 3))
    assert s.layout == "csr"
    assert s.to_dense().tolist() == [[1, 0, 9], [4, 2, 0], [0, 5, 3], [0, 0, 6]]
    with pytest.raises(ValueError, match="offsets that differ"):
        sparse.spdiags(diagonals, [0, 0, 1], (3, 3))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("columns", [None, 2])
def test_solve(layout, columns):
    pytest.importorskip("scipy.sparse.linalg")
    x = dense(5, 5, 0.3, np.float64) + 4 * np.eye(5)
    b = RNG.normal(size=(5,) if columns is None else (5, columns))
    result = sparse.linalg.solve(of(x, layout), T(b))
    np.testing.assert_allclose(result.numpy(), np.linalg.solve(x, b), rtol=1e-9)
    a = of(x, "csr")
    v, w = a.values().detach().requires_grad_(), T(b, requires_grad=True)

    def solved(u, right):
        return sparse.linalg.solve(sparse.csr(a.indptr(), a.indices(), u, a.shape), right)

    assert tenon.autograd.gradcheck(solved, (v, w))
    with pytest.raises(ValueError, match="singular"):
        sparse.linalg.solve(of(np.zeros((2, 2)), layout), T([1.0, 2.0], dtype=tenon.float64))
    with pytest.raises(TypeError, match="expected a sparse matrix, got layout strided"):
        sparse.linalg.solve(T(x), T(b))


def test_refusals_by_name():
    x = T(dense())
    with pytest.raises(ValueError, match="expected the shape of `block` for layout 'bsr'"):
        x.to_sparse("bsr")
    with pytest.raises(ValueError, match=r"whose shape the blocks divide, got shape \(6, 4\)"):
        x.to_sparse("bsr", (4, 4))
    with pytest.raises(ValueError, match="expected `block` with layout 'bsr' alone"):
        x.to_sparse("csr", (2, 2))
    with pytest.raises(IndexError, match="csc: expected indices from 0 to 1 in the columns, got 5"):
        sparse.csc([0, 1], [5], [1.0], (2, 1))
    with pytest.raises(IndexError, match="bsr: expected indices from 0 to 1 in the rows of blocks"):
        sparse.bsr([0, 1], [2], np.ones((1, 2, 2), np.float32), (2, 4))
    with pytest.raises(ValueError, match="blocks divide the shape"):
        sparse.bsr([0, 1], [0], np.ones((1, 2, 3), np.float32), (2, 4))
    with pytest.raises(ValueError, match="ascends from 0 to the 1 stored elements"):
        sparse.csc([0, 2], [0], [1.0], (2, 1))
    for layout in LAYOUTS:
        with pytest.raises(NotImplementedError, match=rf"layout {layout}: .*to_dense\(\)"):
            tenon.exp(of(x, layout))


@pytest.mark.parametrize("layout", ["csc", "bsr"])
def test_hostile_structures_by_chance(layout):
    """An error with a position, or no change: never an answer from elsewhere, and no crash."""
    good_indices, good_indptr = np.array([0, 2, 1, 0, 1, 2]), np.array([0, 2, 3, 6])
    indices, indptr = good_indices.copy(), good_indptr.copy()
    shape, values = (3, 3), np.ones(6, np.float32)
    if layout == "bsr":
        shape, values = (6, 6), np.ones((6, 2, 2), np.float32)
    s = getattr(sparse, layout)(indptr, indices, values, shape)
    y, other = tenon.ones([shape[1], 2]), tenon.ones(list(shape)).to_sparse("csr")
    calls = (
        lambda: s @ y,
        lambda: s @ other,
        lambda: other @ s,
        lambda: s.to_dense(),
        lambda: s.to_sparse("csr"),
        lambda: s * other,
    )
    for round in range(120):
        indices[:], indptr[:] = good_indices, good_indptr
        wrong = int(RNG.integers(-(2**62), 2**62) >> RNG.integers(0, 61))
        if RNG.random() < 0.5:
            if 0 <= wrong < 3:
                continue
            indices[RNG.integers(6)] = wrong
        else:
            at = RNG.integers(4)
            indptr[at] = wrong
            if at in (0, 3) and wrong == good_indptr[at]:
                continue
            if 0 < at < 3 and indptr[at - 1] <= wrong <= indptr[at + 1]:
                continue
        with pytest.raises((IndexError, ValueError)):
            calls[round % len(calls)]()


def test_matrices_of_very_many_columns():
    """What needs memory for each column says so; all else is as large as what is stored."""
    wide = sparse.csr([0, 1], [2**49], [3.0], (1, 2**50))
    assert (wide * 2.0).values().tolist() == [6.0] and wide.T.shape == (2**50, 1)
    assert wide[0].indices().tolist() == [[2**49]]
    one = sparse.csr([0, 1], [0], [2.0], (1, 1)).requires_grad_()
    product = one @ wide
    assert (product.indices().tolist(), product.values().tolist()) == ([2**49], [6.0])
    with pytest.raises(tenon.OutOfMemoryError, match=r"at most 2\^40 columns"):
        product.values().sum().backward()
    coo = sparse.coo([[2**31 + 5] * 2, [2**17] * 2], [1.0, 2.0], (2**32, 2**18))
    assert coo.coalesce().values().tolist() == [3.0]
    with pytest.raises((ValueError, OverflowError)):
        sparse.coo([[0], [0]], [1.0], (2**40, 2**40))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("longest", [0, 40, 2500])
def test_short_rows_of_many_lengths(dtype, longest):
    """Rows that are added up together, among them empty ones and one that no buffer holds."""
    lengths = RNG.integers(0, 12, 700)
    lengths[[0, 300, 699]] = [0, longest, longest]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    columns = RNG.integers(0, 90, offsets[-1])
    values = RNG.integers(-9, 9, offsets[-1]).astype(dtype)
    y = RNG.integers(-9, 9, 90).astype(dtype)
    expected = np.zeros(700, dtype)
    np.add.at(expected, np.repeat(np.arange(700), lengths), values * y[columns])
    a = sparse.csr(offsets, columns, values, (700, 90))
    assert (a @ T(y)).tolist() == expected.tolist()
    # A part of the rows gives the same bits.
    x = T(RNG.normal(size=90).astype(dtype))
    assert (a[13:650] @ x).tolist() == (a @ x)[13:650].tolist()
    back = a.T.to_sparse("csr")
    assert back.to_dense().tolist() == a.to_dense().T.tolist()
    order = np.argsort(columns, kind="stable")
    assert back.values().tolist() == values[order].tolist()


@pytest.mark.parametrize("format", ["csc", "bsr"])
def test_scipy(format):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    x = dense(20, 30)
    matrix = getattr(scipy_sparse, f"{format}_array")(x)
    s = sparse.from_scipy(matrix)
    assert s.layout == format and s.values().data_ptr() == matrix.data.ctypes.data
    np.testing.assert_array_equal(s.to_dense().numpy(), x)
    back = sparse.to_scipy(s)
    assert back.format == format and back.data.ctypes.data == matrix.data.ctypes.data
    product = of(x, "csr") @ of(np.ascontiguousarray(x.T), "csr")
    expected = scipy_sparse.csr_array(x) @ scipy_sparse.csr_array(x).T
    np.testing.assert_allclose(product.to_dense().numpy(), expected.toarray(), atol=1e-4)
