# SPDX-License-Identifier: Apache-2.0
"""Holds a program's counts of instructions, as callgrind sees them, to their budgets.

    gate.py --budgets budgets_cpp.txt --calls 64 -- PROGRAM ARGUMENTS...   [--update]

The program counts each case twice (counting.h). The interpreter's own instructions are left out: they
are not ours and differ from version to version. So are those of counting itself. The CPU kernels' count in
a second figure: what they do with their one element is not what a call costs, but it is part of what the
caller waits for. Exits with 77, skipped, where there is no valgrind.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NOT_OURS = re.compile(r"/((lib)?python3|_ctypes|libffi|ld-|libtenon_counting)[^/]*$")
KERNELS = re.compile(r"/libtenon_cpu[^/]*$")
SLACK = 1.05  # of a new budget over its count: another compiler chooses other instructions
HEADER = """\
# Instructions for one call, at most: kernels left out, and with them. With callgrind there is no noise: a
# count over its budget is a change in the code. Written by gate.py --update, as the count of that day and
# 5 %; the ceiling is what no update of the last budget may pass.
#
# without     with  ceiling  case
"""


def instructions(dump: str) -> tuple[int, int]:
    """Of one dump: those that the objects in question ran themselves, without kernels and with them."""
    objects: dict[str, str] = {}
    path, inclusive = "", False
    total = kernels = 0
    for line in dump.splitlines():
        if line.startswith(("ob=", "cob=")):  # a callee's object is named where it is called
            keyword, number, named = re.match(r"(c?ob)=(\(\d+\)) ?(.*)", line).groups()
            named = objects.setdefault(number, named)
            if keyword == "ob":
                path = named
        elif line.startswith("calls="):
            inclusive = True  # the next line is the cost of the callee
        elif line[:1] in tuple("0123456789+-*"):
            if not inclusive and not NOT_OURS.search(path):
                total += int(line.split()[-1])
                if KERNELS.search(path):
                    kernels += int(line.split()[-1])
            inclusive = False
    return total - kernels, total


def run(command: list[str]) -> dict[str, list[tuple[int, int]]]:
    """Counts of each case, by name."""
    counts: dict[str, list[tuple[int, int]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--skip-plt=no"]
        finished = subprocess.run(
            [*valgrind, f"--callgrind-out-file={folder}/out", *command],
            capture_output=True,
            text=True,
        )
        if finished.returncode != 0:
            sys.exit(f"{finished.stdout}{finished.stderr}\nexit status {finished.returncode}")
        for file in sorted(Path(folder).glob("out.*"), key=lambda file: int(file.suffix[1:])):
            text = file.read_text()
            name = re.search(r"^desc: Trigger: Client Request: (.+) [12]$", text, re.MULTILINE)
            if name:
                counts.setdefault(name[1], []).append(instructions(text))
    return counts


def read_budgets(path: Path) -> dict[str, tuple[int, int, str]]:
    budgets = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            without, whole, ceiling, case = line.split(None, 3)
            budgets[case] = (int(without), int(whole), ceiling)
    return budgets


def problems(
    counts: dict[str, tuple[int, int]], budgets: dict[str, tuple[int, int, str]]
) -> list[str]:
    found = [f"{case}: has a budget but was not counted" for case in budgets if case not in counts]
    for case, count in counts.items():
        if case not in budgets:
            found.append(f"{case}: {count[0]} instructions, and no budget")
            continue
        *limits, ceiling = budgets[case]
        for got, limit, what in zip(
            count, limits, ("instructions", "with its kernel"), strict=True
        ):
            if got > limit:
                found.append(f"{case}: expected at most {limit} {what}, got {got}")
        if ceiling != "-" and limits[1] > int(ceiling):
            found.append(f"{case}: its budget of {limits[1]} is over the ceiling of {ceiling}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budgets", type=Path, required=True)
    parser.add_argument("--calls", type=int, required=True, help="how many calls a count holds")
    parser.add_argument("--update", action="store_true", help="write the budgets anew")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed (scripts/bootstrap.sh installs it)")
        sys.exit(77)

    twice = run(options.command)
    if not twice:
        print(
            "skipped: nothing was counted; was <valgrind/callgrind.h> missing when this was built?"
        )
        sys.exit(77)
    found = [
        f"{case}: two counts of {options.calls} calls differ, {both[0]} and {both[1]}"
        for case, both in twice.items()
        if len(set(both)) != 1
    ]
    every = {
        case: tuple(round(count / options.calls) for count in min(both))
        for case, both in twice.items()
    }
    # A crowd of plugins and operators must cost nothing at all.
    crowd = "in a crowd: "
    for case in [case for case in every if case.startswith(crowd)]:
        if twice[case] != twice[case[len(crowd) :]]:
            found.append(f"{case}: {min(twice[case])[0]}, not {min(twice[case[len(crowd) :]])[0]}")
        del every[case]

    budgets = read_budgets(options.budgets)
    if options.update:
        lines = [HEADER]
        for case, count in every.items():
            ceiling = budgets.get(case, (0, 0, "-"))[2]
            without, whole = (round(each * SLACK) for each in count)
            if ceiling != "-":
                whole = min(whole, int(ceiling))
            lines.append(f"{without:9} {whole:8}  {ceiling:>7}  {case}\n")
        options.budgets.write_text("".join(lines))
        budgets = read_budgets(options.budgets)
    for case, count in every.items():
        limits = budgets.get(case, ("-", "-"))
        print(f"{count[0]:6} of {limits[0]:>6}, {count[1]:6} of {limits[1]:>6}  {case}")
    found += problems(every, budgets)
    if found:
        print("\n" + "\n".join(found), file=sys.stderr)
        print(
            "\nIf the change is worth it, run this command with --update and say why in the commit.",
            file=sys.stderr,
        )
        sys.exit(1)


main()
