# SPDX-License-Identifier: Apache-2.0
"""Sums along axes, other shapes and joined tensors of sparse layouts: what moves indices and leaves values where they are."""

import numpy as np
import pytest
import tenon
from tenon import sparse

T = tenon.tensor
LAYOUTS = ["coo", "repeated", "csr", "csc"]


def dense(shape, dtype=np.float32):
    rng = np.random.default_rng(3)
    return np.where(rng.random(shape) < 0.5, rng.integers(-9, 9, shape), 0).astype(dtype)


def stored(x, layout):
    if layout != "repeated":
        return T(x).to_sparse(layout)
    once = T(x).to_sparse()
    twice = tenon.concat([once.indices(), once.indices()], 1)
    return sparse.coo(twice, tenon.concat([once.values() * 0.25, once.values() * 0.75]), x.shape)


FUNCTIONS = {
    "sum": lambda a: a.sum(0),
    "sum kept": lambda a: a.sum(-1, keepdim=True),
    "sum of both": lambda a: a.sum([0, 1]),
    "mean": lambda a: a.mean(1),
    "reshape": lambda a: a.reshape([3, -1]),
    "three axes": lambda a: a.reshape([2, 2, 6]),
    "concat": lambda a: tenon.concat([a, a * 2.0], 0),
    "concat columns": lambda a: tenon.concat([a, a, a], -1),
    "stack": lambda a: tenon.stack([a, a], 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_and_gradients_are_those_of_dense_tensors(layout, name):
    x = dense((4, 6))
    if name == "sum of both" and layout in ("csr", "csc"):
        with pytest.raises(
            NotImplementedError, match=r"\[sum\] of tensors of layout cs[rc]: .*to_dense\(\)"
        ):
            FUNCTIONS[name](stored(x, layout))
        return
    plain, other = T(x, requires_grad=True), stored(x, layout).requires_grad_()
    expected, got = FUNCTIONS[name](plain), FUNCTIONS[name](other).to_dense()
    assert got.dtype == expected.dtype and tuple(got.shape) == tuple(expected.shape)
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-5)
    (expected**2).sum().backward()
    (got**2).sum().backward()
    # Each element of a sum has the gradient of the sum.
    wanted = plain.grad.numpy()[tuple(other.to_sparse("coo").indices().numpy())]
    assert other.grad.layout == other.layout
    np.testing.assert_allclose(other.grad.to_sparse("coo").values().numpy(), wanted, rtol=1e-5)


def test_axes_without_indices():
    x = dense((5, 4, 3))
    rows = sparse.coo([[0, 3, 3]], x[[0, 1, 2]], (5, 4, 3))
    whole = rows.to_dense()
    for axis, layout in (
        (0, "strided"),
        (1, "coo"),
        (2, "coo"),
        ([0, 2], "strided"),
        ([1, 2], "coo"),
    ):
        got = rows.sum(axis)
        assert got.layout == layout and got.to_dense().tolist() == whole.sum(axis).tolist()
        assert (
            rows.sum(axis, keepdim=True).to_dense().tolist()
            == whole.sum(axis, keepdim=True).tolist()
        )
    assert rows.reshape([1, 5, 4, 3]).to_dense().tolist() == whole.reshape([1, 5, 4, 3]).tolist()
    with pytest.raises(NotImplementedError, match=r"\[reshape\].*layout coo"):
        rows.reshape([5, 12])


def test_truths_and_integers_that_repeat():
    """Whose sums come before a sum along an axis or a wider dtype."""
    truths = sparse.coo([[1, 1, 0], [2, 2, 1]], [True, True, True], (2, 3))
    assert truths.sum(1).to_dense().tolist() == truths.to_dense().sum(1).tolist() == [1, 1]
    bytes_ = sparse.coo([[1, 1]], T([200, 100], dtype=tenon.uint8), (2,))
    wide = sparse.coo([[0]], T([1000], dtype=tenon.int32), (2,))
    joined = tenon.concat([bytes_, wide])
    assert joined.dtype == tenon.int32 and joined.to_dense().tolist() == [0, 44, 1000, 0]
    assert bytes_.sum(0).tolist() == 44


def test_what_does_not_fit_is_refused():
    x = T(dense((4, 6))).to_sparse()
    with pytest.raises(
        ValueError, match=r"\[reshape\] expected a shape of 24 elements, got \(5, 5\)"
    ):
        x.reshape([5, 5])
    with pytest.raises(ValueError, match=r"\[concat\] expected shapes that agree but for axis 0"):
        tenon.concat([x, x.reshape([6, 4])], 0)
    with pytest.raises(NotImplementedError, match="layout coo"):
        tenon.concat([x, x.to_dense()], 0)
    wrong = T(dense((4, 6))).to_sparse()
    wrong.indices()[0, 0] = 4
    for function in (lambda a: a.sum(0), lambda a: a.reshape([24]), lambda a: tenon.concat([a, a])):
        with pytest.raises(
            IndexError, match="expected indices from 0 to 3 along axis 0, got 4 at position 0"
        ):
            function(wrong).to_dense()
