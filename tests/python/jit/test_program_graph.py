# SPDX-License-Identifier: Apache-2.0
"""Programs as objects: steps and values, and passes that are written in Python."""

import re

import numpy as np
import pytest
import tenon
from tenon.jit.program import PASSES

X = tenon.tensor(np.linspace(-2, 2, 32, dtype="float32").reshape(4, 8))
W = tenon.tensor(np.linspace(-1, 1, 64, dtype="float32").reshape(8, 8))


def gate(x, w):
    hidden = x @ w
    return hidden * tenon.sigmoid(hidden)


def exported(function, *inputs):
    return tenon.export(function, inputs, passes=())


def use_silu(graph):
    for step in graph.steps:
        if step.name != "tenon::multiply":
            continue
        x, y = step.inputs
        if y.maker is not None and y.maker.name == "tenon::sigmoid" and y.maker.inputs == [x]:
            graph.replace(step.result, graph.insert("silu", x, before=step))
            graph.remove(step)
            graph.remove(y.maker)


def test_steps_and_values():
    graph = exported(gate, X, W).graph
    assert [step.name for step in graph] == ["tenon::matmul", "tenon::sigmoid", "tenon::multiply"]
    matmul, sigmoid, multiply = graph.steps
    assert matmul.operands == {"x": graph.inputs[0], "y": graph.inputs[1]}
    assert matmul.kind == "call" and matmul.file.endswith("test_program_graph.py")
    hidden = matmul.result
    assert (hidden.dtype, hidden.shape, hidden.device) == (
        tenon.float32,
        (4, 8),
        tenon.device("cpu"),
    )
    assert hidden.maker is matmul and hidden.users == [sigmoid, multiply]
    assert graph.inputs[0].maker is None and graph.inputs[0].is_outside and not hidden.is_outside
    assert graph.results == [multiply.result] and multiply.result.is_result
    assert len(graph) == 3 and len(graph.values) == 5
    assert repr(sigmoid) == f"<Step %{sigmoid.result.id} = tenon::sigmoid(x=%{hidden.id})>"
    assert repr(hidden) == f"<Value %{hidden.id}: float32[4, 8] cpu:0>"


def test_attributes_lists_and_constants():
    def function(x):
        parts = tenon.split(x, [3, 5], axis=1)
        joined = tenon.concat([parts[1], parts[0]], axis=1)
        return joined + tenon.tensor([1.0] * 8)

    graph = exported(function, X).graph
    concat = next(step for step in graph if step.name == "tenon::concat")
    (tensors,) = [each for each in concat.operands.values() if isinstance(each, list)]
    assert len(tensors) == 2 and concat.inputs == tensors
    assert concat.operands["axis"] == 1
    (constant,) = graph.leaves
    assert constant.constant.tolist() == [1.0] * 8


def test_a_pass_changes_a_copy():
    program = exported(gate, X, W)
    changed = program.edit(use_silu)
    assert [step.name for step in changed.graph] == ["tenon::matmul", "tenon::silu"]
    assert len(program.graph) == 3
    np.testing.assert_allclose(changed(X, W).numpy(), gate(X, W).numpy(), rtol=1e-6, atol=1e-6)


def test_a_named_pass_runs_beside_others():
    tenon.jit.add_pass("use_silu_of_test", use_silu)
    try:
        program = tenon.export(gate, (X, W), passes=["use_silu_of_test", *PASSES])
        assert program.changes() == "pass use_silu_of_test: of 3 steps 2 are left\n"
        with pytest.raises(ValueError, match="pass `use_silu_of_test` exists already"):
            tenon.jit.add_pass("use_silu_of_test", use_silu)
    finally:
        tenon.jit.remove_pass("use_silu_of_test")
    with pytest.raises(ValueError, match="expected passes among .*, got 'use_silu_of_test'"):
        program.optimize(["use_silu_of_test"])
    with pytest.raises(LookupError, match="expected one of .*, got 'use_silu_of_test'"):
        tenon.jit.remove_pass("use_silu_of_test")


def test_inserted_calls_take_what_the_function_takes():
    def scale(graph):
        (value,) = graph.results
        scaled = graph.insert("multiply", value, 2.0, before=None)
        shifted = graph.insert("add", scaled, tenon.ones([8]), before=None)
        total = graph.insert("sum", shifted, axis=1, keepdim=True, before=None)
        wide = graph.insert("concat", [shifted, total], axis=1, before=None)
        assert (total.shape, wide.shape) == ((4, 1), (4, 9))
        first = graph.insert("slice", wide, 1, 0, 8, before=None)
        graph.replace(value, graph.insert("clone", first, before=None))

    program = exported(lambda x: x.exp(), X)
    with pytest.raises(Exception) as caught:
        program.edit(scale)
    assert "pass `scale" in str(caught.value)  # multiply would read what is made of it
    assert program(X).tolist() == X.exp().tolist()

    def at_the_end(graph):
        step = graph.steps[-1]
        scaled = graph.insert("multiply", graph.inputs[0], 2.0, before=step)
        graph.replace(
            step.result,
            graph.insert(
                "add", graph.insert("exp", scaled, before=step), tenon.ones([8]), before=step
            ),
        )
        assert len(graph.leaves) == 1 and graph.leaves[0].constant.tolist() == [1.0] * 8
        graph.remove(step)

    edited = program.edit(at_the_end)
    np.testing.assert_allclose(edited(X).numpy(), np.exp(2 * X.numpy()) + 1, rtol=1e-6)


