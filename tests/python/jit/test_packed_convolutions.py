# SPDX-License-Identifier: Apache-2.0
"""Convolutions by constants in programs on the CPU: packed once, and computed with what follows. Bits are those of single steps."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon

# Channels, filters, kernel, height and width, stride, padding, groups, images: by the algorithm that has the shape.
WINOGRAD = [
    (32, 48, 3, (18, 20), 1, 1, 1, 1),
    (32, 32, 3, (15, 17), 1, 0, 1, 3),
    (64, 64, 3, (12, 13), 1, 2, 2, 1),
]
BLOCKS = [
    (24, 20, 3, (11, 12), 2, 1, 1, 1),
    (3, 33, 7, (24, 20), 2, 3, 1, 2),
    (64, 80, 1, (7, 7), 1, 0, 1, 1),
    (32, 64, 3, (9, 8), 2, 1, 2, 3),
    (40, 64, 3, (7, 7), 1, 1, 1, 1),
]
POINTWISE = [
    (16, 24, 1, (32, 33), 1, 0, 1, 2),
    (20, 12, 1, (64, 48), 2, 0, 1, 1),
    (16, 32, 1, (25, 24), 1, 0, 2, 1),
    (3, 600, 1, (24, 24), 1, 0, 1, 1),
]
DEPTHWISE = [
    (24, 24, 3, (17, 18), 1, 1, 24, 2),
    (20, 20, 5, (30, 33), 1, 2, 20, 1),
    (19, 38, 3, (9, 7), 2, 1, 19, 2),
]


def tensors(case):
    channels, filters, kernel, size, stride, padding, groups, images = case
    x = tenon.randn(images, channels, *size)
    weight = tenon.randn(filters, channels // groups, kernel, kernel) * 0.2
    bias, mean, factor, shift = (tenon.randn(filters) for _ in range(4))
    var = tenon.rand(filters) + 0.5

    def convolution(x, with_bias=True):
        return tenon.conv2d(x, weight, bias if with_bias else None, stride, padding, groups=groups)

    def norm(y):
        return tenon.batch_norm_inference(y, mean, var, factor, shift, 1e-3)

    return x, convolution, norm


def check(function, *inputs, executables=1, runs=3):
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
    return program


@pytest.mark.parametrize("case", WINOGRAD + BLOCKS)
@pytest.mark.parametrize("with_bias", [True, False])
def test_filters_alone(case, with_bias):
    x, convolution, _ = tensors(case)
    check(lambda x: convolution(x, with_bias), x)


def test_gemms_alone_are_left_to_their_kernel():
    x, convolution, _ = tensors(POINTWISE[0])
    check(convolution, x, executables=0)


@pytest.mark.parametrize("case", WINOGRAD + BLOCKS + POINTWISE + DEPTHWISE)
def test_what_follows(case):
    x, convolution, norm = tensors(case)
    residual = tenon.randn(*convolution(x).shape)
    check(lambda x: convolution(x, False).relu(), x)
    check(lambda x: norm(convolution(x)), x)
    check(lambda x, r: convolution(x) + r, x, residual)
    check(lambda x, r: (r + norm(convolution(x, False))).relu(), x, residual)


ACTIVATIONS = {
    "hardswish": tenon.hardswish,
    "silu": tenon.silu,
    "leaky_relu": lambda y: tenon.leaky_relu(y, 0.2),
    "gelu": lambda y: tenon.gelu(y, approximate=True),
    "clip": lambda y: tenon.clip(y, 0.0, 6.0),
    "swish": lambda y: y * tenon.sigmoid(y),
    "erf": lambda y: y * 0.5 * (tenon.erf(y / 1.5) + 1),
    "mish": tenon.mish,
}


@pytest.mark.parametrize("case", [WINOGRAD[1], BLOCKS[1], POINTWISE[0], *DEPTHWISE])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(case, name):
    x, convolution, norm = tensors(case)
    activation = ACTIVATIONS[name]
    check(lambda x: activation(norm(convolution(x, False))), x)


@pytest.mark.parametrize("case", [WINOGRAD[1], BLOCKS[0], POINTWISE[0], DEPTHWISE[0]])
def test_steps_behind_activations(case):
    x, convolution, norm = tensors(case)
    r = tenon.randn(*convolution(x).shape)
    check(lambda x, r: (tenon.silu(convolution(x)) + r).tanh(), x, r)
    check(lambda x, r: tenon.silu(norm(convolution(x)) + r) * r - r, x, r)
    check(lambda x, r: tenon.silu(convolution(x)).mean([2, 3]) + r.mean([2, 3]), x, r)


def test_values_that_others_read_end_what_follows():
    x, convolution, _ = tensors(POINTWISE[0])

    def function(x):
        y = convolution(x)
        gate = tenon.sigmoid(y)
        return y * gate, gate

    check(function, x, executables=0)  # both are read elsewhere

    def kept(x):
        y = tenon.silu(convolution(x))
        return tenon.relu(y), y

    check(kept, x)


def test_activations_of_what_is_not_finite():
    x, convolution, _ = tensors(DEPTHWISE[0])
    program = check(lambda x: tenon.hardswish(convolution(x)), x)
    for value in (float("nan"), float("inf"), -float("inf")):
        x[0, 1, 4, 5] = value
        with tenon.no_grad():
            want = tenon.hardswish(convolution(x)).numpy()
            np.testing.assert_array_equal(program(x).numpy(), want)


def test_a_network():
    """A residual block whose second branch is a convolution, as in ResNet."""
    x, first, norm = tensors((32, 32, 3, (20, 20), 1, 1, 1, 1))
    _, second, other_norm = tensors((32, 32, 3, (20, 20), 1, 1, 1, 1))
    _, short, short_norm = tensors((32, 32, 1, (20, 20), 1, 0, 1, 1))

    def block(x):
        y = other_norm(second(norm(first(x)).relu()))
        return (y + short_norm(short(x))).relu().mean([2, 3])

    program = check(block, x, executables=3)
    assert "steps 0 to 2: one executable of cpu:0; 2 of 3" in program.plan()


def test_results_that_others_read_are_made():
    x, convolution, norm = tensors(BLOCKS[0])

    def twice(x):
        y = convolution(x)
        return norm(y).relu(), y

    check(twice, x)

    def squared(x):
        y = convolution(x)
        return (y + y).relu()

    check(squared, x)


def test_other_operands_than_residuals():
    x, convolution, _ = tensors(BLOCKS[0])
    channels = tenon.randn(20, 1, 1)
    check(lambda x: convolution(x) + channels, x)
    check(lambda x: tenon.silu(convolution(x)) * channels, x)
    check(lambda x: (convolution(x) + 1.0).relu(), x)


@pytest.mark.parametrize("case", [WINOGRAD[0], BLOCKS[0], POINTWISE[0]])
def test_what_is_not_finite(case):
    x, convolution, norm = tensors(case)
    r = tenon.randn(*convolution(x).shape)

    def function(x, r):
        return (norm(convolution(x)) + r).relu()

    program = check(function, x, r)
    for value in (float("nan"), float("inf"), -float("inf"), -0.0):
        x[0, 1, 4, 5] = value
        r[0, 2, 3, 3] = value
        with tenon.no_grad():
            np.testing.assert_array_equal(program(x, r).numpy(), function(x, r).numpy())
        assert np.isnan(program(x, r).numpy()).sum() == np.isnan(function(x, r).numpy()).sum()
    zeros = tenon.zeros(*x.shape)
    with tenon.no_grad():
        want, got = function(zeros, r).numpy(), program(zeros, r).numpy()
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_a_constant_that_is_written_is_packed_anew():
    x, convolution, _ = tensors(WINOGRAD[0])
    program = check(convolution, x)
    with tenon.no_grad():
        for leaf in program.leaves.values():
            leaf.zero_()
    np.testing.assert_array_equal(program(x).numpy(), np.zeros(convolution(x).shape, np.float32))


def test_other_layouts_of_images():
    x, convolution, norm = tensors(BLOCKS[0])

    def function(x):
        return norm(convolution(x)).relu()

    program = check(function, x)
    other = tenon.randn(1, 11, 12, 24).permute([0, 3, 1, 2])
    with tenon.no_grad():
        np.testing.assert_array_equal(program(other).numpy(), function(other).numpy())


def test_many_sizes_share_packed_filters():
    x, convolution, norm = tensors(BLOCKS[2])
    batch = tenon.Dim("batch", max=8)
    with tenon.no_grad():
        program = tenon.export(
            lambda x: norm(convolution(x)).relu(), (tenon.randn(2, *x.shape[1:]),),
            dynamic_shapes=[{0: batch}],
        ).freeze()  # fmt: skip
        for images in (1, 3, 8, 1, 3, 8):
            x = tenon.randn(images, *x.shape[1:])
            np.testing.assert_array_equal(program(x).numpy(), norm(convolution(x)).relu().numpy())


# Few pixels and many filters, which threads divide, and pixels that are several tiles of a product.
DIVIDED = [
    (32, 200, 3, (7, 7), 1, 1, 1, 4),
    (32, 136, 3, (28, 27), 1, 1, 1, 1),
    (64, 256, 3, (14, 13), 1, 1, 2, 1),
    (48, 200, 3, (9, 9), 2, 1, 1, 1),
    (80, 264, 1, (7, 7), 1, 0, 1, 1),
    (16, 40, 1, (28, 29), 1, 0, 1, 1),
    (72, 40, 1, (45, 47), 1, 0, 1, 1),
]


@pytest.mark.parametrize("case", DIVIDED)
def test_bits_do_not_depend_on_the_number_of_threads(case):
    x, convolution, norm = tensors(case)
    r = tenon.randn(*convolution(x).shape)
    program = check(lambda x, r: tenon.silu(norm(convolution(x)) + r), x, r)
    want, before = program(x, r).numpy(), tenon.get_num_threads()
    try:
        for threads in (1, 2, 3, 5):
            tenon.set_num_threads(threads)
            np.testing.assert_array_equal(program(x, r).numpy(), want)
    finally:
        tenon.set_num_threads(before)


def test_weights_from_outside_are_not_packed():
    x, convolution, _ = tensors(BLOCKS[0])
    with tenon.no_grad():
        program = tenon.export(convolution, (x,))
        program(x), program(x)
    assert "executable" not in program.plan()


CHILD = """
import sys, pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", sys.argv[1], "-k", "what_follows or a_network or behind_activations or number_of_threads"]))
"""


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_instruction_sets(isa):
    """Of the same bits each, in a process of its own."""
    if os.environ.get("TENON_CPU_ISA"):
        pytest.skip("runs in the child of another case")
    flags = {"avx2": {"avx2", "fma"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}}
    if not flags.get(isa, set()) <= set(Path("/proc/cpuinfo").read_text().split()):
        pytest.skip(f"this processor does not run {isa}")
    environment = {**os.environ, "TENON_CPU_ISA": isa, "TENON_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, __file__], env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_child_of_a_fork_packs_filters_that_lie_where_others_lay():
    with tenon.no_grad():
        x, first = tenon.randn(1, 64, 20, 20), tenon.randn(64, 64, 3, 3)
        program = tenon.export(lambda x: tenon.conv2d(x, first, None, 1, 1), (x,)).freeze()
        program(x)
        address = first.data_ptr()
        child = os.fork()
        if child == 0:
            tenon.set_num_threads(1)
            del program, first
            others = [tenon.randn(64, 64, 3, 3)]
            while others[-1].data_ptr() != address and len(others) < 200:
                others.append(tenon.randn(64, 64, 3, 3))
            second = others[-1]
            program = tenon.export(lambda x: tenon.conv2d(x, second, None, 1, 1), (x,)).freeze()
            same = np.array_equal(program(x), tenon.conv2d(x, second, None, 1, 1))
            os._exit(0 if same else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
