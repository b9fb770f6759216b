# SPDX-License-Identifier: Apache-2.0
"""What the programs beside this file share: random cases by number, a clock, and a table of
differences.

A case is a function of a random generator. It yields what it compared: a label, which says what of,
and what differs, or None. A difference that no row of the table explains makes the program end with 1.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

Checks = Iterator[tuple[str, str | None]]
Case = Callable[[random.Random], Checks]


@dataclass(frozen=True)
class Difference:
    """One that is on purpose: `label` is a regular expression for the whole label."""

    label: str
    reason: str


@dataclass
class Result:
    cases: int = 0
    compared: collections.Counter[str] = field(default_factory=collections.Counter)
    explained: collections.Counter[str] = field(default_factory=collections.Counter)
    found: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.cases} cases, {sum(self.compared.values())} comparisons"]
        lines += [f"  {count:8} {label}" for label, count in sorted(self.compared.items())]
        lines += [f"on purpose, {n} times: {reason}" for reason, n in self.explained.items()]
        return "\n".join([*lines, f"{len(self.found)} differences", *self.found])


def run_cases(
    case: Case, differences: Iterable[Difference], numbers: Iterable[int], seconds: float = 1e9
) -> Result:
    """Runs cases by their numbers until the time is over."""
    result, end = Result(), time.monotonic() + seconds
    for number in numbers:
        if time.monotonic() > end:
            break
        result.cases += 1
        label = "the case"
        try:
            for label, detail in case(random.Random(number)):
                result.compared[label.partition("[")[0].partition("(")[0].strip()] += 1
                if detail is None:
                    continue
                row = next(
                    (d for d in differences if re.fullmatch(d.label, label, re.DOTALL)), None
                )
                if row is not None:
                    result.explained[row.reason] += 1
                else:
                    result.found.append(f"case {number}: {label}: {detail}")
        except Exception:
            result.found.append(f"case {number}, after {label}: {traceback.format_exc()}")
    return result


def main(case: Case, differences: Iterable[Difference], doc: str) -> int:
    """The program: --minutes, --seed of the first case, --case to run one again."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    options = parser.parse_args()
    if options.case is not None:
        numbers: Iterable[int] = [options.case]
    else:
        numbers = range(options.seed * 1_000_000, (options.seed + 1) * 1_000_000)
    result = run_cases(case, tuple(differences), numbers, 60 * options.minutes)
    print(result)
    return 1 if result.found else 0


def apart(got: object, want: object, relative: float, absolute: float) -> str | None:
    """What differs between two arrays, in words. NaN is equal to NaN."""
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape:
        return f"got shape {a.shape}, expected {b.shape}"
    with np.errstate(invalid="ignore"):
        close = (
            (a == b)
            | (np.isnan(a) & np.isnan(b))
            | (np.abs(a - b) <= absolute + relative * np.abs(b))
        )
    if close.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"got {a[index]!r}, expected {b[index]!r} at {index} of {a.shape}"


def apart_or_refused(
    ours: Callable[[], object], theirs: Callable[[], object], relative: float, absolute: float
) -> str | None:
    """The same of what two functions give. What the peer refuses is not compared."""
    try:
        want = theirs()
    except (NotImplementedError, ValueError, RuntimeError):
        return None
    return apart(ours(), want, relative, absolute)
