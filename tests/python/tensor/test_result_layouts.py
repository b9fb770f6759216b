# SPDX-License-Identifier: Apache-2.0
"""Results of elementwise operators lie in memory as their inputs do, where those agree."""

import numpy as np
import pytest
import tenon

SHAPE = (3, 4, 5, 6)
ORDERS = [(0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3), (0, 1, 3, 2)]
LARGE = (7, 33, 65, 129)  # on more than one thread


def permuted(shape, order, seed=0, dtype=np.float32):
    """A tensor of `shape` whose memory runs along the axes of `order`, and its array."""
    stored = np.random.default_rng(seed).standard_normal([shape[axis] for axis in order])
    back = tuple(np.argsort(order))
    stored = stored.astype(dtype)
    return tenon.permute(tenon.tensor(stored), back), stored.transpose(back)


def strides(tensor):
    """In elements."""
    array = tensor.numpy()
    return tuple(stride // array.itemsize for stride in array.strides)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("shape", [SHAPE, LARGE], ids=str)
def test_one_order_of_the_axes_is_kept(shape, order):
    x, a = permuted(shape, order)
    y, b = permuted(shape, order, seed=1)
    for result, want in (
        (x + y, a + b),
        (x * 2.0, a * np.float32(2)),
        (tenon.relu(x), np.maximum(a, 0)),
        (x < y, a < b),
        (tenon.where(x < y, x, y), np.minimum(a, b)),
        (tenon.cast(x, tenon.float64), a.astype(np.float64)),
        (tenon.cast(x, tenon.float64) + x, a.astype(np.float64) + a),
        (tenon.cast(x, tenon.float16) + tenon.cast(y, tenon.float16),
         a.astype(np.float16) + b.astype(np.float16)),
    ):  # fmt: skip
        np.testing.assert_array_equal(result.numpy(), want)
        assert strides(result) == strides(x)


def test_what_is_broadcast_has_no_say():
    x, a = permuted(SHAPE, (0, 2, 3, 1))
    bias = np.arange(4, dtype=np.float32).reshape(4, 1, 1)
    for result, want in (
        (x + tenon.tensor(bias), a + bias),
        (tenon.tensor(bias) - x, bias - a),
        (x + tenon.tensor(np.float32(3)), a + 3),
        (tenon.where(tenon.tensor(bias) > 1, x, 0.0), np.where(bias > 1, a, 0)),
    ):
        np.testing.assert_array_equal(result.numpy(), want)
        assert strides(result) == strides(x)


@pytest.mark.parametrize(
    "other",
    [
        lambda x: tenon.clone(x),
        lambda x: permuted(SHAPE, (3, 2, 1, 0), seed=1)[0],
        lambda x: x[:1].expand(*SHAPE),
    ],
    ids=["row by row", "another order", "expanded"],
)
def test_inputs_that_differ_give_rows(other):
    x, a = permuted(SHAPE, (0, 2, 3, 1))
    y = other(x)
    for result, want in ((x + y, a + y.numpy()), (y * x, y.numpy() * a)):
        np.testing.assert_array_equal(result.numpy(), want)
        assert result.numpy().flags.c_contiguous


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, ::2],
        lambda x: x.T[::2],
        lambda x: tenon.flip(x.T, [0]),
        lambda x: x.T[1:],
        lambda x: x[0:1].expand(8, 6),
        lambda x: x[:0].T,
    ],
    ids=["every second column", "every second row", "flipped", "part", "expanded", "empty"],
)
def test_gaps_and_repetitions_are_not_kept(view):
    x = view(tenon.tensor(np.arange(48, dtype=np.float32).reshape(8, 6)))
    result = x + x
    np.testing.assert_array_equal(result.numpy(), x.numpy() * 2)
    assert result.numpy().flags.c_contiguous


def test_a_given_output_keeps_its_own_layout():
    x, a = permuted(SHAPE, (0, 2, 3, 1))
    rows = tenon.zeros(SHAPE)
    tenon.add(x, x, out=rows)
    np.testing.assert_array_equal(rows.numpy(), a + a)
    assert rows.numpy().flags.c_contiguous
    x += 1.0
    np.testing.assert_array_equal(x.numpy(), a + np.float32(1))


def test_what_needs_rows_makes_them():
    x, a = permuted((4, 5, 6), (2, 0, 1))
    doubled, want = x * 2.0, a * 2
    np.testing.assert_array_equal(tenon.reshape(doubled, (20, 6)).numpy(), want.reshape(20, 6))
    np.testing.assert_array_equal(tenon.contiguous(doubled).numpy(), want)
    assert tenon.contiguous(doubled).numpy().flags.c_contiguous
    assert tenon.clone(doubled).numpy().flags.c_contiguous
    np.testing.assert_allclose(
        (doubled @ tenon.ones((6, 2))).numpy(), want @ np.ones((6, 2)), rtol=1e-5
    )
    np.testing.assert_allclose(doubled.sum(1).numpy(), want.sum(1), rtol=1e-5)


def test_gradients_of_what_was_not_in_rows():
    x, a = permuted((4, 5, 6), (2, 0, 1))
    x = tenon.tensor(np.ascontiguousarray(a.transpose(2, 0, 1)), requires_grad=True)
    y = tenon.permute(x, (1, 2, 0))
    loss = (tenon.exp(y) * y).sum()
    loss.backward()
    turned = a.transpose(2, 0, 1)
    np.testing.assert_allclose(x.grad.numpy(), np.exp(turned) * (1 + turned), rtol=1e-5)
    assert x.grad.numpy().flags.c_contiguous  # transposed there and back
