# SPDX-License-Identifier: Apache-2.0
"""The small wrong changes: what may take the place of a piece of a span's text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spans import Span, blank, closing, top_level


@dataclass(frozen=True)
class Change:
    """text[start:end] becomes `new`; or all of the span goes, or its condition never holds."""

    start: int
    end: int
    new: str
    what: str = "replace"  # or: drop, never


# Text that marks what is no result: messages, hints to caches, shares of threads.
UNTOUCHED = re.compile(
    r"fail\(|fail_format\(|prefetch|ask_for_row|TENON_ASSERT|assert\(|reserve\(|scope\.(ok|status)"
)
OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+",
    "/": "*", "%": "/", "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "*=": "=", "|=": "=",
    "<<": ">>", ">>": "<<",
}  # fmt: skip
FUNCTIONS = {
    "min": "max", "max": "min", "fmin": "fmax", "fmax": "fmin", "sin": "cos", "cos": "sin",
    "sinh": "cosh", "cosh": "sinh", "asin": "acos", "acos": "asin", "floor": "ceil", "ceil": "floor",
    "exp": "expm1", "expm1": "exp", "log": "log1p", "log1p": "log", "sqrt": "cbrt", "rsqrt": "sqrt",
    "begin": "end",
}  # fmt: skip
# Operators whose call becomes another's with the same arguments.
CALLS = {
    "add": "subtract", "subtract": "add", "multiply": "add", "divide": "multiply",
    "minimum": "maximum", "maximum": "minimum", "sin": "cos", "cos": "sin", "sinh": "cosh",
    "cosh": "sinh", "exp": "expm1", "log": "log1p", "sqrt": "cbrt", "greater": "less",
    "less": "greater", "greater_equal": "less", "less_equal": "greater", "equal": "not_equal",
    "logical_and": "logical_or", "logical_or": "logical_and", "abs": "sign", "sign": "abs",
    "square": "abs",
}  # fmt: skip
SWAPPED = ("subtract", "divide", "matmul", "pow", "greater", "less", "atan2")


def changes_of(text: str, span: Span) -> list[Change]:
    """Every change of a span in hand-written code, or in a generated scalar expression."""
    piece = blank(text[span.start : span.end])
    if UNTOUCHED.search(piece):
        return []
    found = [Change(a, b, new) for a, b, new in token_changes(piece)]
    if span.kind == "statement":
        found.append(Change(0, len(piece), "", "drop"))
    if span.guard:
        found = [Change(0, len(piece), "", "never"), *found]
    return [Change(span.start + c.start, span.start + c.end, c.new, c.what) for c in found]


def token_changes(piece: str):
    for match in re.finditer(
        r"(?<=\s)(\+=|-=|\*=|\|=|<=|>=|==|!=|<<|>>|&&|\|\||[-+*/%<>])(?=\s)", piece
    ):
        yield match.start(), match.end(), OPERATORS[match.group(0)]
    for match in re.finditer(r"(?<![\w.<])(\d+)(?![\w.>])", piece):
        value = int(match.group(1))
        yield match.start(), match.end(), str(value + 1)
        if value == 1:
            yield match.start(), match.end(), "0"
    for match in re.finditer(r"(?<![\w.])\d+\.\d*(?:e[-+]?\d+)?(?![\w.])", piece):
        yield match.start(), match.end(), f"({match.group(0)} + 1)"
    for match in re.finditer(r"\b(true|false)\b", piece):
        yield match.start(), match.end(), "false" if match.group(0) == "true" else "true"
    for match in re.finditer(r"(?<=std::|ath::)(\w+)(?=[<(])", piece):
        if match.group(1) in FUNCTIONS:
            yield match.start(), match.end(), FUNCTIONS[match.group(1)]
    for match in re.finditer(r"(?<![\w)\]])!(?=[\w(:])", piece):
        yield match.start(), match.end(), ""
    for match in re.finditer(r"(?<=[(,=?:\s])-(?=[a-zA-Z(])", piece):
        if not re.search(r"[\w)\]]\s+$", piece[: match.start()]) or re.search(
            r"\breturn\s+$", piece[: match.start()]
        ):
            yield match.start(), match.end(), ""
    for match in re.finditer(r"(?<=\[)([a-z]\w*)(?=\])", piece):
        yield match.start(), match.end(), f"{match.group(1)} + 1"


def call_changes_of(text: str, span: Span) -> list[Change]:
    """Every change of a generated expression of operator calls: a gradient or a decomposition."""
    piece = text[span.start : span.end]
    if "tenon::ops::" not in piece:
        return []
    found = []
    for match in re.finditer(r"(?:tenon::ops|expression)::(?:fold_)?(\w+)\(", piece):
        found += changes_of_call(piece, match)
    for match in re.finditer(r"(?<![\w.])(\d+)(\.\d+)?(?![\w.])", blank(piece)):
        if re.search(r"(args\[|outs\[|device_of_any\(\w+, )$", piece[: match.start()]):
            continue  # what the generator looks up
        if match.group(2):
            found.append(Change(match.start(), match.end(), f"({match.group(0)} + 1)"))
        else:
            found.append(Change(match.start(), match.end(), str(int(match.group(1)) + 1)))
    for match in re.finditer(r"\b(true|false)\b", piece):
        new = "false" if match.group(0) == "true" else "true"
        found.append(Change(match.start(), match.end(), new))
    return [Change(span.start + c.start, span.start + c.end, c.new, c.what) for c in found]


def changes_of_call(piece: str, match: re.Match):
    name, opening = match.group(1), match.end() - 1
    last = closing(piece, opening)
    folded = "::fold_" in match.group(0)
    commas = top_level(piece, opening + 1, last, ",")
    starts = [opening + 1, *(c + 1 for c in commas)]
    args = [piece[a:b].strip() for a, b in zip(starts, [*commas, last])]
    if args[:1] != ["scope"]:
        return
    args = args[1:-1] if folded else args[1:]

    def call(other, *operands):
        fold = f"expression::fold_{other}" if folded else f"tenon::ops::{other}"
        tail = [f"tenon::ops::{other}"] if folded else []
        return Change(match.start(), last + 1, f"{fold}({', '.join(['scope', *operands, *tail])})")

    if name in CALLS:
        yield call(CALLS[name], *args)
    if name in ("multiply", "divide") and len(args) == 2:
        yield call(name, args[0], "1")
        if name == "multiply":
            yield call(name, "1", args[1])
    if name in ("add", "subtract") and len(args) == 2:
        yield call(name, args[0], "0")
    if name in SWAPPED and len(args) == 2:
        yield call(name, args[1], args[0])
    if name == "where" and len(args) == 3:
        yield call(name, args[0], args[2], args[1])
    if name == "negative" and len(args) == 1:
        text = f"tenon::ops::multiply(scope, {args[0]}, 1)"
        yield Change(match.start(), last + 1, text)
