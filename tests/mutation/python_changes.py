# SPDX-License-Identifier: Apache-2.0
"""The small wrong changes to Python functions, found in their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# Text that is no result: messages of errors and warnings, and what is printed for people.
MESSAGES = {"warn", "debug", "info", "warning", "error"}
TEXT_METHODS = {"__repr__", "__str__", "extra_repr", "_repr_html_", "__format__"}

COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
ARITHMETIC = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//",
    ast.Pow: "*", ast.MatMult: "+",
}  # fmt: skip
CALLS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "log": "log1p", "log1p": "log",
    "exp": "expm1", "expm1": "exp", "sqrt": "abs", "minimum": "maximum", "maximum": "minimum",
    "sin": "cos", "cos": "sin", "sum": "max", "mean": "sum",
}  # fmt: skip
# What these give does not depend on the order of their two arguments.
SYMMETRIC = {"dot", "transpose", "minimum", "maximum", "broadcast_shapes", "isclose", "gcd"}


@dataclass(frozen=True)
class PythonChange:
    """text[start:end] of a module becomes `new`, which has as many lines."""

    function: str  # qualified name of the outermost function that holds it
    line: int
    start: int
    end: int
    new: str


class _Finder:
    def __init__(self, text: str):
        self.text = text
        starts = [0]
        for line in text.encode().split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        self._line_starts = starts
        self._bytes = text.encode()

    def span(self, node) -> tuple[int, int]:
        """Offsets in characters; the tree's columns count bytes."""
        first = self._line_starts[node.lineno - 1] + node.col_offset
        last = self._line_starts[node.end_lineno - 1] + node.end_col_offset
        return len(self._bytes[:first].decode()), len(self._bytes[:last].decode())

    def source(self, node) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def changes(self, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
        """Pairs of a node and the text in its place."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            operator = COMPARISONS[type(node.ops[0])]
            yield node, f"({self.source(node.left)} {operator} {self.source(node.comparators[0])})"
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            operator = ARITHMETIC[type(node.op)]
            yield node, f"(({self.source(node.left)}) {operator} ({self.source(node.right)}))"
        elif isinstance(node, ast.BoolOp):
            operator = " or " if isinstance(node.op, ast.And) else " and "
            yield node, f"({operator.join(f'({self.source(each)})' for each in node.values)})"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            yield node, f"({self.source(node.operand)})"
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                yield node, str(not node.value)
            elif isinstance(node.value, (int, float)):
                yield node, f"({self.source(node)} + 1)"
        elif isinstance(node, ast.IfExp):
            yield (
                node,
                f"({self.source(node.orelse)} if {self.source(node.test)} else {self.source(node.body)})",
            )
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in CALLS:
                whole = self.source(node)
                head = self.source(node.func)
                yield node, head[: len(head) - len(name)] + CALLS[name] + whole[len(head) :]
            swaps = len(node.args) == 2 and not node.keywords and name not in SYMMETRIC
            if swaps and isinstance(node.func, ast.Attribute):
                first, second = (self.source(each) for each in node.args)
                yield node, f"{self.source(node.func)}({second}, {first})"
        elif isinstance(node, (ast.Expr, ast.AugAssign, ast.Delete)):
            yield node, "pass"
        elif isinstance(node, ast.If) and any(isinstance(each, ast.Raise) for each in node.body):
            yield node.test, "False"


def _is_text(node: ast.AST) -> bool:
    """Raised errors, warnings, docstrings, f-strings and assertions, of which zip(strict=True) is one:
    nothing below them is changed."""
    if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr)):
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in MESSAGES
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _is_text(node.value)


def changes_of_module(text: str) -> list[PythonChange]:
    """Every change of the functions of a module that keeps the number of its lines."""
    finder = _Finder(text)
    found: list[PythonChange] = []

    def visit(node, function):
        for child in ast.iter_child_nodes(node):
            if _is_text(child):
                continue
            for place, new in finder.changes(child):
                start, end = finder.span(place)
                piece = text[start:end]
                new += "\n" * (piece.count("\n") - new.count("\n"))
                if new.count("\n") == piece.count("\n"):
                    found.append(PythonChange(function, place.lineno, start, end, new))
            visit(child, function)

    def outermost(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                outermost(child, f"{prefix}{child.name}.")
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if child.name not in TEXT_METHODS and not _is_overload(child):
                    for statement in child.body:
                        visit(ast.Module([statement], []), f"{prefix}{child.name}")
            elif isinstance(child, (ast.If, ast.Try)):
                outermost(child, prefix)

    outermost(ast.parse(text), "")
    return found


def _is_overload(function) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == "overload" for each in function.decorator_list
    )


def changed(text: str, change: PythonChange) -> str | None:
    """The module with its change; None if that is no Python."""
    new = text[: change.start] + change.new + text[change.end :]
    try:
        ast.parse(new)
    except SyntaxError:
        return None
    return new
