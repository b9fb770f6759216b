# SPDX-License-Identifier: Apache-2.0
"""Shape rules at their edges: the smallest sizes that they take, and what they refuse."""

import re

import numpy as np
import pytest
import tenon
from running import arguments, skip_unserved, to_tensor
from samples import CASES

UPDATES = [case for case in CASES if case.op.endswith("_update")]


def test_sizes_of_zero(device):
    assert tuple(tenon.eye(0, device=device).shape) == (0, 0)
    assert tuple(tenon.eye(0, 3, device=device).shape) == (0, 3)
    assert tuple(tenon.eye(2, 0, device=device).shape) == (2, 0)
    assert tenon.linspace(0.0, 1.0, 0, device=device).tolist() == []
    assert tenon.linspace(2.0, 1.0, 1, device=device).tolist() == [2.0]


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "full_like"])
def test_like_functions_go_to_the_device_that_is_named(name, device):
    x = tenon.zeros([2, 3], device=device)
    value = [3.0] if name == "full_like" else []
    for wanted in ("meta", "cpu", device):
        result = getattr(tenon, name)(x, *value, device=wanted)
        assert result.device == tenon.device(wanted)
        assert tuple(result.shape) == (2, 3) and result.dtype == x.dtype
    assert getattr(tenon, name)(x, *value).device == x.device


def test_sizes_below_zero_are_refused(device):
    with pytest.raises(ValueError, match="expected num of at least 0, got -1"):
        tenon.linspace(0.0, 1.0, -1, device=device)
    with pytest.raises(ValueError, match="expected rows of at least 0, got -2"):
        tenon.eye(-2, 3, device=device)
    with pytest.raises(ValueError, match="expected columns of at least 0, got -2"):
        tenon.eye(3, -2, device=device)


@pytest.mark.parametrize("padding", [[2, 0], [0, 2]])
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_padding_of_each_side_is_checked(name, padding, device):
    with pytest.raises(ValueError, match="padding of at most half of kernel_size, got 2 for 2"):
        getattr(tenon, name)(tenon.zeros([1, 1, 6, 6], device=device), 2, 1, padding)


# Rounded up there would be one more window, which begins where the padding behind the input does.
@pytest.mark.parametrize(
    ("extent", "kernel", "stride", "padding", "windows"),
    [(3, 2, 3, 0, 1), (4, 2, 5, 1, 1), (5, 2, 5, 1, 2), (6, 2, 3, 0, 2), (7, 2, 3, 0, 3)],
)
def test_windows_begin_inside_of_the_input(extent, kernel, stride, padding, windows, device):
    x = to_tensor(np.arange(extent * extent, dtype=np.float64).reshape(1, 1, extent, -1), device)
    for name in ("max_pool2d", "avg_pool2d"):
        result = getattr(tenon, name)(x, kernel, stride, padding, ceil_mode=True)
        assert tuple(result.shape) == (1, 1, windows, windows)
        assert np.isfinite(result.to("cpu").numpy()).all()


def tensors_of(args):
    return [i for i, value in enumerate(args) if isinstance(value, tenon.Tensor)]


@pytest.mark.parametrize("case", UPDATES, ids=str)
def test_updates_take_tensors_of_one_shape_and_dtype(case, device):
    args, kwargs = arguments(case, device)
    function = getattr(tenon, case.op)
    for i in tensors_of(args)[1:]:
        longer = tenon.zeros([int(args[0].numel()) + 1], device=device, dtype=tenon.float64)
        with pytest.raises(ValueError, match=f"expected argument {i} to have param's shape"):
            function(*args[:i], longer, *args[i + 1 :], **kwargs)
        with pytest.raises(TypeError, match=f"expected argument {i} to have param's dtype"):
            function(*args[:i], args[i].to(tenon.float32), *args[i + 1 :], **kwargs)


