# SPDX-License-Identifier: Apache-2.0
"""Which mutants a run makes: a seed's order over every change that the sources allow."""

from __future__ import annotations

import random
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from changes import Change, call_changes_of, changes_of
from spans import Span, find_spans, without_comments

GENERATED = "build/release/gen"


@dataclass(frozen=True)
class Group:
    """A kind of source, and its part of the mutants."""

    name: str
    patterns: tuple[str, ...]
    part: float
    per_file: int
    per_function: int
    expressions: bool = False  # generated calls of operators


# Not drawn from: tables of numbers, vector instructions that this library's own C++ tests measure in
# units of the last place (headers of math/), and code for matrix tiles, which few processors have.
LEFT_OUT = re.compile(
    r"_table\.hpp$|/math/.*\.hpp$|amx|/isa\.hpp$|/table\.(cpp|hpp)$|kernels/kernel\.cpp$"
)
# Sources that serve such processors alone, by names that do not say so. They are drawn, and not chosen.
OTHER_PROCESSORS = re.compile(r"/conv/flat")
GROUPS = (
    Group("kernel", ("plugins/cpu/kernels/**/*.cpp", "plugins/cpu/kernels/**/*.hpp"), 0.35, 3, 1),
    Group("gradient", (f"{GENERATED}/autograd/rules.cpp",), 0.2, 1000, 1, True),
    Group("expression", (f"{GENERATED}/cpu/elementwise_*.cpp", f"{GENERATED}/cpu/reduction_*.cpp"),
          0.1, 10, 1),
    Group("composite", (f"{GENERATED}/standard_ops/decompose_*.cpp",), 0.05, 4, 1, True),
    Group("shape", ("plugins/standard_ops/shapes/*.cpp", "plugins/standard_ops/shapes/*.hpp"),
          0.3, 10, 4),
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    number: int
    group: str
    file: str
    line: int
    function: str
    origin: str  # the line of the operator file that a generated line comes from
    before: str
    after: str
    span: Span
    change: Change

    @property
    def key(self):
        """What names the mutant while lines move: the list of equivalent ones is by key."""
        return self.file, self.before, self.after

    def as_json(self):
        return asdict(self)

    @staticmethod
    def from_json(row):
        return Mutant(**{**row, "span": Span(**row["span"]), "change": Change(**row["change"])})


def changed(text: str, span: Span, change: Change) -> str:
    """The span's text with its change, on one line."""
    if change.what == "drop":
        return ";"
    if change.what == "never":
        return "false"
    whole = text[span.start : change.start] + change.new + text[change.end : span.end]
    return without_comments(whole)


def origin_of(text: str, at: int) -> str:
    """The last `// file.yaml:12` before a place in a generated file."""
    marks = re.findall(r"// (\w+\.yaml:\d+)", text[: text.find("\n", at)])
    return f"opdefs/{marks[-1]}" if marks else ""


def is_composite(root: Path, origin: str) -> bool:
    """Only their decompositions run where every kernel is there."""
    file, line = origin.rsplit(":", 1)
    lines = (root / file).read_text().splitlines()
    first = int(line) - 1
    while not lines[first].startswith("- op:"):
        first -= 1
    for each in lines[first + 1 :]:
        if each.startswith("- op:"):
            break
        if re.match(r"\s+kind: composite", each):
            return True
    return False


def eligible(group: Group, span: Span, text: str, root: Path) -> bool:
    if group.name == "expression":
        # The lambda of an elementwise loop, or a method of a reduction.
        piece = text[span.start : span.end]
        return not span.function.startswith("run_") and "run_loop" not in piece
    if group.name == "composite":
        return is_composite(root, origin_of(text, span.start))
    return True


def candidates(group: Group, root: Path) -> list[Mutant]:
    found = []
    for pattern in group.patterns:
        for path in sorted(root.glob(pattern)):
            file = str(path.relative_to(root))
            if LEFT_OUT.search(file):
                continue
            text = path.read_text()
            for span in find_spans(text):
                if not eligible(group, span, text, root):
                    continue
                options = call_changes_of if group.expressions else changes_of
                before = without_comments(text[span.start : span.end])
                for change in options(text, span):
                    line = text.count("\n", 0, change.start) + 1
                    origin = origin_of(text, span.start) if file.startswith(GENERATED) else ""
                    after = changed(text, span, change)
                    found.append(Mutant(0, group.name, file, line, span.function, origin, before,
                                        after, span, change))  # fmt: skip
    return found


def draw(root: Path, seed: int, count: int, surplus: float = 1.8) -> list[Mutant]:
    """More mutants than `count`: some will not compile, and some are known to be equivalent.

    A span has one mutant at most. A file and a function have few, so that they spread.
    """
    drawn = []
    for group in GROUPS:
        pool = candidates(group, root)
        # A span with many changes is not drawn more often than one with few.
        order = random.Random(f"{seed} {group.name}")
        by_span: dict = {}
        for each in pool:
            by_span.setdefault((each.file, each.span.start, each.span.end), []).append(each)
        spans = list(by_span.values())
        order.shuffle(spans)
        per_file: dict = {}
        per_function: dict = {}
        wanted = round(count * group.part * surplus)
        for options in spans:
            each = order.choice(options)
            place = (each.file, each.function)
            if per_file.get(each.file, 0) >= group.per_file * surplus:
                continue
            if per_function.get(place, 0) >= group.per_function:
                continue
            if wanted == 0:
                break
            wanted -= 1
            per_file[each.file] = per_file.get(each.file, 0) + 1
            per_function[place] = per_function.get(place, 0) + 1
            drawn.append(each)
    return [Mutant(**{**vars(each), "number": n}) for n, each in enumerate(drawn, 1)]


def choose(drawn: list[Mutant], count: int, usable) -> list[Mutant]:
    """The run's mutants: of each group the first that are usable."""
    chosen = []
    for group in GROUPS:
        of_group = [
            each
            for each in drawn
            if each.group == group.name and usable(each) and not OTHER_PROCESSORS.search(each.file)
        ]
        chosen += of_group[: round(count * group.part)]
    return chosen


def read_equivalent(path: Path) -> dict:
    """The mutants that no test can notice, each with its reason, by their key.

    An entry is four lines: the file, `- ` what stands there, `+ ` what the mutant has, and why.
    """
    if not path.exists():
        return {}
    found, file, before, after = {}, "", "", ""
    for line in path.read_text().splitlines():
        if line.startswith("- "):
            before = line[2:]
        elif line.startswith("+ "):
            after = line[2:]
        elif line.startswith("why: "):
            found[file, before, after] = line[5:]
        elif line and not line.startswith("#"):
            file = line.strip()
    return found
