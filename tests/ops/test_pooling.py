# SPDX-License-Identifier: Apache-2.0
"""Pooling of every kind of window, over planes and over channels that lie side by side."""

import numpy as np
import pytest
import tenon
from references.convolutions import pair
from references.pooling import avg_pool2d, pool_windows
from references.pooling import max_pool2d_with_indices as max_pool2d
from running import skip_unserved, to_tensor

POOLINGS = {
    # images, kernel, stride, padding, dilation, ceil_mode
    "halves": ((2, 3, 14, 14), 2, 2, 0, 1, False),
    "halves, odd sides": ((2, 5, 15, 71), 2, 2, 0, 1, False),
    "halves, rounded up": ((1, 3, 9, 21), 2, 2, 0, 1, True),
    "halves, padded": ((1, 3, 9, 21), 2, 2, 1, 1, False),
    "thirds": ((2, 4, 12, 37), 3, 3, 0, 1, False),
    "overlapping halves": ((2, 17, 13, 40), 3, 2, 1, 1, False),
    "overlapping halves, no padding": ((1, 3, 11, 35), 3, 2, 0, 1, False),
    "side by side": ((2, 16, 6, 33), 3, 1, 1, 1, False),
    "side by side, no padding": ((1, 7, 6, 20), 3, 1, 0, 1, False),
    "many taps": ((1, 3, 9, 19), 5, 1, 2, 1, False),
    "many taps, no padding": ((1, 2, 9, 30), [4, 5], 1, 0, 1, False),
    "tiles down, overlapping across": ((1, 3, 10, 20), [2, 3], 2, 0, 1, True),
    "tiles across, overlapping down": ((1, 3, 10, 20), [3, 2], 2, 0, 1, True),
    "gaps between": ((1, 3, 14, 20), 2, 3, 0, 1, False),
    "bands": ((1, 3, 70, 130), 3, 2, 1, 1, False),
    "bands, no padding": ((1, 2, 130, 70), 2, 2, 0, 1, False),
    "one wide row": ((1, 1, 1, 9000), [1, 3], [1, 1], [0, 1], 1, False),
    "dilation": ((1, 3, 14, 20), 2, 1, 1, [2, 3], False),
    "padding alone": ((1, 2, 5, 2), [1, 2], [1, 2], [0, 1], [1, 3], False),
    "many channels": ((2, 530, 4, 5), 2, 1, 0, 1, False),
    "whole image": ((3, 6, 7, 7), 7, 7, 0, 1, False),
}


def channels_last(x):
    return tenon.permute(tenon.permute(x, [0, 2, 3, 1]).contiguous(), [0, 3, 1, 2])


def numbers(x):
    return x.detach().to("cpu").to(tenon.float64).numpy()


def lists(*numbers):
    return [[each] if isinstance(each, int) else each for each in numbers]


@pytest.fixture(params=POOLINGS)
def pooling(request):
    image, kernel, stride, padding, dilation, ceil_mode = POOLINGS[request.param]
    return image, *lists(kernel, stride, padding, dilation), ceil_mode


def has_empty_windows(x, *settings):
    rows, columns = pool_windows(x, *map(pair, settings[:4]), settings[4])
    sides = ((rows, x.shape[2]), (columns, x.shape[3]))
    return any(not any(0 <= at < extent for at in each) for side, extent in sides for each in side)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
