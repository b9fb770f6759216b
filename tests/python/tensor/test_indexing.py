# SPDX-License-Identifier: Apache-2.0
"""x[...] does what NumPy does, for reading and for writing."""

import numpy as np
import pytest
import tenon
from hypothesis import given, settings
from hypothesis import strategies as st


def arrays(max_ndim=4):
    return st.lists(st.integers(0, 4), min_size=0, max_size=max_ndim).map(
        lambda shape: np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    )


def slices(size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    return st.builds(slice, bound, bound, st.none() | st.sampled_from([1, 2, 3, -1, -2, -3]))


def positions(size):
    if size == 0:
        return st.just(np.zeros((0,), np.int64))
    shape = st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)])
    return shape.flatmap(
        lambda s: st.lists(
            st.integers(-size, size - 1), min_size=int(np.prod(s)), max_size=int(np.prod(s))
        ).map(lambda values: np.array(values, np.int64).reshape(s))
    )


@st.composite
def items_for(draw, shape, advanced):
    """Key items that consume the axes of `shape`."""
    items, axis = [], 0
    while axis < len(shape):
        size = shape[axis]
        kinds = ["slice", "none"] + (["int"] if size else [])
        kinds += ["array", "mask", "list"] if advanced else []
        kind = draw(st.sampled_from(kinds))
        if kind == "none" and len(items) < 6:
            items.append(None)
        elif kind == "mask":
            extents = shape[axis : axis + draw(st.integers(1, 2))]
            count = int(np.prod(extents))
            bits = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            items.append(np.array(bits, bool).reshape(extents))
            axis += len(extents)
        else:
            if kind == "int":
                items.append(draw(st.integers(-size, size - 1)))
            elif kind == "array":
                items.append(draw(positions(size)))
            elif kind == "list":
                items.append(draw(positions(size)).reshape(-1).tolist())
            else:
                items.append(draw(slices(size)))
            axis += 1
    return items


@st.composite
def indexed(draw, advanced):
    """An array and a key for it; keys may be invalid where arrays do not broadcast."""
    array = draw(arrays())
    front = draw(st.integers(0, array.ndim))
    back = draw(st.integers(0, array.ndim - front))
    items = draw(items_for(array.shape[:front], advanced))
    if draw(st.booleans()):
        items.append(Ellipsis)
        items += draw(items_for(array.shape[array.ndim - back :], advanced))
    if advanced and draw(st.integers(0, 9)) == 0:
        items.insert(draw(st.integers(0, len(items))), np.array(draw(st.booleans())))
    return array, tuple(items)


def to_tenon(key):
    return tuple(tenon.tensor(item) if isinstance(item, np.ndarray) else item for item in key)


def check_read(array, key):
    x = tenon.tensor(array)
    try:
        expected = array[key]
    except IndexError:
        with pytest.raises((IndexError, ValueError)):
            x[to_tenon(key)]
        return
    got = x[to_tenon(key)]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.numpy(), expected)


@settings(max_examples=300, deadline=None)
@given(indexed(advanced=False))
def test_basic_reading(case):
    array, key = case
    check_read(array, key)
    try:
        expected = array[key]
    except IndexError:
        return
    if expected.size and expected.ndim:
        assert np.shares_memory(tenon.from_numpy(array)[key].numpy(), array)


@pytest.mark.parametrize("shape", [(3,), (3, 2), (1, 0), (2, 1, 2, 1, 2, 1)])
def test_one_slice_is_read_as_of_a_list(shape):
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    x = tenon.from_numpy(array)
    bounds = [None, *range(-4, 5), 2**31, -(2**31), 2**70, -(2**70), np.int64(1), True]
    for start in bounds:
        for stop in bounds:
            for step in (None, 1, 2, -1, 2**40, -(2**40)):
                key = slice(start, stop, step)
                np.testing.assert_array_equal(x[key].numpy(), array[key])
                np.testing.assert_array_equal(x[key, ...].numpy(), array[key])


