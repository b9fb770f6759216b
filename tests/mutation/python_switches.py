# SPDX-License-Identifier: Apache-2.0
"""Mutants of Python functions, switched on in a running process.

A module is compiled with the change, and each function that is alive and comes from its file gets
the code object of the same name and line: methods, closures and functions that others hold alike.
Nothing is imported again, so that one session of collected tests serves every mutant. Processes that a
test forks inherit it; interpreters that a test starts (startup/sitecustomize.py) import the module with
its change.
"""

from __future__ import annotations

import gc
import inspect
import json
import mmap
import os
import sys
import threading
import types
from dataclasses import asdict, dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

from python_changes import PythonChange, changed


@dataclass(frozen=True)
class PythonMutant:
    number: int
    group: str
    file: str  # below the checkout
    line: int
    function: str
    before: str
    after: str
    change: PythonChange
    origin: str = ""

    @property
    def key(self):
        return f"{self.file} {self.function}", self.before, self.after

    def as_json(self):
        return asdict(self)

    @staticmethod
    def from_json(row):
        return PythonMutant(**{**row, "change": PythonChange(**row["change"])})


def code_objects(code: types.CodeType):
    """A code object and those of the functions in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from code_objects(each)


def _key(code: types.CodeType):
    return code.co_name, code.co_firstlineno


def keeps_closures(before: str, after: str) -> bool:
    """Whether every function closes over the same variables. A function that lives takes no other code:
    a call of `super()` that is dropped takes the variable of the class with it, for one."""
    known = {_key(each): each for each in code_objects(compile(before, "module", "exec"))}
    return all(
        each.co_freevars == known[_key(each)].co_freevars
        for each in code_objects(compile(after, "module", "exec"))
        if _key(each) in known
    )


def apply(mutant: PythonMutant, file: Path) -> int:
    """Switches a mutant on in this process; the number of functions that were changed."""
    text = changed(file.read_text(), mutant.change)
    # Modules are imported by way of links, so that files are compared as they resolve.
    real = file.resolve()
    functions = [
        each
        for each in gc.get_objects()
        if isinstance(each, types.FunctionType) and _is_file(each.__code__.co_filename, real)
    ]
    count = 0
    for name in {each.__code__.co_filename for each in functions}:
        codes: dict = {}
        for each in code_objects(compile(text, name, "exec", dont_inherit=True)):
            codes.setdefault(_key(each), each)
        for function in functions:
            new = codes.get(_key(function.__code__))
            if new is None or function.__code__.co_filename != name or new == function.__code__:
                continue
            if new.co_freevars == function.__code__.co_freevars:
                function.__code__ = new
                count += 1
    return count


def change_when_imported(mutant: PythonMutant, file: Path):
    """The same in an interpreter that has not imported the module yet."""
    get_code, real = SourceFileLoader.get_code, file.resolve()

    def get_changed(self, name):
        if Path(self.path).resolve() != real:
            return get_code(self, name)
        text = changed(real.read_text(), mutant.change)
        return compile(text, self.path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_changed  # type: ignore[method-assign]


# What an interpreter that a test starts has to know: the checkout, the file of the mutants, that of
# those that were reached, and the number of the one that is on.
_VARIABLE = "TENON_PYTHON_MUTANTS"


def join_run():
    """Do in this interpreter what the one does that started it."""
    root, plan, reached, number = json.loads(os.environ[_VARIABLE])
    mutants = [PythonMutant.from_json(row) for row in json.loads(Path(plan).read_text())]
    if not number:
        PythonSwitches(mutants, Path(root), reached).record()
        return
    (mutant,) = (each for each in mutants if each.number == number)
    change_when_imported(mutant, Path(root) / mutant.file)


_resolved: dict[str, Path] = {}


def _is_file(name: str, real: Path) -> bool:
    if name not in _resolved:
        _resolved[name] = Path(name).resolve()
    return _resolved[name] == real


class PythonSwitches:
    """Says which mutants' functions ran, here and in processes that a test started, and switches one on;
    `Runner` of session.py uses it. The mutants are those of the file `plan`."""

    def __init__(self, mutants: list[PythonMutant], root: Path, reached: str, plan: str = ""):
        self._root, self._plan, self._file = root, plan, reached
        self._mutants = {each.number: each for each in mutants}
        self._lines: dict[Path, list[PythonMutant]] = {}
        for each in mutants:
            self._lines.setdefault((root / each.file).resolve(), []).append(each)
        self._known: dict[types.CodeType, list[int]] = {}
        # A byte for each mutant, in a file that all processes of a test map.
        with open(reached, "a+b") as file:
            size = max(self._mutants, default=0) + 1
            if os.fstat(file.fileno()).st_size != size:
                file.truncate(0)
                file.truncate(size)
            self._reached = mmap.mmap(file.fileno(), size)

    def record(self):
        self._tell_interpreters(0)
        # CPython 3.11 crashes where a collection begins in a profiled generator: the frame keeps a
        # stack pointer of an earlier instruction, and the collector visits what lies below it.
        gc.disable()
        sys.setprofile(self._note)
        threading.setprofile(self._note)

    def choose(self, number: int):
        if number:
            mutant = self._mutants[number]
            apply(mutant, self._root / mutant.file)
            self._tell_interpreters(number)

    def _tell_interpreters(self, number: int):
        if self._plan and _VARIABLE not in os.environ:
            startup = str(Path(__file__).resolve().parent / "startup")
            os.environ["PYTHONPATH"] = os.pathsep.join(
                [startup, *filter(None, [os.environ.get("PYTHONPATH")])]
            )
            os.environ[_VARIABLE] = json.dumps([str(self._root), self._plan, self._file, number])

    def take_reached(self) -> list[int]:
        reached = [number for number, asked in enumerate(self._reached[:]) if asked]
        self._reached[:] = bytes(len(self._reached))
        return reached

    def _note(self, frame, event, argument):
        if event == "call":
            code = frame.f_code
            if (numbers := self._known.get(code)) is None:
                numbers = self._known[code] = self._numbers_of(code)
            for number in numbers:
                self._reached[number] = 1

    def _numbers_of(self, code: types.CodeType) -> list[int]:
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # and no module or class that is made
        if not is_function or not code.co_filename.endswith(".py"):
            return []
        mutants = self._lines.get(Path(code.co_filename).resolve(), ())
        last = max((line for *_, line in code.co_lines() if line), default=0)
        inner = [each for each in code_objects(code)]
        last = max(last, *(line for each in inner for *_, line in each.co_lines() if line), 0)
        return [each.number for each in mutants if code.co_firstlineno <= each.line <= last]
