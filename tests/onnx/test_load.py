# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX as programs: operators of both kinds of lines, versions, known values, structure, errors."""

import numpy as np
import pytest
import tenon
import tenon.onnx
from messages import field, function, graph, local, model, node, value

F32 = np.float32


def run(nodes, inputs, outputs=("y",), initializers=None, opset=21, **options):
    """The results of a model whose inputs are named arrays."""
    types = [value(name, array.dtype.name, array.shape) for name, array in inputs.items()]
    program = tenon.onnx.load(model(nodes, types, outputs, initializers, opset=opset), **options)
    results = program(*(tenon.tensor(array) for array in inputs.values()))
    return [each.numpy() for each in results] if isinstance(results, tuple) else results.numpy()


def test_a_line_of_an_operator_and_its_attributes():
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], F32)
    got = run([node("Transpose", ["x"], ["y"], perm=[1, 0])], {"x": x})
    assert np.array_equal(got, x.T)


def test_an_attribute_becomes_an_input_in_a_later_opset():
    x = np.arange(6, dtype=F32).reshape(2, 3)
    by_attribute = run([node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)], {"x": x}, opset=11)
    axes = {"axes": np.array([1])}
    by_input = run(
        [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], {"x": x}, initializers=axes
    )
    assert np.array_equal(by_attribute, x.sum(1)) and np.array_equal(by_input, x.sum(1))


def test_softmax_normalised_all_axes_from_one_on_before_opset_13():
    x = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(F32)
    together = np.exp(x) / np.exp(x).sum(axis=(1, 2), keepdims=True)
    alone = np.exp(x) / np.exp(x).sum(axis=2, keepdims=True)
    assert np.allclose(
        run([node("Softmax", ["x"], ["y"])], {"x": x}, opset=11), together, atol=1e-6
    )
    assert np.allclose(run([node("Softmax", ["x"], ["y"])], {"x": x}, opset=13), alone, atol=1e-6)


def test_group_normalisation_scales_groups_before_opset_21_and_channels_from_it_on():
    x = np.random.default_rng(2).normal(size=(1, 4, 3)).astype(F32)
    halves = x.reshape(1, 2, -1)
    normal = (halves - halves.mean(-1, keepdims=True)) / np.sqrt(
        halves.var(-1, keepdims=True) + 1e-5
    )
    for opset, scale in ((18, [2.0, 3.0]), (21, [2.0, 2.0, 3.0, 3.0])):
        weights = {"s": np.array(scale, F32), "b": np.zeros(len(scale), F32)}
        got = run(
            [node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)],
            {"x": x},
            initializers=weights,
            opset=opset,
        )
        assert np.allclose(
            got, normal.reshape(x.shape) * np.repeat([2.0, 3.0], 2)[:, None], atol=1e-5
        )


def test_integer_quotients_are_rounded_towards_zero():
    a, b = np.array([-7, 7, -7, 6], np.int32), np.array([2, 2, -2, 3], np.int32)
    assert run([node("Div", ["a", "b"], ["y"])], {"a": a, "b": b}).tolist() == [-3, 3, 3, 2]


def test_convolution_with_other_margins_before_than_after():
    x = np.ones((1, 1, 3, 3), F32)
    got = run(
        [node("Conv", ["x", "w"], ["y"], pads=[0, 0, 1, 1])],
        {"x": x},
        initializers={"w": np.ones((1, 1, 2, 2), F32)},
    )
    assert got[0, 0].tolist() == [[4, 4, 2], [4, 4, 2], [2, 2, 1]]


def test_a_convolution_of_three_axes():
    rng = np.random.default_rng(3)
    x, w = (
        rng.normal(size=(1, 2, 3, 3, 3)).astype(F32),
        rng.normal(size=(2, 1, 2, 2, 2)).astype(F32),
    )
    got = run([node("Conv", ["x", "w"], ["y"], group=2)], {"x": x}, initializers={"w": w})
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2, 2), axis=(2, 3, 4))
    wanted = np.einsum("ncdhwijk,cijk->ncdhw", windows, w[:, 0])
    assert np.allclose(got, wanted, atol=1e-5)