@pytest.mark.parametrize(("i", "name"), [(0, "x"), (1, "weight"), (2, "h"), (3, "c")])
def test_recurrence_refuses_shapes_that_do_not_fit(i, name, device):
    case = next(case for case in CASES if case.op == "lstm_recurrence")
    args, kwargs = arguments(case, device)
    wrong = [list(a.shape) for a in args[:4]]
    wrong[i][-2 if name == "weight" else -1] += 1
    args[i] = tenon.zeros(wrong[i], device=device, dtype=tenon.float64)
    with pytest.raises(ValueError, match=f"expected {name} of shape"):
        tenon.lstm_recurrence(*args, **kwargs)


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        ((slice(None), slice(0, 4)), (4, 2, 2)),
        ((slice(None), slice(1, 2)), (2, 2)),
        ((slice(None, None, 2), slice(0, 6)), (2, 3, 1, 2)),
        ((slice(0, 1), slice(2, 4)), (1, 2, 1)),
    ],
    ids=str,
)
def test_axes_that_lie_evenly_are_split_without_a_copy(index, shape, device):
    array = np.arange(24.0).reshape(4, 6)
    base = to_tensor(array, device)
    part = base[index].view(list(shape))
    assert tuple(part.shape) == shape
    np.testing.assert_array_equal(part.to("cpu").numpy(), array[index].reshape(shape))
    same = base[index].reshape(list(shape))
    part.add_(100.0)
    np.testing.assert_array_equal(same.to("cpu").numpy(), array[index].reshape(shape) + 100)


def zeros(*shape, dtype="float64"):
    return lambda device: tenon.zeros(list(shape), dtype=getattr(tenon, dtype), device=device)


F, Z = "float32", zeros
REFUSED = {
    "concat, no tensors": ("concat", ([],), "expected at least one tensor, got none"),
    "batch_norm, bias": ("batch_norm", (Z(2, 3), None, Z(2)), "expected bias"),
    "batch_norm, weight": ("batch_norm", (Z(2, 3), Z(2), None), "expected weight"),
    "index_add, dtype": ("index_add", (Z(3, 2), Z(1, dtype="int64"), Z(1, 2, dtype=F)), "source"),
    "index_add, shape": ("index_add", (Z(3, 2), Z(1, dtype="int64"), Z(2, 2)), "(1, 2)"),
    "index, too many from axis 1": (
        "index",
        (Z(3, 2), [Z(1, dtype="int64"), Z(1, dtype="int64")], 1),
        "expected at most 1 index tensors from axis 1",
    ),
    "topk, 0-d": ("topk", (Z(), 2), "expected a count of 1 for a 0-d tensor, got 2"),
    "topk, beyond": ("topk", (Z(3), 4), "expected a count from 0 to 3"),
    "topk, negative": ("topk", (Z(3), -1), "expected a count from 0 to 3"),
    "conv2d, stride 0 down": ("conv2d", (Z(1, 1, 4, 4), Z(1, 1, 2, 2), None, [0, 1]), "stride"),
    "conv2d, stride 0 across": ("conv2d", (Z(1, 1, 4, 4), Z(1, 1, 2, 2), None, [1, 0]), "stride"),
    "conv2d, padding": ("conv2d", (Z(1, 1, 4, 4), Z(1, 1, 2, 2), None, 1, [0, -1]), "padding"),
    "conv2d_input_grad, three extents": (
        "conv2d_input_grad",
        (Z(1, 1, 3, 3), Z(1, 1, 2, 2), [1, 1, 4]),
        "expected input_shape of four extents",
    ),
    "conv2d_input_grad, negative": (
        "conv2d_input_grad",
        (Z(1, 1, 3, 3), Z(1, 1, 2, 2), [1, 1, 4, -4]),
        "expected input_shape of four extents",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_do_not_fit_are_refused(name, device):
    skip_unserved(device, "float64")
    operator, arguments, text = REFUSED[name]

    def made(value):
        if isinstance(value, list):
            return [made(each) for each in value]
        return value(device) if callable(value) else value

    with pytest.raises((ValueError, TypeError, IndexError), match=re.escape(text)):
        getattr(tenon, operator)(*map(made, arguments))


def test_topk_of_one_number(device):
    values, indices = tenon.topk(to_tensor(np.array(2.5), device), 1)
    assert values.tolist() == 2.5 and indices.tolist() == 0


def test_a_bias_takes_part_in_the_dtype(device):
    skip_unserved(device, "float64")
    bias = Z(3)(device)
    assert (
        tenon.linear(Z(2, 4, dtype=F)(device), Z(3, 4, dtype=F)(device), bias).dtype == bias.dtype
    )
    image, filters = Z(1, 2, 4, 4, dtype=F)(device), Z(3, 2, 2, 2, dtype=F)(device)
    assert tenon.conv2d(image, filters, bias).dtype == bias.dtype


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("length", [3, 4, 5, 6, 7])
def test_sliding_windows_of_every_count(length, step, device):
    array = np.arange(14.0).reshape(7, 2)
    windows = tenon.sliding_window(to_tensor(array, device), 0, length, step)
    want = np.lib.stride_tricks.sliding_window_view(array, length, 0)[::step]
    np.testing.assert_array_equal(windows.to("cpu").numpy(), want)
