# SPDX-License-Identifier: Apache-2.0
"""Regions of networks on the CPU: images stay NHWC between neighbouring convolutions. Bits are those of single steps."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon


def constant(*shape, scale=0.3):
    return tenon.randn(*shape) * scale


def pointwise(filters, channels, stride=1):
    weight, bias = constant(filters, channels, 1, 1), constant(filters)
    return lambda x: tenon.conv2d(x, weight, bias, stride)


def region(middle, channels, made=None):
    """A network around what is looked at, with enough convolutions for a region."""
    made = made or channels
    before, first, second, last = (
        pointwise(channels, channels),
        pointwise(24, made),
        pointwise(19, 24),
        pointwise(32, 19),
    )
    return lambda x: last(second(tenon.relu(first(middle(tenon.relu(before(x)))))))


def check(function, *inputs, executables=1, runs=3, covers=None):
    """The program has the bits of single steps in every run, as one executable of `covers` steps."""
    with tenon.no_grad():
        program = tenon.export(function, inputs).freeze()
        for _ in range(runs):
            inputs = tuple(tenon.randn(*x.shape) for x in inputs)
            want, got = function(*inputs), program(*inputs)
            want, got = (t if isinstance(t, tuple) else (t,) for t in (want, got))
            for a, b in zip(want, got, strict=True):
                np.testing.assert_array_equal(b.numpy(), a.numpy(), strict=True)
        plan = program.plan()
    assert plan.count("one executable of cpu:0") == executables, plan
    assert "and run by kernels" not in plan and "a run failed" not in plan, plan
    if covers:
        assert f"steps 0 to {covers - 1}: one executable" in plan, plan
    return program


# Channels, kernel, height and width, stride, padding, dilation, images.
DEPTHWISE = [
    (16, 3, (24, 25), 1, 1, 1, 1),
    (20, 3, (17, 18), 2, 1, 1, 2),
    (40, 5, (14, 14), 1, 2, 1, 1),
    (35, 5, (7, 7), 1, 2, 1, 1),
    (24, 5, (28, 27), 2, 2, 1, 1),
    (33, 3, (9, 8), 1, 2, 2, 3),
    (48, 7, (12, 11), 1, 3, 1, 1),
    (18, 3, (5, 40), 1, 0, 1, 1),
    (300, 3, (6, 6), 1, 1, 1, 1),
]


@pytest.mark.parametrize("case", DEPTHWISE)
@pytest.mark.parametrize("with_bias", [True, False])
def test_depthwise(case, with_bias):
    channels, kernel, size, stride, padding, dilation, images = case
    weight, bias = constant(channels, 1, kernel, kernel), constant(channels)

    def middle(x):
        y = tenon.conv2d(
            x, weight, bias if with_bias else None, stride, padding, dilation, channels
        )
        return tenon.hardswish(y)

    check(region(middle, channels), tenon.randn(images, channels, *size), covers=8)


def test_depthwise_with_paddings_and_strides_of_their_own():
    weight = constant(24, 1, 3, 5)
    middle = lambda x: tenon.conv2d(x, weight, None, [2, 1], [0, 3], [1, 2], 24)
    check(region(middle, 24), tenon.randn(2, 24, 21, 15), covers=7)


# Channels, filters, kernel, height and width, stride, padding, images.
CONVOLUTIONS = [
    (24, 40, 1, (32, 31), 1, 0, 2),
    (24, 20, 1, (23, 24), 2, 0, 1),
    (20, 40, 1, (50, 49), 2, 0, 2),
    (64, 12, 1, (24, 24), 1, 0, 1),
    (40, 130, 1, (7, 7), 1, 0, 1),
    (24, 36, 3, (13, 12), 2, 1, 2),
    (16, 33, 5, (11, 14), 1, 2, 1),
    (32, 48, 3, (14, 15), 1, 1, 3),
    (64, 64, 3, (20, 18), 1, 0, 1),
    (96, 160, 3, (34, 33), 1, 1, 1),
    (160, 96, 3, (7, 7), 1, 1, 2),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case):
    channels, filters, kernel, size, stride, padding, images = case
    weight, bias = constant(filters, channels, kernel, kernel, scale=0.1), constant(filters)
    middle = lambda x: tenon.silu(tenon.conv2d(x, weight, bias, stride, padding))
    check(region(middle, channels, filters), tenon.randn(images, channels, *size), covers=8)


def squeeze_and_excite(channels, squeezed):
    reduce, expand = pointwise(squeezed, channels), pointwise(channels, squeezed)

    def run(x):
        scale = expand(tenon.relu(reduce(x.mean([2, 3], keepdim=True))))
        return x * tenon.hardsigmoid(scale)

    return run


@pytest.mark.parametrize("channels, squeezed", [(64, 16), (72, 24), (20, 5), (296, 160)])
@pytest.mark.parametrize("size", [(7, 7), (28, 29), (70, 65)])
def test_squeeze_and_excite(channels, squeezed, size):
    check(region(squeeze_and_excite(channels, squeezed), channels), tenon.randn(2, channels, *size), covers=12)  # fmt: skip


def test_a_block_of_mobilenet():
    stem, depthwise = constant(16, 3, 3, 3), constant(72, 1, 5, 5)
    expand, project, gate = pointwise(72, 16), pointwise(16, 72), squeeze_and_excite(72, 24)

    def network(x):
        x = tenon.hardswish(tenon.conv2d(x, stem, None, 2, 1))
        y = tenon.conv2d(tenon.relu(expand(x)), depthwise, None, 1, 2, groups=72)
        return (project(gate(tenon.relu(y))) + x).mean([2, 3])

    check(network, tenon.randn(2, 3, 40, 36), covers=15)


def test_branches_are_joined():
    squeeze, left, right = pointwise(20, 24), pointwise(23, 20), constant(40, 20, 3, 3)

    def fire(x):
        y = tenon.relu(squeeze(x))
        sides = [tenon.relu(left(y)), tenon.relu(tenon.conv2d(y, right, None, 1, 1)), y]
        return tenon.max_pool2d(tenon.concat(sides, 1), 3, 2, 1)

    check(region(fire, 24, 83), tenon.randn(1, 24, 24, 26), covers=14)


# Kernel, stride, padding, whether the padding counts.
AVERAGES = [(2, 2, 0, True), (3, 2, 1, True), (3, 1, 1, False), ((5, 2), (3, 1), (2, 1), False)]


@pytest.mark.parametrize("case", AVERAGES)
def test_averages(case):
    kernel, stride, padding, counts = case

    def middle(x):
        return tenon.avg_pool2d(x, kernel, stride, padding, count_include_pad=counts)

    check(region(middle, 20), tenon.randn(2, 20, 24, 26), covers=7)


def test_an_average_of_windows_that_reach_beyond_the_padding():
    middle = lambda x: tenon.avg_pool2d(x, 3, 2, 1, ceil_mode=True)
    check(region(middle, 20), tenon.randn(1, 20, 24, 26), covers=7)


def test_growing_layers_lie_side_by_side():
    """As in a densenet: each layer reads all before it, and normalisation leaves them as they are."""
    layers = []
    for channels in (32, 48, 64):
        by_channel = [constant(channels), tenon.rand(channels) + 0.5, constant(channels)]
        scale, shift = constant(channels, 1, 1), constant(1, channels, 1, 1)
        reduce, grow = pointwise(48, channels), constant(16, 48, 3, 3, scale=0.1)
        layers.append((by_channel, scale, shift, reduce, grow))

    def network(x):
        for (mean, var, factor), scale, shift, reduce, grow in layers:
            y = tenon.batch_norm_inference(x, mean, var, factor, mean)
            y = tenon.relu(y * scale + shift)
            x = tenon.concat([x, tenon.conv2d(tenon.relu(reduce(y)), grow, None, 1, 1)], 1)
        return x, tenon.max_pool2d(x, 2)

    check(region(lambda x: network(x)[1], 32, 80), tenon.randn(2, 32, 14, 15))
    before = pointwise(32, 32)
    check(lambda x: network(before(x)), tenon.randn(1, 32, 24, 24))


def test_a_part_that_is_read_after_what_is_joined_changed():
    """ReLU takes the place of what is joined, but not while its parts are read."""
    left, right, other = pointwise(32, 32), pointwise(48, 32), pointwise(80, 32)

    def middle(x):
        y, z = left(x), right(x)
        return tenon.relu(tenon.concat([y, z], 1)) + other(y)

    check(region(middle, 32, 80), tenon.randn(2, 32, 24, 23))


def test_a_value_that_is_joined_twice():
    left = pointwise(16, 32)

    def middle(x):
        y = left(x)
        return tenon.concat([tenon.concat([y, y], 1), y, tenon.relu(y)], 1)

    check(region(middle, 32, 64), tenon.randn(2, 32, 24, 23))


@pytest.mark.parametrize("size", [(7, 7), (6, 5), (3, 14)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
def test_short_rows_share_tiles(size, stride, kernel):
    weight, bias = constant(48, 528, kernel, kernel, scale=0.05), constant(48)
    height, width = (stride * n for n in size)
    middle = lambda x: tenon.relu(tenon.conv2d(x, weight, bias, stride, kernel // 2))
    check(region(middle, 528, 48), tenon.randn(2, 528, height, width), covers=8)


@pytest.mark.parametrize(
    "size, filters, images", [((29, 29), 128, 1), ((25, 25), 256, 1), ((9, 9), 160, 3)]
)
def test_a_single_pixel_is_left_of_a_strided_convolution(size, filters, images):
    middle = pointwise(filters, 24, 2)
    before = tenon.get_num_threads()
    try:
        for count in (1, 2):
            tenon.set_num_threads(count)
            check(region(middle, 24, filters), tenon.randn(images, 24, *size), covers=7)
    finally:
        tenon.set_num_threads(before)


def test_a_single_value_is_joined_and_read_again():
    project, factor = pointwise(32, 32), constant(1, 32, 1, 1)

    def middle(x):
        y = project(x)
        return tenon.concat([y], 1) * factor + y

    check(region(middle, 32), tenon.randn(2, 32, 9, 9), covers=10)


def test_a_residual_that_is_read_again():
    first, second, third = pointwise(64, 32), pointwise(64, 64), pointwise(64, 64)

    def middle(x):
        y = first(x)
        z = tenon.relu(y + second(tenon.relu(y)))
        return tenon.relu(third(z) + z) * y

    check(region(middle, 32, 64), tenon.randn(2, 32, 14, 14))


def test_normalisations_and_constants_by_channel():
    mean, var, factor, shift = constant(20), tenon.rand(20) + 0.5, constant(20), constant(20)
    by_channel, other = constant(20, 1, 1), constant(1, 20, 1, 1)

    def middle(x):
        y = tenon.batch_norm_inference(x, mean, var, factor, shift, 1e-3)
        z = tenon.batch_norm_inference(tenon.relu(y * by_channel + other), mean, var)
        return z * 0.5 + y - x

    check(region(middle, 20), tenon.randn(2, 20, 24, 23), covers=14)


def test_a_mean_without_the_axes_of_pixels_goes_with_the_last_axes():
    # Of as many images and channels as there are rows and columns: the sizes alone do not tell.
    middle = lambda x: x * x.mean([2, 3])
    check(region(middle, 24), tenon.randn(20, 24, 20, 24), executables=4)


ACTIVATIONS = {
    "relu6": lambda y: tenon.clip(y, 0.0, 6.0),
    "leaky_relu": lambda y: tenon.leaky_relu(y, 0.1),
    "gelu": lambda y: tenon.gelu(y, approximate=True),
    "swish": lambda y: y * tenon.sigmoid(y),
    "division": lambda y: 1 / (y + 1),
    "scaled": lambda y: y * 2 + 1,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_what_lies_between(name):
    check(region(ACTIVATIONS[name], 20), tenon.randn(1, 20, 25, 24))


def test_values_that_others_read():
    first, second, third, last = (pointwise(24, 24) for _ in range(4))

    def network(x):
        y = tenon.relu(first(x))
        z = second(y)
        return last(third(z) + y), z, x + y

    check(network, tenon.randn(2, 24, 24, 24), covers=7)


def test_a_network_in_text_between_others():
    """What is no part of a region stays with its kernels, before it and behind it."""
    weight = constant(32, 6)

    def network(x):
        y = tenon.flip(x, [3])
        z = region_of_24(y)
        return z.flatten(1).sum(1, keepdim=True) @ weight[:1]

    region_of_24 = region(lambda x: x, 24)
    check(network, tenon.randn(2, 24, 24, 24))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite(value):
    weight, taps = constant(24, 1, 3, 3), constant(24, 24, 3, 3)

    def middle(x):
        return tenon.hardswish(tenon.conv2d(x, weight, None, 2, 1, groups=24))

    def strided(x):
        return tenon.relu(tenon.conv2d(middle(x), taps, None, 2, 1))

    function = region(strided, 24)
    x = tenon.randn(2, 24, 30, 31)
    program = check(function, x)
    x[0, 3, 8, 9] = value
    with tenon.no_grad():
        np.testing.assert_array_equal(program(x).numpy(), function(x).numpy())


def test_a_tile_that_is_not_finite_ends_the_run_of_a_region():
    weight = constant(32, 32, 3, 3, scale=0.1)
    function = region(lambda x: tenon.conv2d(x, weight, None, 1, 1), 32)
    x = tenon.randn(1, 32, 16, 16)
    program = check(function, x)
    x[0, 1, 5, 6] = float("inf")
    with tenon.no_grad():
        np.testing.assert_array_equal(program(x).numpy(), function(x).numpy())
    assert "spreads over a Winograd tile" in program.plan()


def test_numbers_of_threads():
    function = region(squeeze_and_excite(72, 24), 72)
    x = tenon.randn(3, 72, 14, 13)
    program, before = check(function, x), tenon.get_num_threads()
    want = program(x).numpy()
    try:
        for threads in (1, 2, 3, 5):
            tenon.set_num_threads(threads)
            np.testing.assert_array_equal(program(x).numpy(), want)
    finally:
        tenon.set_num_threads(before)


def test_few_convolutions_are_executables_of_their_own():
    first, second = pointwise(24, 24), pointwise(24, 24)
    network = lambda x: tenon.relu(second(tenon.relu(first(x))))
    check(network, tenon.randn(1, 24, 24, 24), executables=2)


@pytest.mark.parametrize("dtype", [tenon.float64, tenon.float16])
def test_other_dtypes_stay_with_their_kernels(dtype):
    weights = [constant(24, 24, 1, 1).to(dtype) for _ in range(4)]

    def network(x):
        for weight in weights:
            x = tenon.relu(tenon.conv2d(x, weight))
        return x

    x = tenon.randn(1, 24, 24, 24).to(dtype)
    with tenon.no_grad():
        program = tenon.export(network, (x,)).freeze()
        for _ in range(3):
            np.testing.assert_array_equal(program(x).numpy(), network(x).numpy())
    assert "executable" not in program.plan()


CHILD = """
import sys, pytest
chosen = "depthwise or test_convolutions or squeeze or joined or mobilenet"
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", sys.argv[1], "-k", chosen]))
"""


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_instruction_sets(isa):
    """Those beside the best one, each in a process of its own."""
    if os.environ.get("TENON_CPU_ISA"):
        pytest.skip("runs in the child of another case")
    flags = {"avx2": {"avx2", "fma"}}
    if not flags.get(isa, set()) <= set(Path("/proc/cpuinfo").read_text().split()):
        pytest.skip(f"this processor does not run {isa}")
    environment = {**os.environ, "TENON_CPU_ISA": isa, "TENON_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, __file__], env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
