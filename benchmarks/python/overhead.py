# SPDX-License-Identifier: Apache-2.0
"""What a call costs before any arithmetic: one-element tensors, Tenon beside NumPy and PyTorch.

    python overhead.py [--rounds 21] [--only slice] [--json results.json]

The libraries take turns within each round, so that a machine whose clock changes slows all of them
down. Compare the ratios: of the medians over the rounds, and of the best rounds, which other work on
the machine disturbs least. The times tell you about the machine of the day.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import timeit

import numpy as np
import tenon

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

# name: (Tenon, NumPy or None, PyTorch or None). x, y have one element, w requires grad, m is 2 x 2.
CASES = {
    "x + y": ("x + y", "x + y", "x + y"),
    "add(x, y)": ("add(x, y)", "add(x, y)", "add(x, y)"),
    "x + 1.0": ("x + 1.0", "x + 1.0", "x + 1.0"),
    "x + 1": ("x + 1", "x + 1", "x + 1"),
    "z = x; z += y": ("z = x; z += y",) * 3,
    "x == y": ("x == y", "x == y", "x == y"),
    "exp(x)": ("exp(x)", "exp(x)", "exp(x)"),
    "relu(x)": ("relu(x)", "maximum(x, 0)", "relu(x)"),
    "x.sum()": ("x.sum()", "x.sum()", "x.sum()"),
    "x.reshape(1, 1)": ("x.reshape(1, 1)", "x.reshape(1, 1)", "x.reshape(1, 1)"),
    "m @ m": ("m @ m", "m @ m", "m @ m"),
    "m.T": ("m.T", "m.T", "m.T"),
    "x[0:1]": ("x[0:1]", "x[0:1]", "x[0:1]"),
    "x[0]": ("x[0]", "m[0]", "x[0]"),
    "m[0, 1:]": ("m[0, 1:]", "m[0, 1:]", "m[0, 1:]"),
    "x[0] = 1.0": ("x[0] = 1.0", "x[0] = 1.0", "x[0] = 1.0"),
    "x.shape": ("x.shape", "x.shape", "x.shape"),
    "x.item()": ("x.item()", "x.item()", "x.item()"),
    "zeros(1)": ("zeros(1)", "zeros(1)", "zeros(1)"),
    "tensor([1.0])": ("tensor([1.0])", "tensor([1.0])", "tensor([1.0])"),
    "x.numpy()": ("x.numpy()", None, "x.numpy()"),
    "w + y, recorded": ("w + y", None, "w + y"),
    "w[0:1], recorded": ("w[0:1]", None, "w[0:1]"),
    "10 products, forward and backward": ("chain(w)", None, "chain(w)"),
}


def chain(w):
    z = w
    for _ in range(10):
        z = z * w
    z.backward()


def environments() -> list[tuple[str, dict]]:
    names = {"chain": chain}
    ours = {
        "x": tenon.tensor([1.0]),
        "y": tenon.tensor([2.0]),
        "w": tenon.tensor([1.0], requires_grad=True),
        "m": tenon.ones((2, 2)),
        **{name: getattr(tenon, name) for name in ("add", "exp", "relu", "zeros", "tensor")},
    }
    numpy = {
        "x": np.ones(1, np.float32),
        "y": np.ones(1, np.float32),
        "m": np.ones((2, 2), np.float32),
        "tensor": np.array,
        **{name: getattr(np, name) for name in ("add", "exp", "maximum", "zeros")},
    }
    result = [("tenon", {**names, **ours}), ("numpy", {**names, **numpy})]
    if torch:
        theirs = {
            "x": torch.ones(1),
            "y": torch.ones(1),
            "w": torch.ones(1, requires_grad=True),
            "m": torch.ones(2, 2),
            **{name: getattr(torch, name) for name in ("add", "exp", "relu", "zeros", "tensor")},
        }
        result.append(("torch", {**names, **theirs}))
    return result


def measure(statements: list[tuple[str, timeit.Timer]], rounds: int) -> dict[str, list[float]]:
    """Nanoseconds per call, a list over the rounds for each library."""
    counts = {}
    for name, timer in statements:
        seconds = timer.timeit(200) / 200
        counts[name] = max(20, int(0.004 / seconds))
    times = {name: [] for name, _ in statements}
    for _ in range(rounds):
        for name, timer in statements:
            times[name].append(timer.timeit(counts[name]) / counts[name] * 1e9)
    return times


def import_times(rounds: int) -> dict[str, list[float]]:
    """Nanoseconds that an import adds to an empty interpreter."""
    codes = {"": "pass", "tenon": "import tenon", "numpy": "import numpy"}
    if torch:
        codes["torch"] = "import torch"
    times = {name: [] for name in codes}
    for i in range(rounds):
        for name, code in codes.items():
            if name == "torch" and i >= 3:  # a second each
                times[name].append(times[name][i % 3])
            else:
                times[name].append(spawn(code))
    empty = min(times.pop(""))
    return {name: [value - empty for value in values] for name, values in times.items()}


def spawn(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
    return (time.perf_counter() - start) * 1e9


def summary(times: dict[str, list[float]]) -> dict:
    ours = times["tenon"]
    row = {f"{name}_ns": statistics.median(values) for name, values in times.items()}
    row["tenon_best_ns"] = min(ours)
    for name, values in times.items():
        if name != "tenon":
            row[f"to_{name}"] = statistics.median(a / b for a, b in zip(ours, values))
            row[f"best_to_{name}"] = min(ours) / min(values)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    libraries = environments()
    results = {}
    print(f"{'':36}{'median':>27}{'best':>9}{'ratio to numpy':>18}{'ratio to torch':>18}")
    print(
        f"{'':36}{'tenon':>9}{'numpy':>9}{'torch':>9}{'tenon':>9}" + f"{'median':>9}{'best':>9}" * 2
    )
    for case, codes in CASES.items():
        if options.only not in case:
            continue
        statements = [
            (name, timeit.Timer(code, globals=names))
            for (name, names), code in zip(libraries, codes)
            if code
        ]
        results[case] = summary(measure(statements, options.rounds))
        show(case, results[case], 1, "ns")
    if options.only in "import":
        results["import"] = summary(import_times(min(options.rounds, 11)))
        show("import", results["import"], 1e6, "ms")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


def show(case: str, row: dict, unit: float, unit_name: str) -> None:
    def cell(key, width, scale, digits):
        return f"{row[key] / scale:{width}.{digits}f}" if key in row else " " * (width - 1) + "-"

    times = ("tenon_ns", "numpy_ns", "torch_ns", "tenon_best_ns")
    ratios = ("to_numpy", "best_to_numpy", "to_torch", "best_to_torch")
    line = "".join(cell(key, 9, unit, 1) for key in times)
    line += "".join(cell(key, 9, 1, 2) for key in ratios)
    print(f"{case:34}{unit_name:2}{line}")


if __name__ == "__main__":
    main()
