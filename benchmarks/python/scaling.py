# SPDX-License-Identifier: Apache-2.0
"""How cost grows: with elements, dimensions, inputs, graph length, live tensors, registered operators.

    python scaling.py [--only graph] [--quick] [--json results.json]

Each sweep times one thing at growing n. Its exponent is the slope of log(time) over log(n), fitted to the
upper half of the sweep where constant costs no longer hide it: 1 is linear, 0 independent of n. A sweep
names the exponent that its algorithm has; one that grows faster, and faster than every peer, is marked.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import pathlib
import tempfile
import timeit

from _libraries import Built, Case, measure, start
from _report import Report, parser

MARGIN = 0.15  # above the expected exponent, or a peer's, that is still noise and caches
COMPARED = 1000  # n up to which outputs are compared with the peers'
NUMBERS = itertools.count(1)  # for names that are not taken
KEPT = []  # what a sweep leaves alive in a library's process


@dataclasses.dataclass(frozen=True)
class Sweep:
    name: str
    n: tuple[int, ...]
    exponent: float  # that the cost of a call may have
    unit: str  # of n

    def cases(self, quick: bool) -> list[Case]:
        steps = self.n[:-2] if quick else self.n
        return [
            Case(f"{n:,} {self.unit}", group=self.name, parameters={"sweep": self.name, "n": n})
            for n in steps
        ]


def decades(low: int, high: int) -> tuple[int, ...]:
    return tuple(10**i for i in range(low, high + 1))


def made(module, n: int, requires_grad: bool = False):
    """n float32 ones in any of the libraries."""
    x = module.ones(n, dtype=module.float32)
    return x.requires_grad_() if requires_grad else x


def add(module, n):
    x, y = made(module, n), made(module, n)
    return lambda: x + y


def exp(module, n):
    x, function = made(module, n), module.exp
    return lambda: function(x)


def total(module, n):
    x = made(module, n)
    return lambda: x.sum()


def from_list(module, n):
    values = [0.5] * n
    make = getattr(module, "tensor", None) or module.array
    return lambda: make(values)


def box(module, dimensions: int):
    """2^15 elements in that many dimensions: what differs is the number of dimensions only."""
    elements = 15
    sizes = [2] * (dimensions - 1)
    return made(module, 1 << elements).reshape(tuple(sizes + [1 << (elements - len(sizes))]))


def add_dimensions(module, n):
    x = box(module, n)
    return lambda: x + x


def add_reversed(module, n):
    """Axes in the opposite order: nothing can be taken as contiguous."""
    x = box(module, n)
    order = tuple(reversed(range(n)))
    y = x.transpose(order) if module.__name__ == "numpy" else x.permute(order)
    z = made(module, 1 << 15).reshape(y.shape)
    return lambda: y + z


def view_dimensions(module, n):
    x = box(module, n)
    return lambda: x[0]


def concat(module, n):
    xs = [made(module, 1) for _ in range(n)]
    function = getattr(module, "concatenate", None) or getattr(module, "concat", None)
    return lambda: function(xs)


def stack(module, n):
    xs = [made(module, 1) for _ in range(n)]
    return lambda: module.stack(xs)


def chain(module, n):
    """Forward and backward of n products in a row."""
    if module.__name__ == "numpy":
        return None
    w = made(module, 1, requires_grad=True)

    def call():
        z = w
        for _ in range(n):
            z = z * w
        w.grad = None
        z.backward()

    return call


def fan(module, n):
    """n products of one tensor, summed: as many gradients arrive at one place."""
    if module.__name__ == "numpy":
        return None
    w, stacked = made(module, 1, requires_grad=True), module.stack

    def call():
        w.grad = None
        stacked([w * w for _ in range(n)]).sum().backward()

    return call


def release_chain(module, n):
    """A graph that is dropped without a backward pass."""
    if module.__name__ == "numpy":
        return None
    w = made(module, 1, requires_grad=True)

    def call():
        z = w
        for _ in range(n):
            z = z + w

    return call


def live(module, n):
    """A call while n tensors are alive."""
    KEPT[:] = [made(module, 1) for _ in range(n)]
    return add(module, 1)


def create_and_free(module, n):
    """n tensors, made and then dropped together."""
    x = made(module, 1)
    return lambda: [x + x for _ in range(n)] and None


def define(module):
    return module.op(f"scaling::op_{next(NUMBERS)}(Tensor x) -> Tensor")(lambda x: x + 1)


def registered(module, n, done=[]):  # noqa: B006 (what this process registered)
    """A call while n operators are registered beside the built-in ones."""
    if module.__name__ != "tenon":
        return None
    while len(done) < n:
        done.append(define(module))
    call, x = done[0], made(module, 1)
    return lambda: call(x)


def register(module, n):
    """n operators more, defined in Python."""
    if module.__name__ != "tenon":
        return None
    return lambda: [define(module) for _ in range(n)] and None


def find(module, n):
    """Finding an operator by its name while n are registered."""
    if module.__name__ != "tenon":
        return None
    registered(module, n)
    namespace = module.ops.scaling
    return lambda: namespace.op_1 and None


def plugins(module, n, done=[0]):  # noqa: B006 (counts what this process loaded)
    """A call while n plugins are loaded: copies of one device, each under a name of its own."""
    if module.__name__ != "tenon":
        return None
    library = pathlib.Path(module.__file__).parent / "plugins" / "libtenon_null.so"
    data = library.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        while done[0] < n:
            name = b"n%03d" % done[0]  # as long as the name that it replaces
            path = pathlib.Path(folder, f"libtenon_{name.decode()}.so")
            renamed = data.replace(b"null\0", name + b"\0").replace(b'"null"', b'"%s"' % name)
            path.write_bytes(renamed)
            module.plugins.load(str(path))
            done[0] += 1
    return add(module, 1)


def operator_file(module, n):
    """Loading an operator file of n operators."""
    if module.__name__ != "tenon":
        return None
    entry = (
        "- op: op_{}\n  doc: One more.\n  sig: (Tensor x) -> Tensor\n  kind: elementwise\n"
        "  dtypes: {{compute: promote_float, allow: floating}}\n  expr: x + 1\n"
        "  grad: {{x: dout}}\n  example: op_{}([1.]) ~= [2.]\n"
    )
    entries = "".join(entry.format(i, i) for i in range(n))

    def call():  # another namespace each time: loading a file again is to replace it
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "many.yaml")
            path.write_text(f"namespace: many{next(NUMBERS)}\nops:\n{entries}")
            module.ops.load(path)

    return call


# Function: (name, n, exponent of a call's cost, unit of n).
SWEEPS = {  # a process holds at most 16,384 operators, which those below share
    add: Sweep("x + y", decades(0, 8), 1, "elements"),
    exp: Sweep("exp(x)", decades(0, 8), 1, "elements"),
    total: Sweep("x.sum()", decades(0, 8), 1, "elements"),
    from_list: Sweep("tensor(list)", decades(0, 6), 1, "elements"),
    add_dimensions: Sweep("x + x in n dimensions", (1, 2, 3, 4, 6, 8, 12, 16), 0, "dimensions"),
    add_reversed: Sweep("x.T + y in n dimensions", (1, 2, 3, 4, 6, 8, 12, 16), 1, "dimensions"),
    view_dimensions: Sweep("x[0] in n dimensions", (1, 2, 3, 4, 6, 8, 12, 16), 1, "dimensions"),
    concat: Sweep("concat of n", decades(0, 4), 1, "inputs"),
    stack: Sweep("stack of n", decades(0, 4), 1, "inputs"),
    chain: Sweep("graph: chain of n products", decades(0, 5), 1, "nodes"),
    fan: Sweep("graph: n products of one leaf", decades(0, 4), 1, "nodes"),
    release_chain: Sweep("graph: n nodes, dropped", decades(0, 5), 1, "nodes"),
    live: Sweep("x + y, n tensors alive", decades(1, 6), 0, "tensors"),
    create_and_free: Sweep("n tensors made and dropped", decades(0, 6), 1, "tensors"),
    registered: Sweep("call, n operators registered", (10, 100, 1000, 3000), 0, "operators"),
    find: Sweep("lookup, n operators registered", (10, 100, 1000, 3000), 0, "operators"),
    register: Sweep("n operators defined", (1, 10, 100), 1, "operators"),
    plugins: Sweep("call, n plugins loaded", (1, 10, 100, 200), 0, "plugins"),
    operator_file: Sweep("operator file of n", (1, 10, 100), 1, "operators"),
}


def build(library: str, case: Case, options):
    os.environ["TENON_PLUGIN_TRUST"] = "any"  # plugins are copied to the temporary folder
    module = start(library, options.threads)
    KEPT.clear()
    by_name = {sweep.name: function for function, sweep in SWEEPS.items()}
    call = by_name[case.parameters["sweep"]](module, case.parameters["n"])
    if call is None:
        return None
    small = case.parameters["n"] <= COMPARED
    return Built(timeit.Timer(call), call if small else None)


def exponent(points: list[tuple[int, float]]) -> float:
    """Least-squares slope of log(time) over log(n) in the upper half of the sweep."""
    upper = points[len(points) // 2 - (len(points) < 4) :]
    xs, ys = zip(*((math.log(n), math.log(seconds)) for n, seconds in upper))
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) / spread


def exponents(report: Report) -> None:
    """Fits each sweep, and says which grow faster than they should."""
    print(f"\n{'exponents':42}{'expected':>10}" + "".join(f"{n:>12}" for n in report.columns))
    fits = report.data["exponents"] = {}
    for sweep in SWEEPS.values():
        rows = [row for row in report.data["results"] if row["group"] == sweep.name]
        if len(rows) < 2:
            continue
        found = {}
        for library in report.columns:
            points = [
                (row["parameters"]["n"], row["seconds"][library]["best"])
                for row in rows
                if library in row["seconds"]
            ]
            if points:
                found[library] = exponent(points)
        fits[sweep.name] = {"expected": sweep.exponent, "unit": sweep.unit, **found}
        allowed = max([sweep.exponent, *(v for k, v in found.items() if k != "tenon")]) + MARGIN
        mark = "  above" if found["tenon"] > allowed else ""
        cells = "".join(
            f"{found[name]:12.2f}" if name in found else f"{'-':>12}" for name in report.columns
        )
        print(f"{sweep.name:42}{sweep.exponent:>10}{cells}{mark}")


def main() -> None:
    options = parser(__doc__, rounds=7, peers=("numpy", "torch")).parse_args()
    report = Report("scaling", options)
    cases = (case for sweep in SWEEPS.values() for case in sweep.cases(options.quick))
    measure(cases, build, options, report)
    exponents(report)
    report.close()


if __name__ == "__main__":
    main()
