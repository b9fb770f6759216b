# SPDX-License-Identifier: Apache-2.0
"""Which changes to the Python package a run makes, and which tests may notice them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from python_changes import PythonChange, changed, changes_of_module
from python_switches import PythonMutant, keeps_closures

PACKAGE = "python_bindings/tenon"
SURPLUS = 1.5  # drawn for each that is chosen: some are known to be equivalent


@dataclass(frozen=True)
class Group:
    """A part of the package, and its part of the mutants."""

    name: str
    patterns: tuple[str, ...]
    part: float


GROUPS = (
    Group("nn", ("nn/**/*.py",), 0.27),
    Group("optim", ("optim/**/*.py",), 0.15),
    Group("data", ("data/*.py",), 0.15),
    Group("distributions", ("distributions/*.py",), 0.15),
    Group("func", ("func/*.py", "_tensor/batched.py"), 0.1),
    Group("io", ("io/*.py", "_tensor/pickling.py"), 0.08),
    Group("jit", ("jit/**/*.py",), 0.1),
)  # fmt: skip
# All tests of the package, and those of tests/ops that go through its rules for batches.
TESTS = ("tests/python/**/test_*.py", "tests/ops/test_vmap.py")
# Tests that build extensions, start plugins' processes, kill workers or fill the memory.
SLOW = ("cpp_extension", "isolated", "huge", "kills", "large", "operator_files",
        "multiprocessing", "ipc", "exchange_of_ranks", "vision_models")  # fmt: skip


def draw(root: Path, seed: int, count: int) -> list[PythonMutant]:
    """Of each group more mutants than its part of `count`, and one of a function at most.

    Functions and their changes are ordered by hashes of their names and texts: a seed gives a mutant
    the same place after other functions were added or changed, and after files were moved.
    """
    drawn: list[PythonMutant] = []
    for group in GROUPS:
        functions: dict[tuple[bytes, str, str], list[PythonChange]] = {}
        texts: dict[str, str] = {}
        for path in sorted({path for each in group.patterns for path in files(root, each)}):
            file = str(path.relative_to(root))
            texts[file] = path.read_text()
            for change in changes_of_module(texts[file]):
                rank = _hash(seed, group.name, change.function)
                functions.setdefault((rank, file, change.function), []).append(change)
        for _, file, function in sorted(functions)[: round(SURPLUS * group.part * count)]:
            changes = functions[_, file, function]
            if change := _choose(seed, texts[file], changes):
                before = " ".join(texts[file][change.start : change.end].split())
                after = " ".join(change.new.split())
                drawn.append(
                    PythonMutant(0, group.name, file, change.line, function, before, after, change)
                )
    return [replace(each, number=n) for n, each in enumerate(drawn, 1)]


def files(root: Path, pattern: str):
    return (root / PACKAGE).glob(pattern)


def _hash(*parts) -> bytes:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).digest()


def _choose(seed: int, text: str, changes: list[PythonChange]) -> PythonChange | None:
    """The first change in the seed's order that can be switched on."""

    def rank(change):
        return _hash(seed, change.function, text[change.start : change.end], change.new)

    for change in sorted(changes, key=rank):
        new = changed(text, change)
        if new is not None and keeps_closures(text, new):
            return change
    return None


def choose(drawn: list[PythonMutant], count: int, equivalent) -> list[PythonMutant]:
    """The run's mutants: of each group the first that are not known to be equivalent."""
    chosen = []
    for group in GROUPS:
        usable = [e for e in drawn if e.group == group.name and e.key not in equivalent]
        chosen += usable[: round(group.part * count)]
    return chosen


def test_files(root: Path) -> list[str]:
    found = sorted(path for pattern in TESTS for path in root.glob(pattern))
    return [str(e.relative_to(root)) for e in found if not any(w in e.name for w in SLOW)]
