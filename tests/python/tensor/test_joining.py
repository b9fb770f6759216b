# SPDX-License-Identifier: Apache-2.0
"""Functions that join, split and combine tensors, against NumPy's."""

import itertools

import numpy as np
import pytest
import tenon

ARRAYS = [
    np.float32(3.0),
    np.arange(3.0),
    np.arange(6.0).reshape(2, 3),
    np.arange(12.0).reshape(2, 3, 2),
]


def same(got, want):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(np.ndim(array)))
def test_atleast(name, array):
    same(getattr(tenon, name)(tenon.tensor(array)), getattr(np, name)(array))


def test_atleast_of_several():
    got = tenon.atleast_2d(tenon.tensor(1.0), tenon.arange(3))
    same(got, np.atleast_2d(1.0, np.arange(3)))


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("array", ARRAYS[1:], ids=lambda array: str(np.ndim(array)))
def test_stacks(name, array):
    x = tenon.tensor(array)
    same(getattr(tenon, name)([x, x + 1]), getattr(np, name)([array, array + 1]))
    if name == "vstack":
        same(tenon.row_stack([x, x + 1]), np.vstack([array, array + 1]))


def test_block_diag():
    got = tenon.block_diag(tenon.tensor([[1, 2], [3, 4]]), tenon.tensor([5, 6]), tenon.tensor(7))
    same(got, [[1, 2, 0, 0, 0], [3, 4, 0, 0, 0], [0, 0, 5, 6, 0], [0, 0, 0, 0, 7]])
    with pytest.raises(ValueError, match=r"at most two axes, got shape \[1, 1, 1\]"):
        tenon.block_diag(tenon.zeros([1, 1, 1]))
    with pytest.raises(ValueError, match="expected at least one tensor, got none"):
        tenon.block_diag()


def test_cartesian_prod():
    a, b = [1, 2], [3, 4, 5]
    got = tenon.cartesian_prod(tenon.tensor(a), tenon.tensor(b))
    same(got, np.array(list(itertools.product(a, b))))
    same(tenon.cartesian_prod(tenon.tensor(a)), np.array(a))
    with pytest.raises(ValueError, match=r"expected vectors, got shape \[\]"):
        tenon.cartesian_prod(tenon.tensor(1))


@pytest.mark.parametrize("r", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("again", [False, True])
def test_combinations(r, again):
    values = [3, 1, 4, 1]
    choose = itertools.combinations_with_replacement if again else itertools.combinations
    want = np.array(list(choose(values, r)), dtype=np.int64)
    got = tenon.combinations(tenon.tensor(values), r, again)
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("parts", [1, 2, 3, 7, [], [1, 3], [2, -1], [0, 9], [4, 2]])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_tensor_split(parts, axis):
    array = np.arange(30.0).reshape(5, 6)
    same(tenon.tensor_split(tenon.tensor(array), parts, axis), np.array_split(array, parts, axis))


def test_splits_of_equal_length():
    array = np.arange(48.0).reshape(4, 6, 2)
    x = tenon.tensor(array)
    same(tenon.hsplit(x, 3), np.hsplit(array, 3))
    same(tenon.vsplit(x, [1, 3]), np.vsplit(array, [1, 3]))
    same(tenon.dsplit(x, 2), np.dsplit(array, 2))
    same(tenon.hsplit(tenon.arange(4), 2), np.hsplit(np.arange(4), 2))
    with pytest.raises(
        ValueError, match="a number of sections that divides 4, got 3; tensor_split"
    ):
        tenon.vsplit(x, 3)
    with pytest.raises(ValueError, match=r"dsplit: expected at least 3 axes, got shape \[4\]"):
        tenon.dsplit(tenon.arange(4), 2)
    with pytest.raises(ValueError, match="expected at least one section, got 0"):
        tenon.tensor_split(x, 0)


def test_flips():
    array = np.arange(6).reshape(2, 3)
    same(tenon.fliplr(tenon.tensor(array)), np.fliplr(array))
    same(tenon.flipud(tenon.tensor(array)), np.flipud(array))
    with pytest.raises(ValueError, match=r"fliplr: expected at least 2 axes, got shape \[3\]"):
        tenon.fliplr(tenon.arange(3))


def test_unravel_index():
    indices = np.array([[0, 5], [23, 7]])
    same(
        tenon.unravel_index(tenon.tensor(indices), (2, 3, 4)), np.unravel_index(indices, (2, 3, 4))
    )
    same(tenon.unravel_index(tenon.tensor([-1]), (2, 3)), [[1], [2]])
    with pytest.raises(IndexError, match=r"from -6 to 5 for shape \[2, 3\], got 0 to 6"):
        tenon.unravel_index(tenon.tensor([0, 6]), (2, 3))


def test_gradients_reach_the_parts():
    x = tenon.tensor([1.0, 2.0, 3.0], requires_grad=True)
    left, right = tenon.tensor_split(x, [1])
    (tenon.column_stack([x, x * x]).sum() + (left * 5).sum() + (right * 7).sum()).backward()
    assert x.grad.tolist() == [8.0, 12.0, 14.0]
