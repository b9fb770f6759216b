# SPDX-License-Identifier: Apache-2.0
"""Images whose channels lie last give such images, with the same numbers as planes."""

import numpy as np
import pytest
import tenon

CONVOLUTIONS = {
    # channels, filters, kernel, stride, padding, dilation, groups
    "blocks": (24, 40, 3, 1, 1, 1, 1),
    "blocks, part of a vector": (17, 21, 3, 1, 1, 1, 1),
    "strided": (20, 36, 3, 2, 1, 1, 1),
    "strided by three": (16, 16, 5, 3, 2, 1, 1),
    "strided differently": (16, 32, 3, [1, 2], 1, 1, 1),
    "strided and dilated": (16, 32, 3, 2, 2, 2, 1),
    "farther than the kernel": (16, 16, 2, 3, 0, 1, 1),
    "dilated": (32, 32, 3, 1, 2, 2, 1),
    "groups": (32, 64, 3, 1, 1, 1, 2),
    "groups, strided": (32, 64, 3, 2, 1, 1, 2),
    "single pixels": (24, 40, 1, 1, 0, 1, 1),
    "single pixels, groups": (32, 16, 1, 1, 0, 1, 2),
    "single pixels, strided": (24, 40, 1, 2, 0, 1, 1),
    "depthwise": (32, 32, 3, 1, 1, 1, 32),
    "depthwise, part of a vector": (37, 37, 3, 1, 1, 1, 37),
    "depthwise, many channels": (272, 272, 3, 1, 1, 1, 272),
    "depthwise 5x5": (16, 16, 5, 1, 2, 1, 16),
    "depthwise, strided": (32, 32, 3, 2, 1, 1, 32),
    "depthwise, two filters each": (16, 32, 3, 1, 1, 1, 16),
    "depthwise single pixels, two filters each": (16, 32, 1, 1, 0, 1, 16),
    "filtered": (32, 48, 3, 1, 1, 1, 1),
    "filtered, part of a vector": (35, 41, 3, 1, 1, 1, 1),
    "filtered, groups": (64, 96, 3, 1, 0, 1, 2),
    "filtered, more padding": (32, 32, 3, 1, 2, 1, 1),
    "filtered, many": (96, 80, 3, 1, 1, 1, 1),
    "few filters": (32, 3, 3, 1, 1, 1, 1),
    "few channels, strided": (3, 32, 7, 2, 3, 1, 1),
    "few channels": (3, 16, 3, 1, 1, 1, 1),
}
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 1.6e-2, "float16": 2e-3}
# Those for which every instruction set has a way, with float32.
KEPT = set(CONVOLUTIONS) - {"few filters"}
KEPT_GRADIENTS = KEPT - {"few channels, strided", "few channels", "depthwise, strided", "depthwise, two filters each",
                         "depthwise single pixels, two filters each"}  # fmt: skip


def channels_last(x):
    return tenon.permute(tenon.permute(x, [0, 2, 3, 1]).contiguous(), [0, 3, 1, 2])


def random(shape, dtype, seed):
    numbers = np.random.default_rng(seed).standard_normal(shape)
    return tenon.tensor(numbers).to(getattr(tenon, dtype))


def numbers(x):
    return x.detach().to(tenon.float64).numpy()


def is_channels_last(x):
    _, channels, height, width = x.shape
    return x.strides == (height * width * channels, 1, width * channels, channels)


def close(got, want, dtype):
    want = numbers(want)
    scale = max(1.0, np.abs(want).max()) * TOLERANCE[dtype]
    np.testing.assert_allclose(numbers(got), want, rtol=0, atol=scale)


@pytest.fixture(params=CONVOLUTIONS)
def convolution(request):
    channels, filters, kernel, *settings, groups = CONVOLUTIONS[request.param]
    lists = [each if isinstance(each, list) else [each] for each in settings]
    return request.param, channels, filters, kernel, (*lists, groups)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("side", [(14, 19), (33, 21), (7, 7), (5, 8)], ids=str)
