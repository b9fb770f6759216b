# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.torch: copies of views, factorisations that report, low-rank factors, indices, moments,
integrals, pools and convolutions with PyTorch's parameters. NumPy is the oracle."""

import itertools
import math

import numpy as np
import pytest
import tenon
from tenon.compat import torch

RANDOM = np.random.default_rng(7)
T = tenon.tensor
F = torch.nn.functional


def close(result, want, rtol=1e-12):
    want = np.asarray(want)
    assert tuple(result.shape) == want.shape
    np.testing.assert_allclose(result.numpy(), want, rtol=rtol, atol=1e-13)


# -- attributes and copies ---------------------------------------------------------------------------


def test_adjoints_as_attributes():
    z = RANDOM.normal(size=(2, 3, 4)) + 1j * RANDOM.normal(size=(2, 3, 4))
    close(T(z).mH, z.conj().swapaxes(-1, -2))
    close(T(z[0]).H, z[0].conj().T)
    real = T(z.real[0])
    assert real.H.data_ptr() == real.data_ptr() == real.mH.data_ptr()  # views
    with pytest.raises(AttributeError, match=r"H: expected a matrix of 2 axes, got 3; mH takes"):
        T(z).H
    with pytest.raises(AttributeError, match="mH: expected at least 2 axes, got 1"):
        T([1.0]).mH
    x = T(z, requires_grad=True)
    (x.mH * T(z).mH).abs().sum().backward()
    assert x.grad.shape == x.shape


