# SPDX-License-Identifier: Apache-2.0
"""Files that are no models, or models that ask for too much: an error that says what, and never more."""

import os
import random

import numpy as np
import pytest
import tenon
import tenon.onnx
from messages import field, function, graph, local, model, node, value
from tenon.onnx.protobuf import varint

SMALL = [value("x", "float32", [2])]


def refused(data, text, error=ValueError):
    with pytest.raises(error, match=text):
        tenon.onnx.load(data)


def test_what_is_no_model():
    refused(b"", "expected an ONNX model with a graph and an ir_version")
    refused(b"\xff" * 64, "no protocol buffer|no ONNX|damaged|expected an ONNX model")
    refused(field(1, 10) + field(7, 5), "another wire type")


def test_versions():
    refused(
        model([], SMALL, ["x"], ir=99), "expected IR version 3 to 14, got 99", NotImplementedError
    )
    refused(
        model([], SMALL, ["x"], opset=99), "expected opset 1 to 28, got 99", NotImplementedError
    )


def test_graphs_in_graphs():
    body = graph([node("Identity", ["x"], ["y"])], [], ["y"])
    for _ in range(80):
        body = graph([node("If", ["x"], ["y"], then_branch=body, else_branch=b"")], [], ["y"])
    refused(field(1, 10) + field(7, body) + field(8, field(2, 21)), "at most 64 deep")


def test_functions_that_call_themselves():
    again = function("F", ["a"], ["b"], [local("F", ["a"], ["b"])])
    refused(
        model([local("F", ["x"], ["y"])], SMALL, ["y"], functions=[again], opsets={"local": 1}),
        "does a function call itself",
    )


@pytest.mark.skipif(not os.environ.get("TENON_TEST_EXHAUSTIVE"), reason="evaluates a million nodes")
def test_functions_that_multiply():
    chain = [function("F0", ["a"], ["b"], [node("Identity", ["a"], ["b"])])]
    for i in range(1, 22):
        calls = [local(f"F{i - 1}", ["a"], ["c"]), local(f"F{i - 1}", ["c"], ["b"])]
        chain.append(function(f"F{i}", ["a"], ["b"], calls))
    refused(
        model([local("F21", ["x"], ["y"])], SMALL, ["y"], functions=chain, opsets={"local": 1}),
        "expected at most 1048576 nodes",
    )


def test_names_and_axes():
    refused(
        model([node("Relu" * 20000, ["x"], ["y"])], SMALL, ["y"]), "names of at most 65536 bytes"
    )
    refused(model([], [value("x", "float32", [1] * 40)], ["x"]), "at most 32 axes")


def sized(*shape, data=b""):
    """A model with an initializer of this shape."""
    tensor = (
        b"".join(field(1, size) for size in shape) + field(2, 1) + field(8, "w") + field(9, data)
    )
    return field(1, 10) + field(7, graph([], [], ["w"]) + field(5, tensor)) + field(8, field(2, 21))


def test_sizes_of_tensors():
    refused(sized(4, data=b"\0" * 12), "tensor `w`: expected 16 bytes for its shape, got 12")
    refused(sized(2**62, 2**62), "does not fit into 63 bits")
    refused(sized(-1), "expected sizes of at least 0, got -1")
    refused(sized(2**40), "expected 4398046511104 bytes for its shape, got 0")


def test_large_known_values_are_not_made():
    shape = {"shape": np.array([2**20, 2**20])}
    nodes = [node("ConstantOfShape", ["shape"], ["big"]), node("Shape", ["big"], ["y"])]
    assert (
        tenon.onnx.load(model(nodes, SMALL, ["y"], shape))(tenon.zeros([2])).numpy().tolist()
        == [2**20] * 2
    )
    numbers = {"a": np.array(0), "b": np.array(2**40), "c": np.array(1)}
    refused(
        model([node("Range", ["a", "b", "c"], ["y"])], SMALL, ["y"], numbers),
        "at most 2\\^28 numbers",
    )


def test_rounds_without_an_end():
    body = graph([node("Identity", ["g"], ["h"])], [value("i", "int64"), value("g", "bool")], ["h"])
    data = model([node("Loop", ["", ""], [], body=body)], SMALL, ["x"])
    refused(data, "more than 65536 rounds", NotImplementedError)


def test_names_that_nothing_made():
    refused(
        model([node("Relu", ["nothing"], ["y"])], SMALL, ["y"]),
        "expected input `nothing` to be made",
    )
    refused(model([], SMALL, ["y"]), "expected result `y` to be made")


def test_damaged_files_raise_or_load():
    """A thousand damaged copies: bytes changed, cut off, repeated."""
    whole = model(
        [
            node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
            node("Relu", ["a"], ["y"], name="relu"),
        ],
        [value("x", "float32", [1, 2, 4, 4])],
        ["y"],
        {"w": np.ones((3, 2, 3, 3), np.float32)},
    )
    rng = random.Random(7)
    loaded = 0
    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            match rng.randrange(3):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randint(1, 9)]
                case _:
                    data[at:at] = varint(rng.getrandbits(rng.randint(1, 63)))
        try:
            tenon.onnx.load(bytes(data))
            loaded += 1
        except (ValueError, TypeError, IndexError, NotImplementedError):
            pass
    assert 0 < loaded < 1000