@settings(max_examples=400, deadline=None)
@given(indexed(advanced=True))
def test_advanced_reading(case):
    check_read(*case)


@settings(max_examples=300, deadline=None)
@given(indexed(advanced=True), st.sampled_from(["number", "array", "row"]))
def test_writing(case, kind):
    array, key = case
    try:
        target = array[key]
    except IndexError:
        return
    if kind == "number":
        value = 7.0
    elif kind == "array":
        value = -np.arange(1, target.size + 1, dtype=np.float32).reshape(target.shape)
    else:
        value = -np.arange(1, (target.shape[-1] if target.ndim else 1) + 1, dtype=np.float32)
        if target.ndim == 0:
            value = value[0]
    # It is not specified which of several values wins at a repeated position.
    at_indices = np.arange(array.size).reshape(array.shape)[key]
    if kind != "number" and np.unique(at_indices).size != at_indices.size:
        return
    x, expected = tenon.tensor(array), array.copy()
    expected[key] = value
    x[to_tenon(key)] = value if isinstance(value, float) else tenon.tensor(value)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_watched_tensors_are_indexed_alike():
    array = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    x = tenon.tensor(array, requires_grad=True)
    keys = [
        0,
        -1,
        slice(None, None, -1),
        (slice(None), 1),
        (..., None, slice(3, 0, -2)),
        (0, [1, 2], None),
        ...,
        (slice(None), [0, 2], [1, 3]),
        (0, slice(None), [1, 2]),
        ([0, 1], slice(None), 1),
        array > 5,
    ]
    for key in keys:
        y = x[key]
        np.testing.assert_array_equal(y.detach().numpy(), array[key])
        (grad,) = tenon.grad((y * y).sum(), x)
        expected = np.zeros_like(array)
        np.add.at(expected, key, 2 * array[key])
        np.testing.assert_array_equal(grad.numpy(), expected)


def test_gradients_through_assignment():
    x = tenon.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = tenon.tensor(5.0, requires_grad=True)
    y = x * 2
    y[1] = v * 3
    (y * tenon.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 200.0] and v.grad.item() == 30.0
    z = tenon.zeros(3)  # without history until a value with one is written
    z[1:] = v
    z[[0]] = v * 2
    v.grad = None
    (z * tenon.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert v.grad.item() == 112.0


def test_views_write_through():
    x = tenon.zeros((2, 3))
    row = x[1]
    row[:] = 5
    x[:, 0] += 1
    assert x.tolist() == [[1, 0, 0], [6, 5, 5]]


def test_overlapping_assignment_is_a_move():
    x, a = tenon.arange(6), np.arange(6)
    x[1:] = x[:-1]
    a[1:] = a[:-1].copy()
    assert x.tolist() == a.tolist()
    x[:-1] = x[1:]
    a[:-1] = a[1:].copy()
    assert x.tolist() == a.tolist()


def test_numbers_are_written_in_place():
    x = tenon.arange(10)[::-2]
    before = x._version
    x[1] = 70
    x[-1] = -5
    assert x.tolist() == [9, 70, 5, 3, -5] and x._version > before
    half = tenon.zeros(2, dtype=tenon.bfloat16)
    half[1] = 1.5
    assert half.tolist() == [0.0, 1.5]


def test_values_are_converted():
    x = tenon.zeros(3, dtype=tenon.int32)
    x[0] = 2.9
    x[1] = tenon.tensor(7.2)
    x[2] = np.int8(4)
    assert x.tolist() == [2, 7, 4]
    x[:2] = [8, 9]
    assert x.tolist() == [8, 9, 4]
    with pytest.raises(OverflowError, match="does not fit int32"):
        x[0] = 2**40


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (2, IndexError, "index 2 is out of range for axis 0 of length 2"),
        (-3, IndexError, "index -3 is out of range"),
        ((0, 5), IndexError, "index 5 is out of range for axis 1 of length 3"),
        ((0, 0, 0), IndexError, "too many indices: the tensor has 2 axes, the index takes 3"),
        ((slice(None), 3), IndexError, "index 3 is out of range for axis 1 of length 3"),
        ((slice("a"), 0), TypeError, "slice indices must be integers"),
        (slice(0, 0.5), TypeError, "slice indices must be integers"),
        ((..., ...), IndexError, "expected one ..."),
        ("a", TypeError, "expected integers, slices"),
        (0.5, IndexError, "expected integers or bools as an index, got float32"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (np.ones(3, bool), IndexError, "expected a mask of length 2 along axis 0"),
        ([0, 9], IndexError, "9"),
    ],
)
def test_wrong_keys_are_explained(key, error, text):
    x = tenon.zeros((2, 3))
    with pytest.raises(error, match=text):
        x[key]
    with pytest.raises(error, match=text):
        x[key] = 0


