# SPDX-License-Identifier: Apache-2.0
"""The forward passes of _training_models.py as graphs for ONNX Runtime, which runs graphs and trains none."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes in a chain, each of which takes what the one before gives: `last`."""

    def __init__(self, values):
        self.nodes, self.last, self.values = [], "x", values
        self.weights = {
            name: numpy_helper.from_array(value, name) for name, value in values.items()
        }

    def add(self, operator, *others, **attributes):
        out = f"y{len(self.nodes)}"
        node = helper.make_node(operator, [self.last, *others], [out], **attributes)
        self.nodes.append(node)
        self.last = out
        return out

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.weights)}"
        self.weights[name] = numpy_helper.from_array(np.asarray(value, dtype), name)
        return name

    def linear(self, name):
        self.add("Gemm", f"{name}.weight", f"{name}.bias", transB=1)

    def linear_of_rows(self, name):
        """Of tensors with more axes than two, which Gemm does not take."""
        self.add("MatMul", self.constant(self.values[f"{name}.weight"].T.copy()))
        self.add("Add", f"{name}.bias")

    def convolve(self, name, stride=1, padding=0):
        bias = [f"{name}.bias"] if f"{name}.bias" in self.values else []
        self.add("Conv", f"{name}.weight", *bias, strides=[stride] * 2, pads=[padding] * 4)

    def batch_norm(self, name):
        scale = self.values[f"{name}.weight"]
        mean, variance = self.constant(np.zeros_like(scale)), self.constant(np.ones_like(scale))
        self.add("BatchNormalization", f"{name}.weight", f"{name}.bias", mean, variance)

    def session(self, shape, threads):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)
        used = {name for node in self.nodes for name in node.input}
        weights = [weight for name, weight in self.weights.items() if name in used]
        graph = helper.make_graph(self.nodes, "forward", [x], [y], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return onnxruntime.InferenceSession(model.SerializeToString(), options)


def mlp(graph, _shape):
    graph.linear("0")
    graph.add("Relu")
    graph.linear("2")


def lenet(graph, _shape):
    for name, padding in (("0", 2), ("3", 0)):
        graph.convolve(name, padding=padding)
        graph.add("Relu")
        graph.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    graph.add("Flatten")
    for name in ("7", "9"):
        graph.linear(name)
        graph.add("Relu")
    graph.linear("11")


def resnet18(graph, _shape):
    graph.convolve("0", 2, 3)
    graph.batch_norm("1")
    graph.add("Relu")
    graph.add("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for index in range(8):
        name, block = str(4 + index), graph.last
        stride = 2 if index in (2, 4, 6) else 1
        graph.convolve(f"{name}.conv1", stride, 1)
        graph.batch_norm(f"{name}.norm1")
        graph.add("Relu")
        graph.convolve(f"{name}.conv2", 1, 1)
        graph.batch_norm(f"{name}.norm2")
        if stride == 2:
            out, graph.last = graph.last, block
            graph.convolve(f"{name}.shortcut.0", 2)
            graph.batch_norm(f"{name}.shortcut.1")
            block = out
        graph.add("Add", block)
        graph.add("Relu")
    graph.add("GlobalAveragePool")
    graph.add("Flatten")
    graph.linear("14")


def gpt2_block(graph, shape):
    batch, length, size = shape
    heads = 12

    def norm(name):
        graph.add("LayerNormalization", f"{name}.weight", f"{name}.bias", axis=-1, epsilon=1e-5)

    norm("norm1")
    graph.linear_of_rows("qkv")
    graph.add("Reshape", graph.constant([batch, length, 3, heads, size // heads], np.int64))
    parts = graph.last
    graph.add("Gather", graph.constant(0, np.int64), axis=2)
    query = graph.add("Transpose", perm=[0, 2, 1, 3])
    graph.last = parts
    graph.add("Gather", graph.constant(2, np.int64), axis=2)
    value = graph.add("Transpose", perm=[0, 2, 1, 3])
    graph.last = parts
    graph.add("Gather", graph.constant(1, np.int64), axis=2)
    key = graph.add("Transpose", perm=[0, 2, 3, 1])
    graph.last = query
    graph.add("MatMul", key)
    graph.add("Mul", graph.constant((size // heads) ** -0.5))
    hidden = np.triu(np.full((length, length), -np.inf, np.float32), 1)
    graph.add("Add", graph.constant(hidden))
    graph.add("Softmax", axis=-1)
    graph.add("MatMul", value)
    graph.add("Transpose", perm=[0, 2, 1, 3])
    graph.add("Reshape", graph.constant([batch, length, size], np.int64))
    graph.linear_of_rows("out")
    middle = graph.add("Add", "x")
    norm("norm2")
    graph.linear_of_rows("up")
    up = graph.last
    # GELU by tanh, as ONNX Runtime recognises it to run it as one kernel.
    graph.add("Pow", graph.constant(3.0))
    graph.add("Mul", graph.constant(0.044715))
    graph.add("Add", up)
    graph.add("Mul", graph.constant((2 / np.pi) ** 0.5))
    graph.add("Tanh")
    graph.add("Add", graph.constant(1.0))
    factor, graph.last = graph.last, up
    graph.add("Mul", graph.constant(0.5))
    graph.add("Mul", factor)
    graph.linear_of_rows("down")
    graph.add("Add", middle)


def lstm(graph, shape):
    def gates(name):  # input, forget, cell, output becomes input, output, forget, cell
        enter, forget, new, leave = np.split(graph.values[f"lstm.{name}_l0"], 4)
        return np.concatenate([enter, leave, forget, new])[None]

    bias = np.concatenate([gates("bias_ih"), gates("bias_hh")], 1)
    weights = [graph.constant(each) for each in (gates("weight_ih"), gates("weight_hh"), bias)]
    graph.add("LSTM", *weights, hidden_size=graph.values["head.weight"].shape[1])
    graph.add("Gather", graph.constant(shape[0] - 1, np.int64), axis=0)
    graph.add("Squeeze", graph.constant([0], np.int64))
    graph.linear("head")


def training_step(*_):
    return None


def forward_step(_library, work, values, x, threads):
    graph = Graph(values)
    models = {model.__name__: model for model in (mlp, lenet, resnet18, gpt2_block, lstm)}
    models[work.model.__name__](graph, x.shape)
    session = graph.session(x.shape, threads)
    return lambda: session.run(None, {"x": x})[0]
