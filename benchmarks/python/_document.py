# SPDX-License-Identifier: Apache-2.0
"""Puts the figures of a run into a document, between its markers, so that they are always from a run.

    python _document.py build/benchmarks docs/performance.md

    <!-- table: overhead peers=numpy,torch -->      rows of build/benchmarks/overhead.json
    <!-- table: products rows=f32.*1 thread -->     those whose "case; group" matches
    <!-- summary: memory_bound -->                  for each group: how many rows, how they stand
    <!-- cpp: benchmark_allocator -->               medians of a C++ benchmark
    <!-- exponents: scaling -->                     growth
    <!-- targets: calls -->                         targets of that section, met or not
    <!-- machine: overhead -->                      where, when and beside what
    <!-- end -->                                    after each

What lies between a marker and its end is replaced; a result that is not there leaves it as it was.
"""

from __future__ import annotations

import ast
import json
import math
import pathlib
import re
import sys

from _report import time_unit
from _targets import TARGETS, to_fastest

MARKER = re.compile(r"(<!-- (\w+): ([\w-]+)(.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
NAMES = {
    "tenon": "Tenon",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "torch": "PyTorch",
    "paddle": "Paddle",
    "jax": "JAX",
    "onnxruntime": "ONNX Runtime",
}


def options_of(text: str) -> dict[str, str]:
    """What follows a marker's name, such as: peers=numpy,torch rows=f32.*1 thread."""
    return dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", text.strip()))


def lines_of(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def duration(seconds: float) -> str:
    factor, unit = time_unit(seconds)
    return f"{number(seconds * factor)} {unit}"


def number(value: float) -> str:
    """Three digits."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def selected(data: dict, options: dict[str, str]) -> list[dict]:
    pattern = options.get("rows", "")
    return [row for row in data["results"] if re.search(pattern, f"{row['case']}; {row['group']}")]


def table(data: dict, options: dict[str, str]) -> str:
    rows = selected(data, options)
    timed = [row for row in rows if "seconds" in row]
    counted = [row for row in rows if "values" in row]
    parts = [timed_table(timed, options)] if timed else []
    parts += [counted_table(counted)] if counted else []
    return "\n".join(parts)


def timed_table(rows: list[dict], options: dict[str, str]) -> str:
    present = dict.fromkeys(peer for row in rows for peer in row["ratios"])
    peers = [each for each in options.get("peers", "").split(",") if each] or list(present)
    rates, shares = (any(key in row for row in rows) for key in ("work", "limit"))
    subject = next(iter(rows[0]["seconds"]))
    header = ["", NAMES.get(subject, "time")]
    for peer in peers:
        header += [NAMES.get(peer, peer), "ratio"]
    header += ["rate"] * rates + ["of limit"] * shares
    grouped = len({row["group"] for row in rows}) > 1
    header[1:1] = [""] * grouped
    lines = []
    for row in rows:
        name = next(iter(row["seconds"]))
        line = [
            code(row["case"]),
            *[row["group"]] * grouped,
            duration(row["seconds"][name]["median"]),
        ]
        for peer in peers:
            if peer in row["ratios"]:
                ratio = f"{row['ratios'][peer]['median']:.2f}"
                line += [duration(row["seconds"][peer]["median"]), ratio]
            else:
                line += ["-", "-"]
        if rates:
            work = row.get("work")
            line.append(f"{number(work['best_rate'] / 1e9)} G{work['unit']}/s" if work else "-")
        if shares:
            line.append(f"{row['limit']['share']:.0%}" if "limit" in row else "-")
        lines.append(line)
    return lines_of(header, lines)


def counted_table(rows: list[dict]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row["values"]))
    lines = []
    for row in rows:
        cells = [
            quantity(row["values"][name], row["unit"]) if name in row["values"] else "-"
            for name in columns
        ]
        lines.append([row["case"], *cells])
    return lines_of(["", *(NAMES.get(name, name) for name in columns)], lines)


def quantity(value: float, unit: str) -> str:
    text = str(value) if isinstance(value, int) else number(value)
    return f"{text} {unit}".strip()


def code(case: str) -> str:
    """A case that is a piece of code looks like one."""
    try:
        ast.parse(case)
    except SyntaxError:
        return case
    return case if case.isidentifier() else f"`{case}`"


def summary(data: dict, options: dict[str, str]) -> str:
    groups: dict[str, list[dict]] = {}
    for row in selected(data, options):
        if row.get("ratios"):
            groups.setdefault(row["group"], []).append(row)
    lines = []
    for group, rows in groups.items():
        ratios = sorted(((to_fastest(row), row["case"]) for row in rows), reverse=True)
        mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
        slower = sum(ratio > 1 for ratio, _ in ratios)
        worst = "; ".join(f"{case} {ratio:.2f}" for ratio, case in ratios[:3] if ratio > 1)
        lines.append([group, str(len(rows)), f"{mean:.2f}", str(slower), worst or "none"])
    header = ["", "cases", "time to the fastest peer's, geometric mean", "slower in", "most in"]
    return lines_of(header, lines)


def cpp(data: dict, options: dict[str, str]) -> str:
    pattern = options.get("rows", "")
    rows = [
        each
        for each in data["benchmarks"]
        if each.get("aggregate_name") == "median" and re.search(pattern, each["run_name"])
    ]
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    times: dict[str, dict[str, str]] = {}  # by name and by what is compared: hot<Pool>, hot<OpenMp>
    for each in rows:
        name, subject = bare(each["run_name"])
        seconds = each["real_time"] * units[each["time_unit"]]
        times.setdefault(name, {})[subject] = duration(seconds)
    subjects = list(dict.fromkeys(subject for row in times.values() for subject in row))
    lines = [
        [f"`{name}`", *(row.get(subject, "-") for subject in subjects)]
        for name, row in times.items()
    ]
    return lines_of(["", *(subject or "median" for subject in subjects)], lines)


def bare(name: str) -> tuple[str, str]:
    """A benchmark's name without how it was run, and what it has in angle brackets."""
    name = re.sub(r"/(real_time|manual_time|iterations:\d+)", "", name)
    return re.sub(r"<.*?>", "", name), "".join(re.findall(r"<(.*?)>", name))


def exponents(data: dict, options: dict[str, str]) -> str:
    libraries = ["tenon", *(peer for peer in ("numpy", "torch") if peer in data["versions"])]
    lines = []
    for name, fit in data["exponents"].items():
        cells = [f"{fit[each]:.2f}" if each in fit else "-" for each in libraries]
        lines.append([name, fit["unit"], f"{fit['expected']}", *cells])
    return lines_of(["cost of", "n", "expected", *(NAMES[each] for each in libraries)], lines)


def targets(folder: pathlib.Path, section: str) -> str:
    lines = []
    for target in (each for each in TARGETS if each.section == section or section == "all"):
        data = load(folder, target.benchmark)
        found = target.measured(data) if data else []
        if not found:
            lines.append([target.section, target.asked, "not measured", ""])
            continue
        worst = f"{found[0][0]:.2f}" + (f" ({found[0][1]})" if len(found) > 1 else "")
        met = sum(target.is_met(value) for value, _ in found)
        verdict = "yes" if met == len(found) else "no" if met == 0 else f"{met} of {len(found)}"
        lines.append([target.section, target.asked, worst, verdict])
    return lines_of(["", "target", "measured, the worst", "met"], lines)


def machine(data: dict, options: dict[str, str]) -> str:
    measured = {name for row in data["results"] for name in (*row.get("seconds", ()), "tenon")}
    versions = ", ".join(
        f"{NAMES[name]} {version}" for name, version in data["versions"].items() if name in measured
    )
    where = f"{data['machine']['processor']}, {data['machine']['processors']} processors"
    command = re.sub(r" --json \S+", "", data["command"])
    text = f"{data['date'][:10]}; {where}; {versions}. `{command}`"
    others = data["use_by_others"]
    if others > 0.05:
        text += f"; other processes used {others:.0%} of a processor when it began"
    return text + ".\n"


def load(folder: pathlib.Path, name: str) -> dict | None:
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def rendered(folder: pathlib.Path, match: re.Match) -> str:
    start, kind, name, options, old, end = match.groups()
    if kind == "targets":
        return start + targets(folder, name) + end
    data = load(folder, name)
    if data is None:
        print(f"{name}: no results, left as it was", file=sys.stderr)
        return match.group()
    makers = {each.__name__: each for each in (table, summary, cpp, exponents, machine)}
    return start + makers[kind](data, options_of(options)) + end


def main() -> None:
    folder, document = map(pathlib.Path, sys.argv[1:])
    text = document.read_text(encoding="utf-8")
    document.write_text(MARKER.sub(lambda match: rendered(folder, match), text), encoding="utf-8")


if __name__ == "__main__":
    main()
