# SPDX-License-Identifier: Apache-2.0
"""Elementary and special functions and the activations made of them: Tenon beside NumPy and PyTorch.

    python transcendentals.py [--quick] [--only exp] [--sizes 1,1e3,1e5,1e7] [--threads 1] [--json results.json]

A call makes its result anew, as programs do. 10^5 float32 arguments and results fit in a second-level
cache of 1 MB, 10^7 in none. How exact the results are: docs/accuracy.md.
"""

from __future__ import annotations

import dataclasses
import re
import timeit

import numpy as np
from _libraries import Built, Case, limit_threads, measure, start
from _report import Report, parser

CHECKED = 4096  # elements of each result, compared between the libraries


@dataclasses.dataclass(frozen=True)
class Function:
    """Calls as text: `x`, `y` are arrays, `lib` the library. What a library lacks is None."""

    tenon: str
    numpy: str | None
    torch: str | None
    low: float = -3.0
    high: float = 3.0


def plain(name: str, numpy: str | None = "", torch: str | None = "", **limits) -> Function:
    """The same name in every library, unless said otherwise."""
    numpy, torch = (
        None if other is None else f"lib.{other or name}(x)" for other in (numpy, torch)
    )
    return Function(f"lib.{name}(x)", numpy, torch, **limits)


POSITIVE = {"low": 0.1}
FUNCTIONS = {
    "exp": plain("exp"),
    "exp2": plain("exp2"),
    "expm1": plain("expm1"),
    "log": plain("log", **POSITIVE),
    "log2": plain("log2", **POSITIVE),
    "log10": plain("log10", **POSITIVE),
    "log1p": plain("log1p", low=-0.9),
    "tanh": plain("tanh"),
    "sinh": plain("sinh"),
    "cosh": plain("cosh"),
    "erf": plain("erf", numpy=None),
    "erfc": plain("erfc", numpy=None),
    "gelu": Function("lib.gelu(x)", None, "lib.nn.functional.gelu(x)"),
    "gelu, tanh form": Function(
        "lib.gelu(x, approximate=True)", None, "lib.nn.functional.gelu(x, approximate='tanh')"
    ),
    "sigmoid": Function("lib.sigmoid(x)", "1 / (1 + lib.exp(-x))", "lib.sigmoid(x)"),
    "silu": Function("lib.silu(x)", "x / (1 + lib.exp(-x))", "lib.nn.functional.silu(x)"),
    "softplus": Function("lib.softplus(x)", "lib.logaddexp(0, x)", "lib.nn.functional.softplus(x)"),
    "mish": Function("lib.mish(x)", None, "lib.nn.functional.mish(x)"),
    "sin": plain("sin"),
    "cos": plain("cos"),
    "tan": plain("tan", low=-1.5, high=1.5),
    "sin of 1e4": plain("sin", low=-1e4, high=1e4),
    "asin": plain("asin", low=-1.0, high=1.0),
    "acos": plain("acos", low=-1.0, high=1.0),
    "atan": plain("atan"),
    "atan2": Function("lib.atan2(x, y)", "lib.arctan2(x, y)", "lib.atan2(x, y)"),
    "asinh": plain("asinh"),
    "acosh": plain("acosh", low=1.1, high=4.0),
    "atanh": plain("atanh", low=-0.99, high=0.99),
    "sqrt": plain("sqrt", **POSITIVE),
    "rsqrt": Function("lib.rsqrt(x)", "1 / lib.sqrt(x)", "lib.rsqrt(x)", **POSITIVE),
    "cbrt": plain("cbrt", torch=None),
    "pow(x, y)": Function("lib.pow(x, y)", "lib.power(x, y)", "lib.pow(x, y)", **POSITIVE),
    "x ** 2": Function("x ** 2", "x ** 2", "x ** 2"),
    "x ** 3": Function("x ** 3", "x ** 3", "x ** 3"),
    "x ** 0.5": Function("x ** 0.5", "x ** 0.5", "x ** 0.5", **POSITIVE),
    "x ** 2.5": Function("x ** 2.5", "x ** 2.5", "x ** 2.5", **POSITIVE),
    "lgamma": plain("lgamma", numpy=None, low=0.1, high=10.0),
    "digamma": plain("digamma", numpy=None, low=2.0, high=10.0),
}
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 5e-3, "bfloat16": 4e-2}
QUICK = ("exp", "log", "tanh", "erf", "gelu", "sigmoid", "sin", "pow(x, y)")


def cases(sizes: list[int], dtypes: list[str], threads: int, names) -> list[Case]:
    return [
        Case(
            name,
            f"{dtype}, {count:,} elements, {threads} thread{'s' * (threads > 1)}",
            tolerance=TOLERANCE[dtype],
            parameters={"function": name, "dtype": dtype, "elements": count},
        )
        for dtype in dtypes
        for count in sizes
        for name in names
    ]


def build(library: str, case: Case, options) -> Built | None:
    """What a case is in a library's process."""
    function = FUNCTIONS[case.parameters["function"]]
    text, dtype = getattr(function, library), case.parameters["dtype"]
    if text is None or (library == "numpy" and dtype == "bfloat16"):
        return None
    module = start(library, options.threads)
    generator = np.random.default_rng(1)

    def array(low: float, high: float):
        values = generator.uniform(low, high, case.parameters["elements"])
        # By float32 for every library: rounded twice, numbers differ from those rounded once, and
        # in float16 a neighbour of 1e4 is 8 further on.
        values = values.astype(np.float64 if dtype == "float64" else np.float32)
        if library == "numpy":
            return values.astype(dtype)
        if library == "torch":
            return module.from_numpy(values).to(getattr(module, dtype))
        return module.tensor(values).to(getattr(module, dtype))

    names = {"lib": module, "x": array(function.low, function.high), "y": array(-3.0, 3.0)}
    call = eval(f"lambda: {text}", names)

    def output():
        head = call()[:CHECKED]
        if library == "numpy":
            return head.astype(np.float64)
        return head.to(module.float64).numpy()

    return Built(timeit.Timer(call), output)


def main() -> None:
    options = parser(__doc__, rounds=11, threads=0, peers=("numpy", "torch"))
    options.add_argument("--sizes", help="elements; 1,1e3,1e5,1e7 unless given")
    options.add_argument("--dtypes", help="float32,float64,bfloat16,float16 unless given")
    options = options.parse_args()
    sizes = [int(float(each)) for each in (options.sizes or "1,1e3,1e5,1e7").split(",")]
    dtypes = (options.dtypes or "float32,float64,bfloat16,float16").split(",")
    teams, names = [options.threads] if options.threads else [1, 2], list(FUNCTIONS)
    if options.quick:
        sizes, dtypes, teams, names = [100_000], ["float32"], [1], QUICK
    names = [name for name in names if re.search(options.only, name)]
    options.only = ""
    report = Report("transcendentals", options)
    for options.threads in teams:
        limit_threads(options.threads)
        for dtype in dtypes:
            chosen = sizes if dtype in ("float32", "float64") else [100_000]
            measure(cases(chosen, [dtype], options.threads, names), build, options, report)
    report.close()


if __name__ == "__main__":
    main()
