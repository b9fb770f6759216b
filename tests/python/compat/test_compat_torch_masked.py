# SPDX-License-Identifier: Apache-2.0
"""torch.masked of tenon.compat.torch. NumPy's reductions with `where=` are the oracle."""

import warnings

import numpy as np
import pytest
import tenon
from tenon.compat import torch

masked = torch.masked
RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(3, 4, 5))
MASK = RANDOM.random(size=(3, 4, 5)) < 0.6
MASK[0, 0, :] = False  # a row of which nothing counts
MASK[:, :, 0] |= MASK.sum(-1) == 1  # no other row has a single element
T = tenon.tensor


def close(result, want):
    assert tuple(result.shape) == np.shape(want)
    # Float64, and NaN where no element counts.
    np.testing.assert_allclose(result.numpy(), want, rtol=1e-12, atol=1e-12)


NUMPY = {
    "sum": lambda x, axis, where: np.sum(x, axis, where=where),
    "prod": lambda x, axis, where: np.prod(x, axis, where=where),
    "mean": lambda x, axis, where: np.mean(x, axis, where=where),
    "amax": lambda x, axis, where: np.max(x, axis, where=where, initial=-np.inf),
    "amin": lambda x, axis, where: np.min(x, axis, where=where, initial=np.inf),
    "var": lambda x, axis, where: np.var(x, axis, where=where, ddof=1),
    "std": lambda x, axis, where: np.std(x, axis, where=where, ddof=1),
    "logsumexp": lambda x, axis, where: np.log(np.sum(np.exp(x), axis, where=where)),
}


@pytest.mark.parametrize("axis", [None, 1, -1, (0, 2)], ids=str)
@pytest.mark.parametrize("name", NUMPY)
def test_reductions(name, axis):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy's, of means of nothing
        want = NUMPY[name](X, axis, MASK)
        whole = NUMPY[name](X, axis, np.ones_like(MASK))
    close(getattr(masked, name)(T(X), axis, mask=T(MASK)), want)
    close(getattr(masked, name)(T(X), axis), whole)


def test_axes_kept_and_dtypes():
    whole = T(np.array([[1, 2], [3, 4]], np.int32))
    mask = T(np.array([[True], [False]]))  # broadcasts
    result = masked.sum(whole, 1, keepdim=True, mask=mask)
    assert result.tolist() == [[3], [0]] and result.dtype == tenon.int64
    assert masked.prod(whole, 1, mask=mask).tolist() == [2, 1]
    assert masked.amax(whole, 1, mask=mask).tolist() == [2, np.iinfo(np.int32).min]
    assert masked.amin(whole, 1, mask=mask).tolist() == [1, np.iinfo(np.int32).max]
    assert masked.mean(whole, 1, dtype=tenon.float64, mask=mask).dtype == tenon.float64
    assert masked.argmax(whole, 1, mask=mask).tolist()[0] == 1
    assert masked.argmin(whole, 0, keepdim=True, mask=mask).tolist() == [[0, 0]]


def test_running():
    close(masked.cumsum(T(X), 1, mask=T(MASK)), np.cumsum(np.where(MASK, X, 0), 1))
    close(masked.cumprod(T(X), 1, mask=T(MASK)), np.cumprod(np.where(MASK, X, 1), 1))


@pytest.mark.parametrize("order", [0.0, 1.0, 2.0, 3.0, np.inf, -np.inf])
def test_norms(order):
    got = masked.norm(T(X[1:]), order, -1, mask=T(MASK[1:]))
    rows = [
        [np.linalg.norm(x[m], order) for x, m in zip(*pair, strict=True)]
        for pair in zip(X[1:], MASK[1:], strict=True)
    ]
    if MASK[1:].any(-1).all():
        close(got, rows)


@pytest.mark.parametrize("name, sign", [("softmax", 1), ("softmin", -1)])
def test_rows_that_add_up_to_one(name, sign):
    got = getattr(masked, name)(T(X), -1, mask=T(MASK))
    with np.errstate(all="ignore"):
        terms = np.where(MASK, np.exp(sign * X), 0)
        want = terms / terms.sum(-1, keepdims=True)
    close(got, want)
    if name == "softmax":
        with np.errstate(all="ignore"):
            close(masked.log_softmax(T(X), -1, mask=T(MASK)), np.log(want))


def test_normalize_median_and_logaddexp():
    with np.errstate(all="ignore"):
        length = np.sqrt(np.sum(X**2, -1, keepdims=True, where=MASK))
    close(
        masked.normalize(T(X), 2.0, -1, mask=T(MASK)),
        np.where(MASK, X, 0) / np.maximum(length, 1e-12),
    )
    row = T([3.0, 1.0, 2.0, 9.0])
    assert masked.median(row, 0, mask=T([True, True, True, False])).item() == 2.0
    both = masked.logaddexp(row, row, other_mask=T([True, False, True, False]))
    np.testing.assert_allclose(both.numpy(), [3 + np.log(2), 1.0, 2 + np.log(2), 9.0], rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "var", "logsumexp", "norm"])
def test_gradients_of_elements_that_do_not_count_are_zero(name):
    x = T(X[1:], requires_grad=True)
    mask = T(MASK[1:])
    getattr(masked, name)(x, mask=mask).backward()
    assert (x.grad.numpy()[~MASK[1:]] == 0).all()
    assert np.isfinite(x.grad.numpy()).all() and x.grad.numpy().any()


def test_refusals():
    with pytest.raises(
        TypeError, match=r"masked.sum\(\): expected a mask of dtype bool, got int64"
    ):
        masked.sum(T([1.0]), mask=T([1]))
    with pytest.raises(
        ValueError, match=r"broadcasts to the shape \(2,\) of input, got shape \(3, 2\)"
    ):
        masked.sum(T([1.0, 2.0]), mask=tenon.ones(3, 2, dtype="bool"))
    with pytest.raises(TypeError, match=r"masked.mean.*got int64; pass dtype=float32"):
        masked.mean(T([1, 2]))