def test_shape_arithmetic_is_known_while_the_model_is_loaded():
    x = np.arange(24, dtype=F32).reshape(2, 3, 4)
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"]),
        node("Unsqueeze", ["batch", "axis"], ["batch_1d"]),
        node("Concat", ["batch_1d", "rest"], ["wanted"], axis=0),
        node("Reshape", ["x", "wanted"], ["y"]),
    ]
    constants = {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1])}
    types = [value("x", "float32", x.shape)]
    program = tenon.onnx.load(model(nodes, types, ["y"], constants))
    assert np.array_equal(program(tenon.tensor(x)).numpy(), x.reshape(2, 12))
    assert "gather" not in str(program) and "concat" not in str(program)


def test_an_input_whose_values_decide_a_shape_is_fixed():
    x = np.arange(6, dtype=F32)
    types = [value("x", "float32", [6]), value("shape", "int64", [2])]
    data = model([node("Reshape", ["x", "shape"], ["y"])], types, ["y"])
    with pytest.raises(
        NotImplementedError, match="shape: expected a value that is known when the model"
    ):
        tenon.onnx.load(data)
    program = tenon.onnx.load(data, values={"shape": tenon.tensor(np.array([2, 3]))})
    assert np.array_equal(program(tenon.tensor(x)).numpy(), x.reshape(2, 3))


def test_open_sizes_are_given_by_name_or_left_open():
    data = model([node("Relu", ["x"], ["y"])], [value("x", "float32", ["batch", 2])], ["y"])
    with pytest.raises(
        ValueError, match='size of axis 0, `batch`, is open; expected it, as sizes={"batch"'
    ):
        tenon.onnx.load(data)
    x = np.array([[-1.0, 2.0]], F32)
    assert tenon.onnx.load(data, sizes={"batch": 1})(tenon.tensor(x)).numpy().tolist() == [[0, 2]]
    program = tenon.onnx.load(data, sizes={"batch": tenon.Dim("batch", min=1, max=8)})
    for batch in (1, 3, 8):
        assert program(tenon.zeros([batch, 2])).shape == (batch, 2)


def test_initializers_may_be_inputs_and_weights_keep_their_names():
    w = np.ones((200, 100), F32)
    types = [value("x", "float32", [1, 200]), value("w", "float32", w.shape)]
    program = tenon.onnx.load(
        model([node("MatMul", ["x", "w"], ["y"])], types, ["y"], {"w": w}, ir=3)
    )
    assert list(program.leaves) == ["w"]
    assert program(tenon.ones([1, 200])).numpy()[0, 0] == 200


