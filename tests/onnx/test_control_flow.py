# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan that depend on inputs, read and written."""

import numpy as np
import pytest
import tenon
import tenon.onnx
from messages import graph, model, node, value

F32 = np.float32
CONSTANTS = {"one": np.array(1.0, F32), "limit": np.array(100.0, F32)}


def load(nodes, inputs, outputs=("y",), initializers=None, **options):
    data = model(nodes, inputs, outputs, {**CONSTANTS, **(initializers or {})}, opset=21)
    return tenon.onnx.load(data, **options)


def numbers(results):
    results = results if isinstance(results, tuple) else (results,)
    return [each.tolist() for each in results]


X, FLAG = value("x", "float32", [2]), value("flag", "bool", [])


def test_a_branch_that_depends_on_an_input():
    then = graph([node("Add", ["x", "one"], ["a"])], [], ["a"])
    other = graph([node("Neg", ["x"], ["s"]), node("Mul", ["s", "s"], ["b"])], [], ["b"])
    program = load([node("If", ["flag"], ["y"], then_branch=then, else_branch=other)], [X, FLAG])
    assert "cond(" in str(program)
    x = tenon.tensor([2.0, 3.0])
    assert numbers(program(x, tenon.tensor(True))) == [[3.0, 4.0]]
    assert numbers(program(x, tenon.tensor(False))) == [[4.0, 9.0]]


def test_branches_that_return_inputs_constants_and_lists():
    then = graph([node("SequenceConstruct", ["x", "one"], ["a"])], [], ["a", "one"])
    other = graph(
        [node("Neg", ["x"], ["n"]), node("SequenceConstruct", ["n", "limit"], ["b"])],
        [],
        ["b", "limit"],
    )
    nodes = [
        node("If", ["flag"], ["list", "k"], then_branch=then, else_branch=other),
        node("SequenceAt", ["list", "zero"], ["first"]),
        node("SequenceAt", ["list", "last"], ["second"]),
    ]
    picked = {"zero": np.array(0), "last": np.array(-1)}
    program = load(nodes, [X, FLAG], ["first", "second", "k"], picked)
    x = tenon.tensor([2.0, 3.0])
    assert numbers(program(x, tenon.tensor(True))) == [[2.0, 3.0], 1.0, 1.0]
    assert numbers(program(x, tenon.tensor(False))) == [[-2.0, -3.0], 100.0, 100.0]


def test_branches_in_branches_see_what_is_around_them():
    inner = graph([node("Add", ["x", "outer"], ["i"])], [], ["i"])
    plain = graph([node("Identity", ["outer"], ["p"])], [], ["p"])
    then = graph([node("If", ["second"], ["t"], then_branch=inner, else_branch=plain)], [], ["t"])
    other = graph([node("Sub", ["x", "one"], ["o"])], [], ["o"])
    nodes = [
        node("Mul", ["x", "x"], ["outer"]),
        node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
    ]
    program = load(nodes, [X, FLAG, value("second", "bool", [1])])
    x, yes, no = tenon.tensor([2.0, 3.0]), tenon.tensor(True), tenon.tensor(False)
    assert numbers(program(x, yes, tenon.tensor([True]))) == [[6.0, 12.0]]
    assert numbers(program(x, yes, tenon.tensor([False]))) == [[4.0, 9.0]]
    assert numbers(program(x, no, tenon.tensor([True]))) == [[1.0, 2.0]]


def test_branches_of_other_types_are_refused():
    then = graph([node("Identity", ["x"], ["a"])], [], ["a"])
    other = graph([node("Concat", ["x", "x"], ["b"], axis=0)], [], ["b"])
    nodes = [node("If", ["flag"], ["y"], then_branch=then, else_branch=other)]
    with pytest.raises(
        NotImplementedError,
        match=r"node 0 \(If, opset 21\): expected branches with results of one dtype and shape, as `cond` depends on "
        r"the inputs; then_branch makes float32 \[2\], else_branch float32 \[4\]",
    ):
        load(nodes, [X, FLAG])
    fixed = load(nodes, [X, FLAG], values={"flag": tenon.tensor(False)})
    assert fixed(tenon.ones(2)).shape == (4,)


def doubling(goes_on, results=("h", "d")):
    """A body that doubles its value, and adds what is around it."""
    nodes = [node("Add", ["v", "v"], ["e"]), node("Add", ["e", "bias"], ["d"]), *goes_on]
    inputs = [value("i", "int64"), value("g", "bool"), value("v", "float32", [2])]
    return graph(nodes, inputs, list(results))