def test_read_only_memory_is_not_written():
    array = np.arange(3.0)
    array.flags.writeable = False
    x = tenon.from_numpy(array)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        x += 1


@pytest.mark.parametrize(
    "take",
    [
        lambda x: x[1:3],
        lambda x: x[1],
        lambda x: x[:, 1:],
        lambda x: x.T,
        lambda x: x.mT,
        lambda x: x.transpose(0, 1),
        lambda x: x.reshape(4, 3),
        lambda x: x[1:].reshape(8),
        lambda x: x.flatten(),
        lambda x: x.unsqueeze(0),
        lambda x: x[...],
    ],
)
def test_views_carry_history_to_what_they_were_taken_from(take):
    x = tenon.zeros((3, 4))
    w = tenon.tensor(2.0, requires_grad=True)
    view = take(x)
    view *= 0
    view += w
    x.sum().backward()
    assert w.grad.item() == view.size


def test_transposed_like_numpy():
    for shape in [(), (3,), (2, 3), (2, 3, 4), (2, 0, 3), (1, 2, 1, 3, 2, 1, 2)]:
        array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        x = tenon.tensor(array)
        assert np.array_equal(x.T.numpy(), array.T) and x.T.shape == array.T.shape
        if len(shape) >= 2:
            assert np.array_equal(x.mT.numpy(), array.swapaxes(-1, -2))
        view = x[::-1] if shape else x
        expected = array[::-1] if shape else array
        assert np.array_equal(view.T.numpy(), expected.T)
        assert np.array_equal(view.reshape(-1).numpy(), expected.reshape(-1))
        assert np.array_equal(view.flatten().numpy(), expected.ravel())


def test_flatten_joins_axes():
    x = tenon.arange(24).reshape(2, 3, 4)
    assert x.flatten(0, 1).shape == (6, 4)
    assert x.flatten(1).shape == (2, 12)
    assert x.flatten(-1).shape == (2, 3, 4)
    assert x.flatten().data_ptr() == x.data_ptr()
    assert x.T.flatten().tolist() == np.arange(24).reshape(2, 3, 4).T.ravel().tolist()
    assert tenon.tensor(3.0).flatten().tolist() == [3.0]
    assert tenon.zeros((2, 0, 3)).flatten().shape == (0,)
    with pytest.raises(ValueError, match=r"\[flatten\] expected start <= stop, got 2 and 1"):
        x.flatten(2, 1)


def test_views_without_elements_are_contiguous():
    x = tenon.arange(6).reshape(2, 3).T
    assert not x.is_contiguous()
    assert x[:, 0:0].is_contiguous() and x[3:].is_contiguous()


def test_assigned_numbers_are_rounded_like_a_conversion():
    x = tenon.zeros(4)
    for i, value in enumerate([0.1, float("nan"), float("inf"), 1e300]):
        x[i] = value
    with np.errstate(over="ignore"):
        expected = np.array([0.1, np.nan, np.inf, 1e300], np.float32)
    assert np.array_equal(x.numpy(), expected, equal_nan=True)