def test_largest(pooling, dtype, device):
    image, kernel, stride, padding, dilation, ceil_mode = pooling
    skip_unserved(device, dtype)
    rng = np.random.default_rng(3)
    x = rng.integers(-9, 9, image).astype(np.float64)  # the first of equals wins
    if dtype != "int32":
        x[rng.random(x.shape) < 0.02] = np.nan
        x[rng.random(x.shape) < 0.2] = -np.inf
    tensor = to_tensor(x, device, dtype=dtype)
    layouts = tensor, channels_last(tensor)
    settings = (kernel, stride, padding, dilation, ceil_mode)
    if has_empty_windows(x, *settings):
        got = [tenon.max_pool2d_with_indices(each, *settings) for each in layouts]
        for a, b in zip(*got, strict=True):
            np.testing.assert_array_equal(numbers(a), numbers(b))
        return
    want = max_pool2d(x, *settings)
    for each in layouts:
        got, argmax = tenon.max_pool2d_with_indices(each, *settings)
        np.testing.assert_array_equal(numbers(got), want[0])
        np.testing.assert_array_equal(numbers(argmax), want[1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
def test_largest_alone(pooling, dtype, device):
    """Without indices: the same numbers, by another way."""
    image, kernel, stride, padding, dilation, ceil_mode = pooling
    skip_unserved(device, dtype)
    rng = np.random.default_rng(4)
    x = rng.integers(-9, 9, image).astype(np.float64)
    if dtype != "int32":
        x[rng.random(x.shape) < 0.02] = np.nan
        x[rng.random(x.shape) < 0.2] = -np.inf
    tensor = to_tensor(x, device, dtype=dtype)
    settings = (kernel, stride, padding, dilation, ceil_mode)
    for each in (tensor, channels_last(tensor)):
        want, _ = tenon.max_pool2d_with_indices(each, *settings)
        np.testing.assert_array_equal(numbers(tenon.max_pool2d(each, *settings)), numbers(want))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradient_of_largest(pooling, dtype, device):
    """It goes to the first of equals, and to the first NaN."""
    image, kernel, stride, padding, dilation, ceil_mode = pooling
    skip_unserved(device, dtype)
    rng = np.random.default_rng(6)
    x = rng.integers(-3, 3, image).astype(np.float64)
    settings = (kernel, stride, padding, dilation, ceil_mode)
    if has_empty_windows(x, *settings):
        pytest.skip("windows of nothing but padding")
    x[rng.random(x.shape) < 0.02] = np.nan
    x[rng.random(x.shape) < 0.2] = -np.inf
    values, argmax = max_pool2d(x, *settings)
    grad = rng.integers(-4, 4, values.shape).astype(np.float64)
    want = np.zeros_like(x).reshape(*x.shape[:2], -1)
    n, c = np.indices(values.shape)[:2]
    np.add.at(want, (n, c, argmax), grad)
    tensor, grads = (to_tensor(each, device, dtype=dtype) for each in (x, grad))
    for layout in (lambda x: x, channels_last):
        leaf = layout(tensor).detach()
        leaf.requires_grad = True
        (got,) = tenon.grad(tenon.max_pool2d(leaf, *settings), leaf, layout(grads))
        np.testing.assert_array_equal(numbers(got), want.reshape(x.shape))


def shares(x, grad, kernel, stride, padding, ceil_mode, count_padding):
    """The gradient of an average: every window's, shared by the elements that it counts."""
    kernel, padding = pair(kernel), pair(padding)
    rows, columns = pool_windows(x, kernel, pair(stride), padding, (1, 1), ceil_mode)
    out = np.zeros_like(x)
    h, w = x.shape[2:]
    for i, ys in enumerate(rows):
        for j, xs in enumerate(columns):
            inside = [(y, v) for y in ys for v in xs if 0 <= y < h and 0 <= v < w]
            counted = [(y, v) for y in ys for v in xs if y < h + padding[0] and v < w + padding[1]]
            for y, v in inside:
                out[:, :, y, v] += grad[:, :, i, j] / len(counted if count_padding else inside)
    return out


@pytest.mark.parametrize("count_padding", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_average(pooling, dtype, count_padding, device):
    image, kernel, stride, padding, dilation, ceil_mode = pooling
    if dilation != [1]:
        pytest.skip("averages have no dilation")
    skip_unserved(device, dtype)
    rng = np.random.default_rng(5)
    x = rng.integers(-9, 9, image).astype(np.float64)
    settings = (kernel, stride, padding, ceil_mode, count_padding)
    want = avg_pool2d(x, *settings)
    grad = rng.integers(-9, 9, want.shape).astype(np.float64)
    slack = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 5e-2}[dtype]
    of = {"rtol": slack, "atol": slack * 9}
    tensor, grads = (to_tensor(each, device, dtype=dtype) for each in (x, grad))
    for layout in (lambda x: x, channels_last):
        leaf = layout(tensor).detach()
        leaf.requires_grad = True
        got = tenon.avg_pool2d(leaf, *settings)
        (back,) = tenon.grad(got, leaf, layout(grads))
        np.testing.assert_allclose(numbers(got), want, **of)
        np.testing.assert_allclose(numbers(back), shares(x, grad, *settings), **of)


def test_an_average_sees_no_element_beyond_its_window(device):
    """An infinity stays where it is, whatever is read around it."""
    for kernel, stride, padding in ((2, 2, 0), (3, 1, 1), (3, 2, 1), (5, 1, 2)):
        x = np.zeros((1, 2, 12, 35), np.float32)
        x[0, 0, 5, 17] = np.inf
        want = np.isinf(avg_pool2d(x, kernel, stride, padding))
        tensor = to_tensor(x, device)
        for each in (tensor, channels_last(tensor)):
            got = tenon.avg_pool2d(each, *lists(kernel, stride, padding)).to("cpu").numpy()
            np.testing.assert_array_equal(np.isinf(got), want)
            assert not np.isnan(got).any()
