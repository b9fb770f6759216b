# SPDX-License-Identifier: Apache-2.0
"""Programs that are put together call by call (tenon.jit.Builder)."""

import numpy as np
import pytest
import tenon
from tenon import _core


def test_builds_the_program_that_a_function_gives():
    layer = tenon.nn.Linear(4, 8)
    x = tenon.randn([3, 4])
    builder = tenon.jit.Builder()
    value = builder.input((3, 4))
    builder.locate("net.onnx", 7)
    hidden = builder.call(
        "linear", value, builder.leaf(layer.weight, "weight"), builder.leaf(layer.bias, "bias")
    )
    assert hidden.shape == (3, 8) and hidden.device.type == "meta"
    program = builder.finish({"hidden": builder.call("relu", hidden)})
    assert program(x)["hidden"].tolist() == layer(x).relu().tolist()
    assert list(program.leaves) == ["weight", "bias"]
    assert 'at "net.onnx":7' in str(program)


def test_an_operators_own_error():
    builder = tenon.jit.Builder()
    a, b = builder.input((2, 3)), builder.input((4, 5))
    with pytest.raises(ValueError) as own:
        tenon.matmul(tenon.ones([2, 3]), tenon.ones([4, 5]))
    with pytest.raises(ValueError) as built:
        builder.call("matmul", a, b)
    assert str(built.value) == str(own.value)
    with pytest.raises(NotImplementedError, match="operator tenon::frobnicate is not defined"):
        builder.call("frobnicate", a)


def test_several_results_and_lists():
    builder = tenon.jit.Builder()
    x = builder.input((6, 2))
    first, second = builder.call("split", x, [4], 0)
    assert (first.shape, second.shape) == ((4, 2), (2, 2))
    values, indices = builder.call("topk", first, 2, 0)
    assert str(indices.dtype) == str(tenon.int64)
    program = builder.finish((values, indices, second))
    data = tenon.arange(12.0).reshape([6, 2])
    got = program(data)
    assert got[0].tolist() == data[:4].topk(2, 0)[0].tolist()
    assert got[1].tolist() == [[3, 3], [2, 2]]
    assert got[2].tolist() == data[4:].tolist()


def test_weights_are_read_at_each_run_and_written_where_asked():
    counter = tenon.zeros([2])
    builder = tenon.jit.Builder()
    x = builder.input((2,))
    state = builder.leaf(counter, "counter")
    builder.call("add_", state, x)
    program = builder.finish(builder.call("multiply", state, 2.0))
    assert program(tenon.ones([2])).tolist() == [2.0, 2.0]
    assert program(tenon.ones([2])).tolist() == [4.0, 4.0]
    assert counter.tolist() == [2.0, 2.0]


def test_constants_are_known_and_not_written():
    builder = tenon.jit.Builder()
    data = tenon.ones([2])
    constant = builder.constant(data)
    assert builder.constant_of(constant).tolist() == [1.0, 1.0]
    assert builder.constant_of(builder.input((2,))) is None
    assert builder.device_of(constant) == tenon.device("cpu")
    builder.call("add_", constant, builder.input((2,)))
    with pytest.raises(ValueError, match="a step writes into a constant"):
        builder.finish(())


def test_new_tensors_are_made_where_the_program_runs():
    builder = tenon.jit.Builder()
    x = builder.input((2,))
    ones = builder.call("ones_like", x)
    zeros = builder.call("zeros", [2])
    program = builder.finish(builder.call("add", builder.call("add", x, ones), zeros))
    assert program(tenon.ones([2])).tolist() == [2.0, 2.0]
    assert "meta" not in str(program)


def test_a_composite_that_returns_its_argument_is_no_step():
    builder = tenon.jit.Builder()
    x = builder.input((2,))
    assert builder.call("dropout", x, 0.5, False) is not None
    program = builder.finish(
        builder.call("relu", builder.call("dropout", x, training=False, p=0.5))
    )
    assert str(program).count("tenon::") == 2  # the list of operators, and the step


def test_gradients_pass_unless_they_are_off():
    weight = tenon.ones([2], requires_grad=True)

    def build():
        builder = tenon.jit.Builder()
        return builder.finish(builder.call("multiply", builder.input((2,)), weight))

    build()(tenon.tensor([3.0, 4.0])).sum().backward()
    assert weight.grad.tolist() == [3.0, 4.0]
    with tenon.no_grad():
        program = build()
    assert not program(tenon.ones([2])).requires_grad


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (
            lambda b, x: b.call("relu", tenon.empty([2], device="meta")),
            "expected values of this builder",
        ),
        (
            lambda b, x: b.leaf(tenon.empty([2], device="meta")),
            "expected a tensor with data as a leaf",
        ),
        (lambda b, x: b.finish(x, arguments=()), "expected arguments with 1 tensors"),
        (lambda b, x: b.call("nonzero", x), "nonzero"),
    ],
)
def test_what_is_refused(action, text):
    builder = tenon.jit.Builder()
    with pytest.raises((ValueError, NotImplementedError), match=text):
        action(builder, builder.input((2,)))


