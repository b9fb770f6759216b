# SPDX-License-Identifier: Apache-2.0
"""What an operator of one's own costs: SwiGLU in Tenon's ways of defining it beside PyTorch's, in one run.

    python custom_operators.py [--rounds 15] [--json results.json]

Every way computes the same on the same data, which is checked first. Times are medians of microseconds
for a call, and for a call with its backward pass; ratios are to torch.library.custom_op of the same round.
Below: lines of code of the same operator, without blank lines and comments. The programs that are counted
lie in custom_operators/; those in Python are the ones that are timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import statistics
import time

import numpy as np
import tenon
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


def measure(calls: dict, rounds: int) -> dict[str, list[float]]:
    """Microseconds for each call, one number a round; the ways take turns within a round."""
    counts = {}
    for name, call in calls.items():
        start = time.perf_counter()
        for _ in range(30):
            call()
        counts[name] = max(10, int(0.01 / ((time.perf_counter() - start) / 30)))
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - start) / counts[name] * 1e6)
    return times


def measure_ways(functions: dict, arrays: list, rounds: int) -> dict:
    """Name: medians, and ratios to the peer of medians and of best rounds."""
    forward, both = {}, {}
    for name, (library, function) in functions.items():
        x, g = inputs(library, arrays, False)
        forward[name] = lambda f=function, x=x, g=g: f(x, g)
        x, g = inputs(library, arrays, True)
        seed = library.ones(arrays[0].shape)
        both[name] = lambda f=function, x=x, g=g, seed=seed: training_step(f, x, g, seed)
    rows = {name: {} for name in functions}
    for what, calls in (("forward", forward), ("with_backward", both)):
        times = measure(calls, rounds)
        for name, row in rows.items():
            row[f"{what}_us"] = statistics.median(times[name])
            if PEER in times:
                pairs = zip(times[name], times[PEER])
                row[f"{what}_ratio"] = statistics.median(a / b for a, b in pairs)
                row[f"{what}_best_ratio"] = min(times[name]) / min(times[PEER])
    return rows


def show(shape: tuple, rows: dict) -> None:
    print(f"shape {shape}: us, and ratio to {PEER} (medians, best rounds)")
    print(f"{'':32}{'forward':>28}{'with backward':>28}")
    for name, row in rows.items():
        cells = ""
        for what in ("forward", "with_backward"):
            cells += f"{row[what + '_us']:12.2f}"
            for ratio in ("ratio", "best_ratio"):
                cells += f"{row[f'{what}_{ratio}']:8.2f}" if f"{what}_{ratio}" in row else " " * 8
        print(f"{name:32}{cells}")


def lines_of_code(path: pathlib.Path) -> int:
    """Lines that are neither blank nor comments."""
    comment = "// " if path.suffix == ".cpp" else "# "
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith(comment))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json")
    options = parser.parse_args()
    functions = ways()
    results = {"times": {}, "lines": {}}
    for shape in SHAPES:
        random = np.random.default_rng(0)
        arrays = [random.standard_normal(shape).astype(np.float32) for _ in range(2)]
        check(functions, arrays)
        results["times"][str(shape)] = rows = measure_ways(functions, arrays, options.rounds)
        show(shape, rows)
    print("lines of code")
    for name, file in PROGRAMS.items():
        results["lines"][name] = lines_of_code(FOLDER / file)
        print(f"{name:32}{results['lines'][name]:10}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
