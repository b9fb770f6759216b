# SPDX-License-Identifier: Apache-2.0
"""Which names a part of a function binds, and which tensors it writes into."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
PREFIX = "_tenon"  # of names that rewritten code adds


def own_nodes(parts: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that run in the function's own scope: those of functions and classes inside do not."""
    stack = list(parts)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.Lambda):
            stack += [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            stack += [*node.decorator_list, *node.args.defaults]
            stack += filter(None, node.args.kw_defaults)
        elif isinstance(node, ast.ClassDef):
            stack += [*node.decorator_list, *node.bases]
        elif isinstance(node, _COMPREHENSIONS):
            # Its variables are its own, those of := in it are the function's.
            stack += [child for child in ast.walk(node) if isinstance(child, ast.NamedExpr)]
        else:
            stack += list(ast.iter_child_nodes(node))[::-1]


def bound(parts: Iterable[ast.AST]) -> list[str]:
    """The names that `parts` assign, in their order. Flags of a loop are the loop's own and not among them."""
    names: dict[str, None] = {}
    own: set[str] = set()
    for node in own_nodes(parts):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = None
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            names[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names[node.rest] = None
        elif isinstance(node, ast.NamedExpr):
            names[node.target.id] = None
        own.update(getattr(node, "owned_flags", ()))
    return [name for name in names if name not in own]


def written(parts: Iterable[ast.AST]) -> set[str]:
    """Names whose tensors `parts` may write into: x += 1, x[0] = 1, x.add_(1), f(out=x)."""
    names: set[str] = set()
    for node in own_nodes(parts):
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            target = node
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "out" and isinstance(keyword.value, ast.Name):
                    names.add(keyword.value.id)
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name.endswith("_") and not name.startswith("_"):
                target = node.func.value  # type: ignore[attr-defined]
        while isinstance(target, (ast.Subscript, ast.Attribute, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            names.add(target.id)
    return names


class Scope:
    """The names of one function."""

    def __init__(self, node: ast.FunctionDef | ast.Lambda) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a]
        self.parameters = [argument.arg for argument in every]
        body = node.body if isinstance(node.body, list) else [node.body]
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        for part in own_nodes(body):
            if isinstance(part, ast.Global):
                self.globals.update(part.names)
            elif isinstance(part, ast.Nonlocal):
                self.nonlocals.update(part.names)
        names = {*self.parameters, *bound(body)} - self.globals - self.nonlocals
        self.locals = names

    def declaration(self, names: Iterable[str]) -> list[ast.stmt]:
        """What makes a function inside of this one assign its variables."""
        names = list(names)
        outer = [name for name in names if name not in self.globals]
        every = [name for name in names if name in self.globals]
        made: list[ast.stmt] = []
        if outer:
            made.append(ast.Nonlocal(outer))
        if every:
            made.append(ast.Global(every))
        return made
