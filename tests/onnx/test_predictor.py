# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX in the predictor: sizes by its configuration, one program or one for each size."""

import threading

import numpy as np
import pytest
import tenon
import tenon.onnx
from messages import TYPES, graph, model, node, value
from tenon.inference import Predictor
from tenon.onnx.protobuf import field

F32 = np.float32
WEIGHTS = {"w": np.arange(12, dtype=F32).reshape(4, 3) / 7 - 0.5}


@pytest.fixture
def write(tmp_path):
    """Writes a model, and gives its path."""

    def written(nodes, inputs, outputs=("y",), initializers=None, name="net.onnx"):
        path = tmp_path / name
        path.write_bytes(model(nodes, inputs, outputs, initializers))
        return path

    return written


@pytest.fixture
def linear(write):
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Softmax", ["a"], ["y"], axis=1)]
    return write(nodes, [value("x", "float32", ["batch", 4])], initializers=WEIGHTS)


@pytest.fixture
def forked(write):
    """Rows of more than two are doubled, others negated: no one program."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["rows"]),
        node("Greater", ["rows", "two"], ["many"]),
        node(
            "If",
            ["many"],
            ["y"],
            then_branch=graph([node("Add", ["x", "x"], ["a"])], [], ["a"]),
            else_branch=graph([node("Neg", ["x"], ["b"])], [], ["b"]),
        ),
        node("Add", ["y", "z"], ["sum"]),
    ]
    constants = {"zero": np.array(0), "two": np.array(2)}
    inputs = [value(name, "float32", ["rows", 2]) for name in ("x", "z")]
    return write(nodes, inputs, ["sum"], constants)


def rows(count, width=4):
    return np.arange(count * width, dtype=F32).reshape(count, width) / 5


def softmax(x):
    a = np.exp(x @ WEIGHTS["w"])
    return a / a.sum(1, keepdims=True)


@pytest.mark.parametrize("settings", [{}, {"numerics": "fast"}, {"warmup": "recorded"}])
def test_one_program_of_all_sizes(linear, settings):
    p = Predictor(linear, sizes={"batch": tenon.Dim("n", min=1, max=16)}, **settings)
    assert str(p) == "<tenon.inference.Predictor (x: float32[batch, 4]) -> (y: float32[batch, 3])>"
    for count in (1, 2, 7, 16):
        got = p.run({"x": rows(count)})["y"]
        np.testing.assert_allclose(got.numpy(), softmax(rows(count)), rtol=1e-5)
    with pytest.raises(ValueError, match="batch goes from 1 to 16"):
        p.run({"x": rows(17)})
    assert "program of its own" not in p.explain() and p.memory()["weights"] == 48


def test_one_size(linear):
    p = Predictor(linear, sizes="batch=2")
    assert p.inputs["x"].shape == (2, 4) and not p.dimensions
    np.testing.assert_allclose(p.run({"x": rows(2)})["y"].numpy(), softmax(rows(2)), rtol=1e-5)
    with pytest.raises(ValueError, match=r"expected float32\[2, 4\], got float32\[3, 4\]"):
        p.run({"x": rows(3)})


def test_shapes_of_sizes_without_a_name(write):
    unnamed = field(1, "x") + field(
        2, field(1, field(1, TYPES["float32"]) + field(2, field(1, b"") + field(1, field(1, 4))))
    )
    path = write(
        [node("MatMul", ["x", "w"], ["a"]), node("Softmax", ["a"], ["y"], axis=1)],
        [unnamed],
        initializers=WEIGHTS,
    )
    with pytest.raises(
        ValueError, match="axis 0 is open and has no name; set the key `shapes`, to"
    ):
        Predictor(path)
    p = Predictor(path, shapes={"x": ((1, 8), 4)})
    assert p.inputs["x"].shape == ("x_0", 4)
    np.testing.assert_allclose(p.run({"x": rows(3)})["y"].numpy(), softmax(rows(3)), rtol=1e-5)
    with pytest.raises(ValueError, match="expected size 4 of axis 1, got 5"):
        Predictor(path, shapes={"x": (1, 5)})
    with pytest.raises(LookupError, match="`shapes`: .* has no input 'w'; it has 'x'"):
        Predictor(path, shapes={"w": (1, 5)})


@pytest.fixture
def encoder(write):
    """Ids and their indices in tables, between axes that are exchanged and back: what follows from sizes is a tensor that steps read."""
    nodes = [
        node("Shape", ["ids"], ["s"]),
        node("Gather", ["s", "one"], ["length"]),
        node("Range", ["zero", "length", "one"], ["range"]),
        node("Expand", ["range", "s"], ["indices"]),
        node("Gather", ["table", "ids"], ["words"]),
        node("Gather", ["table", "indices"], ["positions"]),
        node("Add", ["words", "positions"], ["sum"]),
        node("Reshape", ["sum", "heads"], ["split"]),
        node("Transpose", ["split"], ["turned"], perm=[0, 2, 1, 3]),
        node("Reshape", ["turned", "joined"], ["y"]),
    ]
    constants = {
        "zero": np.array(0),
        "one": np.array(1),
        "table": rows(16, 4),
        "heads": np.array([0, 0, 2, 2]),
        "joined": np.array([0, -1]),
    }
    return write(nodes, [value("ids", "int64", ["batch", "length"])], ["y"], constants)


@pytest.mark.parametrize("settings", [{}, {"numerics": "fast"}])
def test_tensors_that_follow_from_sizes_are_of_one_program(encoder, settings):
    sizes = {"batch": tenon.Dim("b", min=1, max=8), "length": tenon.Dim("l", min=1, max=16)}
    program = tenon.onnx.load(encoder, sizes=sizes)
    p = Predictor(encoder, sizes=sizes, **settings)
    assert "program of its own" not in p.explain()
    table = rows(16, 4)
    for batch, length in [(1, 1), (3, 5), (1, 16), (8, 1)]:
        ids = np.arange(batch * length).reshape(batch, length) % 16
        summed = table[ids] + table[np.arange(length)]
        wanted = summed.reshape(batch, length, 2, 2).transpose(0, 2, 1, 3).reshape(batch, -1)
        np.testing.assert_array_equal(p.run({"ids": ids})["y"].numpy(), wanted)
        np.testing.assert_array_equal(program(tenon.from_numpy(ids)).numpy(), wanted)


def test_a_program_for_each_size(forked):
    p = Predictor(forked, sizes={"rows": (1, 100)})
    assert p.inputs["z"].shape == ("rows", 2) and p.outputs["sum"].shape == (None, None)
    assert "each size has a program of its own" in p.explain()
    for count in [1, 2, 3, 5, 2, *range(1, 60), 3]:
        x, z = rows(count, 2), np.ones((count, 2), F32)
        wanted = (x + x if count > 2 else -x) + z
        np.testing.assert_array_equal(p.run({"x": x, "z": z})["sum"].numpy(), wanted)
    with pytest.raises(
        ValueError, match="input 'z': expected size 3 of axis 0, as rows is in 'x', got 2"
    ):
        p.run({"x": rows(3, 2), "z": rows(2, 2)})
    with pytest.raises(ValueError, match="rows goes from 1 to 100"):
        p.run({"x": rows(101, 2), "z": rows(101, 2)})
    seen = []
    with p.hook(lambda index, operator, *rest: seen.append(operator)):
        p.run({"x": rows(1, 2), "z": rows(1, 2)})
    assert seen == ["tenon::subtract"]  # z - x
    with pytest.raises(NotImplementedError, match="`profile`: expected one program of all sizes"):
        Predictor(forked, sizes={"rows": (1, 100)}, profile=True)


def test_clones_make_programs_at_once(forked):
    p = Predictor(forked, sizes="rows=1:40")
    wrong = []

    def work(clone):
        for count in range(1, 41):
            x = rows(count, 2)
            got = clone.run({"x": x, "z": x})["sum"].numpy()
            if not np.array_equal(got, x * 3 if count > 2 else 0 * x):
                wrong.append(count)

    threads = [threading.Thread(target=work, args=(p.clone(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sequences(write):
    sequence = field(1, "x") + field(
        2, field(4, field(1, field(1, field(1, TYPES["float32"]) + field(2, b""))))
    )
    nodes = [
        node("ConcatFromSequence", ["x"], ["c"], axis=0),
        node("SequenceConstruct", ["c", "c"], ["y"]),
    ]
    path = write(nodes, [sequence])
    p = Predictor(path, shapes={"x": [[2], [3]]})
    assert list(p.inputs) == ["x.0", "x.1"] and list(p.outputs) == ["y.0", "y.1"]
    got = p.run({"x.0": np.array([1, 2], F32), "x.1": np.array([3, 4, 5], F32)})
    assert got["y.0"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="a sequence, whose length and shapes are open"):
        Predictor(path)


def test_what_is_wrong(linear, tmp_path):
    with pytest.raises(ValueError, match="input 'x': the size of axis 0, 'batch', is open"):
        Predictor(linear)
    with pytest.raises(LookupError, match="no open size 'batc'; did you mean `batch`"):
        Predictor(linear, sizes={"batc": 2})
    with pytest.raises(ValueError, match="`sizes`: expected sizes such as 'batch=8'"):
        Predictor(linear, sizes="batch")
    with pytest.raises(ValueError, match="ranges of all sizes from min to max"):
        Predictor(linear, sizes={"batch": tenon.Dim("b", min=2, max=8, multiple_of=2)})
    (tmp_path / "odd.onnx").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"\[onnx\] odd.onnx: "):
        Predictor(tmp_path / "odd.onnx")
    other = tmp_path / "no.onnx"
    other.write_bytes(model([node("Nope", ["x"], ["y"])], [value("x", "float32", [2])], ["y"]))
    with pytest.raises(NotImplementedError, match="Nope: there is none in opset 21"):
        Predictor(other)
