# SPDX-License-Identifier: Apache-2.0
"""Tensors of layout 'coo' and 'csr': what they consist of, what operators do with them, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
import tenon
from tenon import sparse

T = tenon.tensor
RNG = np.random.default_rng(7)


def dense(rows=5, columns=4, density=0.4, dtype=np.float32):
    return np.where(
        RNG.random((rows, columns)) < density, RNG.normal(size=(rows, columns)), 0.0
    ).astype(dtype)


def both(x):
    """The array as a tensor in both layouts, and in one with elements that have to be added up."""
    twice = T(x).to_sparse()
    indices = tenon.concat([twice.indices(), twice.indices()], axis=1)
    repeated = sparse.coo(
        indices, tenon.concat([twice.values() - 1.0, twice.values() * 0 + 1.0]), x.shape
    )
    return {"coo": twice, "csr": T(x).to_sparse("csr"), "repeated": repeated}


LAYOUTS = ["coo", "csr", "repeated"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(layout):
    x = dense()
    s = both(x)[layout]
    assert s.layout == ("csr" if layout == "csr" else "coo") and tuple(s.shape) == x.shape
    assert s.dtype == tenon.float32 and s.device.kind == "cpu" and sparse.is_sparse(s)
    np.testing.assert_allclose(s.to_dense().numpy(), x, rtol=1e-6)
    for other in ("coo", "csr"):
        converted = (
            s.to_sparse(other) if s.layout == "strided" else tenon._core.convert_layout(s, other)
        )
        np.testing.assert_allclose(converted.to_dense().numpy(), x, rtol=1e-6)


def test_parts_are_shared_and_not_copied():
    values = T([1.0, 2.0])
    s = sparse.csr(T([0, 1, 2]), T([1, 0]), values, (2, 2))
    values[0] = 5.0
    assert s.to_dense().tolist() == [[0.0, 5.0], [2.0, 0.0]] and s.nnz == 2
    assert s.values().data_ptr() == values.data_ptr()
    assert s.indptr().tolist() == [0, 1, 2] and s.indices().tolist() == [1, 0]


def test_blocks_and_empty_ones():
    s = sparse.coo([[2, 0, 2]], np.arange(6.0, dtype=np.float32).reshape(3, 2), (3, 2))
    assert s.to_dense().tolist() == [[2.0, 3.0], [0.0, 0.0], [4.0, 6.0]]
    c = s.coalesce()
    assert c.indices().tolist() == [[0, 2]] and c.values().tolist() == [[2.0, 3.0], [4.0, 6.0]]
    none = sparse.coo(np.zeros((1, 0), np.int64), np.zeros((0, 2), np.float32), (3, 2))
    assert (
        none.nnz == 0 and none.coalesce().nnz == 0 and none.to_dense().tolist() == [[0.0, 0.0]] * 3
    )
    empty = T(np.zeros((0, 3), np.float32)).to_sparse("csr")
    assert empty.to_dense().shape == (0, 3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2.0,
        lambda x: 3 * x,
        lambda x: x / 4.0,
        lambda x: -x,
        lambda x: x * T(2.0),
        tenon.abs,
        tenon.sin,
        tenon.square,
        tenon.sqrt,
        tenon.relu,
        tenon.sign,
        lambda x: tenon.pow(x, 3),
        lambda x: x.to(tenon.float64),
        lambda x: x.clone(),
        lambda x: x + x,
        lambda x: x - x * 2.0,
        lambda x: x.to("cpu"),
        lambda x: x.contiguous(),
    ],
)
def test_elementwise(layout, function):
    x = dense()
    if function is tenon.sqrt:
        x = abs(x)
    result = function(both(x)[layout])
    assert sparse.is_sparse(result)
    expected = function(T(x))
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.to_dense().numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_would_be_dense_is_refused_with_the_fix(layout):
    s = both(dense())[layout]
    kind = "csr" if layout == "csr" else "coo"
    for function in (tenon.exp, tenon.cos, lambda x: x + 1.0, lambda x: x == 0.0):
        with pytest.raises(
            NotImplementedError, match=rf"of tensors of layout {kind}: .*to_dense\(\)"
        ):
            function(s)
    for function in (
        lambda x: x[None],
        lambda x: x.sort(),
        lambda x: x.max(),
    ):
        with pytest.raises((NotImplementedError, TypeError), match=r"to_dense\(\)|layout"):
            function(s)
    mapped = sparse.map(tenon.exp, s)
    stored = s.coalesce() if kind == "coo" else s
    np.testing.assert_allclose(mapped.values().numpy(), np.exp(stored.values().numpy()), rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_reads_memory_that_is_not_there(layout):
    s = both(dense(1, 1, 1.0))[layout]
    for function in (
        lambda: s.numpy(),
        lambda: np.asarray(s),
        lambda: memoryview(s),
        lambda: s.__dlpack__(),
        lambda: s.data_ptr(),
        lambda: s.item(),
        lambda: float(s),
        lambda: bool(s),
        lambda: s.tolist(),
        lambda: T([1.0]).copy_(s),
        lambda: s.copy_(T([[1.0]])),
        lambda: s.zero_(),
        lambda: T([[1.0]]).__setitem__(0, s),
        lambda: tenon.concat([s, T([[1.0]])]),
        lambda: tenon.softmax(s, 1),
        lambda: setattr(T([1.0]), "data", s),
        lambda: s.view([1]),
    ):
        with pytest.raises((TypeError, BufferError, ValueError, NotImplementedError)) as error:
            function()
        assert "compos" in str(error.value) or "layout" in str(error.value), error.value


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reductions(layout):
    x = dense()
    s = both(x)[layout]
    np.testing.assert_allclose(s.sum().item(), x.sum(), rtol=1e-5)
    np.testing.assert_allclose(tenon.norm(s).item(), np.linalg.norm(x), rtol=1e-5)
    np.testing.assert_allclose(tenon.norm(s, 1.0).item(), abs(x).sum(), rtol=1e-5)
    if layout == "csr":
        np.testing.assert_allclose(s.sum(0).numpy(), x.sum(0), rtol=1e-5)
        np.testing.assert_allclose(
            s.sum(-1, keepdim=True).numpy(), x.sum(-1, keepdims=True), rtol=1e-5
        )
        np.testing.assert_allclose(s.mean().item(), x.mean(), rtol=1e-5)
        np.testing.assert_allclose(s.mean(1).numpy(), x.mean(1), rtol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("features", [None, 1, 3, 70])
def test_products_and_their_gradients(layout, features):
    x = dense(6, 5)
    y = RNG.normal(size=(5,) if features is None else (5, features)).astype(np.float32)
    a, b = T(x, requires_grad=True), T(y, requires_grad=True)
    s = both(x)[layout].requires_grad_()
    v = T(y, requires_grad=True)
    expected, result = a @ b, s @ v
    np.testing.assert_allclose(
        result.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5
    )
    weight = T(RNG.normal(size=expected.shape).astype(np.float32))
    (expected * weight).sum().backward()
    (result * weight).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)
    assert s.grad.layout == s.layout and s.grad.nnz == s.nnz
    stored = s.detach().to_dense().numpy() != 0
    if layout != "repeated":
        np.testing.assert_allclose(
            s.grad.to_dense().numpy()[stored], a.grad.numpy()[stored], rtol=1e-4, atol=1e-5
        )
    left = T(RNG.normal(size=(2, 6)).astype(np.float32))
    np.testing.assert_allclose((left @ s.detach()).numpy(), left.numpy() @ x, rtol=1e-4, atol=1e-5)


def test_sums_with_dense_tensors():
    x, y = dense(), RNG.normal(size=(5, 4)).astype(np.float32)
    for s in both(x).values():
        np.testing.assert_allclose((s + T(y)).numpy(), x + y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose((T(y) - s).numpy(), y - x, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose((s - T(y)).numpy(), x - y, rtol=1e-5, atol=1e-6)
        into = T(y.copy())
        at = into.data_ptr()
        into.add_(s)
        assert into.data_ptr() == at
        np.testing.assert_allclose(into.numpy(), x + y, rtol=1e-5, atol=1e-6)


def test_hostile_structures_are_errors_with_the_position():
    with pytest.raises(IndexError, match="from 0 to 2 along axis 1, got 3 at position 1"):
        sparse.coo([[0, 1], [2, 3]], [1.0, 2.0], (2, 3))
    with pytest.raises(IndexError, match="got -1 at position 0"):
        sparse.coo([[-1]], [1.0], (2,))
    with pytest.raises(IndexError, match="from 0 to 1 in the rows, got 7 at position 1"):
        sparse.csr([0, 1, 2], [0, 7], [1.0, 2.0], (2, 2))
    for indptr in ([0, 3, 2], [1, 1, 2], [0, 1, 1], [0, -5, 2]):
        with pytest.raises(ValueError, match="ascends from 0 to the 2 stored elements"):
            sparse.csr(indptr, [0, 1], [1.0, 2.0], (2, 2))
    with pytest.raises(ValueError, match=r"indptr of shape \(3,\)"):
        sparse.csr([0, 2], [0, 1], [1.0, 2.0], (2, 2))
    with pytest.raises(ValueError, match="as many values"):
        sparse.csr([0, 1, 2], [0, 1], [1.0], (2, 2))
    with pytest.raises(ValueError, match="expected values"):
        sparse.coo([[0, 1]], [[1.0], [2.0]], (2,))
    # Written after they were checked.
    indices, indptr = np.array([0, 1]), np.array([0, 1, 2])
    s = sparse.csr(indptr, indices, np.array([1.0, 2.0], np.float32), (2, 2))
    for wrong in (2**40, -1, 2):
        indices[1] = wrong
        with pytest.raises(IndexError, match=f"got {wrong} at position 1"):
            s @ tenon.ones([2, 3])
        with pytest.raises(IndexError, match=f"got {wrong} at position 1"):
            s.to_dense()
    indices[1], indptr[1] = 1, 2**50
    with pytest.raises(ValueError, match="at position 1"):
        s @ tenon.ones([2, 3])
    with pytest.raises(ValueError, match="at position 1"):
        s.to_dense()


def test_hostile_structures_by_chance():
    """No crash and no answer, whatever is written into the structure of a matrix."""
    indices, indptr = np.zeros(6, np.int64), np.zeros(4, np.int64)
    good_indices, good_indptr = np.array([0, 2, 1, 0, 1, 2]), np.array([0, 2, 3, 6])
    indices[:], indptr[:] = good_indices, good_indptr
    s = sparse.csr(indptr, indices, np.ones(6, np.float32), (3, 3))
    y = tenon.ones([3, 5])
    for _ in range(500):
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
            s @ y
        with pytest.raises((IndexError, ValueError)):
            y.T @ s


@pytest.mark.parametrize("layout", LAYOUTS)
def test_printing_pickling_copying_saving(layout, tmp_path):
    s = both(dense())[layout]
    text = repr(s)
    assert f"layout={s.layout}" in text and "values=tensor(" in text and "indices=tensor(" in text
    for again in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert again.layout == s.layout
        assert again.to_dense().tolist() == s.to_dense().tolist()
    path = tmp_path / "state.safetensors"
    tenon.save({"a": s, "b": T([1.0])}, path)
    state = tenon.load(path)
    assert state["a"].layout == s.layout and state["a"].to_dense().tolist() == s.to_dense().tolist()
    assert state["b"].tolist() == [1.0]


def test_detach_keeps_the_parts():
    s = both(dense())["csr"].requires_grad_()
    assert s.requires_grad and s.is_leaf and s.values().requires_grad
    d = s.detach()
    assert d.layout == "csr" and not d.requires_grad
    assert d.values().data_ptr() == s.values().data_ptr()
    assert (s * 2.0).requires_grad and not (s * 2.0).is_leaf


def test_gradients_pass_through_conversions():
    x = T(dense(), requires_grad=True)
    for layout in ("coo", "csr"):
        x.grad = None
        (x.to_sparse(layout).to_dense() * 3.0).sum().backward()
        assert x.grad.tolist() == (3.0 * (x.detach() != 0)).tolist()


def test_repeated_columns_of_a_row_are_sums():
    s = sparse.csr([0, 3, 4], [1, 0, 1, 2], [1.0, 2.0, -3.0, 4.0], (2, 3))
    x = s.to_dense()
    assert x.tolist() == [[2.0, -2.0, 0.0], [0.0, 0.0, 4.0]]
    for function in (tenon.abs, tenon.square, tenon.relu, lambda a: a * 2.0):
        assert function(s).to_dense().tolist() == function(x).tolist()
    assert tenon.norm(s).item() == tenon.norm(x).item()
    np.testing.assert_allclose((s * s).to_dense().numpy(), x.numpy() ** 2)


def test_zeros_like_stores_nothing():
    s = both(dense())["coo"]
    z = tenon.zeros_like(s)
    assert z.layout == "coo" and z.nnz == 0 and tuple(z.shape) == tuple(s.shape)


def test_attributes_of_plain_tensors():
    x = T([1.0])
    assert x.layout == "strided" and x.to_dense() is not None and x.to_dense().tolist() == [1.0]
    with pytest.raises(AttributeError, match="expected a sparse tensor"):
        _ = x.nnz
    for method in (x.values, x.indices, x.indptr):
        with pytest.raises(TypeError, match="expected a tensor of layout"):
            method()
    with pytest.raises(ValueError, match="expected a tensor of layout coo, got strided"):
        x.coalesce()
    with pytest.raises(ValueError, match="layout 'strided', 'coo', 'csr' or 'csc', got 'dia'"):
        x.to_sparse("dia")


def test_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    x = dense(20, 30)
    matrix = scipy_sparse.csr_array(x)
    s = sparse.from_scipy(matrix)
    assert s.layout == "csr" and s.values().data_ptr() == matrix.data.ctypes.data
    np.testing.assert_array_equal(s.to_dense().numpy(), x)
    back = sparse.to_scipy(s)
    assert back.data.ctypes.data == matrix.data.ctypes.data and back.format == "csr"
    assert back.indices.ctypes.data == matrix.indices.ctypes.data
    coo = sparse.from_scipy(scipy_sparse.coo_array(x))
    np.testing.assert_array_equal(coo.to_dense().numpy(), x)
    np.testing.assert_array_equal(sparse.to_scipy(coo).toarray(), x)
    y = RNG.normal(size=(30, 65)).astype(np.float32)
    np.testing.assert_allclose((s @ T(y)).numpy(), matrix @ y, rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="a sparse array of SciPy"):
        sparse.from_scipy(x)


def test_dtypes_of_products():
    x, y = dense(), RNG.normal(size=(4, 3))
    for dtype in ("float16", "bfloat16", "float64", "int32", "complex64"):
        s = T(x).to(dtype).to_sparse("csr")
        v = T(y).to(dtype)
        expected = T(x).to(dtype) @ v
        difference = (
            tenon.abs((s @ v).to(tenon.complex64) - expected.to(tenon.complex64)).max().item()
        )
        assert (s @ v).dtype == expected.dtype and difference < 0.1


def test_arrays_and_lists_are_taken_or_refused_by_name():
    s = sparse.csr([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3))
    x, y = [[1.0], [2.0]], np.array([[1.0], [2.0], [3.0]], np.float32)
    assert sparse.sddmm(s, x, y).values().tolist() == [1.0, 3.0, 4.0]
    assert sparse.ragged_from_dense(y.reshape(1, 3), [2]).values().tolist() == [1.0, 2.0]
    assert not sparse.is_sparse(y)
    for call in (lambda: s @ y, lambda: y.T @ s.T, lambda: s * y.T, lambda: s + x):
        with pytest.raises(
            TypeError, match=r"beside a Tensor, got .*; convert it with tenon.tensor"
        ):
            call()
    with pytest.raises(TypeError, match=r"softmax\(\): argument 'x': expected Tensor, got ndarray"):
        sparse.softmax(y)
    with pytest.raises(NotImplementedError, match=r"layout strided, got csr; fill its values\(\)"):
        s.uniform_()