def test_functions_of_the_model_are_called():
    twice = function("Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])])
    four = function(
        "Four", ["a"], ["c"], [local("Twice", ["a"], ["b"]), local("Twice", ["b"], ["c"])]
    )
    types = [value("x", "float32", [1])]
    data = model(
        [local("Four", ["x"], ["y"])], types, ["y"], functions=[twice, four], opsets={"local": 1}
    )
    assert tenon.onnx.load(data)(tenon.tensor([3.0])).numpy().tolist() == [12]


def test_a_branch_is_chosen_and_rounds_are_written_out():
    sides = {
        "then_branch": graph([node("Neg", ["x"], ["a"])], [], ["a"]),
        "else_branch": graph([node("Abs", ["x"], ["b"])], [], ["b"]),
    }
    x = np.array([2.0], F32)
    got = run([node("If", ["c"], ["y"], **sides)], {"x": x}, initializers={"c": np.array(True)})
    assert got.tolist() == [-2]
    body = graph(
        [
            node("Add", ["s", "x"], ["t"]),
            node("Identity", ["g"], ["h"]),
            node("Identity", ["t"], ["u"]),
        ],
        [value("i", "int64"), value("g", "bool"), value("s", "float32", [1])],
        ["h", "t", "u"],
    )
    last, all_of_them = run(
        [node("Loop", ["m", "", "x"], ["y", "z"], body=body)],
        {"x": x},
        ("y", "z"),
        initializers={"m": np.array(3)},
    )
    assert last.tolist() == [8] and all_of_them.tolist() == [[4], [6], [8]]


def test_a_file_is_loaded_and_described(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(model([node("Exp", ["x"], ["y"])], [value("x", "float32", ["n", 3])], ["y"]))
    about = tenon.onnx.describe(path)
    assert about["opsets"] == {"": 21} and about["outputs"] == ["y"]
    assert about["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["n", 3]}]
    assert tenon.onnx.load(path, sizes={"n": 2})(tenon.zeros([2, 3])).numpy().sum() == 6


def test_weights_may_lie_in_a_file_beneath_the_models_folder(tmp_path):
    weights = np.arange(4, dtype=F32)

    def write(location, length="16"):
        entries = {"location": location, "offset": "16", "length": length}
        data = field(1, 4) + field(2, 1) + field(8, "w") + field(14, 1)
        data += b"".join(field(13, field(1, key) + field(2, text)) for key, text in entries.items())
        body = graph([node("Add", ["x", "w"], ["y"])], [value("x", "float32", [4])], ["y"]) + field(
            5, data
        )
        path = tmp_path / "net.onnx"
        path.write_bytes(field(1, 10) + field(7, body) + field(8, field(2, 21)))
        return path

    (tmp_path / "w.bin").write_bytes(b"\0" * 16 + weights.tobytes())
    assert tenon.onnx.load(write("w.bin"))(tenon.zeros([4])).numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(
        ValueError, match=r"expected a file beneath the model's folder, got `../w.bin`"
    ):
        tenon.onnx.load(write("../w.bin"))
    with pytest.raises(ValueError, match="expected 16 bytes for its shape, got 64"):
        tenon.onnx.load(write("w.bin", "64"))
    (tmp_path / "link.bin").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="got the link"):
        tenon.onnx.load(write("link.bin"))


def test_errors_name_the_node():
    types = [value("x", "float32", [1, 3, 8, 8])]
    weights = {"w": np.zeros((4, 2, 3, 3), F32)}
    data = model([node("Conv", ["x", "w"], ["y"], name="conv1")], types, ["y"], weights, opset=11)
    with pytest.raises(
        ValueError,
        match=r"\[onnx\] model: node 0 \"conv1\" \(Conv, opset 11\): expected W of 3 channels / group 1",
    ):
        tenon.onnx.load(data)


def test_all_operators_that_cannot_be_imported_are_named_at_once():
    nodes = [
        node("Relux", ["x"], ["a"]),
        node("ImageDecoder", ["a"], ["b"]),
        local("Mine", ["b"], ["y"]),
    ]
    with pytest.raises(NotImplementedError) as caught:
        tenon.onnx.load(model(nodes, [value("x", "float32", [1])], ["y"]))
    text = str(caught.value)
    assert "Relux: there is none in opset 21; did you mean `Relu`" in text
    assert "ImageDecoder (since opset 20): it decodes files of images" in text
    assert "local::Mine: its domain is none of ONNX's" in text


def test_attributes_that_a_version_does_not_have_are_refused():
    data = model([node("Relu", ["x"], ["y"], alpha=1.0)], [value("x", "float32", [1])], ["y"])
    with pytest.raises(
        ValueError, match="expected attributes of the operator's opset 14, got `alpha`"
    ):
        tenon.onnx.load(data)


def test_every_version_of_every_operator_is_imported_or_refused():
    table = tenon.onnx.table()
    assert len(table) == 659
    assert all(("by" in row) != ("refused" in row) for row in table)
    assert sum("refused" in row for row in table) <= 25
