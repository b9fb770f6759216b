# SPDX-License-Identifier: Apache-2.0
"""Functions such as exp within loops of machine code: programs have the bits of the operators, for every kind of number."""

import numpy as np
import pytest
import tenon
from tenon.nn import functional as F

FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p tanh erf erfc sigmoid rsqrt silu gelu gelu_tanh softplus log_sigmoid"
).split()
DIFFERENTIABLE = "tanh sigmoid relu silu gelu".split()
SIZES = (1, 37, 5000, 40_000)  # below 16,384 loops come with the 32nd run
SPECIAL = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e30, -1e30, 88.7, -103, -87.5]


def function_of(name):
    if name == "gelu_tanh":
        return lambda x: F.gelu(x, approximate=True)
    return getattr(tenon, name, None) or getattr(F, name)


def numbers(count, dtype):
    generator = np.random.default_rng(count)
    values = generator.standard_normal(count) * np.exp2(generator.integers(-30, 8, count))
    values[: len(SPECIAL)] = SPECIAL[:count]
    return tenon.tensor(values.astype(dtype)), tenon.tensor(generator.random(count).astype(dtype))


def assert_same_bits(a, b):
    a, b = a.numpy(), b.numpy()
    bits = "u4" if a.dtype == np.float32 else "u8"
    same = (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
    assert same.all(), (a[~same][:3], b[~same][:3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_of_functions(name, dtype):
    function = function_of(name)

    def chain(x, y):
        return (function(x * y) * y + x) * function(y) - x

    for count in SIZES:
        x, y = numbers(count, dtype)
        program = tenon.export(chain, (x, y))
        for _ in range(1 if count > 16384 else 40):
            result = program(x, y)
        assert_same_bits(result, chain(x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_bits_of_gradients(name, dtype):
    function = function_of(name)
    x, y = numbers(40_000, dtype)
    x.requires_grad = True

    def chain(y):
        (grad,) = tenon.autograd.grad((function(x * 2) * y).sum(), (x,))
        return grad * y + 1

    compiled = tenon.compile(chain)
    for _ in range(4):
        result = compiled(y)
    assert_same_bits(result, chain(y))
    assert compiled.programs, compiled.explain()


def test_kernels_of_others_are_called():
    """What a user defines in the place of an operator is no function of the loop."""
    seen = []

    @tenon.op("test_functions_in_loops::shifted(Tensor x) -> Tensor")
    def shifted(x):
        seen.append(x.shape)
        return x + 1

    x = tenon.ones([40_000])
    program = tenon.export(lambda x: (shifted(x * 2).exp() * 0.5).tanh() + x, (x,))
    assert_same_bits(program(x), ((x * 2 + 1).exp() * 0.5).tanh() + x)
