# SPDX-License-Identifier: Apache-2.0
"""Gradients as steps of a program that is built (tenon.jit.Builder.gradients), beside those of eager calls."""

import numpy as np
import pytest
import tenon


def built(function, *tensors):
    """The gradients of the sum of function(call, *tensors) by each of them, of a program."""
    builder = tenon.jit.Builder()
    values = [builder.input(t.shape, str(t.dtype)) for t in tensors]
    result = function(builder.call, *values)
    program = builder.finish(tuple(builder.gradients(result, values)))
    return [gradient.numpy() for gradient in program(*tensors)]


def eager(function, *tensors):
    leaves = [t.detach().requires_grad_() for t in tensors]
    call = lambda name, *args, **named: getattr(tenon, name)(*args, **named)
    function(call, *leaves).sum().backward()
    return [leaf.grad.numpy() for leaf in leaves]


def mlp(call, x, w, b):
    return call("softmax", call("gelu", call("add", call("matmul", x, w), b)), -1)


CASES = {
    "broadcast": (lambda call, x, y: call("multiply", x, y), (3, 4), (4,)),
    "both axes": (lambda call, x, y: call("divide", x, call("exp", y)), (3, 1), (1, 4)),
    "layers": (lambda call, *v: call("multiply", mlp(call, *v), v[2]), (3, 4), (4, 5), (5,)),
    "a value twice": (lambda call, x: call("multiply", call("sin", x), x), (6,)),
    "a list": (lambda call, x, y: call("exp", call("concat", [x, y, x], 1)), (2, 3), (2, 1)),
    "views": (lambda call, x: call("exp", call("transpose", call("reshape", x, [3, 4]), 0, 1)), (12,)),
    "several results": (lambda call, x: call("multiply", *call("split", x, [3], 0)), (6, 2)),
    "convolution": (lambda call, x, w: call("conv2d", x, w, None, padding=[1, 1]), (1, 2, 5, 5), (3, 2, 3, 3)),
    "pool": (lambda call, x: call("square", call("max_pool2d", x, [2, 2])), (1, 2, 4, 4)),
    "normalization": (lambda call, x, w: call("sin", call("layer_norm", x, w)), (3, 5), (5,)),
    "attention": (
        lambda call, q, k, v: call("sin", call("scaled_dot_product_attention", q, k, v)),
        (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_are_those_of_eager_calls(name):
    function, *shapes = CASES[name]
    tenon.manual_seed(0)
    tensors = [tenon.randn(shape) for shape in shapes]
    for got, want in zip(built(function, *tensors), eager(function, *tensors), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_have_gradients():
    builder = tenon.jit.Builder()
    x = value = builder.input((3,))
    value = builder.call("pow", x, 4.0)
    orders = []
    for _ in range(3):
        (value,) = builder.gradients(value, [x])
        orders.append(value)
    program = builder.finish(tuple(orders))
    got = program(tenon.tensor([1.0, 2.0, -3.0]))
    assert got[0].tolist() == [4.0, 32.0, -108.0]
    assert got[1].tolist() == [12.0, 48.0, 108.0]
    assert got[2].tolist() == [24.0, 48.0, -72.0]


def test_count_every_path():
    builder = tenon.jit.Builder()
    x = builder.input((2,))
    y = builder.call("multiply", x, 3.0)
    by_y, by_x = builder.gradients(builder.call("multiply", y, x), [y, x])
    got = builder.finish((by_y, by_x))(tenon.tensor([1.0, 2.0]))
    assert [gradient.tolist() for gradient in got] == [[1.0, 2.0], [6.0, 12.0]]


def test_are_zeros_where_nothing_depends():
    builder = tenon.jit.Builder()
    x, y = builder.input((2,)), builder.input((3,))
    through_integers = builder.call("cast", builder.call("cast", y, "int32"), "float32")
    result = builder.call("add", builder.call("sum", x), builder.call("sum", through_integers))
    program = builder.finish(tuple(builder.gradients(result, [x, y])))
    assert [g.tolist() for g in program(tenon.ones([2]), tenon.ones([3]))] == [[1, 1], [0, 0, 0]]


def test_do_not_count_for_what_calls_the_program():
    weight = tenon.ones([2], requires_grad=True)
    builder = tenon.jit.Builder()
    x = builder.input((2,))
    y = builder.call("multiply", builder.call("square", x), builder.leaf(weight, "weight"))
    program = builder.finish(builder.gradients(y, [x])[0])
    program(tenon.tensor([3.0, 4.0])).sum().backward()
    assert weight.grad.tolist() == [6.0, 8.0]


def write_in_place(builder, x):
    buffer = builder.call("zeros", [2])
    builder.call("add_", buffer, x)
    return builder.call("exp", buffer), [x]


def branch(builder, x):
    part = tenon.jit.Builder()
    value = part.input((2,))
    region = part.finish((part.call("exp", value),))
    (result,) = builder.cond(
        builder.call("greater", builder.call("sum", x), 0.0), [x], region, region
    )
    return result, [x]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (write_in_place, "gradients do not pass through `tenon::add`.*, which writes into memory that exists"),
        (branch, "gradients do not pass through `cond`.*, a branch, loop or window"),
        (lambda b, x: (b.call("cast", x, "int32"), [x]), "expected a result of a real floating dtype, got int32"),
        (lambda b, x: (x, [b.input((2,), "int64")]), "expected values of floating dtypes, got int64"),
        (lambda b, x: (x, [tenon.empty([2], device="meta")]), "gradients: expected values of this builder"),
    ],
)  # fmt: skip
def test_what_is_refused(make, text):
    builder = tenon.jit.Builder()
    result, values = make(builder, builder.input((2,)))
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=text):
        builder.gradients(result, values)
