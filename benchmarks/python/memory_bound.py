# SPDX-License-Identifier: Apache-2.0
"""Operators that wait for memory: Tenon beside NumPy and PyTorch, and beside the machine's bandwidth.

    python memory_bound.py [--quick] [--only add] [--sizes 1,100,1e4] [--threads 1,2] [--json results.json]

The libraries take turns within each round, after their results were compared. `to best` is the time of
Tenon over that of the faster peer: of the medians over the rounds, and of the best rounds, which other
work on the machine disturbs least. GB/s counts every cache line of the inputs and of the result once;
`limit` is the best of plain copies and additions between warm arrays with as many bytes, in the same
process with the same number of threads.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import timeit

import numpy as np
import tenon
from _memory_bound_cases import (
    CASES,
    LAYOUTS,
    Arrays,
    Case,
    bytes_of,
    compare,
    environment,
    value_of,
)

try:
    import torch
except ImportError:
    torch = None

ROUNDS, SAMPLE = 11, 0.002  # seconds of one sample


class Limit:
    """GB/s of copies and additions between warm arrays, by bytes and threads."""

    def __init__(self):
        self.known = {}

    def get(self, bytes_: int, threads: int) -> float:
        key = (len(str(bytes_)), str(bytes_)[0], threads)
        if key not in self.known:
            count = max(16, bytes_ // 12)
            a, b, c = (np.ones(count, np.float32) for _ in range(3))
            loops = [lambda: np.add(a, b, out=c), lambda: np.copyto(c, a)]
            moved = [12 * count, 8 * count]
            if torch:
                ta, tb, tc = (torch.from_numpy(each) for each in (a, b, c))
                loops += [lambda: torch.add(ta, tb, out=tc), lambda: tc.copy_(ta)]
                moved += moved
            best = [
                min(timeit.repeat(each, number=max(1, 200_000 // count), repeat=7))
                for each in loops
            ]
            self.known[key] = max(
                m * max(1, 200_000 // count) / t / 1e9 for m, t in zip(moved, best)
            )
        return self.known[key]


def measure(case: Case, arrays: Arrays, rounds: int, sample: float) -> dict:
    """Seconds per call, a list over the rounds for each library, after a comparison of results."""
    timers, expected = {}, {}
    for library in ("tenon", "numpy", "torch"):
        statement = case.statement(library)
        if statement is None or (library == "torch" and not torch):
            continue
        names = environment(library, arrays, statement)
        expected[library] = value_of(case, statement, names)
        timers[library] = timeit.Timer(statement, globals=names)
    for library, value in expected.items():
        if library != "tenon":
            compare(expected["tenon"], value, library)
    counts = {}
    for library, timer in timers.items():
        once = timer.timeit(1)
        few = max(1, min(100, int(sample / 10 / once)))
        counts[library] = max(1, int(sample / (timer.timeit(few) / few)))
    times = {library: [] for library in timers}
    for _ in range(rounds):
        for library, timer in timers.items():
            times[library].append(timer.timeit(counts[library]) / counts[library])
    return {"times": times, "bytes": bytes_of(arrays, case.ours, expected["tenon"])}


def summary(measured: dict, limit: float) -> dict:
    times = measured["times"]
    row = {f"{library}_us": statistics.median(values) * 1e6 for library, values in times.items()}
    row["tenon_best_us"] = min(times["tenon"]) * 1e6
    peers = [library for library in times if library != "tenon"]
    if peers:
        best = min(peers, key=lambda library: row[f"{library}_us"])
        row["best_peer"] = best
        pairs = zip(times["tenon"], times[best])
        row["to_best"] = statistics.median(a / b for a, b in pairs)
        row["best_to_best"] = min(times["tenon"]) / min(min(times[p]) for p in peers)
    row["gb_per_s"] = measured["bytes"] / min(times["tenon"]) / 1e9
    row["limit_gb_per_s"] = limit
    return row


def show(title: str, row: dict) -> None:
    def cell(key, width, digits):
        return f"{row[key]:{width}.{digits}f}" if key in row else " " * (width - 1) + "-"

    line = "".join(cell(f"{library}_us", 12, 2) for library in ("tenon", "numpy", "torch"))
    line += "".join(cell(key, 8, 2) for key in ("to_best", "best_to_best"))
    line += "".join(cell(key, 8, 1) for key in ("gb_per_s", "limit_gb_per_s"))
    flag = "  <" if row.get("to_best", 0) > 1.0 and row.get("best_to_best", 0) > 1.0 else ""
    print(f"{title:58}{line}{flag}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="a regular expression for the title of a row")
    parser.add_argument("--sizes", help="elements; 1,100,1e4,1e5,1e6,1e7 unless given")
    parser.add_argument("--threads", help="1,2 unless given")
    parser.add_argument("--quick", action="store_true", help="three sizes, one thread, few rounds")
    parser.add_argument("--json")
    options = parser.parse_args()
    rounds, sample, sizes, threads = options.rounds, SAMPLE, "1,100,1e4,1e5,1e6,1e7", "1,2"
    if options.quick:
        rounds, sample, sizes, threads = 3, 0.0005, "1,1e4,1e6", "1"
    sizes, threads = options.sizes or sizes, options.threads or threads
    results, limit, failures = {}, Limit(), 0
    print(f"{'microseconds, medians':58}{'tenon':>12}{'numpy':>12}{'torch':>12}", end="")
    print(f"{'to best':>8}{'best':>8}{'GB/s':>8}{'limit':>8}")
    for count in (int(float(size)) for size in sizes.split(",")):
        for name, case in CASES.items():
            if not case.at_least <= count <= case.at_most:
                continue
            for layout in case.layouts:
                arrays = Arrays(count, layout)
                for team in (int(each) for each in threads.split(",")):
                    title = ", ".join(
                        filter(None, (name, LAYOUTS[layout], f"{count:.0e}", f"{team}T"))
                    )
                    if not re.search(options.only, title):
                        continue
                    tenon.set_num_threads(team)
                    if torch:
                        torch.set_num_threads(team)
                    try:
                        measured = measure(case, arrays, rounds, sample)
                    except Exception as error:
                        failures += 1
                        print(f"{title}: {type(error).__name__}: {error}", flush=True)
                        continue
                    row = summary(measured, limit.get(measured["bytes"], team))
                    results[title] = row
                    show(title, row)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
