# SPDX-License-Identifier: Apache-2.0
"""What a call costs before any arithmetic: one-element tensors, Tenon beside its peers.

    python overhead.py [--rounds 21] [--only "x + y"] [--peers numpy,torch] [--json results.json]

x and y have one element, w has one and requires grad, m is 2 x 2.
"""

from __future__ import annotations

import timeit

from _libraries import Built, Case, compare, start
from _report import parser

# Name: (code, and in NumPy, PyTorch, Paddle and JAX where that differs; None: it lacks the case).
CODES = {
    "x + y": ("x + y",),
    "add(x, y)": ("add(x, y)",),
    "x + 1.0": ("x + 1.0",),
    "x + 1": ("x + 1",),
    "z = x; z += y": ("z = x; z += y", {"paddle": "z = x; z.add_(y)", "jax": None}),
    "x == y": ("x == y",),
    "exp(x)": ("exp(x)",),
    "relu(x)": ("relu(x)", {"numpy": "maximum(x, 0)"}),
    "x.sum()": ("x.sum()",),
    "x.reshape(1, 1)": ("x.reshape(1, 1)", {"paddle": "x.reshape((1, 1))"}),
    "m @ m": ("m @ m",),
    "m.T": ("m.T",),
    "m.transpose(0, 1)": (
        "m.transpose(0, 1)",
        {"numpy": "m.swapaxes(0, 1)", "paddle": "m.transpose((1, 0))", "jax": "m.swapaxes(0, 1)"},
    ),
    "m.permute(1, 0)": (
        "m.permute(1, 0)",
        {"numpy": "m.transpose(1, 0)", "paddle": "m.transpose((1, 0))", "jax": "m.transpose(1, 0)"},
    ),
    "m.flatten()": ("m.flatten()", {"numpy": "m.ravel()", "jax": "m.ravel()"}),  # views, all
    "x.squeeze()": ("x.squeeze()",),
    "x.unsqueeze(0)": ("x.unsqueeze(0)", {"numpy": "x[None]", "jax": "x[None]"}),
    "x[0:1]": ("x[0:1]",),
    "x[0]": ("x[0]", {"numpy": "m[0]"}),  # a view, where NumPy would make a number
    "m[0]": ("m[0]",),
    "m[0, 1:]": ("m[0, 1:]",),
    "x[0] = 1.0": ("x[0] = 1.0", {"jax": None}),
    "x.shape": ("x.shape",),
    "x.item()": ("x.item()",),
    "zeros(1)": ("zeros(1)", {"paddle": "zeros((1,))"}),
    "ones(1)": ("ones(1)", {"paddle": "ones((1,))"}),
    "empty(1)": ("empty(1)", {"paddle": "empty((1,))"}),
    "tensor([1.0])": ("tensor([1.0])",),
    "x.numpy()": ("x.numpy()", {"numpy": None, "jax": "asarray(x)"}),
    "w + y, recorded": ("w + y", {"numpy": None, "jax": None}),
    "w[0:1], recorded": ("w[0:1]", {"numpy": None, "jax": None}),
    "10 products, forward and backward": (
        "chain(w)",
        {"numpy": None, "jax": "chain_gradient(x)"},
    ),
}
CHECKED = ("x + y", "exp(x)", "relu(x)", "x.sum()", "m @ m", "m[0, 1:]", "10 products")
CREATION = ("zeros", "ones", "empty")
LENGTH = 10


def product(w):
    z = w
    for _ in range(LENGTH):
        z = z * w
    return z


def chain(w):
    product(w).backward()


def names(library: str, module) -> dict:
    """What the codes name, in a library."""
    one = [1.0]
    if library == "numpy":
        functions = ("add", "exp", "maximum", *CREATION)
        made = {"x": module.ones(1, "float32"), "m": module.ones((2, 2), "float32")}
        made["y"], made["tensor"] = made["x"].copy(), module.array
    elif library == "paddle":
        functions = ("add", "exp", *CREATION)
        made = {name: module.to_tensor(one) for name in "xy"}
        made |= {"m": module.ones((2, 2)), "tensor": module.to_tensor}
        made |= {"w": module.to_tensor(one, stop_gradient=False), "relu": module.nn.functional.relu}
    elif library == "jax":
        import numpy

        functions = ("add", "exp", "array", *CREATION)
        chain_gradient = module.grad(lambda x: product(x)[0])  # eager: jit would time another thing
        made = {"relu": module.nn.relu, "chain_gradient": chain_gradient, "asarray": numpy.asarray}
        module = module.numpy
        made |= {name: module.ones(1) for name in "xy"} | {"m": module.ones((2, 2))}
        made["tensor"] = module.array
    else:
        functions = ("add", "exp", "relu", "tensor", *CREATION)
        made = {name: module.tensor(one) for name in "xy"} | {"m": module.ones((2, 2))}
        made["w"] = module.tensor(one, requires_grad=True)
    return {**{name: getattr(module, name) for name in functions}, **made, "chain": chain}


def onnx_session():
    """The only call that ONNX Runtime has is of a whole graph: here of one addition."""
    import onnxruntime
    from onnx import TensorProto, helper

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])

    node = helper.make_node("Add", ["x", "y"], ["z"])
    graph = helper.make_graph([node], "addition", [value("x"), value("y")], [value("z")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def build(library: str, case: Case, options) -> Built | None:
    if library == "onnxruntime":
        if case.name != "x + y":
            return None
        import numpy

        one = numpy.ones(1, "float32")
        code, values = "run(None, feed)", {"run": onnx_session().run, "feed": {"x": one, "y": one}}
    else:
        code, *others = CODES[case.name]
        code = others[0].get(library, code) if others else code
        if code is None:
            return None
        values = names(library, start(library, options.threads))
    if library == "jax" and "shape" not in code and "item" not in code and "asarray" not in code:
        code = f"({code}).block_until_ready()"  # calls return before they are done
    checked = case.name.startswith(CHECKED) and "chain" not in code
    return Built(
        timeit.Timer(code, globals=values), (lambda: eval(code, values)) if checked else None
    )


if __name__ == "__main__":
    compare("overhead", [Case(name) for name in CODES], build, parser(__doc__).parse_args())
