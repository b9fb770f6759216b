# SPDX-License-Identifier: Apache-2.0
"""The forward passes of _training_models.py as graphs for ONNX Runtime, which runs graphs and trains none."""

from __future__ import annotations

import onnxruntime
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes in a chain, each of which takes what the one before gives."""

    def __init__(self, values):
        self.nodes, self.last = [], "x"
        self.weights = [numpy_helper.from_array(value, name) for name, value in values.items()]

    def add(self, operator, *others, **attributes):
        out = f"y{len(self.nodes)}"
        node = helper.make_node(operator, [self.last, *others], [out], **attributes)
        self.nodes.append(node)
        self.last = out

    def linear(self, name):
        self.add("Gemm", f"{name}.weight", f"{name}.bias", transB=1)

    def session(self, shape, threads):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "forward", [x], [y], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return onnxruntime.InferenceSession(model.SerializeToString(), options)


def mlp(graph):
    graph.linear("0")
    graph.add("Relu")
    graph.linear("2")


def lenet(graph):
    for name, padding in (("0", 2), ("3", 0)):
        graph.add("Conv", f"{name}.weight", f"{name}.bias", pads=[padding] * 4)
        graph.add("Relu")
        graph.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    graph.add("Flatten")
    for name in ("7", "9"):
        graph.linear(name)
        graph.add("Relu")
    graph.linear("11")


def training_step(*_):
    return None


def forward_step(_library, work, values, x, threads):
    graph = Graph(values)
    {"mlp": mlp, "lenet": lenet}[work.model.__name__](graph)
    session = graph.session(x.shape, threads)
    return lambda: session.run(None, {"x": x})[0]
