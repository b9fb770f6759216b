# SPDX-License-Identifier: Apache-2.0
"""What memory costs: a new result beside one that is there already, and blocks made and dropped.

    python memory.py [--quick] [--only "64 MiB"] [--threads 1] [--json results.json]

A library that gives large blocks back to the system pays for every page of its next result; one that
keeps them takes as long for `x + y` as for `add(x, y, out=z)`.
"""

from __future__ import annotations

import importlib
import timeit

import numpy as np
from _libraries import Built, Case, compare
from _report import parser

MIB = 1 << 18  # float32 elements
RESULTS = {"1 MiB": MIB, "16 MiB": 16 * MIB, "64 MiB": 64 * MIB}
BLOCKS = {"64 B": 16, "4 KiB": 1024, **RESULTS}
KINDS = {"x + y": RESULTS, "add(x, y, out=z)": RESULTS, "empty(n), dropped": BLOCKS}

CASES = [
    Case(
        kind,
        size,
        work=None if "empty" in kind else (12 * elements, "B"),
        parameters={"elements": elements, "kind": kind},
    )
    for size, elements in BLOCKS.items()
    for kind, sizes in KINDS.items()
    if size in sizes
]


def build(library: str, case: Case, options) -> object:
    elements, kind = case.parameters["elements"], case.parameters["kind"]
    module = importlib.import_module(library)
    if not hasattr(module, "empty"):
        return None
    if kind == "empty(n), dropped":
        names = {"empty": module.empty, "shape": [elements]}
        if library == "numpy":
            return Built(timeit.Timer("empty(shape, kind)", globals={**names, "kind": np.float32}))
        return Built(timeit.Timer("empty(shape)", globals=names))
    x, y = (np.full(elements, value, np.float32) for value in (1, 2))
    if library != "numpy":
        x, y = module.tensor(x), module.tensor(y)
    if kind == "x + y":
        return lambda: x + y
    z = x + y
    return lambda: module.add(x, y, out=z)


if __name__ == "__main__":
    compare("memory", CASES, build, parser(__doc__, peers=("numpy", "torch")).parse_args())
