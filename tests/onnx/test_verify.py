# SPDX-License-Identifier: Apache-2.0
"""verify, bisect and check_shapes: beside a stand-in that gets one value wrong, and beside saved results."""

import sys

import numpy as np
import pytest
import standin_runtime
import tenon
import tenon.onnx
from messages import field, model, node, tensor, value
from tenon import nn

F32 = np.float32
NAMES = ["a", "b", "c", "y"]


def net(shape=(2, 3)):
    """y = relu(x w) + relu(x w) * x, with an open batch where the shape has a name."""
    nodes = [
        node("MatMul", ["x", "w"], ["a"], name="product"),
        node("Relu", ["a"], ["b"]),
        node("Mul", ["b", "x"], ["c"], name="gate"),
        node("Add", ["b", "c"], ["y"]),
    ]
    weights = {"w": np.arange(9, dtype=F32).reshape(3, 3) / 9}
    return model(nodes, [value("x", "float32", shape)], ["y"], weights)


@pytest.fixture
def runtime(monkeypatch):
    def use(wrong=None, by=0.5):
        monkeypatch.setitem(sys.modules, "onnxruntime", standin_runtime.make(wrong, by))

    use()
    return use


def test_equal_results(runtime):
    found = tenon.onnx.verify(net())
    assert found and found.passed and len(found.sets) == 1
    (one,) = found.sets[0][1]
    assert (one.name, one.dtype, one.shape, one.size) == ("y", "float32", (2, 3), 6)
    assert str(found).startswith(
        "equal, beside onnxruntime, rtol 0.001, atol 1e-05\n  y: float32[2, 3]"
    )


def test_a_wrong_result(runtime):
    runtime("y")
    found = tenon.onnx.verify(net(), {"x": tenon.zeros(2, 3)})
    assert not found
    text = "y: float32[2, 3]: 6 of 6 elements differ, first at [0, 0]: expected 0.5, got 0; largest error 0.5, relative 1"
    assert text in str(found)
    # A tolerance above that error accepts it.
    assert tenon.onnx.verify(net(), {"x": tenon.zeros(2, 3)}, atol=0.6)


def test_open_sizes_are_given(runtime):
    data = net(("batch", 3))
    assert tenon.onnx.verify(data, sizes={"batch": 5}).sets[0][1][0].shape == (5, 3)
    with pytest.raises(
        ValueError, match=r"size of axis 0 of input 'x' is open; give it by sizes=\{'batch'"
    ):
        tenon.onnx.verify(data)


def test_inputs_and_references_that_are_not_there(runtime, monkeypatch):
    with pytest.raises(ValueError, match=r"expected names of inputs \(x\), got 'z'"):
        tenon.onnx.verify(net(), {"z": tenon.zeros(2, 3)})
    with pytest.raises(ValueError, match="expected reference 'onnxruntime' or 'onnx', got 'tf'"):
        tenon.onnx.verify(net(), reference="tf")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match="needs the package onnxruntime, which is not there"):
        tenon.onnx.verify(net())


def save(folder, inputs, outputs):
    folder.mkdir()
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for index, array in enumerate(arrays):
            (folder / f"{kind}_{index}.pb").write_bytes(tensor("any", array))


def test_saved_results(tmp_path):
    x = np.ones((2, 3), F32)
    want = tenon.onnx.load(net())(tenon.tensor(x)).numpy()
    save(tmp_path / "test_data_set_0", [x], [want])
    save(tmp_path / "test_data_set_1", [x], [want + 1])
    assert tenon.onnx.verify(net(), data=tmp_path / "test_data_set_0")
    found = tenon.onnx.verify(net(), data=tmp_path)
    assert [(name, rows[0].passed) for name, rows in found.sets] == [
        ("test_data_set_0", True),
        ("test_data_set_1", False),
    ]
    assert np.array_equal(
        tenon.onnx.read_tensor(tmp_path / "test_data_set_0/input_0.pb").numpy(), x
    )
    (tmp_path / "test_data_set_0/output_0.pb").write_bytes(field(1, 3)[:1])
    with pytest.raises(ValueError, match="expected a tensor of ONNX"):
        tenon.onnx.verify(net(), data=tmp_path)
    with pytest.raises(ValueError, match="expected a folder"):
        tenon.onnx.verify(net(), data=tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="expected output_0.pb in"):
        tenon.onnx.verify(net(), data=tmp_path / "empty")


def test_another_dtype_and_shape():
    from tenon.onnx._differences import difference

    x = tenon.zeros(2)
    assert difference("y", x, np.zeros(2), 0, 0).problem == "expected dtype float64, got float32"
    assert (
        difference("y", x, np.zeros((1, 2), F32), 0, 0).problem == "expected shape [1, 2], got [2]"
    )
    odd = tenon.tensor([float("nan"), float("inf"), float("-inf")])
    assert difference("y", odd, odd.numpy(), 0, 0).passed
    found = difference("y", odd, np.array([0, np.inf, np.inf], F32), 0, 0)
    assert found.differing == 2 and found.absolute == float("inf")
    assert difference("y", tenon.tensor([1, 2]), np.array([1, 3]), 1, 1).differing == 1


@pytest.mark.parametrize("wrong", NAMES)
def test_bisect_names_the_node(runtime, wrong):
    runtime(wrong)
    found = tenon.onnx.bisect(net())
    assert found.result.name == wrong and found.alone is not None and not found.alone.passed
    steps = ['node 0 "product" (MatMul)', "node 1 (Relu)", 'node 2 "gate" (Mul)', "node 3 (Add)"]
    assert found.step == steps[NAMES.index(wrong)]
    assert str(found).startswith(f"{found.step} differs\n  {wrong}: float32[2, 3]: 6 of 6")


def test_bisect_of_what_is_equal(runtime):
    seen = []
    assert tenon.onnx.bisect(net(), progress=lambda *counts: seen.append(counts)) is None
    assert seen == [(4, 4)]


def test_bisect_of_a_program(runtime):
    layer = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).eval()
    with tenon.no_grad():
        program = tenon.export(layer, tenon.randn(2, 4))
    assert tenon.onnx.verify(program) and tenon.onnx.bisect(program) is None
    runtime("relu.relu")
    found = tenon.onnx.bisect(program)
    assert "(tenon::relu)" in found.step and found.result.name == "relu.relu"


def test_shapes():
    y = "node 3 (Add), y: expected float32[], got float32[2, 3]"  # as the model says
    found = tenon.onnx.check_shapes(net(), infer=False)
    assert not found and (found.compared, found.total) == (1, 4)
    assert str(found) == f"1 of 1 types differ; the model has 4 values\n  {y}"
    said = field(13, value("b", "float32", [2, 4])) + field(13, value("c", "float64", ["n", 3]))
    data = net()
    # A graph in two parts is one: the second adds what is said of values.
    found = tenon.onnx.check_shapes(data + field(7, said), infer=False)
    assert [str(each) for each in found.differences] == [
        "node 1 (Relu), b: expected float32[2, 4], got float32[2, 3]",
        'node 2 "gate" (Mul), c: expected float64[?, 3], got float32[2, 3]',
        y,
    ]


def test_the_importer_reads_a_graph_in_parts_as_protocol_buffers_do():
    data = net()
    more = field(7, field(12, field(1, "b")))
    results = tenon.onnx.load(data + more)(tenon.ones(2, 3))
    assert len(results) == 2
