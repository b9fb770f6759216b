# SPDX-License-Identifier: Apache-2.0
"""Runs programs written for PyTorch by `python -m tenon.torch`, as they are, and tells which ran.

    python -m tests.bridges.scripts LIST [--only NAME] [--timeout SECONDS]

LIST is a text file with a line `name | folder | script.py and its arguments` for each program; folders are relative to the
list. Nothing of a program is kept here. Prints a table, and last how many ran and what stopped the others, most frequent
first.
"""

from __future__ import annotations

import argparse
import collections
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Program(NamedTuple):
    name: str
    folder: Path
    arguments: list[str]


class Outcome(NamedTuple):
    ran: bool
    seconds: float
    last: str  # the last line that it printed; of one that failed, the error


def read_list(path: Path) -> list[Program]:
    programs = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        parts = [each.strip() for each in line.split("|")]
        if len(parts) != 3:
            raise ValueError(
                f"{path}: expected `name | folder | script and arguments`, got {line!r}"
            )
        programs.append(Program(parts[0], path.parent / parts[1], shlex.split(parts[2])))
    return programs


def run(program: Program, timeout: float) -> Outcome:
    """Runs the program in its folder, with one thread, without any PyTorch but Tenon."""
    command = [sys.executable, "-m", "tenon.torch", *program.arguments]
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=program.folder, capture_output=True, text=True, timeout=timeout,
            env={**os.environ, "MPLBACKEND": "Agg"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(False, timeout, f"still running after {timeout:g} s")
    seconds = time.monotonic() - start
    text = done.stdout if done.returncode == 0 else done.stderr or done.stdout
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return Outcome(done.returncode == 0, seconds, lines[-1].strip() if lines else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("--only", help="programs whose name contains this")
    parser.add_argument("--timeout", type=float, default=300.0)
    arguments = parser.parse_args()
    programs = [
        each
        for each in read_list(arguments.list)
        if not arguments.only or arguments.only in each.name
    ]
    stopped: collections.Counter[str] = collections.Counter()
    for program in programs:
        outcome = run(program, arguments.timeout)
        if not outcome.ran:
            stopped[outcome.last] += 1
        state = "ran" if outcome.ran else "ERROR"
        print(
            f"{program.name:36} {state:5} {outcome.seconds:6.1f} s  {outcome.last[:160]}",
            flush=True,
        )
    print(f"{len(programs) - stopped.total()} of {len(programs)} ran")
    for reason, count in stopped.most_common():
        print(f"{count:4}  {reason[:200]}")
    return bool(stopped)


if __name__ == "__main__":
    sys.exit(main())
