# SPDX-License-Identifier: Apache-2.0
"""Operators that wait for memory: Tenon beside NumPy and PyTorch, and beside the machine's bandwidth.

    python memory_bound.py [--quick] [--only add] [--sizes 1,100,1e4] [--threads 1] [--json results.json]

GB/s counts every cache line of the inputs once for each pass and of the result once; the limit is the best of plain copies
and additions between warm arrays with as many bytes and threads, in NumPy and PyTorch.
"""

from __future__ import annotations

import re
import sys
import timeit
from collections.abc import Iterator

import _libraries
import numpy as np
from _libraries import Built, Library, limit_threads, prepare, start
from _memory_bound_cases import (
    CASES,
    LAYOUTS,
    Arrays,
    Moved,
    compare,
    environment,
    moved,
    names_in,
    value_of,
)
from _protocol import interleave
from _report import Report, parser

try:
    import torch
except ImportError:
    torch = None

SAMPLE = 0.002  # seconds of one turn


# By the share of the bytes that are read: bytes an element, and loops of nothing else in each library.
LOOPS = {
    "fill": (0.0, 4, {"numpy": "c.fill(1)", "torch": "c.fill_(1)"}),
    "copy": (0.5, 8, {"numpy": "copyto(c, a)", "torch": "c.copy_(a)", "tenon": "clone(a, out=c)"}),
    "add": (0.67, 12, dict.fromkeys(("numpy", "torch", "tenon"), "add(a, b, out=c)")),
    "in place": (-1.0, 12, dict.fromkeys(("numpy", "torch", "tenon"), "add(a, b, out=a)")),
    "read": (1.0, 4, {"numpy": "a.max()", "torch": "a.sum()", "tenon": "a.sum()"}),
}


class Limit:
    """Bytes per second of the best plain loop, of any library, between warm arrays: one that moves as many
    bytes as a row does, and as nearly as may be reads and writes as many of them."""

    def __init__(self):
        self.known = {}

    def get(self, moved: Moved, threads: int) -> float:
        bytes_, share = moved.read + moved.written, moved.read / (moved.read + moved.written)
        loop = min(LOOPS, key=lambda each: abs(LOOPS[each][0] - share))
        loop = "in place" if moved.in_place else loop
        key = (loop, len(str(bytes_)), str(bytes_)[0], threads)
        if key not in self.known:
            self.known[key] = self.measure(loop, bytes_, threads)
        return self.known[key]

    def measure(self, loop: str, bytes_: int, threads: int) -> float:
        _, element, statements = LOOPS[loop]
        count, best = max(16, bytes_ // element), float("inf")
        for library, statement in statements.items():
            if library == "torch" and not torch:
                continue
            module = start(library, threads)
            names = {name: getattr(module, name, None) for name in names_in(statement)}
            names |= {name: module.ones(count, dtype=module.float32) for name in "abc"}
            timer = timeit.Timer(statement, globals=names)
            repeats = max(1, 200_000 // count)
            best = min(best, min(timer.repeat(7, repeats)) / repeats)
        return count * element / best


def rows(sizes: list[int], threads: list[int]) -> Iterator[_libraries.Case]:
    for count in sizes:
        for name, case in CASES.items():
            if not case.at_least <= count <= case.at_most:
                continue
            for layout in case.layouts:
                for team in threads:
                    yield _libraries.Case(
                        ", ".join(filter(None, (name, LAYOUTS[layout]))),
                        f"{count:,} elements, {team} thread{'s' * (team > 1)}",
                        parameters={
                            "operator": name,
                            "elements": count,
                            "layout": layout,
                            "threads": team,
                            "bound": case.bound,
                        },
                    )


def build(library: str, row: _libraries.Case, options) -> Built | None:
    """What a row is in a library's process."""
    start(library, row.parameters["threads"])
    case = CASES[row.parameters["operator"]]
    statement = case.statement(library)
    if statement is None:
        return None
    arrays = Arrays(row.parameters["elements"], row.parameters["layout"])
    names = environment(library, arrays, statement)
    return Built(timeit.Timer(statement, globals=names), lambda: value_of(case, statement, names))


def moved_by(row: _libraries.Case, result: np.ndarray) -> Moved:
    """What a row reads and writes."""
    case = CASES[row.parameters["operator"]]
    arrays = Arrays(row.parameters["elements"], row.parameters["layout"])
    for name in names_in(case.ours):
        arrays.get(name)
    return moved(arrays, case, result)


def measure(row: _libraries.Case, libraries: list[Library], limit: Limit, report: Report) -> None:
    contestants, outputs = prepare(row, libraries)
    for library, output in outputs.items():
        compare(outputs["tenon"], output, library)
    times = interleave(contestants, report.options.rounds, turn=SAMPLE)
    bytes_ = moved_by(row, outputs["tenon"])
    bandwidth = ("bandwidth", limit.get(bytes_, row.parameters["threads"]))
    work = (bytes_.read + bytes_.written, "B")
    report.add(row.name, times, row.group, work=work, limit=bandwidth, **row.parameters)


def main() -> None:
    options = parser(__doc__, rounds=11, threads=0, peers=("numpy", "torch"))
    options.set_defaults(threads=None)
    options.add_argument("--sizes", help="elements; 1,100,1e4,1e5,1e6,1e7 unless given")
    options = options.parse_args()
    sizes, threads = "1,100,1e4,1e5,1e6,1e7", [options.threads] if options.threads else [1, 2]
    if options.quick:
        options.rounds, sizes, threads = 5, "1,1e4,1e6", threads[:1]
    sizes = [int(float(size)) for size in (options.sizes or sizes).split(",")]
    options.threads = max(threads)
    limit_threads(options.threads)
    report = Report("memory_bound", options)
    libraries = [Library(name, build, options) for name in report.columns]
    limit, failures = Limit(), 0
    for row in rows(sizes, threads):
        if not re.search(options.only, f"{row.name}, {row.group}"):
            continue
        try:
            measure(row, libraries, limit, report)
        except (AssertionError, RuntimeError) as error:
            failures += 1
            print(f"{row.name}, {row.group}: {error}", file=sys.stderr, flush=True)
    for library in libraries:
        library.stop()
    report.close()
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