def test_convolutions(convolution, side, dtype):
    name, channels, filters, kernel, settings = convolution
    x = random((2, channels, *side), dtype, 0)
    weight = random((filters, channels // settings[-1], kernel, kernel), dtype, 1)
    bias = random((filters,), dtype, 2)
    want = tenon.conv2d(x, weight, bias, *settings)
    got = tenon.conv2d(channels_last(x), weight, bias, *settings)
    close(got, want, dtype)
    large = side[0] * side[1] > 128  # single pixels of fewer, in groups, are put into planes
    if dtype == "float32" and name in KEPT and (large or "single" not in name):
        assert is_channels_last(got)
    for given in (tenon.empty(want.shape, dtype=want.dtype),
                  tenon.empty((*want.shape[:3], 2 * want.shape[3]), dtype=want.dtype)[..., ::2],
                  tenon.permute(tenon.empty(want.shape[::-1], dtype=want.dtype), [3, 2, 1, 0])):  # fmt: skip
        strides = given.strides
        tenon.conv2d(channels_last(x), weight, bias, *settings, out=given)
        close(given, want, dtype)
        assert given.strides == strides

    grad = random(want.shape, dtype, 3)
    want = tenon.conv2d_input_grad(grad, weight, list(x.shape), *settings)
    got = tenon.conv2d_input_grad(channels_last(grad), weight, list(x.shape), *settings)
    close(got, want, dtype)
    if dtype == "float32" and name in KEPT_GRADIENTS and (large or "single" not in name):
        assert is_channels_last(got)
    want = tenon.conv2d_weight_grad(grad, x, list(weight.shape), *settings)
    got = tenon.conv2d_weight_grad(
        channels_last(grad), channels_last(x), list(weight.shape), *settings
    )
    close(got, want, dtype)
    assert got.numpy().flags.c_contiguous if dtype != "bfloat16" else True


def test_an_infinity_stays_in_its_window():
    """Minimal filtering would spread it."""
    x = random((2, 32, 16, 16), "float32", 0).numpy()
    x[0, 3, 5, 7], x[1, 8, 0, 0] = np.inf, np.nan
    x, weight = tenon.tensor(x), random((32, 32, 3, 3), "float32", 1)
    for run in (
        lambda x: tenon.conv2d(x, weight, None, [1], [1]),
        lambda x: tenon.conv2d_input_grad(x, weight, [2, 32, 16, 16], [1], [1]),
    ):
        want, got = run(x), run(channels_last(x))
        assert is_channels_last(got)
        np.testing.assert_array_equal(np.isnan(numbers(got)), np.isnan(numbers(want)))
        np.testing.assert_array_equal(np.isinf(numbers(got)), np.isinf(numbers(want)))
        finite = np.isfinite(numbers(want))
        assert 0 < np.sum(~finite) <= 2 * 9 * 32
        np.testing.assert_allclose(numbers(got)[finite], numbers(want)[finite], atol=1e-4)


def test_strided_gradients_against_their_definition():
    """The same as that of the unstrided convolution of gradients with zeros between."""
    for channels, filters, kernel, stride, padding, dilation, groups in (
        (16, 16, 3, 2, 1, 1, 1), (20, 18, 4, 2, 1, 1, 1), (32, 16, 3, 3, 0, 1, 1),
        (16, 32, 3, 2, 2, 2, 1), (32, 32, 5, 2, 2, 1, 2), (16, 16, 2, 3, 0, 1, 1),
    ):  # fmt: skip
        x = random((2, channels, 17, 22), "float64", 0)
        weight = random((filters, channels // groups, kernel, kernel), "float64", 1)
        settings = ([padding], [dilation], groups)
        dense = tenon.conv2d(x, weight, None, [1], *settings)
        spread = np.zeros(dense.shape)
        grad = random(tenon.conv2d(x, weight, None, [stride], *settings).shape, "float64", 3)
        spread[:, :, ::stride, ::stride] = grad.numpy()
        want = tenon.conv2d_input_grad(tenon.tensor(spread), weight, list(x.shape), [1], *settings)
        for dtype in TOLERANCE:
            to = getattr(tenon, dtype)
            for each in (grad, channels_last(grad)):
                got = tenon.conv2d_input_grad(
                    each.to(to), weight.to(to), list(x.shape), [stride], *settings
                )
                close(got, want, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", [3, 16, 37, 80])
def test_pooling(channels, dtype):
    x = random((2, channels, 13, 18), dtype, 0)
    for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1), ([2, 3], [3, 1], 0)):
        lists = [each if isinstance(each, list) else [each] for each in (kernel, stride, padding)]
        for pool in (tenon.max_pool2d, tenon.avg_pool2d):
            plain, last = x.detach(), channels_last(x).detach()
            plain.requires_grad = last.requires_grad = True
            want, got = pool(plain, *lists), pool(last, *lists)
            close(got, want, dtype)
            assert is_channels_last(got)
            grad = random(want.shape, dtype, 1)
            (want_grad,) = tenon.grad(want, [plain], grad)
            (got_grad,) = tenon.grad(got, [last], channels_last(grad))
            close(got_grad, want_grad, dtype)
            assert is_channels_last(got_grad)
            given = tenon.empty(want.shape, dtype=want.dtype)
            pool(last.detach(), *lists, out=given)
            close(given, want, dtype)
        values, indices = tenon.max_pool2d_with_indices(channels_last(x), *lists)
        assert is_channels_last(values) and is_channels_last(indices)
        for a, b in zip((values, indices), tenon.max_pool2d_with_indices(x, *lists)):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("channels", [3, 16, 37, 300])
def test_batch_norm(channels, dtype):
    x = random((3, channels, 5, 7), dtype, 0) * 2.0 + 1.0
    weight, bias = random((channels,), dtype, 1), random((channels,), dtype, 2)
    grad = random(x.shape, dtype, 3)
    results = []
    for place in (lambda x: x, channels_last):
        leaves = [each.detach() for each in (place(x), weight, bias)]
        for leaf in leaves:
            leaf.requires_grad = True
        out, mean, var = tenon.batch_norm(*leaves)
        with tenon.no_grad():
            again = tenon.batch_norm_inference(place(x), mean, var, weight, bias)
        grads = tenon.grad(out, leaves, place(grad))
        results.append((out, mean, var, again, *grads))
    for want, got in zip(*results):
        close(got, want, dtype)
    for which in (0, 3, 4):
        assert is_channels_last(results[1][which])
    out = tenon.empty(x.shape, dtype=x.dtype)
    tenon.batch_norm_inference(channels_last(x), *results[0][1:3], weight, bias, out=out)
    close(out, results[0][3], dtype)


def test_what_lies_either_way_is_in_rows():
    x = channels_last(random((2, 24, 5, 6), "float32", 0))
    one_filter = tenon.conv2d(x, random((1, 24, 3, 3), "float32", 1))
    one_pixel = tenon.avg_pool2d(x, [5, 6])
    assert one_pixel.shape == (2, 24, 1, 1)
    for each in (one_filter, one_pixel, tenon.max_pool2d(x[:, :1], [2])):
        assert each.numpy().flags.c_contiguous
        assert each.reshape(-1).data_ptr() == each.data_ptr()
    want = x.numpy().mean((2, 3), keepdims=True)
    np.testing.assert_allclose(one_pixel.numpy(), want, rtol=1e-5, atol=1e-6)


def test_empty_images():
    x = tenon.permute(tenon.zeros([0, 5, 6, 16]), [0, 3, 1, 2])
    assert tenon.conv2d(x, tenon.zeros((16, 16, 1, 1))).shape == (0, 16, 5, 6)
    assert tenon.max_pool2d(x, [2]).shape == (0, 16, 2, 3)
    x = channels_last(random((2, 16, 4, 4), "float32", 0))
    assert tenon.conv2d(x, tenon.zeros((0, 16, 3, 3))).shape == (2, 0, 2, 2)


def test_parts_of_images():
    whole = channels_last(random((4, 32, 12, 12), "float32", 0))
    weight = random((16, 16, 3, 3), "float32", 1)
    for part in (
        whole[1:3, :16],
        whole[:, :16],
        whole[:, 16:, 2:9],
        tenon.flip(whole[:, :16], [2]),
    ):
        want = tenon.conv2d(tenon.tensor(np.ascontiguousarray(part.numpy())), weight)
        close(tenon.conv2d(part, weight), want, "float32")
    part = whole[1:3]
    got = tenon.max_pool2d(part, [2])
    assert is_channels_last(got)
    np.testing.assert_array_equal(got.numpy(), tenon.max_pool2d(part.contiguous(), [2]).numpy())


def test_an_image_passes_through_a_network_as_it_lies():
    x = random((2, 16, 12, 12), "float32", 0)
    kernels = [random(shape, "float32", seed) for seed, shape in enumerate(
        [(24, 16, 3, 3), (24, 1, 3, 3), (40, 24, 1, 1)], 1)]  # fmt: skip

    def network(x, first, depthwise, last):
        x = tenon.relu(tenon.batch_norm(tenon.conv2d(x, first, None, [1], [1]))[0])
        x = tenon.conv2d(x, depthwise, None, [1], [1], [1], 24)
        return tenon.max_pool2d(tenon.conv2d(x, last) * 2.0, [2])

    results = []
    for place in (lambda x: x, channels_last):
        leaves = [each.detach() for each in (place(x), *kernels)]
        for leaf in leaves:
            leaf.requires_grad = True
        out = network(*leaves)
        grad = random(out.shape, "float32", 9)
        results.append((out, *tenon.grad(out, leaves, place(grad))))
    for want, got in zip(*results):
        close(got, want, "float32")
    assert is_channels_last(results[1][0]) and is_channels_last(results[1][1])
    array = results[1][0].detach().numpy()  # without a copy
    assert array.strides == tuple(4 * stride for stride in results[1][0].strides)
    again = tenon.tensor(array)
    np.testing.assert_array_equal(again.numpy(), array)
