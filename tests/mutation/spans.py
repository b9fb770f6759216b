# SPDX-License-Identifier: Apache-2.0
"""Finds the pieces of C++ functions that a mutant may replace.

This is no C++ parser. It knows brackets, control statements and where a simple statement ends, and
relies on the formatter's habits (spaces around binary operators, none around template brackets).
What it takes for something else does not compile, and build.py drops that mutant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Span:
    """text[start:end] of a file; `kind` says how a switch is put around it.

    statement: an expression and its semicolon; return: the same of a return statement;
    condition, step: of a loop or an if; init: what a variable is initialised with.
    """

    kind: str
    start: int
    end: int
    function: str
    guard: bool = False  # a condition under which the function fails


def blank(text: str) -> str:
    """The text at the same length without comments, preprocessor lines and contents of strings."""
    pattern = re.compile(
        r"""(?P<comment>//[^\n]*|/\*.*?\*/)
          | (?P<raw>R"\((?:.*?)\)")
          | (?P<string>"(?:\\.|[^"\\\n])*")
          | (?P<char>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')
          | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)""",
        re.VERBOSE | re.DOTALL | re.MULTILINE,
    )

    def hide(match):
        found = match.group(0)
        if match.lastgroup in ("string", "char", "raw"):
            return found[0] + "_" * (len(found) - 2) + found[-1]
        return re.sub(r"[^\n]", " ", found)

    return pattern.sub(hide, text)


def without_comments(text: str) -> str:
    """Code on one line, for the copy of a span that has the change."""
    code = blank(text)
    kept = "".join(t if b != " " else " " for t, b in zip(text, code))
    return " ".join(kept.split())


def closing(text: str, start: int) -> int:
    """Where the bracket at `start` is closed."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth == 0:
                return i
    raise ValueError(f"bracket at {start} is not closed")


def top_level(text: str, start: int, end: int, wanted: str) -> list[int]:
    """Where the characters `wanted` stand outside of brackets."""
    found, i = [], start
    while i < end:
        if text[i] in wanted:
            found.append(i)
        i = closing(text, i) + 1 if text[i] in PAIRS else i + 1
    return found


def find_spans(text: str) -> list[Span]:
    return Finder(text).spans


