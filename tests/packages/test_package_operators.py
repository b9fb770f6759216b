# SPDX-License-Identifier: Apache-2.0
"""What a built-in operator has, an operator of a package has."""

import inspect
import math

import pytest
import tenon
from tenon.testing import check_operator


@pytest.fixture
def x():
    return tenon.linspace(-2.0, 2.0, 6).reshape(2, 3)


@pytest.fixture
def gate():
    return tenon.linspace(0.5, 1.5, 3)


def test_a_written_kernel_with_named_gradient_to_the_second_order(rich, x, gate):
    check_operator(rich.swiglu, [(x, gate), (gate, x), (x, tenon.tensor(0.5), {"limit": 1.0})])
    assert tenon.explain(rich.swiglu, dtype="bfloat16")["route"] == "native"


def test_a_gradient_is_an_operator_too(rich, x, gate):
    check_operator(rich.swiglu_backward, [(x, x + 0.5, gate.reshape(1, 3))])


def test_generated_loops(rich, x):
    check_operator(rich.cube, [(x,), (x, {"scale": -2.0})])
    check_operator(
        rich.sum_cubes, [(x,), (x, {"axis": 1}), (x, 0, {"keepdim": True})], gradients=False
    )
    for op in (rich.cube, rich.sum_cubes):
        assert tenon.explain(op, dtype="float32")["route"] == "native"
    assert rich.cube(tenon.tensor([3])).tolist() == [27]
    large = tenon.ones((300, 301))
    assert rich.sum_cubes(large).item() == 300 * 301


def test_lowering_where_no_kernel_serves(rich):
    # The kernel serves float32 and float64; what it does not serve goes by the decomposition.
    arguments = [tenon.tensor([0.5, -1.0], dtype="float16") for _ in range(3)]
    assert tenon.explain(rich.swiglu_backward, dtype="float16")["route"] == "lowered"
    dx, dgate = rich.swiglu_backward(*arguments)
    wide = rich.swiglu_backward(*(a.to("float32") for a in arguments))
    assert dx.dtype == tenon.float16
    assert tenon.allclose(dx.to("float32"), wide[0], rtol=1e-2)


def test_forms_of_a_call(rich, x, gate):
    expected = rich.swiglu(x, gate).tolist()
    out = tenon.zeros((2, 3))
    assert rich.swiglu(x, gate, out=out) is out and out.tolist() == expected
    changed = x.clone()
    assert rich.swiglu_(changed, gate) is changed and changed.tolist() == expected
    described = rich.swiglu(x.to("meta"), gate.to("meta"))
    assert (described.shape, described.dtype) == ((2, 3), tenon.float32)
    assert str(inspect.signature(rich.swiglu)) == "(x, gate, *, limit=0.0, out=None)"
    assert rich.swiglu.__doc__.startswith(
        "swiglu(Tensor x, Tensor gate, *, float limit=0.0) -> Tensor"
    )


def test_a_result_whose_shape_the_kernel_finds(rich):
    assert rich.positive(tenon.tensor([1, -2, 3])).tolist() == [1, 3]
    assert rich.positive(tenon.zeros((2, 2))).shape == (0,)


def test_every_kind_of_parameter(rich, x):
    mean, count = rich.moments(x)
    assert tenon.allclose(mean, x.mean(axis=1)) and count.tolist() == [3, 3]
    weighted = rich.moments(
        x.T, tenon.tensor([1.0, 0.0]), scale=[2, 3], mode="sum", dtype="float32"
    )
    assert tenon.allclose(weighted.mean, 6 * x[0])  # strides are read: x.T is no copy
    with pytest.raises(ValueError, match=r"\[moments\] expected at least one axis"):
        rich.moments(tenon.tensor(1.0))
    with pytest.raises(TypeError, match="expected a tensor of float32, got float64"):
        rich.moments(x, tenon.ones(3, dtype="float64"))


@pytest.mark.parametrize(
    "how, error, text",
    [
        ("code", tenon.DeviceError, "the coprocessor is gone"),
        ("range", IndexError, "no such row"),
        ("memory", MemoryError, "out of host memory"),
        ("number", tenon.InternalError, "no std::exception"),
        ("runtime", RuntimeError, "it did not converge"),
        ("axis", IndexError, "expected an axis of a tensor with 1 axes, got 7"),
        ("dtype", TypeError, "expected a tensor of float64, got float32"),
        ("scratch", MemoryError, "out of memory"),
    ],
)
def test_what_a_kernel_throws(rich, how, error, text):
    with pytest.raises(error, match=text):
        rich.fail(tenon.ones(2), how=how)


def test_what_threads_of_a_kernel_throw(rich):
    x = tenon.ones(1 << 20)
    with pytest.raises(ValueError, match="limit: expected at least 0, got -1"):
        rich.swiglu(x, x, limit=-1.0)
    assert math.isclose(rich.swiglu(x, x)[-1].item(), 1 / (1 + math.exp(-1)), rel_tol=1e-6)


def test_wrong_arguments_are_refused_as_by_built_in_operators(rich, x):
    with pytest.raises(TypeError, match="swiglu"):
        rich.swiglu(x)
    with pytest.raises(ValueError, match="swiglu"):
        rich.swiglu(x, tenon.ones((4, 5)))
    with pytest.raises(TypeError, match="complex64"):
        rich.swiglu(x.to("complex64"), x)
