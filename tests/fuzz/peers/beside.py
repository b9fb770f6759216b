# SPDX-License-Identifier: Apache-2.0
"""Random calls of Tenon and of a peer, until the time is over.

A program draws comparisons: the same question to both libraries, as functions without arguments. Answers
are compared number by number. A difference whose name has a row in the program's table is one on purpose;
any other is printed, and the exit status is 1. What the peer refuses is not asked of Tenon.
"""

import argparse
import collections
import dataclasses
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

SHOWN = 20  # differences in full


@dataclasses.dataclass
class Comparison:
    """One question: its name, which the table of differences knows, and what was drawn for it."""

    name: str
    drawn: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    rtol: float = 1e-5
    atol: float = 1e-6


def pick(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    """One of them, as it is: numpy's choice() makes an array of the options first."""
    return options[int(rng.integers(len(options)))]


def flat(answer: Any, path: str = "result") -> dict[str, Any]:
    """The arrays, numbers and texts in a nest, by where they are."""
    if isinstance(answer, Mapping):
        parts = [(f"{path}[{key!r}]", each) for key, each in answer.items()]
    elif isinstance(answer, (list, tuple)):
        parts = [(f"{path}[{i}]", each) for i, each in enumerate(answer)]
    else:
        return {path: answer}
    return {k: v for where, part in parts for k, v in flat(part, where).items()} or {path: ()}


def difference(got: Any, want: Any, rtol: float, atol: float) -> str | None:
    """What differs between two nests of arrays, or None."""
    ours, theirs = flat(got), flat(want)
    if list(ours) != list(theirs):
        return f"parts {list(ours)}, expected {list(theirs)}"
    for where, value in ours.items():
        other = theirs[where]
        if value is None or isinstance(value, str) or other is None or isinstance(other, str):
            if value != other:
                return f"{where}: {value!r}, expected {other!r}"
            continue
        a, b = np.asarray(value), np.asarray(other)
        if a.shape != b.shape:
            return f"{where}: shape {a.shape}, expected {b.shape}"
        kind = np.complex128 if np.iscomplexobj(a) or np.iscomplexobj(b) else np.float64
        a, b = a.astype(kind), b.astype(kind)
        close = np.isclose(a, b, rtol, atol, equal_nan=True)
        if not close.all():
            at = tuple(int(i) for i in np.argwhere(~close)[0])
            return f"{where}{list(at)}: {a[at]}, expected {b[at]} ({(~close).sum()} of {a.size})"
    return None


def judge(comparison: Comparison) -> str | None:
    """What differs, or None; raises what the peer raises."""
    want = comparison.theirs()
    try:
        got = comparison.ours()
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"
    return difference(got, want, comparison.rtol, comparison.atol)


@dataclasses.dataclass
class Report:
    calls: collections.Counter
    skipped: collections.Counter  # refused by the peer
    on_purpose: collections.Counter
    found: list[tuple[Comparison, str]]

    def __str__(self) -> str:
        lines = [
            f"{sum(self.calls.values())} calls of {len(self.calls)} kinds compared, "
            f"{sum(self.skipped.values())} refused by the peer, "
            f"{sum(self.on_purpose.values())} different on purpose, {len(self.found)} different"
        ]
        by_name = collections.Counter(comparison.name for comparison, _ in self.found)
        lines += [f"  {name}: {count} times" for name, count in by_name.most_common()]
        for comparison, text in self.found[:SHOWN]:
            lines.append(f"{comparison.name} {comparison.drawn}\n    {text}")
        return "\n".join(lines)


def compare(comparisons: Iterable[Comparison], known: Mapping[str, str]) -> Report:
    report = Report(collections.Counter(), collections.Counter(), collections.Counter(), [])
    for comparison in comparisons:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = judge(comparison)
        except Exception:
            report.skipped[comparison.name] += 1
            continue
        report.calls[comparison.name] += 1
        if text is None:
            continue
        if comparison.name in known:
            report.on_purpose[comparison.name] += 1
        else:
            report.found.append((comparison, text))
    return report


def drawn(
    draw: Callable[[np.random.Generator], Iterable[Comparison]], seed: int, minutes: float
) -> Iterable[Comparison]:
    """Comparisons of one seed after the other, until the minutes are over."""
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        yield from draw(np.random.default_rng(seed))
        seed += 1


def main(
    draw: Callable[[np.random.Generator], Iterable[Comparison]], known: Mapping[str, str]
) -> None:
    """The command line of a program of comparisons."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    report = compare(drawn(draw, options.seed, options.minutes), known)
    print(report)
    for name, reason in known.items():
        print(f"on purpose: {name} ({report.on_purpose[name]}): {reason}")
    sys.exit(1 if report.found or not report.calls else 0)