UNTIL = [node("ReduceMax", ["d"], ["m"], keepdims=0), node("Less", ["m", "limit"], ["h"])]
BIAS = [node("Mul", ["x", "one"], ["bias"])]


def double(x, rounds, limit=np.inf):
    v = np.array(x, F32)
    for _ in range(rounds):
        v = v + v + np.array(x, F32)
        if v.max() >= limit:
            break
    return v.tolist()


def test_a_loop_whose_condition_depends_on_data():
    program = load([*BIAS, node("Loop", ["", "flag", "x"], ["y"], body=doubling(UNTIL))], [X, FLAG])
    assert "while(" in str(program)
    for x in ([1.0, 2.0], [50.0, 3.0], [200.0, 1.0]):
        got = program(tenon.tensor(x), tenon.tensor(True))
        assert numbers(got) == [double(x, 99, 100.0)]
    assert numbers(program(tenon.tensor([1.0, 2.0]), tenon.tensor(False))) == [[1.0, 2.0]]


def test_a_loop_that_begins_always():
    program = load([*BIAS, node("Loop", ["", "", "x"], ["y"], body=doubling(UNTIL))], [X])
    for x in ([1.0, 2.0], [200.0, 1.0]):
        assert numbers(program(tenon.tensor(x))) == [double(x, 99, 100.0)]


def test_a_loop_whose_number_of_rounds_is_an_input():
    body = doubling([node("Identity", ["g"], ["h"])])
    nodes = [*BIAS, node("Loop", ["m", "", "x"], ["y"], body=body)]
    program = load(nodes, [X, value("m", "int64", [])])
    for rounds in (0, 1, 5):
        got = program(tenon.tensor([1.0, 2.0]), tenon.tensor(rounds))
        assert numbers(got) == [double([1.0, 2.0], rounds)]
    both = load(
        [*BIAS, node("Loop", ["m", "", "x"], ["y"], body=doubling(UNTIL))],
        [X, value("m", "int64", [1])],
    )
    for rounds in (2, 50):
        got = both(tenon.tensor([1.0, 2.0]), tenon.tensor([rounds]))
        assert numbers(got) == [double([1.0, 2.0], rounds, 100.0)]


def test_many_rounds_are_a_step():
    body = doubling(
        [node("Identity", ["g"], ["h"]), node("Cast", ["i"], ["f"], to=1)], ("h", "d", "f")
    )
    nodes = [*BIAS, node("Loop", ["m", "", "x"], ["y", "z"], body=body)]
    for rounds, is_step in ((3, False), (60, True)):
        program = load(nodes, [X], ["y", "z"], {"m": np.array(rounds)})
        assert ("scan(" in str(program)) == is_step
        last, stacked = program(tenon.tensor([1.0, 2.0]))
        assert last.tolist() == double([1.0, 2.0], rounds)
        assert stacked.tolist() == list(range(rounds))


def test_many_rounds_whose_shapes_follow_from_their_number():
    body = graph(
        [
            node("Unsqueeze", ["i", "zero"], ["n"]),
            node("ConstantOfShape", ["n"], ["c"]),
            node("ReduceSum", ["c"], ["r"], keepdims=0),
            node("Add", ["v", "r"], ["d"]),
            node("Identity", ["g"], ["h"]),
        ],
        [value("i", "int64"), value("g", "bool"), value("v", "float32", [2])],
        ["h", "d"],
    )
    nodes = [node("Loop", ["m", "", "x"], ["y"], body=body)]
    program = load(nodes, [X], ["y"], {"m": np.array(40), "zero": np.array([0])})
    assert "scan(" not in str(program)
    assert numbers(program(tenon.tensor([1.0, 2.0]))) == [[1.0, 2.0]]


def test_what_no_step_can_hold_is_refused():
    growing = graph(
        [node("Concat", ["v", "v"], ["d"], axis=0), node("Identity", ["g"], ["h"])],
        [value("i", "int64"), value("g", "bool"), value("v", "float32", [2])],
        ["h", "d"],
    )
    inputs = [X, value("m", "int64", [])]
    with pytest.raises(
        NotImplementedError, match=r"it is given float32 \[2\] and makes float32 \[4\]"
    ):
        load([node("Loop", ["m", "", "x"], ["y"], body=growing)], inputs)
    scanned = doubling([node("Identity", ["g"], ["h"])], ("h", "d", "e"))
    with pytest.raises(
        NotImplementedError,
        match="its number of rounds depends on the inputs, and with it the size",
    ):
        load([*BIAS, node("Loop", ["m", "", "x"], ["y", "z"], body=scanned)], inputs)


