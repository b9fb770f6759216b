# SPDX-License-Identifier: Apache-2.0
"""Calls of operators at 1, 10^4 and 10^6 float32 elements, beside NumPy with SciPy, PyTorch and JAX.

    python operators.py [--only sort] [--sizes 1,1e4,1e6] [--threads 1] [--rounds 7] [--json results.json]

A row's ratio is that to the fastest of them. Below the table stand the geometric means, and the rows where
Tenon takes more than 1.5 of the fastest one's time.
"""

from __future__ import annotations

import importlib
import math
import re
import timeit

import numpy as np
from _libraries import Built, Case, limit_threads, measure, start
from _operator_calls import GROUPS, Call
from _report import Report, parser

SLOW = 1.5
CHECKED = 4096  # elements of each result, compared between the libraries


def cases(sizes: list[int], only: str) -> list[Case]:
    return [
        Case(
            name,
            f"{group}, {count:,} elements",
            tolerance=3e-3 if group == "linear algebra" else 1e-4,
            parameters={"operator": name, "family": group, "elements": count},
        )
        for group, calls in GROUPS.items()
        for count in sizes
        for name, call in calls.items()
        if count <= call.largest and re.search(only, name)
    ]


def operands(count: int) -> dict[str, np.ndarray]:
    """What calls name, as NumPy's arrays, equal in every process."""
    random = np.random.default_rng(1)
    side = math.isqrt(count)

    def numbers(values):
        return np.asarray(values, np.float32)

    square = random.normal(size=(side, side))
    return {
        "x": numbers(random.normal(size=count)),
        "y": numbers(random.normal(size=count)),
        "p": numbers(random.uniform(0.1, 3.0, count)),
        "u": numbers(random.uniform(-0.9, 0.9, count)),
        "m": numbers(square),
        "w": numbers(random.normal(size=(side, side)) / math.sqrt(side) + 3.0 * np.eye(side)),
        "spd": numbers(square @ square.T / side + np.eye(side)),
        "i": random.integers(1, 100, count),
        "j": random.integers(1, 100, count),
        "at": random.permutation(count),
        "b": random.random(count) < 0.5,
        "rows": random.integers(0, side, side),
        "along": random.integers(0, side, (side, side)),
        "classes": random.integers(0, side, side),
        "ascending": numbers(np.sort(random.normal(size=max(1, side)))),
        "taps": numbers(random.normal(size=(1, 1, 3))),
    }


def names(library: str, module, count: int) -> dict:
    """What the texts of calls name, in a library."""
    arrays = operands(count)
    if library == "numpy":
        found = {"S": "scipy.special", "L": "numpy.linalg", "FFT": "scipy.fft"}
        made = {"random": np.random.default_rng(1), "add_at": add_at, **arrays}
    elif library == "jax":
        found = {"F": "jax.nn", "S": "jax.scipy.special", "L": "jax.numpy.linalg"}
        found |= {"FFT": "jax.numpy.fft", "draw": "jax.random", "lax": "jax.lax"}
        made = {name: module.numpy.asarray(each) for name, each in arrays.items()}
        made |= {"key": module.random.key(0), "wait": module.block_until_ready}
        module = module.numpy
    elif library == "torch":
        found = {"F": "torch.nn.functional", "S": "torch.special", "L": "torch.linalg"}
        found["FFT"] = "torch.fft"
        made = {name: module.from_numpy(each) for name, each in arrays.items()}
    else:
        found = {"F": "tenon.nn.functional", "L": "tenon.linalg", "FFT": "tenon.fft"}
        made = {name: module.tensor(each) for name, each in arrays.items()}
    modules = {name: importlib.import_module(path) for name, path in found.items()}
    return {"lib": module, "put": put, **modules, **made}


def put(x, at, y):
    x[at] = y
    return x


def add_at(x, at, y):
    out = x.copy()
    np.add.at(out, at, y)
    return out


def build(library: str, case: Case, options) -> Built | None:
    """What a case is in a library's process; None if the library has no such function."""
    call: Call = GROUPS[case.parameters["family"]][case.parameters["operator"]]
    text = call.text_in(library)
    if text is None:
        return None
    values = names(library, start(library, options.threads), case.parameters["elements"])
    if library == "jax":
        text = f"wait({text})"  # calls return before they are done
    try:
        eval(text, values)
    except (AttributeError, NameError):
        if library == "tenon":
            raise
        return None

    def output():
        result = eval(text, values)
        result = result.numpy() if hasattr(result, "numpy") else result
        return np.asarray(result).reshape(-1)[:CHECKED].astype(np.float64)

    return Built(timeit.Timer(text, globals=values), output if call.checked else None)


def summary(results: list[dict]) -> None:
    """The geometric means, and what is slower than the fastest peer by more than half."""
    slow = []
    for count in sorted({each["parameters"]["elements"] for each in results}):
        ratios = []
        for each in results:
            peers = {name: ratio["median"] for name, ratio in each["ratios"].items()}
            if each["parameters"]["elements"] == count and peers:
                ratios.append(max(peers.values()))
                if ratios[-1] > SLOW:
                    peer = max(peers, key=peers.get)
                    slow.append((ratios[-1], each["case"], count, peer))
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            above = sum(ratio > SLOW for ratio in ratios)
            print(
                f"{count:,} elements: geometric mean {mean:.2f} of {len(ratios)}; {above} above {SLOW}"
            )
    for ratio, name, count, peer in sorted(slow, reverse=True):
        print(f"  {ratio:6.2f}  {name}, {count:,} elements ({peer})")


def main() -> None:
    options = parser(__doc__, rounds=7, peers=("numpy", "torch", "jax"))
    options.add_argument("--sizes", help="elements; 1,1e4,1e6 unless given")
    options = options.parse_args()
    sizes = [int(float(each)) for each in (options.sizes or "1,1e4,1e6").split(",")]
    if options.quick and not options.sizes:
        sizes = [10_000]
    limit_threads(options.threads)
    chosen = cases(sizes, options.only)
    options.only = ""
    report = Report("operators", options)
    measure(chosen, build, options, report)
    summary(report.data["results"])
    report.close()


if __name__ == "__main__":
    main()
