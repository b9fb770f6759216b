# SPDX-License-Identifier: Apache-2.0
"""torch.fft, torch.linalg and torch.special of tenon.compat.torch, and functions that take more of an
operand than Tenon's operator of the name. NumPy is the oracle."""

import numpy as np
import pytest
import tenon
from tenon.compat import torch

RANDOM = np.random.default_rng(3)
A = RANDOM.normal(size=(2, 4, 4))
B = RANDOM.normal(size=(2, 4, 3))
X = RANDOM.normal(size=(3, 4, 5))


def T(array):
    return tenon.tensor(np.asarray(array))


def close(result, want):
    want = np.asarray(want)
    assert tuple(result.shape) == want.shape
    # Float64: solvers lose up to seven digits to the condition of random matrices.
    np.testing.assert_allclose(result.numpy(), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_of_one_axis(name):
    want = getattr(np.fft, name)(X, n=6, axis=1, norm="ortho")
    close(getattr(torch.fft, name)(T(X), n=6, dim=1, norm="ortho"), want)
    close(getattr(torch.fft, name)(T(X)), getattr(np.fft, name)(X))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_of_several_axes(name):
    close(getattr(torch.fft, name + "2")(T(X), s=(4, 6)), getattr(np.fft, name + "2")(X, s=(4, 6)))
    of_axes = getattr(np.fft, name + "n")
    close(getattr(torch.fft, name + "n")(T(X), dim=(0, 2)), of_axes(X, axes=(0, 2)))
    close(getattr(torch.fft, name + "n")(T(X), s=(6,)), of_axes(X, s=(6,), axes=(-1,)))


def test_shifts_of_frequencies():
    close(torch.fft.fftshift(T(X), dim=1), np.fft.fftshift(X, axes=1))
    close(torch.fft.ifftshift(T(X), dim=(0, 2)), np.fft.ifftshift(X, axes=(0, 2)))


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
def test_solve(left):
    right = B if left else B.swapaxes(-1, -2)
    want = np.linalg.solve(A, B) if left else np.matmul(right, np.linalg.inv(A))
    close(torch.linalg.solve(T(A), T(right), left=left), want)


def test_solve_takes_a_batch_of_vectors():
    vectors = B[..., 0]
    close(torch.linalg.solve(T(A), T(vectors)), np.linalg.solve(A, vectors[..., None])[..., 0])


@pytest.mark.parametrize("adjoint", [False, True], ids=["plain", "adjoint"])
@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
def test_lu_solve(left, adjoint):
    complex_a = A + 1j * A[::-1]
    factors, pivots = torch.linalg.lu_factor(T(complex_a))
    assert pivots.dtype == tenon.int32 and pivots.numpy().min() >= 1
    system = complex_a.conj().swapaxes(-1, -2) if adjoint else complex_a
    right = (B if left else B.swapaxes(-1, -2)).astype(complex)
    want = np.linalg.solve(system, right) if left else np.matmul(right, np.linalg.inv(system))
    close(torch.linalg.lu_solve(factors, pivots, T(right), left=left, adjoint=adjoint), want)
    with pytest.raises(NotImplementedError, match=r"lu_factor\(\): expected pivot=True, got False"):
        torch.linalg.lu_factor(T(A), pivot=False)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norm(order):
    want = np.linalg.norm(X, order, axis=(2, 0), keepdims=True)
    close(torch.linalg.matrix_norm(T(X), order, dim=(2, 0), keepdim=True), want)
    close(torch.linalg.norm(T(X), order, dim=(2, 0)), want.reshape(4))
    close(torch.linalg.norm(T(X[0]), order), np.linalg.norm(X[0], order))


def test_vector_norm():
    close(torch.linalg.vector_norm(T(X), 3, dim=(0, 1)), (np.abs(X) ** 3).sum((0, 1)) ** (1 / 3))
    close(torch.linalg.norm(T(X)), np.sqrt((X * X).sum()))
    close(torch.linalg.norm(T(X), dim=1, keepdim=True), np.linalg.norm(X, axis=1, keepdims=True))
    counted = torch.linalg.vector_norm(tenon.tensor([1 + 1j, 0j]), 0)
    assert counted.dtype == tenon.float32 and counted.item() == 1


def test_ranks_and_pseudoinverses():
    deficient = np.diag([10.0, 1.0, 0.01])
    assert torch.linalg.matrix_rank(T(deficient)).item() == 3
    assert torch.linalg.matrix_rank(T(deficient), atol=0.1).item() == 2
    assert torch.linalg.matrix_rank(T(deficient), atol=0.001, rtol=0.5).item() == 1
    close(torch.linalg.pinv(T(deficient), atol=0.1), np.diag([0.1, 1.0, 0.0]))
    # With `hermitian` the lower triangle counts alone.
    symmetric = A[0] + A[0].T
    lower = np.tril(symmetric) + 5 * np.triu(np.ones((4, 4)), 1)
    close(torch.linalg.pinv(T(lower), hermitian=True), np.linalg.inv(symmetric))
    real_diagonal = torch.linalg.pinv(T(lower + 1j * np.eye(4)), hermitian=True)
    close(real_diagonal, np.linalg.inv(symmetric).astype(complex))


def test_other_keywords_of_linalg():
    triples = RANDOM.normal(size=(2, 3, 4))
    close(
        torch.linalg.cross(T(triples), T(triples[::-1]), dim=1),
        np.cross(triples, triples[::-1], axis=1),
    )
    close(torch.linalg.vecdot(T(X), T(X), dim=0), (X * X).sum(0))
    close(torch.linalg.vander(T([2.0, 3.0]), N=3), [[1, 2, 4], [1, 3, 9]])
    close(torch.linalg.diagonal(T(X), offset=1, dim1=1, dim2=2), np.diagonal(X, 1, 1, 2))


def test_special_functions():
    x = np.array([0.1, 0.5, 0.9])
    close(torch.special.expit(T(x)), 1 / (1 + np.exp(-x)))
    close(torch.special.logit(T(x), 0.2), np.log(np.clip(x, 0.2, 0.8) / (1 - np.clip(x, 0.2, 0.8))))
    crossing = torch.special.logit(T(x), 0.6)  # the bounds are 0.6 and 0.4
    close(crossing, np.log([1.5, 1.5, 1 / 1.5]))
    close(torch.special.softmax(T(x), dim=0), np.exp(x) / np.exp(x).sum())
    close(torch.special.polygamma(1, T([1.0])), [np.pi**2 / 6])
    assert all(hasattr(torch.special, name) for name in torch.special.__all__)


def test_zeta_is_infinite_at_its_poles():
    result = tenon.zeta(T([1.0, 2.0, 2.0, 3.0, 0.5, 2.5]), T([-1.0, 0.0, -1.0, -2.0, 0.0, -0.5]))
    assert result.tolist()[:4] == [np.inf] * 4
    assert np.isnan(result.numpy()[4:]).all()


@pytest.mark.parametrize("name", ["addmm", "baddbmm", "addbmm", "addmv", "addr"])
def test_a_factor_of_0_drops_what_it_scales(name):
    first, second = {
        "addmm": (A[0], B[0]), "baddbmm": (A, B), "addbmm": (A, B), "addmv": (A[0], B[0, :, 0]),
        "addr": (A[0, 0], B[0, :, 0]),
    }[name]  # fmt: skip
    product = np.outer(first, second) if name == "addr" else first @ second
    product = product.sum(0) if name == "addbmm" else product
    call = getattr(torch, name)
    close(call(T(product * np.nan), T(first), T(second), beta=0, alpha=2), 2 * product)
    close(call(T(product), T(first), T(second), beta=3, alpha=2), 5 * product)
    whole = [np.ones_like(each, dtype=np.int64) for each in (product, first, second)]
    assert call(*map(T, whole), beta=1.7, alpha=0.5).tolist() == whole[0].tolist()


def test_squeeze_leaves_longer_axes():
    x = T(np.zeros((2, 1, 3, 1)))
    assert torch.squeeze(x, 0).shape == (2, 1, 3, 1)
    assert torch.squeeze(x, (0, 1, -1)).shape == (2, 3)
    with pytest.raises(IndexError, match=r"squeeze\(\): expected dim in \[-4, 4\), got 4"):
        torch.squeeze(x, 4)


def test_reductions_into_places():
    x, index, source = T([1.0, 2.0]), T([0, 0, 1]), T([5.0, 6.0, 7.0])
    assert torch.scatter_reduce(x, 0, index, source, "sum", include_self=False).tolist() == [11, 7]
    assert torch.scatter_reduce(x, 0, index, source, "amax").tolist() == [6, 7]
    assert torch.index_reduce(x, 0, index, source, "prod").tolist() == [30, 14]


def test_quantiles_buckets_and_places():
    close(
        torch.quantile(T(X), 0.3, dim=1, interpolation="lower"),
        np.quantile(X, 0.3, axis=1, method="lower"),
    )
    close(
        torch.nanquantile(T(X), 0.5, dim=1, keepdim=True),
        np.nanquantile(X, 0.5, axis=1, keepdims=True),
    )
    edges = T([1.0, 2.0, 3.0])
    assert torch.bucketize(T([2.0]), edges, out_int32=True).dtype == tenon.int32
    assert torch.searchsorted(edges, T([2.0]), side="right").tolist() == [2]
    assert torch.searchsorted(T([3.0, 1.0]), T([2.0]), sorter=T([1, 0])).tolist() == [1]
    with pytest.raises(ValueError, match=r"expected side 'left' or 'right', got 'middle'"):
        torch.searchsorted(edges, T([2.0]), side="middle")


def test_operands_in_other_forms():
    assert torch.einsum("i,i->", [T([1.0, 2.0]), T([3.0, 4.0])]).item() == 11
    assert torch.broadcast_shapes((5, 1), 3) == (5, 3)
    assert torch.corrcoef(T([[1.0, 2.0]])).shape == ()
    assert torch.masked_scatter(T([1.0, 2.0]), T([[True, False], [False, True]]), T([5.0, 6.0])).tolist() == [
        [5, 2], [1, 6],
    ]  # fmt: skip
    assert torch.as_strided(T([1.0, 2.0, 3.0]), (2,), (1,), storage_offset=1).tolist() == [2, 3]
    assert torch.tril_indices(2, 2, dtype=tenon.int32).dtype == tenon.int32
    assert (
        torch.var(T([1.0, 3.0]), False).item() == 1
        and torch.std_mean(T([1.0, 3.0]), False)[0].item() == 1
    )
    assert [each.shape for each in torch.meshgrid(tenon.tensor(1.0), T([1.0, 2.0]))] == [(1, 2)] * 2
    assert torch.bincount(T([0, 1, 1]), T([1, 2, 3])).dtype == tenon.float64
    assert torch.take_along_dim(T([[1.0, 2.0]]), T([[1, 0]])).tolist() == [2, 1]
    z = tenon.tensor([1 + 2j])
    assert torch.resolve_conj(z).tolist() == [1 + 2j] and torch.resolve_conj(z.conj()).tolist() == [
        1 - 2j
    ]
