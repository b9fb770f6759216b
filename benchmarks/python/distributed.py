# SPDX-License-Identifier: Apache-2.0
"""Ranks that are processes of this machine, over host memory: all_reduce, and steps of training with ZeRO stage 3, experts
and sequences that are divided over them. Tenon beside PyTorch over Gloo, in turns.

    ~/.cache/tenon/peers-.../bin/python benchmarks/python/distributed.py [--json FILE] [--peers torch]

Each library's ranks live through the run; while one library is timed the other's ranks sleep at a pipe. A row has the
median over the rounds of the time of one call on rank 0, and the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import _distributed_calls as calls

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("TENON_BUILD_DIR", os.path.join(ROOT, "build/release"))
CASES = {  # the unit, and what one call does: _distributed_calls.py
    "all_reduce of 64 bytes [us]": (1e6, "all_reduce", 16),
    "all_reduce of 4 KB [us]": (1e6, "all_reduce", 1 << 10),
    "all_reduce of 4 MB [ms]": (1e3, "all_reduce", 1 << 20),
    "all_reduce of 25 MB [ms]": (1e3, "all_reduce", 25 << 18),
    "ZeRO-3, 8 layers of 512 [ms]": (1e3, "fully_shard", 512),
    "the same, not ahead [ms]": (1e3, "fully_shard_not_ahead", 512),
    "8 experts of 256, 512 rows [ms]": (1e3, "experts", 256),
    "ring attention, 1024 [ms]": (1e3, "ring_attention", 1024),
    "attention by heads, 1024 [ms]": (1e3, "attention_by_heads", 1024),
}
SECONDS = 0.3  # of a turn


def serve(library):
    """One rank: reads the name of a call, its size and how often from standard input, and writes seconds for each call, or
    a dash where the library has none."""
    calls_of = calls.tenon_calls if library == "tenon" else calls.torch_calls
    made = {}
    for line in sys.stdin:
        name, size, count = line.split()
        key = name, int(size)
        if key not in made:
            make = calls_of().get(name)
            made[key] = make and make(int(size))
        call = made[key]
        if call is None:
            print("-", flush=True)
            continue
        call()
        start = time.perf_counter()
        for _ in range(int(count)):
            call()
        print((time.perf_counter() - start) / int(count), flush=True)


class Ranks:
    def __init__(self, library, size):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--serve", library],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.path.join(BUILD, "python"),
                    "RANK": str(rank),
                    "WORLD_SIZE": str(size),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port),
                    "TENON_NUM_THREADS": "1",
                },
            )
            for rank in range(size)
        ]

    def seconds(self, name, size, count):
        """On rank 0; None where the library has no such call."""
        for process in self.processes:
            process.stdin.write(f"{name} {size} {count}\n")
            process.stdin.flush()
        told = [process.stdout.readline().strip() for process in self.processes][0]
        return None if told == "-" else float(told)

    def close(self):
        for process in self.processes:
            process.stdin.close()
            process.wait(30)


def measure(libraries, size, rounds, only):
    ranks = {library: Ranks(library, size) for library in libraries}
    rows = {}
    for title, (unit, name, length) in CASES.items():
        if only and only not in title:
            continue
        counts = {}
        for library, each in ranks.items():
            first = each.seconds(name, length, 2)
            if first is not None:
                counts[library] = max(2, int(SECONDS / max(first, 1e-6)))
        times = {library: [] for library in counts}
        for _ in range(rounds):
            for library, count in counts.items():
                times[library].append(ranks[library].seconds(name, length, count) * unit)
        row = {library: statistics.median(values) for library, values in times.items()}
        if "torch" in times:
            ratios = [a / b for a, b in zip(times["tenon"], times["torch"], strict=True)]
            row["ratio"] = statistics.median(ratios)
        rows[f"{size} ranks, {title}"] = row
    for each in ranks.values():
        each.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--peers", default="torch", help="torch, or none")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="cases whose names contain this")
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    if options.serve:
        serve(options.serve)
        return
    libraries = ["tenon"] + (["torch"] if "torch" in options.peers.split(",") else [])
    rows = {}
    for size in (2, 4):
        rows.update(measure(libraries, size, options.rounds, options.only))
    columns = (*libraries, "ratio")
    print(f"{'float32':44}" + "".join(f"{x:>12}" for x in columns))
    for name, row in rows.items():
        values = (f"{row[x]:12.3f}" if x in row else f"{'-':>12}" for x in columns)
        print(f"{name:44}" + "".join(values))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