class Finder:
    def __init__(self, text: str):
        self.code = blank(text)
        self.spans: list[Span] = []
        self.function = ""
        self.scope(0, len(self.code))

    # -- outside of functions ----------------------------------------------------------------------
    def scope(self, start: int, end: int):
        """A file, a namespace or a class."""
        i = head = start
        while i < end:
            c = self.code[i]
            if c in ";}":
                head = i + 1
            elif c in "([":
                i = closing(self.code, i)
            elif c == "{":
                last = closing(self.code, i)
                self.braces(self.code[head:i], i, last)
                i = last
                if self.code[i + 1 : i + 2] != ";":
                    head = i + 1
            i += 1

    def braces(self, header: str, start: int, end: int):
        header = re.sub(r"^\s*template\s*<.*?>(?=\s*[\w:\[])", " ", header, flags=re.DOTALL).strip()
        header = re.sub(r"^(public|private|protected):\s*", "", header)
        if re.match(r"(inline\s+)?namespace\b|extern\b", header):
            self.scope(start + 1, end)
        elif re.match(r"(struct|class|union)\b", header):
            self.scope(start + 1, end)
        elif "constexpr" not in header and self.is_function(header):
            names = re.findall(r"([\w~]+)\s*\(([^()]*)", header)
            macro = re.match(r"[A-Z_]+$", names[0][0]) if names else None
            self.function = (names[0][1] if macro else names[0][0]) if names else ""
            self.block(start + 1, end)

    @staticmethod
    def is_function(header: str) -> bool:
        bare = re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "()", header)
        return "()" in bare and "=" not in bare and not bare.startswith("enum")

    # -- inside of functions -----------------------------------------------------------------------
    def block(self, start: int, end: int):
        i = start
        while (i := self.skip(i)) < end:
            i = self.statement(i, end)

    def skip(self, i: int) -> int:
        while i < len(self.code) and (self.code[i].isspace() or self.code[i] in ";}"):
            i += 1
        return i

    def statement(self, i: int, end: int) -> int:
        """Records what the statement at i has, and returns where it ends."""
        code = self.code
        if code[i] == "{":
            last = closing(code, i)
            self.block(i + 1, last)
            return last + 1
        word = re.match(r"\w*", code[i:]).group(0)
        if word in ("if", "while", "for", "switch"):
            return self.control(word, i, end)
        if word in ("else", "do", "try"):
            return self.statement(self.skip(i + len(word)), end)
        if word in ("case", "default"):
            colon = re.compile(r"(?<!:):(?!:)").search(code, i, end)
            return colon.end() if colon else end
        stop = next(iter(top_level(code, i, end, ";")), end - 1) + 1
        self.simple(word, i, stop)
        return stop

    def control(self, word: str, i: int, end: int) -> int:
        code = self.code
        opening = code.index("(", i)
        last = closing(code, opening)
        body = self.skip(last + 1)
        if "constexpr" not in code[i:opening]:
            marks = top_level(code, opening + 1, last, ";")
            if word in ("if", "while") and not marks and not self.assigns(opening + 1, last):
                fails = r"\{?\s*return (shapes::)?fail"
                guard = word == "if" and re.match(fails, code[body:]) is not None
                self.add("condition", opening + 1, last, guard)
            if word == "for" and len(marks) == 2:
                self.declared(opening + 1, marks[0])
                self.add("condition", marks[0] + 1, marks[1])
                self.add("step", marks[1] + 1, last)
        return self.statement(body, end) if body < end else end

    def assigns(self, start: int, end: int) -> bool:
        return any(
            code_is_assignment(self.code, at) for at in top_level(self.code, start, end, "=")
        )

    def simple(self, word: str, start: int, stop: int):
        """An expression statement, a declaration or a return: braces in it are looked into."""
        code = self.code
        lambdas = list(self.lambdas(start, stop))
        for opening, last in lambdas:
            self.block(opening + 1, last)
        if lambdas or word in ("static", "using", "typedef", "struct", "class", "enum", "template"):
            return
        if word in ("constexpr", "static_assert", "break", "continue", "goto", "asm", "delete", ""):
            if code[start] not in "*+-(":
                return
        if word == "return":
            if code[start:stop].strip() != "return;":
                self.add("return", start, stop)
            return
        assignment = next(
            (at for at in top_level(code, start, stop, "=") if code_is_assignment(code, at)), None
        )
        if assignment is not None and is_declaration(code[start:assignment]):
            self.declared(start, stop - 1)
        elif assignment is not None or re.match(
            r"[\w:.>\-<*+(\[\]]+\(|\+\+|--|\(|\*", code[start:]
        ):
            self.add("statement", start, stop)
        elif re.search(r"[^=!<>]=[^=]", code[start:stop]):  # += and its like
            self.add("statement", start, stop)

    def lambdas(self, start: int, stop: int):
        """Braces of code within an expression, outermost first."""
        i = start
        while i < stop:
            if self.code[i] == "{":
                before = self.code[start:i].rstrip()
                last = closing(self.code, i)
                if re.search(r"(\)|\]|mutable|noexcept|-> [\w:<>*& ]+)$", before) and "[" in before:
                    yield i, last
                i = last
            i += 1

    def declared(self, start: int, end: int):
        """The initialisers of `T a = x, b = y`."""
        code = self.code
        commas = top_level(code, start, end, ",")
        for first, last in zip([start, *(c + 1 for c in commas)], [*commas, end]):
            at = next(
                (a for a in top_level(code, first, last, "=") if code_is_assignment(code, a)), None
            )
            if at is not None and "{" not in code[at:last]:
                self.add("init", at + 1, last)

    def add(self, kind: str, start: int, end: int, guard: bool = False):
        while start < end and self.code[start].isspace():
            start += 1
        while start < end and self.code[end - 1].isspace():
            end -= 1
        if start < end:
            self.spans.append(Span(kind, start, end, self.function, guard))


def code_is_assignment(code: str, at: int) -> bool:
    """Whether the `=` stands alone, and is no part of ==, <= or +=."""
    return code[at + 1] != "=" and code[at - 1] not in "=!<>+-*/%&|^"


def is_declaration(before: str) -> bool:
    """Whether what stands left of `=` names a type first."""
    bare = re.sub(r"\[[^\[\]]*(\[[^\[\]]*\])*[^\[\]]*\]|\([^()]*\)", "", before).strip()
    return re.match(r"[\w:<>,\s*&]+[\s*&]+\w+$", bare) is not None and not bare.startswith("*")
