# SPDX-License-Identifier: Apache-2.0
"""Compiled functions that read data: what lies between the statements that do is compiled, and these are Python's.

A function that reads data has no program as a whole, as what it does then hangs on what was read. It is divided where that
happened (jit/syntax/parts.py): each run of other statements is a compiled function of its own, with signatures as any, which Python
calls where the run stood. So a branch on what was read is Python's, and gradients pass through the results of the parts.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

from tenon.jit.syntax import parts, source

_CALL = "__call__"
_MOST_LINES = 16


def body_of(function: Any) -> types.FunctionType | types.MethodType | None:
    """What runs when `function` is called: the function itself, or `forward` of a module without hooks."""
    if isinstance(function, (types.FunctionType, types.MethodType)):
        return function
    call = getattr(type(function), _CALL, None)
    forward = getattr(function, "forward", None)
    if getattr(call, "__module__", "") != "tenon.nn.module" or function._has_hooks:
        return None
    return forward if isinstance(forward, types.MethodType) else None


def code_of(function: Any) -> types.CodeType | None:
    body = body_of(function)
    plain = body.__func__ if isinstance(body, types.MethodType) else body
    return plain.__code__ if isinstance(plain, types.FunctionType) else None


class Divided:
    """A function in parts, as soon as a line is known at which it reads data."""

    def __init__(self, function: Any, compiled: Callable[[Any, Divided], Any]) -> None:
        """`compiled` compiles a part."""
        self._function, self._compiled = function, compiled
        self._lines: dict[int, bool] = {}  # whether what is computed there before is taken out
        self._reasons: dict[int, str] = {}
        self._driver: Callable[..., Any] | None = None
        self._parts: list[tuple[parts.Part, Any, types.CellType]] = []
        self.reason = ""  # why it is not divided

    def divide_at(self, line: int, reason: str) -> None:
        """What it does at the line cannot be recorded."""
        if self.reason or line <= 0 or len(self._lines) >= _MOST_LINES:
            return
        if self._lines.get(line) is False:  # nothing was left of it
            return
        self._lines[line] = line not in self._lines
        self._reasons[line] = reason.removeprefix("export: ").partition(" takes data past")[0]
        try:
            self._divide()
        except (parts.Unfit, SyntaxError) as error:
            self._driver, self._parts, self.reason = None, [], str(error)

    def _divide(self) -> None:
        body = body_of(self._function)
        plain = body.__func__ if isinstance(body, types.MethodType) else body
        if not isinstance(plain, types.FunctionType):
            raise parts.Unfit("it is neither a function nor a module without hooks")
        node, reason = source.tree_of(plain)
        if node is None:
            raise parts.Unfit(reason)
        cells: dict[str, types.CellType] = {}
        if isinstance(body, types.MethodType):
            every = [*node.args.posonlyargs, *node.args.args]
            if not every:
                raise parts.Unfit("its first parameter has no name")
            cells[every[0].arg] = types.CellType(body.__self__)
            (node.args.posonlyargs or node.args.args).pop(0)
        node, found = parts.divide(node, dict(self._lines), list(cells))
        made = [
            (each, self._compiled(source.function_of(each.node, plain, cells), self))
            for each in found
        ]
        calls = {each.name: types.CellType(part) for each, part in made}
        driver = source.function_of(node, plain, {**cells, **calls})
        driver.__defaults__, driver.__kwdefaults__ = plain.__defaults__, plain.__kwdefaults__
        self._parts = [(each, part, calls[each.name]) for each, part in made]
        self._driver = driver

    def function(self) -> Callable[..., Any] | None:
        """What to call in the place of the function."""
        if self._driver is None or body_of(self._function) is None:
            return None
        return self._driver

    def give_up(self, part: Any) -> None:
        """The part has no program after many calls: its function is called from here on."""
        for _, each, cell in self._parts:
            if each is part:
                cell.cell_contents = part._function

    @property
    def programs(self) -> list[Any]:
        return [program for _, part, _ in self._parts for program in part.programs]

    def explain(self) -> list[str]:
        if self.reason:
            return [f"  it is not divided where it reads data: {self.reason}"]
        if self._driver is None:
            return []
        name = os.path.basename(self._driver.__code__.co_filename)
        lines = [
            f"  divided at {name}:{line}, which Python runs, because of {self._reasons[line]}"
            for line in sorted(self._lines)
        ]
        for each, part, _ in self._parts:
            lines.append(f"  lines {each.first} to {each.last}, a part:")
            lines += [f"  {line}" for line in part.explain().splitlines()[1:]]
        return lines
