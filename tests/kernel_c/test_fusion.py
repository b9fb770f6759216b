# SPDX-License-Identifier: Apache-2.0
"""Groups of elementwise steps of a program run as one kernel on devices that compile source, with the bits of single
steps."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tenon

sys.path.insert(0, str(Path(__file__).parents[1] / "python" / "jit"))
from random_programs import assert_same_bits, random_program

rng = np.random.default_rng(11)


def rand(device, *shape, dtype="float32"):
    x = tenon.tensor((rng.standard_normal(shape) * 3).astype("float32"), device=device)
    return x.to(getattr(tenon, dtype))


def bits(tensor):
    return tensor.to(tenon.float64).to("cpu").numpy(), tensor.dtype, tuple(tensor.shape)


def assert_same(expected, got):
    for a, b in zip(expected, got, strict=True):
        (a, *about), (b, *same) = bits(a), bits(b)
        assert about == same
        np.testing.assert_array_equal(a, b)


def calls_of_fused_kernels():
    report = tenon.fallback_report()
    return sum(row["native"] for row in report.rows if row["op"].startswith("kernel_c::fused_"))


def run_both(function, *args, kernels=1):
    """Compares the function with its program, which has to run in that many fused kernels."""
    with tenon.no_grad():
        program = tenon.export(function, args)
        expected = function(*args)
        before = calls_of_fused_kernels()
        got = program(*args)
        made = calls_of_fused_kernels() - before
    assert_same(*(r if isinstance(r, tuple) else (r,) for r in (expected, got)))
    assert made == kernels, program.plan() or program
    return program


def chain(x, y):
    return ((x * 2 + y).relu() - 0.5).exp() * y


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("size", [1, 7, 1000, 70_000])
def test_a_chain_is_one_kernel(size, dtype, device):
    program = run_both(chain, rand(device, size, dtype=dtype), rand(device, size, dtype=dtype))
    assert "steps 0 to 5: one kernel over" in program.plan()
    assert "5 of 6 results stay in registers" in program.plan()
    memory = program.memory()
    assert memory["stepwise"] == 2 * memory["planned"] and memory["kept"] == 6 * memory["planned"]


def test_no_step_is_fused_into_another_by_the_compiler(device):
    # A product and a sum in one instruction would have other bits than the two operators.
    run_both(lambda x, y: x * y + x * x - y, rand(device, 4096), rand(device, 4096))


def test_integers_and_numbers(device):
    x, y = (rand(device, 999, dtype="int32") for _ in range(2))
    run_both(lambda x, y: (x * 3 + y) // 2 - (x & 5) * y, x, y)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype, device):
    x, y = (
        tenon.complex(rand(device, 77, dtype="float64"), rand(device, 77, dtype="float64")).to(
            getattr(tenon, dtype)
        )
        for _ in range(2)
    )
    run_both(lambda x, y: ((x * 2 + y) * (1 - 2j) - 0.5).exp() + y / x, x, y)
    # Magnitudes are real: the steps after them compute in another type.
    run_both(lambda x, y: ((x + y).conj() * x).abs().sqrt() + 1, x, y, kernels=2)


def test_attributes(device):
    F = tenon.nn.functional
    run_both(
        lambda x: F.gelu(F.leaky_relu(x.clip(-2.0, 1.5), 0.3) * 0.5) + F.softplus(x, 2.0) / 3,
        rand(device, 50, 60),
    )


def test_masks_and_conversions(device):
    def function(x, y):
        mask = x > y
        return tenon.where(mask, x * 3, -y).to(tenon.bfloat16) * 2 + 1

    run_both(function, rand(device, 33, 5), rand(device, 33, 5))


@pytest.mark.parametrize(
    "shapes",
    [[(40, 50), (50,)], [(40, 50), (40, 1)], [(4, 5, 6), (4, 1, 6)], [(6, 7), ()]],
    ids=str,
)
def test_operands_are_broadcast(shapes, device):
    x, y = (rand(device, *shape) for shape in shapes)
    run_both(lambda x, y: (x * y + y).sigmoid() * x, x, y)


def test_several_results(device):
    def function(x, y):
        a = x + y
        b = a * x
        return a, (b - a).tanh(), b

    run_both(function, rand(device, 300), rand(device, 300))


def test_results_of_two_dtypes_are_two_groups(device):
    def function(x, y):
        a = (x + y) * 2
        return a, (a - x) > y

    run_both(function, rand(device, 300), rand(device, 300), kernels=1)


def test_more_operands_than_a_kernel_takes(device):
    tensors = [rand(device, 64) for _ in range(12)]

    def function(*tensors):
        total = tensors[0]
        for each in tensors[1:]:
            total = total * 0.5 + each
        return total

    run_both(function, *tensors, kernels=2)


def test_a_step_whose_kernel_cannot_be_joined_divides(device):
    run_both(lambda x: (((x * 2 + 1).cumsum(0) - 3) * x).abs(), rand(device, 50, 3), kernels=2)


def test_not_a_number_and_infinity(device):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38] * 3, dtype="float32")
    run_both(chain, tenon.tensor(x, device=device), tenon.tensor(x[::-1].copy(), device=device))


def test_other_layouts_run_step_by_step(device):
    x, y = rand(device, 30, 20).T, rand(device, 20, 30)
    run_both(lambda x, y: (x + y) * 2 - y, x, y, kernels=0)


def test_nothing_is_run_for_no_elements(device):
    run_both(chain, rand(device, 0), rand(device, 0), kernels=0)


def test_layers_see_every_call(device):
    x, y = rand(device, 100), rand(device, 100)
    with tenon.no_grad():
        program = tenon.export(chain, (x, y))
        with tenon.profiler.profile() as profile:
            program(x, y)
    assert "multiply" in str(profile.table()) and "fused" not in str(profile.table())


def test_a_profile_does_not_end_fusion(device):
    x, y = rand(device, 100), rand(device, 100)
    with tenon.no_grad():
        program = tenon.export(chain, (x, y))
        with tenon.profiler.profile():
            program(x, y)  # decided step by step while the profile watches
        before = calls_of_fused_kernels()
        assert_same([program(x, y)], [chain(x, y)])
    assert calls_of_fused_kernels() == before + 1


def test_parameters_take_part_where_no_gradient_is_recorded(device):
    weight = tenon.nn.Parameter(rand(device, 100))
    with tenon.no_grad():
        program = tenon.export(lambda x: (x * weight + weight).tanh(), (rand(device, 100),))
        x = rand(device, 100)
        before = calls_of_fused_kernels()
        assert_same([program(x)], [(x * weight + weight).tanh()])
    assert calls_of_fused_kernels() == before + 1


def test_gradients_pass_through_the_steps(device):
    x, y = rand(device, 100).requires_grad_(), rand(device, 100)
    program = tenon.export(chain, (x, y))
    program(x, y).sum().backward()
    got, x.grad = x.grad, None
    chain(x, y).sum().backward()
    assert_same([x.grad], [got])


def test_numbers_belong_to_their_group(device):
    # Two programs that differ in a number alone.
    x, y = rand(device, 100), rand(device, 100)
    for number in (2.0, 3.0, 2):
        run_both(lambda x, y, number=number: (x * number + y) * number, x, y)


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_give_the_same_bits(seed, device):
    function, arguments = random_program(seed, (6, 30), device)
    with tenon.no_grad():
        program = tenon.export(function, arguments)
        assert_same_bits(function(*arguments), program(*arguments))
