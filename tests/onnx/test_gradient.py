# SPDX-License-Identifier: Apache-2.0
"""Gradient of ai.onnx.preview.training: nodes of a model differentiated when it is loaded."""

import numpy as np
import pytest
import tenon
import tenon.onnx
from messages import function, graph, local, model, node, value
from tenon.onnx.protobuf import field

F32 = np.float32
TRAINING = "ai.onnx.preview.training"


def gradient(inputs, outputs, xs, y, zs=None):
    attributes = {"xs": xs, "y": y, **({"zs": zs} if zs else {})}
    return node("Gradient", inputs, outputs, **attributes) + field(7, TRAINING)


def load(nodes, inputs, outputs, initializers=None, functions=(), **options):
    opsets = {TRAINING: 1, **({"local": 1} if functions else {})}
    return tenon.onnx.load(
        model(nodes, inputs, outputs, initializers, opsets=opsets, functions=functions), **options
    )


def run(program, *arrays):
    results = program(*[tenon.tensor(array) for array in arrays])
    results = results if isinstance(results, tuple) else (results,)
    return [each.numpy() for each in results]


A, B = value("a", shape=[]), value("b", shape=[])
X = value("x", shape=[2, 3])


def test_of_a_sum_and_a_product():
    nodes = [
        node("Add", ["a", "b"], ["c"]),
        node("Mul", ["c", "a"], ["d"]),
        gradient(["a", "b"], ["da", "db"], ["a", "b"], "d"),
    ]
    program = load(nodes, [A, B], ["d", "da", "db"])
    assert [float(item) for item in run(program, F32(2), F32(3))] == [10.0, 7.0, 2.0]


def test_a_step_of_training_with_an_optimizer():
    rng = np.random.default_rng(1)
    x, target = rng.normal(size=(2, 3)).astype(F32), np.array([0, 2])
    w, bias = rng.normal(size=(3, 4)).astype(F32), np.zeros(4, F32)
    nodes = [
        node("Gemm", ["x", "w", "bias"], ["hidden"]),
        node("Relu", ["hidden"], ["active"]),
        node("SoftmaxCrossEntropyLoss", ["active", "target"], ["loss"], reduction="mean"),
        gradient(["w", "bias", "x", "target"], ["dw", "dbias"], ["w", "bias"], "loss", ["x", "target"]),
        node("Momentum", ["rate", "time", "w", "dw", "zero"], ["w2", "v2"], alpha=0.9, beta=1.0,
             mode="standard", norm_coefficient=0.0) + field(7, TRAINING),
    ]  # fmt: skip
    constants = {"w": w, "bias": bias, "rate": np.array(0.1, F32), "time": np.array(0),
                 "zero": np.zeros((3, 4), F32)}  # fmt: skip
    types = [X, value("target", "int64", [2])]
    loss, dw, dbias, w2 = run(
        load(nodes, types, ["loss", "dw", "dbias", "w2"], constants), x, target
    )
    weight, shift = tenon.tensor(w, requires_grad=True), tenon.tensor(bias, requires_grad=True)
    own = tenon.cross_entropy(tenon.relu(tenon.tensor(x) @ weight + shift), tenon.tensor(target))
    own.backward()
    np.testing.assert_allclose(loss, own.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(dw, weight.grad.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(dbias, shift.grad.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(w2, w - 0.1 * dw, rtol=1e-5, atol=1e-6)


def test_other_values_take_the_place_of_the_names():
    nodes = [
        node("Mul", ["a", "b"], ["c"]),
        node("Mul", ["c", "a"], ["y"]),
        node("Add", ["a", "one"], ["other"]),
        gradient(["other", "a"], ["dy"], ["a"], "y", ["b"]),
    ]
    program = load(nodes, [A, B], ["dy"], {"one": np.array(1, F32)})
    # y = a * a * b, at a = 3 and b = 2
    assert float(run(program, F32(2), F32(5))[0]) == 12.0


def test_derivatives_of_higher_order():
    nodes = [
        node("Mul", ["a", "a"], ["square"]),
        node("Mul", ["square", "a"], ["y"]),
        gradient(["a"], ["first"], ["a"], "y"),
        gradient(["a"], ["second"], ["a"], "first"),
        gradient(["a"], ["third"], ["a"], "second"),
    ]
    program = load(nodes, [A], ["first", "second", "third"])
    assert [float(item) for item in run(program, F32(2))] == [12.0, 12.0, 6.0]


def test_a_result_of_several_elements_is_summed():
    nodes = [
        node("Exp", ["x"], ["y"]),
        gradient(["x"], ["dx"], ["x"], "y"),
    ]
    x = np.arange(6, dtype=F32).reshape(2, 3)
    np.testing.assert_allclose(run(load(nodes, [X], ["dx"]), x)[0], np.exp(x), rtol=1e-5)


def test_through_functions_and_branches_that_are_known():
    triple = function(
        "Cube", ["v"], ["w"], [node("Mul", ["v", "v"], ["s"]), node("Mul", ["s", "v"], ["w"])]
    )
    then = graph([node("Mul", ["cube", "a"], ["t"])], [], ["t"])
    other = graph([node("Neg", ["cube"], ["o"])], [], ["o"])
    nodes = [
        local("Cube", ["a"], ["cube"]),
        node("If", ["yes"], ["y"], then_branch=then, else_branch=other),
        gradient(["a"], ["dy"], ["a"], "y"),
    ]  # fmt: skip
    program = load(nodes, [A], ["dy"], {"yes": np.array(True)}, [triple])
    assert float(run(program, F32(2))[0]) == 32.0


def test_inside_of_a_function():
    body = [node("Mul", ["v", "v"], ["s"]), gradient(["v"], ["w"], ["v"], "s")]
    slope = function("Slope", ["v"], ["w"], body) + field(9, field(1, TRAINING) + field(2, 1))
    program = load([local("Slope", ["a"], ["y"])], [A], ["y"], functions=[slope])
    assert float(run(program, F32(5))[0]) == 10.0


ADD = node("Add", ["a", "b"], ["c"])
BRANCH = node(
    "If",
    ["flag"],
    ["c"],
    then_branch=graph([node("Add", ["a", "b"], ["t"])], [], ["t"]),
    else_branch=graph([node("Sub", ["a", "b"], ["o"])], [], ["o"]),
)


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ([ADD, gradient(["a"], ["y"], ["a"], "c", ["b"])], "expected an input for each of the 2 names in `xs` and `zs`, got 1"),
        ([ADD, gradient(["a", "a"], ["y"], ["a"], "c", ["a"])], "expected each name in `xs` and `zs` once"),
        ([ADD, gradient(["a"], ["y"], ["a"], "a")], "expected `y` to be no name in `xs` and `zs`, got `a`"),
        ([gradient(["a"], ["y"], ["a"], "c"), ADD], "expected nodes of the same graph that make `c` of `a`"),
        ([ADD, gradient(["flag"], ["y"], ["flag"], "c")], "expected nodes of the same graph that make `c` of `flag`"),
        ([BRANCH, gradient(["a"], ["y"], ["a"], "c")], "gradients do not pass through `cond`"),
        ([node("Not", ["flag"], ["n"]), gradient(["flag"], ["y"], ["flag"], "n")], "expected values of floating dtypes, got bool"),
    ],
)  # fmt: skip
def test_what_is_refused(nodes, text):
    types = [A, B, value("flag", "bool", [])]
    with pytest.raises((ValueError, TypeError, NotImplementedError)) as raised:
        load(nodes, types, ["y"])
    assert text in str(raised.value)
    assert "Gradient, opset 1" in str(raised.value)