def test_a_builder_ends_with_its_program():
    builder = tenon.jit.Builder()
    x = builder.input((2,))
    builder.finish(x)
    with pytest.raises(RuntimeError, match="its program is finished"):
        builder.call("relu", x)


def test_a_program_that_was_built_is_saved_and_loaded(tmp_path):
    builder = tenon.jit.Builder()
    x = builder.input((2, 2))
    program = builder.finish([builder.call("matmul", x, builder.leaf(tenon.ones([2, 2]), "w"))])
    program.save(tmp_path / "built.tenon")
    data = tenon.arange(4.0).reshape([2, 2])
    loaded = tenon.jit.load(tmp_path / "built.tenon")
    np.testing.assert_array_equal(loaded(data)[0].numpy(), program(data)[0].numpy())


def region(function, *shapes):
    """A program of its own, of inputs of these shapes."""
    builder = tenon.jit.Builder()
    return builder.finish(function(builder, *[builder.input(shape) for shape in shapes]))


def test_a_branch():
    weight = tenon.tensor([10.0, 20.0])
    then = region(lambda b, x: (b.call("multiply", x, weight),), (2,))
    otherwise = region(lambda b, x: (b.call("negative", x),), (2,))
    builder = tenon.jit.Builder()
    x = builder.input((2,))
    (result,) = builder.cond(
        builder.call("greater", builder.call("sum", x), 0.0), [x], then, otherwise
    )
    program = builder.finish(result)
    assert program(tenon.tensor([1.0, 2.0])).tolist() == [10.0, 40.0]
    assert program(tenon.tensor([-1.0, -2.0])).tolist() == [1.0, 2.0]
    assert len(program.leaves) == 1


def test_loops():
    condition = region(lambda b, x, limit: (b.call("less", b.call("sum", x), limit),), (2,), ())
    body = region(lambda b, x, limit: (b.call("multiply", x, 2.0),), (2,), ())
    builder = tenon.jit.Builder()
    x, limit = builder.input((2,)), builder.input(())
    (last,) = builder.while_loop([x], [limit], condition, body)
    program = builder.finish(last)
    assert program(tenon.ones([2]), tenon.tensor(20.0)).tolist() == [16.0, 16.0]

    def step(b, total, x):
        sum = b.call("add", total, x)
        return (sum, b.call("multiply", sum, 10.0))

    builder = tenon.jit.Builder()
    xs = builder.input((3, 2))
    total, rows = builder.scan([builder.call("zeros", [2])], [xs], [], region(step, (2,), (2,)))
    assert rows.shape == (3, 2)
    total, rows = builder.finish((total, rows))(tenon.ones([3, 2]))
    assert total.tolist() == [3.0, 3.0]
    assert rows.tolist() == [[10.0] * 2, [20.0] * 2, [30.0] * 2]


def test_regions_of_other_types_are_refused():
    builder = tenon.jit.Builder()
    x, predicate = builder.input((2,)), builder.input((), "bool")
    same = region(lambda b, x: (x,), (2,))
    other = region(lambda b, x: (x,), (3,))
    longer = region(lambda b, x: (b.call("sum", x),), (2,))
    with pytest.raises(ValueError, match=r"input of a region 0: expected float32\[2\]"):
        builder.cond(predicate, [x], same, other)
    with pytest.raises(ValueError, match="result of a branch 0: expected float32"):
        builder.cond(predicate, [x], same, longer)
    with pytest.raises(ValueError, match="carried value 0: expected float32"):
        builder.while_loop([x], [], longer, longer)


def test_a_view_of_a_result_in_another_order_is_of_a_copy():
    builder = _core.ProgramBuilder(None)
    pixels = builder.input("float32", [1, 4, 4, 3])
    pooled = builder.call("max_pool2d", builder.call("permute", pixels, [0, 3, 1, 2]), [2, 2])
    program = builder.finish([builder.call("view", pooled, [12])])
    data = tenon.arange(48, dtype="float32").reshape(1, 4, 4, 3)
    expected = tenon.max_pool2d(data.permute([0, 3, 1, 2]), [2, 2])
    assert not expected.is_contiguous()  # the kernel keeps channels last
    assert program.run([data])[0].tolist() == expected.reshape(12).tolist()