VIEWS = {
    "alias": ((), lambda x: x),
    "detach": ((), lambda x: x),
    "as_strided": (((2, 2), (1, 3), 1), lambda x: x.reshape(-1)[[[1, 4], [2, 5]]]),
    "diagonal": ((1,), lambda x: np.diagonal(x, 1)),
    "expand": (((2, 3, 4),), lambda x: np.broadcast_to(x, (2, 3, 4))),
    "narrow": ((1, 1, 2), lambda x: x[:, 1:3]),
    "permute": (((1, 0),), lambda x: x.T),
    "select": ((0, -1), lambda x: x[-1]),
    "squeeze": ((), lambda x: x),
    "t": ((), lambda x: x.T),
    "transpose": ((0, 1), lambda x: x.T),
    "unfold": ((1, 2, 1), lambda x: np.stack([x[:, :-1], x[:, 1:]], -1)),
    "unsqueeze": ((0,), lambda x: x[None]),
    "view": (((4, 3),), lambda x: x.reshape(4, 3)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_copies_of_views(name):
    args, want = VIEWS[name]
    x = T(np.arange(12.0).reshape(3, 4), requires_grad=True)
    copy = getattr(torch, f"{name}_copy")(x, *args)
    assert copy.data_ptr() != x.data_ptr()
    close(copy.detach(), want(x.detach().numpy()))
    assert copy.requires_grad == (name != "detach")


def test_parts():
    x = T(np.arange(5.0))
    lists = [
        torch.split_copy(x, 2),
        torch.split_with_sizes(x, [2, 2, 1]),
        torch.split_with_sizes_copy(x, [2, 2, 1]),
        torch.unsafe_split(x, 2),
        torch.unsafe_chunk(x, 3),
    ]
    for each in lists:
        assert [part.tolist() for part in each] == [[0.0, 1.0], [2.0, 3.0], [4.0]]
    assert [each.item() for each in torch.unbind_copy(x)] == list(range(5))


# -- creation ------------------------------------------------------------------------------------------


def test_tensors_of_numbers_and_layouts():
    assert torch.scalar_tensor(2).dtype == tenon.float32 and torch.scalar_tensor(2).shape == ()
    assert torch.fill(T([1, 2]), 7).tolist() == torch.fill(T([1, 2]), T(7.9)).tolist() == [7, 7]
    assert torch.empty_strided((2, 3), (1, 2)).strides == (1, 2)
    assert torch.empty_permuted((2, 3, 4), (1, 2, 0)).strides == (1, 8, 2)
    assert torch.rsub(T([1.0]), 5, alpha=2).tolist() == [3.0]
    assert [x.tolist() for x in torch.unravel_index(T([5, 7]), (2, 4))] == [[1, 1], [1, 3]]
    assert torch.constant_pad_nd(T([1.0]), (1, 2), 9).tolist() == [9.0, 1.0, 9.0, 9.0]
    close(torch.logspace(0, 3, 4, 2.0), [1.0, 2.0, 4.0, 8.0], 1e-6)
    close(torch.linspace(T(0.0), T(1), 3), [0.0, 0.5, 1.0])
    assert torch.eye(2, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="a number or a 0-d tensor, got shape"):
        torch.fill(T([1.0]), T([1.0]))
    with pytest.raises(NotImplementedError, match="dense tensor of shape"):
        torch.empty_strided((2, 2), (4, 1))
    with pytest.raises(ValueError, match="order the axes 0 to 1"):
        torch.empty_permuted((2, 2), (0, 0))


# -- linear algebra --------------------------------------------------------------------------------------


def test_functions_that_report():
    good = np.array([[4.0, 2.0], [2.0, 3.0]])
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    factor, info = torch.linalg.cholesky_ex(T(np.stack([good, bad])))
    assert info.tolist() == [0, 2] and info.dtype == tenon.int32
    close(factor[0], np.linalg.cholesky(good))
    assert np.isnan(factor[1].numpy()).all()
    inverse, info = torch.linalg.inv_ex(T(np.stack([singular, good])))
    assert info.tolist() == [2, 0] and np.isnan(inverse[0].numpy()).all()
    close(inverse[1], np.linalg.inv(good))
    solution, info = torch.linalg.solve_ex(T(good), T([[1.0], [2.0]], dtype="float64"))
    assert info.item() == 0
    close(solution, np.linalg.solve(good, [[1.0], [2.0]]))
    assert torch.linalg.lu_factor_ex(T(singular)).info.item() == 2
    assert torch.linalg.inv_ex(T(good)).inverse.shape == (2, 2)
    for name in ("inv_ex", "cholesky_ex"):
        with pytest.raises(
            ValueError, match=rf"{name}\(\): expected .* got info 2; pass check_errors"
        ):
            getattr(torch.linalg, name)(
                T(-singular if name == "cholesky_ex" else singular)
                * (1 if name == "inv_ex" else -1),
                check_errors=True,
            )
    with pytest.raises(ValueError, match=r"square matrices in the last two axes, got shape \(2,\)"):
        torch.linalg.inv_ex(T([1.0, 2.0]))


def test_gradients_beside_a_singular_matrix():
    x = T(np.stack([np.ones((2, 2)), 2 * np.eye(2)]), requires_grad=True)
    torch.linalg.inv_ex(x).inverse[1].sum().backward()
    close(x.grad, [np.zeros((2, 2)), np.full((2, 2), -0.25)])


def test_lu():
    a = RANDOM.normal(size=(2, 4, 4))
    b = RANDOM.normal(size=(2, 4, 3))
    factors, pivots = torch.lu(T(a))
    assert pivots.dtype == tenon.int32 and pivots.min().item() >= 1
    p, lower, upper = torch.lu_unpack(factors, pivots)
    close(p @ lower @ upper, a)
    assert torch.lu_unpack(factors, pivots, unpack_data=False).L.shape == (0,)
    assert torch.lu_unpack(factors, pivots, unpack_pivots=False).P.shape == (0,)
    close(torch.lu_solve(T(b), factors, pivots), np.linalg.solve(a, b), 1e-9)
    assert torch.lu(T(a), get_infos=True)[2].tolist() == [0, 0]


def test_low_rank_factors():
    a = RANDOM.normal(size=(3, 8, 2)) @ RANDOM.normal(size=(3, 2, 6))  # of rank 2
    u, s, v = torch.svd_lowrank(T(a), 3)
    assert u.shape == (3, 8, 3) and s.shape == (3, 3) and v.shape == (3, 6, 3)
    close((u * s.unsqueeze(-2)) @ v.mT, a, 1e-9)
    z = a[0] * (1 + 2j)
    u, s, v = torch.svd_lowrank(T(z), 2)
    close((u * s) @ v.mH, z, 1e-9)
    u, s, v = torch.pca_lowrank(T(a))
    close((u * s.unsqueeze(-2)) @ v.mT, a - a.mean(-2, keepdims=True), 1e-9)
    with pytest.raises(ValueError, match="q up to their shorter axis, got shape"):
        torch.svd_lowrank(T(a), 7)


# -- indices -----------------------------------------------------------------------------------------


def test_numbers_as_vectors():
    x, at = T(5.0, requires_grad=True), T([0])
    assert torch.index_select(x, 0, at).tolist() == 5.0
    assert torch.index_fill(x, 0, at, 2.0).tolist() == 2.0
    assert torch.index_copy(x, 0, at, T(3.0)).tolist() == 3.0
    assert torch.index_add(x, 0, at, T(3.0), alpha=2).tolist() == 11.0
    assert torch.index_reduce(x, 0, at, T(3.0), "prod").tolist() == 15.0
    assert torch.gather(x, 0, T(0)).tolist() == 5.0
    assert torch.scatter(x, 0, T(0), T(4.0)).tolist() == 4.0
    assert torch.transpose(x, 0, -1) is x
    assert [each.tolist() for each in torch.nonzero(x, as_tuple=True)] == [[0]]
    torch.index_add(x, 0, at, T(3.0)).backward()
    assert x.grad.item() == 1.0
    with pytest.raises(IndexError, match=r"dim in \[-1, 1\) for a 0-d tensor, got 1"):
        torch.transpose(x, 0, 1)


def test_scatter_reduces():
    x, at = T([1.0, 2.0, 3.0]), T([0, 0])
    assert torch.scatter(x, 0, at, T([5.0, 7.0]), reduce="add").tolist() == [13.0, 2.0, 3.0]
    assert torch.scatter(x, 0, at, T([5.0, 7.0]), reduce="multiply").tolist() == [35.0, 2.0, 3.0]
    assert torch.scatter(x, 0, at, value=4.0, reduce="add").tolist() == [9.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="None, 'add' or 'multiply', got 'mean'; scatter_reduce"):
        torch.scatter(x, 0, at, T([5.0, 7.0]), reduce="mean")
    with pytest.raises(TypeError, match="expected src or value, got neither"):
        torch.scatter(x, 0, at)


def test_puts():
    x = T(np.zeros((2, 3)))
    assert torch.put(x, T([1, 1]), T([2.0, 3.0], dtype="float64"), True).tolist()[0] == [0, 5, 0]
    rows = torch.index_put(x, (T([True, False]),), T(4.0, dtype="float64"))
    assert rows.tolist() == [[4, 4, 4], [0, 0, 0]]
    twice = torch.index_put(x, (T([0, 0]), T([1, 1])), T(1.0, dtype="float64"), accumulate=True)
    assert twice.tolist()[0] == [0, 2, 0]


def test_cat_with_an_empty_vector():
    nothing, x = T(np.zeros(0)), T(np.ones((2, 2), np.float32))
    joined = torch.cat((nothing, x, x), dim=1)
    assert joined.shape == (2, 4) and joined.dtype == tenon.float64
    assert torch.cat((nothing, nothing)).shape == (0,)
    assert torch.narrow(x, 1, T(1), 1).tolist() == [[1.0], [1.0]]
    assert [p.tolist() for p in torch.tensor_split(T([1, 2, 3]), T([1]))] == [[1], [2, 3]]


# -- moments -----------------------------------------------------------------------------------------


Z = RANDOM.normal(size=(3, 4)) + 1j * RANDOM.normal(size=(3, 4))


def test_complex_moments():
    close(torch.var(T(Z), 1), np.var(Z, 1, ddof=1))
    close(torch.std(T(Z), 1, keepdim=True, correction=0), np.std(Z, 1, keepdims=True))
    for got, want in zip(torch.var_mean(T(Z)), (np.var(Z, ddof=1), np.mean(Z)), strict=True):
        close(got, want)
    for got, want in zip(torch.std_mean(T(Z), 0), (np.std(Z, 0, ddof=1), Z.mean(0)), strict=True):
        close(got, want)
    close(torch.sigmoid(T(Z * 30)), 1 / (1 + np.exp(-Z * 30)), 1e-9)
    close(torch.logsumexp(T(Z), 1), np.log(np.exp(Z).sum(1)))
    close(
        torch.logsumexp(T(Z + 1000), 1, keepdim=True).real,
        np.log(np.exp(Z).sum(1, keepdims=True)).real + 1000,
    )
    close(torch.logaddexp(T(Z), T(Z[0])), np.log(np.exp(Z) + np.exp(Z[0])))
    close(torch.lerp(T(Z), T(Z[0]), 0.25), Z + 0.25 * (Z[0] - Z))
    close(F.silu(T(Z)), Z / (1 + np.exp(-Z)))
    close(F.softsign(T(Z)), Z / (1 + np.abs(Z)))


@pytest.mark.parametrize("name", ["sigmoid", "logsumexp", "var", "std"])
def test_gradients_of_complex_numbers(name):
    x = T(Z[:2, :2], requires_grad=True)
    result = getattr(torch, name)(x) if name != "logsumexp" else torch.logsumexp(x, 0)
    torch.abs(result).sum().backward()
    step = 1e-6

    def total(z):
        result = getattr(torch, name)(T(z)) if name != "logsumexp" else torch.logsumexp(T(z), 0)
        return torch.abs(result).sum().item()

    for at in itertools.product(range(2), range(2)):
        for unit in (1.0, 1j):
            away = np.zeros((2, 2), complex)
            away[at] = unit * step
            slope = (total(Z[:2, :2] + away) - total(Z[:2, :2] - away)) / (2 * step)
            part = x.grad.numpy()[at]
            assert math.isclose(part.real if unit == 1.0 else part.imag, slope, abs_tol=1e-7)


def test_closeness_of_complex_numbers():
    x = T(np.array([1 + 1j, complex(np.inf, 0), complex(np.nan, 0), 1j]))
    y = T(np.array([1 + 1.000001j, complex(np.inf, 0), complex(np.nan, 0), 2j]))
    assert torch.isclose(x, y).tolist() == [True, True, False, False]
    assert torch.isclose(x, y, equal_nan=True).tolist() == [True, True, True, False]
    assert torch.allclose(x[:2], y[:2]) and not torch.allclose(x, y)


@pytest.mark.parametrize("correction", [0, 1])
def test_covariances_with_weights(correction):
    x = RANDOM.normal(size=(3, 5))
    f, a = np.array([1, 2, 1, 3, 1]), RANDOM.random(5)
    for named in ({"fweights": f}, {"aweights": a}, {"fweights": f, "aweights": a}):
        tensors = {name: T(each) for name, each in named.items()}
        close(
            torch.cov(T(x), correction=correction, **tensors),
            np.cov(x, ddof=correction, **named),
            1e-10,
        )
    assert torch.cov(T(x[:1])).shape == ()
    with pytest.raises(ValueError, match=r"fweights of shape \(5,\), one for each column"):
        torch.cov(T(x), fweights=T([1, 2]))
    with pytest.raises(TypeError, match="fweights of whole numbers, got float64"):
        torch.cov(T(x), fweights=T(a))


def test_integrals_and_slopes():
    y, x = RANDOM.normal(size=(3, 5)), np.cumsum(RANDOM.random(5))
    want = np.cumsum(np.diff(x) * (y[:, 1:] + y[:, :-1]) / 2, 1)
    close(torch.cumulative_trapezoid(T(y), T(x)), want)
    close(torch.cumulative_trapezoid(T(y.T), T(x[:, None]), dim=0), want.T)
    with pytest.raises(ValueError, match="x of length 5 along dim"):
        torch.cumulative_trapezoid(T(y), T(x[:3]))
    for spacing, given in ((2.0, 2.0), (T(x), x)):
        (got,) = torch.gradient(
            T(y),
            spacing=[spacing] if isinstance(given, np.ndarray) else spacing,
            dim=1,
            edge_order=2,
        )
        close(got, np.gradient(y, given, axis=1, edge_order=2), 1e-10)
    (got,) = torch.gradient(T(Z), dim=0)
    close(got, np.gradient(Z, axis=0))


# -- pools and convolutions --------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pools_without_a_batch(axes):
    x = T(RANDOM.normal(size=(2, 6, 7, 8)[: axes + 1]))
    for name in ("max_pool", "avg_pool"):
        pool = getattr(F, f"{name}{axes}d")
        close(pool(x, 2), pool(x.unsqueeze(0), 2).squeeze(0))
    for name in ("adaptive_max_pool", "adaptive_avg_pool"):
        pool = getattr(F, f"{name}{axes}d")
        close(pool(x, 3), pool(x.unsqueeze(0), 3).squeeze(0))
        kept = pool(x, [None] * (axes - 1) + [2])
        assert tuple(kept.shape) == (*x.shape[:-1], 2)
    with pytest.raises(ValueError, match=f"of {axes + 1} or {axes + 2} axes"):
        pool(x.unsqueeze(0).unsqueeze(0), 2)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_positions_of_adaptive_maxima(axes):
    x = T(RANDOM.normal(size=(2, 3, 5, 6, 7)[: axes + 2]), requires_grad=True)
    pool = getattr(F, f"adaptive_max_pool{axes}d")
    values, indices = pool(x, 4, return_indices=True)
    close(values.detach(), pool(x.detach(), 4))
    flat = x.detach().reshape([2, 3, -1]).gather(indices.reshape([2, 3, -1]), -1)
    close(flat, values.detach().reshape([2, 3, -1]))
    values.sum().backward()
    assert x.grad.sum().item() == values.numel()
    again = getattr(F, f"adaptive_max_pool{axes}d_with_indices")(x, 4)[1]
    assert again.tolist() == indices.tolist()


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("axes", [2, 3])
def test_divisors(axes, ceil_mode):
    x = T(RANDOM.normal(size=(1, 2, 6, 5, 7)[: axes + 2]))
    pool = getattr(F, f"avg_pool{axes}d")
    got = pool(x, 3, 2, 1, ceil_mode, divisor_override=4)
    padded = torch.constant_pad_nd(x, [1, 4] * axes)  # as much of zeros as any window sees
    want = pool(padded, 3, 2) * 3**axes / 4
    for axis in range(axes):
        want = torch.narrow(want, 2 + axis, 0, got.shape[2 + axis])
    close(got, want.numpy())
    with pytest.raises(ValueError, match="divisor_override other than 0"):
        pool(x, 2, divisor_override=0)


def test_pools_of_whole_numbers():
    assert F.avg_pool1d(T([[[1, 2, -3, -4]]]), 2).tolist() == [[[1, -3]]]


def test_convolutions_of_whole_numbers_and_padding_by_name():
    x = RANDOM.integers(-5, 5, (1, 2, 6, 6))
    w = RANDOM.integers(-5, 5, (3, 2, 2, 3))
    got = torch.conv2d(T(x), T(w), padding="valid")
    want = torch.conv2d(T(x.astype(float)), T(w.astype(float)))
    assert got.dtype == tenon.int64 and got.tolist() == want.tolist()
    same = torch.conv2d(T(x), T(w), padding="same")
    assert same.shape == (1, 3, 6, 6)
    assert torch.narrow(torch.narrow(same, 2, 0, 5), 3, 1, 4).tolist() == want.tolist()
    assert torch.conv2d(T(x[0]), T(w)).tolist() == got.tolist()[0]
    with pytest.raises(ValueError, match="stride 1 for padding='same', got 2"):
        torch.conv2d(T(x), T(w), stride=2, padding="same")


def test_convolutions_of_complex_numbers():
    x = RANDOM.normal(size=(1, 2, 7)) + 1j * RANDOM.normal(size=(1, 2, 7))
    w = RANDOM.normal(size=(3, 2, 3)) + 1j * RANDOM.normal(size=(3, 2, 3))
    bias = np.array([1j, 2.0, 3.0])
    windows = np.lib.stride_tricks.sliding_window_view(x[0], 3, axis=1)
    want = np.einsum("clk,ock->ol", windows, w) + bias[:, None]
    close(torch.conv1d(T(x), T(w), T(bias))[0], want)


def test_resizing_by_older_names():
    x = T(RANDOM.normal(size=(1, 2, 3, 4)))
    close(F.upsample_nearest(x, scale_factor=2), np.repeat(np.repeat(x.numpy(), 2, 2), 2, 3))
    corners = F.upsample_bilinear(x, (5, 7)).numpy()[..., [0, -1], :][..., [0, -1]]
    np.testing.assert_allclose(corners, x.numpy()[..., [0, -1], :][..., [0, -1]], rtol=1e-12)
    close(F.logsigmoid(T([-1000.0, 0.0])), [-1000.0, -np.log(2)], 1e-6)


def test_normalisations_that_give_their_moments():
    x = RANDOM.normal(size=(2, 4, 3))
    result, mean, deviation = torch.native_layer_norm(T(x), (3,), None, None, 1e-5)
    close(mean, x.mean(-1, keepdims=True))
    close(deviation, 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5))
    close(result, F.layer_norm(T(x), (3,)).numpy(), 1e-9)
    result, mean, _ = torch.native_group_norm(T(x), None, None, 2, 4, 3, 2, 1e-5)
    assert mean.shape == (2, 2)
    close(result, F.group_norm(T(x), 2).numpy(), 1e-9)
    with pytest.raises(ValueError, match=r"last axes are \(4,\), got shape \(2, 4, 3\)"):
        torch.native_layer_norm(T(x), (4,), None, None, 1e-5)


def test_reflections_samplers_and_slopes():
    a = RANDOM.normal(size=(4, 4))
    reflections, tau = torch.geqrf(T(a))
    q, r = np.linalg.qr(a)
    close(torch.ormqr(reflections, tau, T(a), transpose=True), q.T @ a, 1e-9)
    x = T(RANDOM.normal(size=(1, 1, 4, 4)))
    grid = T(RANDOM.uniform(-1, 1, (1, 3, 3, 2)))
    close(
        torch.grid_sampler_2d(x, grid, 1, 1, True),
        F.grid_sample(x, grid, "nearest", "border", True).numpy(),
    )
    with pytest.raises(ValueError, match="padding_mode from 0 to 2, got 0 and 5"):
        torch.grid_sampler_2d(x, grid, 0, 5, True)
    assert F.prelu(T(-2.0), T([0.5])).tolist() == -1.0
    close(torch.norm(T(a), "nuc"), np.linalg.norm(a, "nuc"), 1e-9)
    with pytest.raises(ValueError, match="two axes of matrices for p='nuc', got 0"):
        torch.norm(T(a), "nuc", 0)
