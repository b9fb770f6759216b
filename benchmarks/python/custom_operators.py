# SPDX-License-Identifier: Apache-2.0
"""What an operator of one's own costs: SwiGLU in Tenon's ways of defining it beside PyTorch's, in one run.

    python custom_operators.py [--rounds 15] [--json results.json]

Every way computes the same on the same data, which is checked first; a call is timed, and a call with its
backward pass, each beside torch.library.custom_op. Below: lines of code of the same operator, without blank
lines and comments. The programs that are counted lie in custom_operators/; those in Python are the ones that
are timed.
"""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import tenon
from _protocol import interleave
from _report import Report, parser
from tenon.utils import cpp_extension

tenon.set_num_threads(1)
try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

FOLDER = pathlib.Path(__file__).with_name("custom_operators")
SHAPES = [(16,), (256, 256)]
PEER = "torch custom_op"

# What is counted, and its name in the table.
PROGRAMS = {
    "tenon, expression": "tenon_expression.yaml",
    "tenon, Python, composite": "tenon_python.py",
    "tenon, Python, with kernel": "tenon_python_kernel.py",
    "tenon, C++": "tenon_cpp.cpp",
    "torch, Python": "torch_python.py",
    "torch, C++": "torch_cpp.cpp",
    "paddle, C++": "paddle_cpp.cpp",
}


def program(name: str):
    """A file of custom_operators/ as a module."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ways() -> dict:
    """Name: (library, function of x and g). A further way of defining SwiGLU is a further line here."""
    result = {
        "tenon built-ins": (tenon, lambda x, g: tenon.silu(x) * g),
        "tenon operator file": (
            tenon,
            tenon.ops.load(FOLDER / "tenon_expression.yaml").swiglu_expression,
        ),
        "tenon op, composite": (tenon, program("tenon_python").swiglu),
        "tenon op, kernel and gradient": (tenon, program("tenon_python_kernel").swiglu),
    }
    if cpp_extension.is_build_available():
        extension = cpp_extension.load("bench_cpp", [FOLDER / "tenon_cpp.cpp"])
        result["tenon C++ extension"] = (tenon, extension.swiglu)
    if torch:
        result["torch built-ins"] = (torch, lambda x, g: torch.nn.functional.silu(x) * g)
        result[PEER] = (torch, program("torch_python").swiglu)
    if torch and cpp_extension.is_build_available():
        from torch.utils.cpp_extension import load

        load("bench_cpp_torch", [str(FOLDER / "torch_cpp.cpp")], extra_cflags=["-O2"])
        result["torch C++ extension"] = (torch, torch.ops.bench.swiglu_cpp)
    return result


def inputs(library, arrays, requires_grad):
    made = [library.from_numpy(array.copy()) for array in arrays]
    return [x.requires_grad_() for x in made] if requires_grad else made


def training_step(function, x, g, seed):
    x.grad = g.grad = None
    function(x, g).backward(seed)


def check(functions, arrays):
    """All ways agree, results and gradients."""
    expected = None
    for name, (library, function) in functions.items():
        x, g = inputs(library, arrays, True)
        y = function(x, g)
        y.sum().backward()
        got = [y.detach().numpy(), x.grad.numpy(), g.grad.numpy()]
        expected = expected or got
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)


def measure_ways(report: Report, functions: dict, arrays: list, rounds: int) -> None:
    """A row for each way, beside the peer."""
    forward, both = {}, {}
    for name, (library, function) in functions.items():
        x, g = inputs(library, arrays, False)
        forward[name] = lambda f=function, x=x, g=g: f(x, g)
        x, g = inputs(library, arrays, True)
        seed = library.ones(arrays[0].shape)
        both[name] = lambda f=function, x=x, g=g, seed=seed: training_step(f, x, g, seed)
    shape = arrays[0].shape
    for what, calls in (("forward", forward), ("with backward", both)):
        times = interleave(calls, rounds)
        for name in calls:
            pair = times.between(name, *({PEER} - {name}))
            report.add(name, pair, group=f"{what}, shape {shape}", shape=shape, what=what)


def lines_of_code(path: pathlib.Path) -> int:
    """Lines that are neither blank nor comments."""
    comment = "// " if path.suffix == ".cpp" else "# "
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith(comment))


def main() -> None:
    options = parser(__doc__, rounds=15).parse_args()
    functions = {name: way for name, way in ways().items() if options.only in name}
    report = Report("custom_operators", options, ["way", PEER])
    for shape in SHAPES:
        random = np.random.default_rng(0)
        arrays = [random.standard_normal(shape).astype(np.float32) for _ in range(2)]
        check(functions, arrays)
        measure_ways(report, functions, arrays, options.rounds)
    for name, file in PROGRAMS.items():
        report.figures(name, {"way": lines_of_code(FOLDER / file)}, "", group="lines of code")
    report.close()


if __name__ == "__main__":
    main()
