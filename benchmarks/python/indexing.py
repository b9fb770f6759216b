# SPDX-License-Identifier: Apache-2.0
"""Writes at indices in place, segments of rows and bags of rows: Tenon beside NumPy and PyTorch.

    python indexing.py [--quick] [--only rows] [--threads 1] [--json results.json]

A table of 10^6 rows of 64 float32 is written or read at 4,096 rows; segments are of 788,000 rows of 64 in 100,000
segments, unsorted. PyTorch's maxima are `index_reduce`. Tenon's and PyTorch's gradients of the table are dense.
"""

from __future__ import annotations

import dataclasses
import re
import timeit

import numpy as np
from _libraries import Built, Case, limit_threads, measure, start
from _report import Report, parser

ROWS, COLUMNS, IDS, BAGS, LENGTH = 10**6, 64, 4096, 4096, 20
EDGES, NODES = 788_000, 100_000


@dataclasses.dataclass(frozen=True)
class Work:
    """Code of each library; `read`: what is compared afterwards, the code's value if there is none."""

    tenon: str
    torch: str
    numpy: str = ""
    read: str = ""
    tolerance: float = 1e-4
    data: str = "table"


WORKS = {
    "x[rows] = v": Work("x[rows] = v", "x[rows] = v", "x[rows] = v", "x[rows]"),
    "x[rows] = 0": Work("x[rows] = 0.0", "x[rows] = 0.0", "x[rows] = 0.0", "x[rows]"),
    "x[:, columns] = v": Work(
        "x[:, columns] = w", "x[:, columns] = w", "x[:, columns] = w", "x[:9]"
    ),
    "x[rows, columns of rows] = v": Work(
        "x[rows, at] = u", "x[rows, at] = u", "x[rows, at] = u", "x[rows]"
    ),
    "index_put, accumulate": Work(
        "x.index_put_([rows], v, accumulate=True)",
        "x.index_put_((rows,), v, accumulate=True)",
        "np.add.at(x, rows, v)",
        "x[:1]",
    ),
    "index_add": Work("x.index_add_(rows, v)", "x.index_add_(0, rows, v)", read="x[:1]"),
    "index_add, repeated": Work("x.index_add_(few, v)", "x.index_add_(0, few, v)", read="x[:1]"),
    "scatter_add": Work(
        "x.scatter_add_(spread, v, 0)", "x.scatter_add_(0, spread, v)", read="x[:1]"
    ),
    "scatter along rows": Work(
        "g.scatter_(-1, order, h)",
        "g.scatter_(-1, order, h)",
        "np.put_along_axis(g, order, h, -1)",
        "g",
    ),
    "x[mask] = 0, one in ten": Work("g[mask] = 0.0", "g[mask] = 0.0", "g[mask] = 0.0", "g"),
    "x[mask] = values, one in ten": Work("g[mask] = some", "g[mask] = some", "g[mask] = some", "g"),
    "gradient of embedding": Work(
        "lib.grad(F.embedding(rows, table).sum(), table)[0][:1]",
        "lib.autograd.grad(F.embedding(rows, table).sum(), table)[0][:1]",
    ),
    "embedding_bag, sum": Work(
        "F.embedding_bag(bags, x, mode='sum')", "F.embedding_bag(bags, x, mode='sum')"
    ),
    "embedding_bag, mean, offsets": Work(
        "F.embedding_bag(flat, x, starts, 'mean')", "F.embedding_bag(flat, x, starts, mode='mean')"
    ),
    "embedding_bag, max": Work(
        "F.embedding_bag(bags, x, mode='max')", "F.embedding_bag(bags, x, mode='max')"
    ),
    "embedding_bag, weights": Work(
        "F.embedding_bag(bags, x, mode='sum', per_sample_weights=p)",
        "F.embedding_bag(bags, x, mode='sum', per_sample_weights=p)",
    ),
    **{
        f"segments, {name}": Work(
            f"lib.geometric.segment_{name}(x, ids, {NODES})",
            torch,
            tolerance=1e-3,
            data="edges",
        )
        for name, torch in {
            "sum": f"lib.zeros({NODES}, {COLUMNS}).index_add_(0, ids, x)",
            "mean": f"lib.zeros({NODES}, {COLUMNS}).index_reduce_(0, ids, x, 'mean', include_self=False)",
            "max": f"lib.zeros({NODES}, {COLUMNS}).index_reduce_(0, ids, x, 'amax', include_self=False)",
            "min": f"lib.zeros({NODES}, {COLUMNS}).index_reduce_(0, ids, x, 'amin', include_self=False)",
        }.items()
    },
    "segments, max, with gradient": Work(
        f"lib.grad(lib.geometric.segment_max(y, ids, {NODES}).sum(), y)[0]",
        f"lib.autograd.grad(lib.zeros({NODES}, {COLUMNS}).index_reduce(0, ids, y, 'amax', include_self=False).sum(), y)[0]",
        data="edges",
    ),
}
QUICK = ("x[rows] = v", "index_add", "embedding_bag, sum", "segments, max")


