# SPDX-License-Identifier: Apache-2.0
"""Linear algebra: Tenon beside NumPy and PyTorch.

    python linear_algebra.py [--quick] [--only svd] [--threads 1] [--json results.json]

Tenon and NumPy use OpenBLAS, PyTorch MKL.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np
from _libraries import Case, limit_threads, measure, start
from _report import Report, parser


@dataclasses.dataclass(frozen=True)
class Function:
    """A call as text: `x` is an array of `shape`, `lib` the library. `kind` of the array: "real",
    "complex", "positive" for positive definite matrices, "invertible"."""

    text: str
    shape: tuple
    kind: str = "real"
    dtype: str = "float32"


def matrices(text: str, kind: str = "invertible") -> dict[str, Function]:
    name = text.partition("(")[0].rpartition(".")[2]
    return {
        f"{name} 64x64": Function(text, (64, 64), kind),
        f"{name} 512x512": Function(text, (512, 512), kind),
        f"{name} 1000 of 8x8": Function(text, (1000, 8, 8), kind),
    }


FUNCTIONS = {
    **matrices("lib.linalg.inv(x)"),
    **matrices("lib.linalg.solve(x, x)"),
    **matrices("lib.linalg.det(x)"),
    **matrices("lib.linalg.cholesky(x)", "positive"),
    **matrices("lib.linalg.qr(x)"),
    **matrices("lib.linalg.eigh(x)", "positive"),
    **matrices("lib.linalg.svd(x)"),
}
QUICK = ("inv 512x512", "svd 64x64")


def array_of(function: Function) -> np.ndarray:
    generator = np.random.default_rng(1)
    x = generator.standard_normal(function.shape)
    if function.kind == "complex":
        x = x + 1j * generator.standard_normal(function.shape)
        return x.astype("complex64" if function.dtype == "float32" else "complex128")
    if function.kind == "invertible":
        x = x + 4 * np.sqrt(function.shape[-1]) * np.eye(function.shape[-1])
    if function.kind == "positive":
        x = x @ x.swapaxes(-1, -2) / function.shape[-1] + np.eye(function.shape[-1])
    return x.astype(function.dtype)


def build(library: str, case: Case, options):
    """What a case is in a library's process."""
    return call_of(FUNCTIONS[case.parameters["function"]], library, options)


def call_of(function: Function, library: str, options):
    """The function's call, with its array made, in a library's process."""
    module = start(library, options.threads)
    values = array_of(function)
    if library == "torch":
        values = module.from_numpy(values)
    elif library == "tenon":
        values = module.tensor(values)
    return eval(f"lambda: {function.text}", {"lib": module, "x": values})


def main() -> None:
    options = parser(__doc__, rounds=7, threads=0, peers=("numpy", "torch")).parse_args()
    names = QUICK if options.quick else FUNCTIONS
    names = [name for name in names if re.search(options.only, name)]
    options.only = ""
    report = Report("linear_algebra", options)
    options.threads = options.threads or 1
    limit_threads(options.threads)
    cases = [
        Case(
            name,
            f"{options.threads} thread{'s' * (options.threads > 1)}",
            # Signs of vectors are arbitrary: tests/ops/test_linalg.py compares their products.
            tolerance=np.inf if re.match("qr|svd|eigh", name) else 1e-3,
            parameters={"function": name},
        )
        for name in names
    ]
    measure(cases, build, options, report)
    report.close()


if __name__ == "__main__":
    main()