def scan_model(length, **attributes):
    body = graph(
        [node("Add", ["s", "e"], ["t"]), node("Mul", ["t", "bias"], ["o"])],
        [value("s", "float32", [2]), value("e", "float32", [2])],
        ["t", "o"],
    )
    nodes = [
        *BIAS,
        node("Scan", ["x", "xs"], ["y", "z"], body=body, num_scan_inputs=1, **attributes),
    ]
    return model(nodes, [X, value("xs", "float32", [length, 2])], ["y", "z"], CONSTANTS)


def test_a_scan_is_a_step_of_any_length():
    length = tenon.Dim("length", min=1, max=20)
    program = tenon.onnx.load(scan_model("length"), sizes={"length": length})
    assert "scan(" in str(program)
    for count in (1, 7, 20):
        xs = np.random.default_rng(count).normal(size=(count, 2)).astype(F32)
        last, stacked = program(tenon.ones(2), tenon.tensor(xs))
        sums = 1 + np.cumsum(xs, 0)
        np.testing.assert_allclose(last.numpy(), sums[-1], rtol=1e-5)
        np.testing.assert_allclose(stacked.numpy(), sums, rtol=1e-5)


def test_a_scan_backwards():
    options = {"scan_input_directions": [1], "scan_output_directions": [1], "scan_output_axes": [1]}
    program = tenon.onnx.load(scan_model(3, **options))
    xs = np.arange(6, dtype=F32).reshape(3, 2)
    last, stacked = program(tenon.ones(2), tenon.tensor(xs))
    sums = 1 + np.cumsum(xs[::-1], 0)
    assert np.array_equal(last.numpy(), sums[-1]) and np.array_equal(stacked.numpy(), sums[::-1].T)


# -- the other direction ------------------------------------------------------------------------------------


def round_trip(function, path, *arguments, **options):
    """The model read again gives what the function gives, for each of the arguments."""
    tenon.onnx.export(function, path, arguments[0], **options)
    program = tenon.onnx.load(path)
    for given in arguments:
        want = function(*given)
        got = program(*given)
        for ours, read in zip(
            want if isinstance(want, tuple) else (want,),
            got if isinstance(got, tuple) else (got,),
            strict=True,
        ):
            assert ours.dtype == read.dtype
            np.testing.assert_allclose(read.numpy(), ours.numpy(), rtol=1e-6)
    return program


def branch(x, flag):
    scale = x.abs().sum()
    return tenon.jit.cond(flag, lambda v: v / scale, lambda v: v * 2 + scale, x)


def halve(x):
    return tenon.jit.while_loop(lambda v: v.abs().sum() > 1, lambda v: v / 2 + x * 0, (x,))[0]


def running(x, xs):
    return tenon.jit.scan(lambda s, e: (s + e, s * e), x, xs)


def test_export_of_a_branch(tmp_path):
    x = tenon.tensor([1.0, -3.0])
    program = round_trip(
        branch, tmp_path / "m.onnx", (x, tenon.tensor(True)), (x, tenon.tensor(False))
    )
    assert "cond(" in str(program)


def test_export_of_a_loop(tmp_path):
    program = round_trip(
        halve, tmp_path / "m.onnx", (tenon.tensor([8.0, 3.0]),), (tenon.tensor([0.25, 0.5]),)
    )
    assert "while(" in str(program)


def test_export_of_a_scan(tmp_path):
    arguments = (tenon.tensor([8.0, 3.0]), tenon.tensor([[1.0, 2.0], [3.0, 4.0], [0.5, 0.25]]))
    program = round_trip(running, tmp_path / "m.onnx", arguments)
    assert "scan(" in str(program)


def test_export_of_loops_in_branches(tmp_path):
    def both(x, flag):
        return tenon.jit.cond(flag, halve, lambda v: v - 1, x)

    x = tenon.tensor([8.0, 3.0])
    round_trip(both, tmp_path / "m.onnx", (x, tenon.tensor(True)), (x, tenon.tensor(False)))


def test_export_names_what_has_no_form_inside_of_a_branch(tmp_path):
    def odd(x, flag):
        return tenon.jit.cond(flag, lambda v: tenon.lgamma(v), lambda v: v, x)

    with pytest.raises(NotImplementedError, match="`tenon::lgamma`"):
        tenon.onnx.export(odd, tmp_path / "m.onnx", (tenon.ones(2), tenon.tensor(True)))
    assert not (tmp_path / "m.onnx").exists()
