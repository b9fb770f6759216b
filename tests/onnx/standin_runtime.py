# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the package onnxruntime, for tests where it is not installed: it computes models by tenon.onnx, and can be told
to get one value wrong."""

import types

import tenon
import tenon.onnx


class SessionOptions:
    pass


class _Named:
    def __init__(self, name):
        self.name = name


def make(wrong=None, by=0.5):
    """The module. `wrong`: the name of a value to which `by` is added before it is returned."""

    class InferenceSession:
        def __init__(self, path, options=None, providers=None):
            self.path = path
            described = tenon.onnx.describe(path)
            self.names = [value["name"] for value in described["inputs"]]
            self.outputs = described["outputs"]

        def get_inputs(self):
            return [_Named(name) for name in self.names]

        def run(self, names, feeds):
            given = {name: tenon.tensor(array) for name, array in feeds.items()}
            shapes = {name: list(value.shape) for name, value in given.items()}
            program = tenon.onnx.load(self.path, shapes=shapes)
            results = program(*(given[name] for name in self.names))
            results = results if isinstance(results, tuple) else (results,)
            found = dict(zip(self.outputs, (each.numpy() for each in results), strict=True))
            if wrong in found:
                found[wrong] = (found[wrong] + by).astype(found[wrong].dtype)
            return [found[name] for name in names or self.outputs]

    module = types.ModuleType("onnxruntime")
    module.__version__ = "standin"
    module.InferenceSession = InferenceSession
    module.SessionOptions = SessionOptions
    return module
