# SPDX-License-Identifier: Apache-2.0
"""Factors of symmetric and Hermitian matrices that are not positive, and their equations."""

import numpy as np
import pytest
import tenon


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize(
    "shape", [(5, 5), (2, 3, 4, 4), (1, 1), (0, 0), (2, 0, 0), (70, 70)], ids=str
)
def test_ldl(dtype, hermitian, shape):
    rng = np.random.default_rng(9)
    a = rng.normal(size=shape).astype(dtype)
    if "complex" in dtype:
        a = a + 1j * rng.normal(size=shape).astype(dtype)
    transposed = np.swapaxes(a, -1, -2)
    a = (a + (transposed.conj() if hermitian else transposed)).astype(dtype)
    factors = tenon.linalg.ldl_factor(tenon.tensor(np.tril(a)), hermitian=hermitian)
    assert str(factors.pivots.dtype) == "int64" and factors.pivots.shape == shape[:-1]
    assert not np.triu(factors.LD.cpu().numpy(), 1).any()
    b = rng.normal(size=(*shape[:-1], 3)).astype(dtype)
    x = tenon.linalg.ldl_solve(*factors, tenon.tensor(b), hermitian=hermitian).cpu().numpy()
    assert x.dtype == dtype
    tolerance = 2e-3 if dtype in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(a @ x, b, rtol=tolerance, atol=tolerance)


def test_ldl_of_layouts_and_batches():
    a = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])  # pivots of two rows
    factors = tenon.linalg.ldl_factor(tenon.tensor(a).T)
    assert min(factors.pivots.tolist()) < 0
    b = np.random.default_rng(1).normal(size=(4, 2, 3))
    x = tenon.linalg.ldl_solve(*factors, tenon.tensor(b).mT)
    np.testing.assert_allclose(a @ x.cpu().numpy(), np.swapaxes(b, 1, 2), atol=1e-12)
    reversed_ = tenon.linalg.ldl_factor(tenon.tensor(a[::-1, ::-1].copy()).flip([0, 1]))
    np.testing.assert_array_equal(reversed_.LD.cpu().numpy(), factors.LD.cpu().numpy())
    nan = tenon.linalg.ldl_factor(tenon.tensor([[1.0, 0.0], [np.nan, 2.0]]))
    assert np.isnan(nan.LD.cpu().numpy()).any()


def test_ldl_refuses():
    ld, b = tenon.eye(2), tenon.ones([2, 1])
    for pivots in ([1, 3], [0, 1], [1, -2], [-1, 2], [-9, -9]):
        with pytest.raises(
            IndexError, match="expected pivots as ldl_factor gives them, rows from 1 to 2"
        ):
            tenon.ldl_solve(ld, tenon.tensor(pivots), b)
    with pytest.raises(
        ValueError, match=r"expected pivots of shape \(2,\), as ldl_factor gives them"
    ):
        tenon.ldl_solve(ld, tenon.tensor([1]), b)
    with pytest.raises(ValueError, match="expected x to have square matrices"):
        tenon.ldl_factor(tenon.ones([2, 3]))
    with pytest.raises(TypeError, match="expected int64, got float32|pivots"):
        tenon.ldl_solve(ld, tenon.ones([2]), b)
    x = tenon.eye(2).requires_grad_()
    with pytest.raises(NotImplementedError, match=r"\[ldl_factor\] has no gradient"):
        tenon.ldl_factor(x)[0].sum().backward()
