# SPDX-License-Identifier: Apache-2.0
"""var and logsumexp of tensors that lie in memory in another order than that of their axes, and what they and
softmax make of numbers far apart."""

import itertools

import numpy as np
import pytest
import tenon
from running import to_tensor

INF = float("inf")
AXES = [None, 0, 1, -1, [0, 1], [1, 2], [0, 2], [0, 1, 2]]


def logsumexp(x, axis):
    return np.log(np.exp(x).sum(axis))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_permuted_axes(axis, dtype):
    x = np.random.default_rng(1).standard_normal((4, 5, 70)).astype(np.float32)
    axes = tuple(axis) if isinstance(axis, list) else axis
    tolerance = 0.02 if dtype == "bfloat16" else 1e-5
    for order in itertools.permutations(range(3)):
        ours = tenon.tensor(x).to(getattr(tenon, dtype)).permute(*order)
        theirs = x.transpose(order)
        for part in (..., (slice(None), slice(None, None, 2)), (slice(None, 1),)):
            for got, want in (
                (tenon.var(ours[part], axis), np.var(theirs[part], axes)),
                (tenon.logsumexp(ours[part], axis), logsumexp(theirs[part], axes)),
            ):
                np.testing.assert_allclose(
                    got.to(tenon.float32).numpy(), want, rtol=tolerance, atol=tolerance
                )