def arrays(kind: str) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(2)
    if kind == "edges":
        return {
            "x": generator.standard_normal((EDGES, COLUMNS), dtype="float32"),
            "ids": generator.integers(0, NODES, EDGES),
        }
    rows = generator.permutation(ROWS)[:IDS]
    mask = generator.random((1000, 1000)) < 0.1
    bags = generator.integers(0, ROWS, (BAGS, LENGTH))
    return {
        "x": generator.standard_normal((ROWS, COLUMNS), dtype="float32"),
        "rows": rows,
        "few": rows % 100,
        "columns": np.array([3, 60]),
        "at": generator.integers(0, COLUMNS, IDS),
        "v": generator.standard_normal((IDS, COLUMNS), dtype="float32"),
        "u": generator.standard_normal(IDS, dtype="float32"),
        "w": generator.standard_normal((ROWS, 2), dtype="float32"),
        "spread": np.repeat(rows[:, None], COLUMNS, 1),
        "g": generator.standard_normal((1000, 1000), dtype="float32"),
        "h": generator.standard_normal((1000, 1000), dtype="float32"),
        "order": np.argsort(generator.random((1000, 1000)), -1),
        "mask": mask,
        "some": generator.standard_normal(int(mask.sum()), dtype="float32"),
        "bags": bags,
        "flat": bags.reshape(-1),
        "starts": np.arange(0, BAGS * LENGTH, LENGTH),
        "p": generator.standard_normal((BAGS, LENGTH), dtype="float32"),
    }


def build(library: str, case: Case, options):
    """What a case is in a library's process."""
    work = WORKS[case.parameters["function"]]
    code = getattr(work, library)
    if not code:
        return None
    module = start(library, options.threads)
    names = {"np": np, "lib": module}
    used = set(re.findall(r"\w+", f"{code} {work.read}"))
    for name, values in arrays(work.data).items():
        if name not in used and not (name == "x" and used & {"table", "y"}):
            continue
        names[name] = values
        if library == "torch":
            names[name] = module.from_numpy(values)
        elif library == "tenon":
            names[name] = module.tensor(values)
    if library != "numpy":
        names["F"] = __import__(f"{library}.nn.functional", fromlist=["_"])
        if used & {"table", "y"}:
            names["table"] = names["y"] = names["x"].requires_grad_(True)
    if library == "tenon":
        __import__("tenon.geometric")
    timer = timeit.Timer(code, globals=names)
    read = compile(work.read or code, case.name, "eval")

    def output():
        if work.read:
            timer.timeit(1)
        return eval(read, names)

    return Built(timer, output)


def main() -> None:
    options = parser(__doc__, rounds=7, threads=0, peers=("numpy", "torch")).parse_args()
    names = [name for name in (QUICK if options.quick else WORKS) if re.search(options.only, name)]
    options.only = ""
    report = Report("indexing", options)
    options.threads = options.threads or 1
    limit_threads(options.threads)
    group = f"{options.threads} thread{'s' * (options.threads > 1)}"
    cases = [
        Case(name, group, tolerance=WORKS[name].tolerance, parameters={"function": name})
        for name in names
    ]
    measure(cases, build, options, report)
    report.close()


if __name__ == "__main__":
    main()
