# SPDX-License-Identifier: Apache-2.0
"""Reading the text form of a program, which is what a saved program holds (docs/graphs.md).

Only the text says how sizes follow from the dimensions of a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Size:
    """An expression of dimensions: "batch*length"."""

    text: str


@dataclass(frozen=True)
class Value:
    """What a step reads or makes. `shape`: numbers, expressions of dimensions, None for what the text leaves to the
    operator's own rule."""

    id: str
    dtype: str
    shape: tuple[Any, ...]


@dataclass(frozen=True)
class Device:
    """The value of a parameter that names a device."""

    text: str


@dataclass
class Step:
    op: str
    operands: list[Any]  # those before the first that has a name: values, lists of values
    named: dict[str, Any]
    results: list[Value]
    place: str  # "model.py:12"; empty where that is unknown
    regions: list[ProgramText] = field(default_factory=list)  # of cond, while and scan
    read: set[str] = field(default_factory=set)  # the names of what given() gave

    def given(self, index: int, name: str, default: Any = None) -> Any:
        """What the step has for a parameter, which is the `index`th."""
        self.read.add(name)
        return self.operands[index] if index < len(self.operands) else self.named.get(name, default)


@dataclass
class ProgramText:
    """A program, or a region of one, whose values have ids of its own."""

    dimensions: dict[str, tuple[int, int]] = field(default_factory=dict)  # least and greatest
    inputs: list[Value] = field(default_factory=list)
    leaves: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)


class _Cursor:
    _TOKEN = re.compile(
        r'\s*("(?:[^"\\]|\\.)*"|%\d+|@\w+:\d+|-?inf\b|-?nan\b|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[\w.]+(?:::\w+)?|//|.)'
    )

    def __init__(self, line: str, number: int) -> None:
        self.line, self.number, self.at = line, number, 0

    def peek(self) -> str:
        found = self._TOKEN.match(self.line, self.at)
        return found.group(1) if found else ""

    def take(self) -> str:
        found = self._TOKEN.match(self.line, self.at)
        if not found:
            raise self.error("more")
        self.at = found.end()
        return found.group(1)

    def accept(self, text: str) -> bool:
        if self.peek() != text:
            return False
        self.take()
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"'{text}'")

    def error(self, wanted: str) -> ValueError:
        return ValueError(
            f"program, line {self.number}: expected {wanted}, got '{self.line[self.at :]}'"
        )

    def until(self, ends: str) -> str:
        """An expression of sizes: up to one of `ends` outside of parentheses."""
        begin, depth = self.at, 0
        while self.at < len(self.line):
            c = self.line[self.at]
            if depth == 0 and c in ends:
                break
            depth += (c == "(") - (c == ")")
            self.at += 1
        return self.line[begin : self.at].strip()


_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|.)")
_WORDS = {"none": None, "true": True, "false": False}


def _text_of(token: str) -> str:
    return _ESCAPE.sub(
        lambda m: chr(int(m.group(1)[1:], 16)) if len(m.group(1)) > 1 else m.group(1), token[1:-1]
    )


def _size(text: str) -> int | float | Size | None:
    if text in ("?", ""):
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return Size(text)


def read(text: str) -> ProgramText:
    """Raises NotImplementedError for what has no form in a model: writes, gradients."""
    lines = [_Cursor(line, number) for number, line in enumerate(text.splitlines(), 1)]
    return _Reader(iter(lines)).body()


class _Reader:
    """Reads a program, or a region up to its brace."""

    def __init__(self, lines: Iterator[_Cursor]) -> None:
        self.lines = lines
        self.values: dict[str, Value] = {}
        self.last = _Cursor("", 0)

    def body(self) -> ProgramText:
        program = ProgramText()
        for cursor in self.lines:
            self.last = cursor
            first = cursor.peek()
            if first == "}":
                break
            if first.startswith("%"):
                program.steps.append(self.step(cursor))
            elif first in ("input", "leaf", "constant"):
                cursor.take()
                (program.inputs if first == "input" else program.leaves).append(self.typed(cursor))
            elif first == "dimension":
                words = cursor.line.split()
                program.dimensions[words[1]] = (int(words[3]), int(words[5]))
            elif first == "return":
                bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", cursor.line)
                program.results = [self.values[name] for name in re.findall(r"%\d+", bare)]
            elif first == "grad":
                raise NotImplementedError(
                    "onnx.export: the program assigns gradients; export the forward pass alone"
                )
        return program

    def typed(self, cursor: _Cursor) -> Value:
        name = cursor.take()
        cursor.expect(":")
        dtype = cursor.take()
        cursor.expect("[")
        shape: list[Any] = []
        while not cursor.accept("]"):
            shape.append(_size(cursor.until(",]")))
            cursor.accept(",")
        cursor.take()  # the device, "cpu:0"
        cursor.expect(":")
        cursor.take()
        value = Value(name, dtype, tuple(shape))
        self.values[name] = value
        return value

    def argument(self, cursor: _Cursor) -> Any:
        token = cursor.peek()
        if token.startswith("%"):
            return self.values[cursor.take()]
        if token.startswith('"'):
            return _text_of(cursor.take())
        if token.startswith("@"):
            return Device(cursor.take()[1:])
        if token == "[":
            cursor.take()
            return self.arguments(cursor, "]")
        if token == "complex":
            cursor.take()
            cursor.expect("(")
            return complex(*self.arguments(cursor, ")"))
        plain = cursor.until(",)]")
        return _WORDS[plain] if plain in _WORDS else _size(plain)

    def arguments(self, cursor: _Cursor, end: str) -> list[Any]:
        items: list[Any] = []
        while not cursor.accept(end):
            items.append(self.argument(cursor))
            cursor.accept(",")
        return items

    def step(self, cursor: _Cursor) -> Step:
        results: list[Value] = []
        written = False
        while True:
            at = cursor.at
            cursor.take()
            if cursor.peek() == ":":
                cursor.at = at
                results.append(self.typed(cursor))
            else:
                written = True
            if not cursor.accept(","):
                break
        cursor.expect("=")
        op = cursor.take()
        cursor.expect("(")
        operands: list[Any] = []
        named: dict[str, Any] = {}
        while not cursor.accept(")"):
            at = cursor.at
            word = cursor.take()
            if re.fullmatch(r"\w+", word) and cursor.accept("="):
                named[word] = self.argument(cursor)
            else:
                cursor.at = at
                operands.append(self.argument(cursor))
            cursor.accept(",")
        cursor.accept("no_grad")
        place = ""
        if cursor.accept("at"):
            place = _text_of(cursor.take())
            cursor.expect(":")
            place += ":" + cursor.take()
        if written:
            where = f" at {place}" if place else ""
            raise NotImplementedError(
                f"onnx.export: `{op}`{where} writes into a tensor that exists, which ONNX cannot say; "
                "export the model in eval mode, and compute results anew in the place of writing in place"
            )
        made = Step(op, operands, named, results, place)
        while cursor.accept("{"):
            reader = _Reader(self.lines)
            made.regions.append(reader.body())
            cursor = reader.last
            cursor.expect("}")
        return made
