# SPDX-License-Identifier: Apache-2.0
"""One table and one JSON file for every Python benchmark, and the options that all of them have.

    options = parser(__doc__).parse_args()
    report = Report("memory_bound", options)
    report.add("add", times, work=(12 * n, "B"), limit=("copy", 28e9), elements=n)
    report.close()

A row has the median of each library and the ratio of Tenon's time to it; that to the fastest peer with
the ratio of the best rounds; the spread of Tenon's rounds; and, where the case has them, the rate and its
share of the limit.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path

from _protocol import FOREIGN, Times, use_by_others

SCHEMA = 1
UNITS = ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms"), (float("inf"), 1.0, "s"))
PEERS = ("numpy", "torch", "paddle", "jax", "onnxruntime")
PACKAGES = {"paddle": "paddlepaddle"}
NOT_CLEAN = "*"  # marks a row whose rounds were disturbed


def parser(
    doc: str, rounds: int = 21, threads: int = 1, peers: tuple[str, ...] = PEERS
) -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--rounds", type=int, default=rounds, help="turns of each library")
    result.add_argument("--threads", type=int, default=threads)
    result.add_argument("--only", default="", help="cases whose name contains this")
    result.add_argument(
        "--peers", default=",".join(peers), help="default: %(default)s, if installed"
    )
    result.add_argument("--quick", action="store_true", help="fewer rounds and cases, within 30 s")
    result.add_argument("--strict", action="store_true", help="refuse to measure on a busy machine")
    result.add_argument("--json", help="write the results to this file")
    return result


def row_parser(doc: str, quick: str) -> argparse.ArgumentParser:
    """For benchmarks whose rows have columns of their own; write_rows() keeps them. `quick`: what --quick leaves."""
    result = argparse.ArgumentParser(description=doc.splitlines()[0])
    result.add_argument("--quick", action="store_true", help=quick)
    result.add_argument("--json", type=Path, help="write the results to this file")
    return result


def write_rows(options: argparse.Namespace, rows: object) -> None:
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def peers(options: argparse.Namespace) -> list[str]:
    """The requested peers that are installed."""
    asked = [name for name in options.peers.split(",") if name]
    return [name for name in asked if version(name)]


def version(library: str) -> str | None:
    if library == "tenon":
        import tenon

        return tenon.__version__
    try:
        return importlib.metadata.version(PACKAGES.get(library, library))
    except importlib.metadata.PackageNotFoundError:
        return None


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return (
                next(line for line in file if line.startswith("model name")).split(":")[1].strip()
            )
    except (OSError, StopIteration):
        return platform.processor()


def time_unit(seconds: float) -> tuple[float, str]:
    """Factor and name of the unit in which a time is best read."""
    return next((factor, name) for limit, factor, name in UNITS if seconds < limit)


def selects(options: argparse.Namespace, case: str, group: str = "") -> bool:
    return options.only in case or options.only in group


class Report:
    def __init__(self, name: str, options: argparse.Namespace, columns: list[str] | None = None):
        """`columns`: a name for what is compared, and the peers; by default Tenon and its peers."""
        self.options = options
        self.columns = columns or ["tenon", *peers(options)]
        self.disturbed = False
        busy = use_by_others()
        if busy > FOREIGN:
            message = f"{name}: other processes use {busy:.0%} of a processor"
            if options.strict:
                sys.exit(f"{message}; refusing to measure (without --strict: a warning)")
            print(f"{message}: trust ratios, not times", file=sys.stderr)
        self.data = {
            "schema": SCHEMA,
            "benchmark": name,
            "command": " ".join(["python", os.path.basename(sys.argv[0]), *sys.argv[1:]]),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": {
                "processor": processor(),
                "processors": os.cpu_count(),
                "system": platform.platform(),
                "python": platform.python_version(),
            },
            "versions": {x: v for x in ("tenon", *PEERS, "scipy") if (v := version(x))},
            "use_by_others": round(busy, 3),
            "results": [],
        }
        self.group = None

    def selects(self, case: str, group: str = "") -> bool:
        return selects(self.options, case, group)

    def add(
        self,
        case: str,
        times: Times,
        group: str = "",
        work: tuple[float, str] | None = None,
        limit: tuple[str, float] | None = None,
        **parameters,
    ) -> None:
        """`work`: what a call does, with its unit (B, FLOP); `limit`: its name and what the machine does
        of that work per second; parameters: what the case depends on, such as elements and threads."""
        row = {
            "case": case,
            "group": group,
            "parameters": parameters,
            "seconds": {
                name: {"median": times.median(name), "best": times.best(name)}
                for name in times.rounds
            },
            "ratios": {
                peer: {"median": times.ratio(peer), "best": times.best_ratio(peer)}
                for peer in times.peers
            },
            "spread": times.spread(),
            "rounds": len(times.rounds[times.subject]),
            "clean": times.clean,
            "use_by_others": round(times.foreign, 3),
        }
        if work:
            row["work"] = {"amount": work[0], "unit": work[1], "rate": work[0] / times.median()}
            row["work"]["best_rate"] = work[0] / times.best()
        if work and limit:
            share = row["work"]["best_rate"] / limit[1]
            row["limit"] = {"name": limit[0], "rate": limit[1], "share": share}
        self.data["results"].append(row)
        self.show(row)
        self.save()

    def figures(self, case: str, values: dict[str, float], unit: str, group: str = "") -> None:
        """What is counted rather than timed: sizes, numbers of files."""
        self.data["results"].append({"case": case, "group": group, "values": values, "unit": unit})
        self.open_group(group)
        line = f"{case[:34]:34}"
        for name in self.columns:
            cell = f"{values[name]:.4g}" if name in values else "-"
            line += f"{cell:>11} {unit:4}" if name == self.columns[0] else f"{cell:>11}{'':7}"
        print(line.rstrip(), flush=True)

    def open_group(self, group: str) -> None:
        if group != self.group:
            self.group = group
            self.heading(group)

    def heading(self, group: str) -> None:
        print(f"\n{group}")
        line = f"{'':34}{self.columns[0][:11]:>11}     "
        line += "".join(f"{name[:11]:>11}{'ratio':>7}" for name in self.columns[1:])
        print(f"{line}{'to the fastest':>22}{'spread':>8}", flush=True)

    def show(self, row: dict) -> None:
        self.open_group(row["group"])
        subject, others = next(iter(row["seconds"])), self.columns[1:]
        factor, unit = time_unit(row["seconds"][subject]["median"])
        line = f"{row['case'][:34]:34}{row['seconds'][subject]['median'] * factor:11.4g} {unit:4}"
        for name in others:
            if name in row["ratios"]:
                line += f"{row['seconds'][name]['median'] * factor:11.4g}"
                line += f"{row['ratios'][name]['median']:7.2f}"
            else:
                line += f"{'-':>11}{'':7}"
        line += f"{self.to_fastest(row):>22}"
        disturbed = not row["clean"] or row["use_by_others"] > FOREIGN
        self.disturbed |= disturbed
        line += f"{row['spread']:7.0%}{NOT_CLEAN if disturbed else ' '}"
        if "work" in row:
            line += f"{row['work']['best_rate'] / 1e9:9.4g} G{row['work']['unit']}/s"
        if "limit" in row:
            line += f", {row['limit']['share']:.0%} of {row['limit']['name']}"
        print(line.rstrip(), flush=True)

    @staticmethod
    def to_fastest(row: dict) -> str:
        """Tenon's time to that of the fastest peer: median of the rounds, and best rounds."""
        if not row["ratios"]:
            return ""
        name, ratio = max(row["ratios"].items(), key=lambda each: each[1]["median"])
        return f"{name[:8]} {ratio['median']:.2f} ({ratio['best']:.2f})"

    def close(self) -> None:
        print(
            "\nMedians; ratios of times, medians of the rounds (of the best rounds); rates of the best."
        )
        if self.disturbed:
            print(
                f"{NOT_CLEAN} other processes used the machine, or its clock was slow throughout."
            )
        self.save()

    def save(self) -> None:
        """After every row: a run that is broken off leaves what it has."""
        if self.options.json:
            with open(self.options.json, "w", encoding="utf-8") as file:
                json.dump(self.data, file, indent=1)
