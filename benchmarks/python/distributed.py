# SPDX-License-Identifier: Apache-2.0
"""all_reduce over host memory between processes of this machine: Tenon beside PyTorch's Gloo, in turns.

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

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("TENON_BUILD_DIR", os.path.join(ROOT, "build/release"))
CASES = {
    "64 bytes [us]": (16, 1e6),
    "4 KB [us]": (1 << 10, 1e6),
    "4 MB [ms]": (1 << 20, 1e3),
    "25 MB [ms]": (25 << 18, 1e3),
}
SECONDS = 0.3  # of a turn


def tenon_call(count):
    import tenon
    import tenon.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group()
    x = tenon.zeros([count])
    return lambda: dist.all_reduce(x)


def torch_call(count):
    import torch
    import torch.distributed as dist

    if not dist.is_initialized():
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    x = torch.zeros([count])
    return lambda: dist.all_reduce(x)


def serve(library):
    """One rank: reads a number of elements and of calls from standard input, and writes seconds for each call."""
    make = {"tenon": tenon_call, "torch": torch_call}[library]
    for line in sys.stdin:
        count, calls = map(int, line.split())
        call = make(count)
        call()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        print((time.perf_counter() - start) / calls, flush=True)


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

    def seconds(self, count, calls):
        for process in self.processes:
            process.stdin.write(f"{count} {calls}\n")
            process.stdin.flush()
        return [float(process.stdout.readline()) for process in self.processes][0]

    def close(self):
        for process in self.processes:
            process.stdin.close()
            process.wait(30)


def measure(libraries, size, rounds, only):
    ranks = {library: Ranks(library, size) for library in libraries}
    rows = {}
    for name, (count, unit) in CASES.items():
        if only and only not in name:
            continue
        calls = {}
        for library, each in ranks.items():
            calls[library] = max(3, int(SECONDS / max(each.seconds(count, 5), 1e-6)))
        times = {library: [] for library in libraries}
        for _ in range(rounds):
            for library, each in ranks.items():
                times[library].append(each.seconds(count, calls[library]) * unit)
        row = {library: statistics.median(values) for library, values in times.items()}
        if "torch" in times:
            ratios = [a / b for a, b in zip(times["tenon"], times["torch"], strict=True)]
            row["ratio"] = statistics.median(ratios)
        rows[f"{size} ranks, {name}"] = row
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
    print(f"{'all_reduce of float32':28}" + "".join(f"{x:>12}" for x in (*libraries, "ratio")))
    for name, row in rows.items():
        print(f"{name:28}" + "".join(f"{value:12.3f}" for value in row.values()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