# Around how many rows are taken together, and how long they may be for that.
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("n", [1, 3, 15, 16, 17, 100, 127, 129, 511, 513, 1023, 1025, 4095, 4097])
def test_softmax_of_several_rows(n, dtype, tolerance):
    for rows in (1, 2, 3, 7, 8, 9, 15, 16, 17, 33):
        x = np.random.default_rng(rows).standard_normal((rows, n)).astype(dtype)
        x[rows // 2, n // 2] = 30
        powers = np.exp(x - x.max(1, keepdims=True))
        got = tenon.softmax(tenon.tensor(x), 1).numpy()
        np.testing.assert_allclose(got, powers / powers.sum(1, keepdims=True), 10 * tolerance, 0)
        x[rows - 1, n - 1] = np.nan
        got = tenon.softmax(tenon.tensor(x), 1).numpy()
        assert np.isnan(got[-1]).all() and np.isfinite(got[:-1]).all()


# Where weights beside the largest stop being normal numbers.
@pytest.mark.parametrize("dtype, lowest", [("float32", -87), ("float64", -708)])
@pytest.mark.parametrize("n", [1, 2, 7, 16, 33, 255, 257, 800, 1100])
@pytest.mark.parametrize("axis", [0, 1])
def test_weights_below_the_normal_numbers(axis, n, dtype, lowest):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((5, n)).astype(dtype)
    far = rng.choice([0, 0, lowest / 2, lowest - 10, lowest - 30, 4 * lowest, -np.inf], x.shape)
    x = (x + far.astype(dtype)) - 1000
    x[:, n // 2] = np.maximum(np.max(x, 1), -2000) + 1  # finite
    exact = x.astype(np.longdouble) - x.max(1, keepdims=True)
    powers = np.exp(exact)
    total = powers.sum(1, keepdims=True)
    ours = tenon.tensor(x if axis == 1 else np.ascontiguousarray(x.T))
    got = tenon.softmax(ours, axis).numpy()
    logs, sums = tenon.log_softmax(ours, axis).numpy(), tenon.logsumexp(ours, axis).numpy()
    got, logs = (got, logs) if axis == 1 else (got.T, logs.T)
    small = np.finfo(dtype)
    np.testing.assert_allclose(got, powers / total, 100 * small.eps, 4 * small.tiny)
    assert (got[exact < lowest - 1] == 0).all()
    np.testing.assert_allclose(logs, exact - np.log(total), 8 * small.eps, 8 * small.eps)
    want = np.log(total[:, 0]) + x.max(1)
    np.testing.assert_allclose(sums, want, 8 * small.eps, 8 * small.eps)
    # With d = log_softmax(x): g - exp(d) sum(g)
    upstream = rng.standard_normal(x.shape).astype(dtype)
    given = upstream if axis == 1 else np.ascontiguousarray(upstream.T)
    x_ours = tenon.tensor(ours.numpy(), requires_grad=True)
    (grad,) = tenon.grad(tenon.log_softmax(x_ours, axis), x_ours, tenon.tensor(given))
    grad = grad.numpy() if axis == 1 else grad.numpy().T
    want = upstream - powers / total * upstream.sum(1, keepdims=True)
    np.testing.assert_allclose(grad, want, 1e-4 if dtype == "float32" else 1e-11, 2e-5)


@pytest.mark.parametrize("n", [1, 5, 16, 70, 900])
@pytest.mark.parametrize("axis", [0, 1])
def test_infinities_among_the_numbers(axis, n):
    x = np.linspace(-300, 300, 4 * n, dtype=np.float32).reshape(4, n)
    x[0] = -np.inf
    x[1, n // 2] = np.inf
    x[2, n - 1] = np.nan
    ours = tenon.tensor(x if axis == 1 else np.ascontiguousarray(x.T))
    sums, weights = tenon.logsumexp(ours, axis).numpy(), tenon.softmax(ours, axis).numpy()
    assert sums[0] == -np.inf and sums[1] == np.inf and np.isnan(sums[2])
    np.testing.assert_allclose(sums[3], np.logaddexp.reduce(x[3].astype(np.float64)), 1e-6)
    assert np.isnan(weights if axis == 1 else weights.T)[:3].all()


@pytest.mark.parametrize("n", [1, 3, 5, 7, 100, 5000])
@pytest.mark.parametrize(
    "dtype, value",
    [("float32", 1e6 + 0.1), ("float32", 1000.33), ("float64", 4.57e21), ("float64", 0.1)],
)
def test_equal_elements_are_normalised_to_zero(dtype, value, n):
    """Their distance from the mean is zero, however far from zero the mean is."""
    row = tenon.full((3, n), value, dtype=dtype)
    np.testing.assert_array_equal(tenon.var(row, 1).numpy(), 0)
    np.testing.assert_array_equal(tenon.layer_norm(row).numpy(), 0)
    np.testing.assert_array_equal(tenon.group_norm(row.reshape(3, 1, n), 1).numpy(), 0)
    for x in (row.T, row.reshape(1, 3, n)):  # channels side by side, and one after another
        out, mean, var = tenon.batch_norm(x)
        np.testing.assert_array_equal(out.numpy(), 0)
        np.testing.assert_array_equal(var.numpy(), 0)


def test_batch_norm_applies_the_weight_last(device):
    """The product of a large weight and the inverse deviation overflows where the result does not."""
    weight = tenon.tensor([-3e38, 3e38], device=device)
    for shape in ([2, 2], [2, 2, 1], [2, 2, 1, 1]):
        x = tenon.ones(shape, device=device)
        assert not tenon.batch_norm(x, weight)[0].cpu().numpy().any()


# Where squares, sums and distances overflow: inf if the variance does, never NaN of finite numbers.
LARGE = {
    "the square": ([1.0, -1e-38, 1e-38], INF),
    "the sum": ([1.0, 1.0, 1.0, 1.0], 0.0),
    "the distance": ([3.0, -3.0, 3.0, -3.0, 3.0], INF),
}


@pytest.mark.parametrize("repeats", [1, 1500, 30000])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype, unit", [("float32", 1e38), ("float64", 5e307)])
@pytest.mark.parametrize("name", LARGE)
def test_variance_of_large_numbers(name, dtype, unit, axis, repeats):
    values, want = LARGE[name]
    row = np.tile(np.array(values, dtype) * dtype_of(dtype, unit), repeats)
    x = tenon.tensor(np.stack([row] * 3, 1 - axis))
    got = [tenon.var(x, axis).tolist(), tenon.std(x, axis).tolist()]
    if name == "the sum" and repeats > 1:  # the square of the mean's rounding error may overflow
        assert not np.isnan(got).any()
    else:
        assert got == [[want] * 3] * 2
    if want == INF:
        assert tenon.var(x).item() == INF


def dtype_of(dtype, value):
    return np.dtype(dtype).type(value)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 130, 9999])
def test_variance_of_infinities_and_nan_is_nan(place, special):
    x = np.ones((10000, 2), np.float32)
    x[place] = special
    assert np.isnan(tenon.var(tenon.tensor(x), 0).numpy()).all()
    assert np.isnan(tenon.var(tenon.tensor(x[:, 0])).numpy())


# Rows are taken in blocks of 4096, long ones in segments.
@pytest.mark.parametrize("length", [4095, 4096, 4097, 8192, 65536, 300_000])
@pytest.mark.parametrize("rows", [1, 3])
def test_variance_of_long_rows(rows, length, device):
    array = np.random.default_rng(3).standard_normal((rows, length)) + 10
    for x, axis in ((to_tensor(array, device), -1), (to_tensor(array, device), None)):
        np.testing.assert_allclose(
            tenon.var(x, axis).to("cpu").numpy(), array.var(axis), rtol=1e-10
        )
        np.testing.assert_allclose(
            tenon.std(x, axis).to("cpu").numpy(), array.std(axis), rtol=1e-10
        )


def test_batch_norm_inference_takes_the_difference_first():
    """x * scale - mean * scale cancels where the mean is large, and is NaN where the scale is infinite. The
    kernel and the parts, which run where gradients are recorded, agree."""
    x = tenon.tensor([[1e6 + 0.5, 1.0, 5.0], [1e6 - 0.5, -1.0, 7.0]])
    mean, var = tenon.tensor([1e6, 0.0, 5.0]), tenon.tensor([0.25, 1.0, INF])
    weight, bias = tenon.tensor([1.0, INF, 2.0]), tenon.tensor([0.0, 1.0, 3.0])
    want = [[1.0, INF, 3.0], [-1.0, -INF, 3.0]]
    for shape in ([2, 3], [2, 3, 1], [2, 3, 1, 1]):
        image = x.reshape(shape).detach()
        for recorded in (False, True):
            result = tenon.batch_norm_inference(
                image.requires_grad_(recorded), mean, var, weight, bias, 0.0
            )
            assert result.detach().reshape([2, 3]).tolist() == want