def test_constants():
    def add(graph):
        step = graph.steps[-1]
        table = tenon.arange(8, dtype=tenon.float32)
        value = graph.constant(table)
        table.fill_(100.0)  # the graph has a copy
        total = graph.insert("add", step.inputs[0], value, before=step)
        graph.replace(step.result, graph.insert("exp", total, before=step))
        graph.remove(step)

    program = exported(lambda x: x.exp(), X).edit(add)
    np.testing.assert_allclose(program(X).numpy(), np.exp(X.numpy() + np.arange(8)), rtol=1e-5)


def test_gradients_pass_through_what_was_inserted():
    program = exported(gate, X, W).edit(use_silu)
    x = X.clone().requires_grad_(True)
    program(x, W).sum().backward()
    y = X.clone().requires_grad_(True)
    gate(y, W).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_programs_of_open_sizes():
    program = tenon.export(
        gate, (X, W), dynamic_shapes=[{0: tenon.Dim("batch", max=16)}, None], passes=()
    )
    changed = program.edit(use_silu)
    x = tenon.randn([7, 8])
    np.testing.assert_allclose(changed(x, W).numpy(), gate(x, W).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "edit, error, text",
    [
        (lambda g: g.remove(g.steps[0]), RuntimeError, "has a result that is read"),
        (lambda g: g.insert("sigmoid", g.inputs[0]), TypeError, "before"),
        (lambda g: g.insert("no_such_thing", before=None), NotImplementedError, "no_such_thing"),
        (
            lambda g: g.insert("relu_", g.inputs[0], before=None),
            ValueError,
            "expected a call that makes new results, got one of relu_ that writes into a value",
        ),
        (
            lambda g: g.replace(g.steps[0].result, g.inputs[1]),
            ValueError,
            "expected a value float32[4, 8] cpu:0 in the place of another one, got float32[8, 8]",
        ),
        (
            lambda g: g.insert("matmul", g.inputs[0], g.inputs[0], before=None),
            ValueError,
            "matmul",
        ),
        (
            lambda g: g.insert("split", g.inputs[0], [3, 5], axis=1, before=None),
            NotImplementedError,
            "expected an operator whose number of results is fixed, got tenon::split",
        ),
        (lambda g: 1 / 0, ZeroDivisionError, "division by zero"),
        (
            lambda g: g.replace(exported(gate, X, W).graph.results[0], g.results[0]),
            ValueError,
            "expected a value of this graph, got <Value",
        ),
        (
            lambda g: g.insert("relu", g.inputs[0], before=exported(gate, X, W).graph.steps[0]),
            ValueError,
            "expected a step of this graph, got <Step",
        ),
        (
            lambda g: g.replace(g.results[0], g.inputs[0].maker),
            ValueError,
            "expected a value of this graph, got None",
        ),
    ],
)
def test_edits_that_are_refused(edit, error, text):
    program = exported(gate, X, W)
    with pytest.raises(error, match=re.escape(text)):
        program.edit(edit)
    assert len(program.graph) == 3


def test_what_is_written_is_not_replaced():
    def function(x, state):
        tenon.add(state, x, out=state)
        return state * 2

    state = tenon.zeros([4, 8])
    program = exported(function, X, state)
    graph = program.graph
    add = graph.steps[0]
    assert add.written == [graph.inputs[1]] and graph.inputs[1].is_written
    with pytest.raises(RuntimeError, match="a step writes into the memory of one of the values"):
        program.edit(lambda g: g.replace(g.inputs[1], g.inputs[0]))


def test_graphs_for_reading_are_not_edited():
    graph = exported(gate, X, W).graph
    with pytest.raises(
        RuntimeError, match=r"graph.remove\(\): expected a graph that is being edited"
    ):
        graph.remove(graph.steps[0])
    kept = []
    exported(gate, X, W).edit(kept.append)
    with pytest.raises(
        RuntimeError, match=r"graph.insert\(\): expected a graph that is being edited"
    ):
        kept[0].insert("relu", kept[0].inputs[0], before=None)


def test_branches_are_one_step():
    def function(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    (branch,) = [step for step in tenon.export(function, (X,)).graph if step.kind == "cond"]
    assert all(value.shape == () or value.shape == (4, 8) for value in branch.inputs)
