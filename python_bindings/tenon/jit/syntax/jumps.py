# SPDX-License-Identifier: Apache-2.0
"""`return`, `break` and `continue` inside of branches and loops, as flags.

A branch becomes a function of its own, which cannot leave the loop or the function around it. It sets a flag instead,
and what would not have run is guarded by it. Where a branch always leaves, what follows the `if` becomes its other
branch, so that most early returns need no flag.
"""

from __future__ import annotations

import ast

from tenon.jit.syntax.scopes import PREFIX, own_nodes

RESULT = f"{PREFIX}_result"
RETURNED = f"{PREFIX}_returned"
_LOOPS = (ast.While, ast.For)


def lower(function: ast.FunctionDef) -> None:
    """Change the function's body in place."""
    if any(
        isinstance(inner, ast.Return)
        for node in own_nodes(function.body)
        if isinstance(node, (ast.If, *_LOOPS))
        for inner in own_nodes([node])
    ):
        if not _surely_leaves(function.body, (ast.Return, ast.Raise)):
            last = function.body[-1]
            end = ast.Return(ast.Constant(None))
            ast.fix_missing_locations(ast.copy_location(end, last))
            end.lineno = end.end_lineno = last.end_lineno or last.lineno
            function.body.append(end)
        body = _Returns().block(function.body, in_loop=False)
        is_read = any(
            isinstance(node, ast.Name) and node.id == RETURNED and isinstance(node.ctx, ast.Load)
            for node in own_nodes(body)
        )
        if not is_read:
            _drop_assignments(body, RETURNED)
        else:
            body.insert(0, _assign(RETURNED, ast.Constant(False), function.body[0]))
        end = ast.Return(_load(RESULT, function.body[-1]))
        ast.copy_location(end, function.body[-1])
        function.body = [*body, end]
    function.body = _Loops().block(function.body)


class _Returns:
    """Returns as assignments; inside of loops with a break."""

    def block(self, body: list[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for index, node in enumerate(body):
            rest = body[index + 1 :]
            if isinstance(node, ast.Return):
                made.append(_assign(RESULT, node.value or ast.Constant(None), node))
                made.append(_assign(RETURNED, ast.Constant(True), node))
                if in_loop:
                    made.append(ast.copy_location(ast.Break(), node))
                return made
            if not _has(node, ast.Return):
                made.append(node)
                continue
            if isinstance(node, ast.If) and _absorb(node, rest, (ast.Return, ast.Raise)):
                rest = []
            inside = in_loop or isinstance(node, _LOOPS)
            for name, part in _blocks(node):
                is_else = name == "orelse" and isinstance(node, _LOOPS)
                _replace(node, name, part, self.block(part, in_loop if is_else else inside))
            made.append(node)
            if isinstance(node, _LOOPS) and in_loop:
                stop = ast.If(_load(RETURNED, node), [ast.Break()], [])
                made.append(ast.fix_missing_locations(ast.copy_location(stop, node)))
            elif rest and not in_loop:
                made.append(_guard([RETURNED], self.block(rest, in_loop), rest[0]))
                return made
            if isinstance(node, ast.If) and not rest:
                return made
        return made


class _Loops:
    """Breaks and continues as flags of their loop."""

    def __init__(self) -> None:
        self._count = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in body:
            for name, part in _blocks(node):
                _replace(node, name, part, self.block(part))
            made += self._loop(node) if isinstance(node, _LOOPS) else [node]
        return made

    def _loop(self, node: ast.While | ast.For) -> list[ast.stmt]:
        has_break, has_continue = _jumps(node.body, ast.Break), _jumps(node.body, ast.Continue)
        flags: list[str] = []
        self._count += 1
        broken, skipped = f"{PREFIX}_break_{self._count}", f"{PREFIX}_continue_{self._count}"
        if has_break:
            flags.append(broken)
        if has_continue:
            flags.append(skipped)
        node.broken = broken if has_break else None  # type: ignore[union-attr]
        if not flags:
            after, node.orelse = node.orelse, []
            return [node, *after]
        node.body = self._flagged(node.body, broken, skipped, flags)
        if has_continue:
            node.body.insert(0, _assign(skipped, ast.Constant(False), node))
        made: list[ast.stmt] = [_assign(name, ast.Constant(False), node) for name in flags]
        for start in made:
            start.owned_flags = flags  # type: ignore[attr-defined]
        made.append(node)
        if node.orelse:
            made.append(_guard([broken], node.orelse, node) if has_break else node.orelse[0])
            if not has_break:
                made += node.orelse[1:]
            node.orelse = []
        return made

    def _flagged(
        self, body: list[ast.stmt], broken: str, skipped: str, flags: list[str]
    ) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for index, node in enumerate(body):
            rest = body[index + 1 :]
            if isinstance(node, (ast.Break, ast.Continue)):
                flag = broken if isinstance(node, ast.Break) else skipped
                made.append(_assign(flag, ast.Constant(True), node))
                return made
            if isinstance(node, _LOOPS) or not _jumps([node], (ast.Break, ast.Continue)):
                made.append(node)
                continue
            leaving = (ast.Break, ast.Continue, ast.Return, ast.Raise)
            if isinstance(node, ast.If) and _absorb(node, rest, leaving):
                rest = []
            for name, part in _blocks(node):
                _replace(node, name, part, self._flagged(part, broken, skipped, flags))
            made.append(node)
            if rest:
                made.append(_guard(flags, self._flagged(rest, broken, skipped, flags), rest[0]))
            return made
        return made


def _blocks(node: ast.AST) -> list[tuple[object, list[ast.stmt]]]:
    """The lists of statements in a compound statement, each with where it is."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    found: list[tuple[object, list[ast.stmt]]] = []
    for name in ("body", "orelse", "finalbody"):
        part = getattr(node, name, None)
        if isinstance(part, list) and part:
            found.append((name, part))
    for child in [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]:
        found.append((child, child.body))
    return found


def _replace(node: ast.AST, where: object, old: list[ast.stmt], new: list[ast.stmt]) -> None:
    if isinstance(where, str):
        setattr(node, where, new)
    else:
        where.body = new  # type: ignore[attr-defined]


def _has(node: ast.AST, kind: type) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    return any(isinstance(inner, kind) for inner in own_nodes([node]))


def _jumps(body: list[ast.stmt], kind: type | tuple[type, ...]) -> bool:
    """Whether a break or continue of the loop around `body` is in it, and not of a loop inside."""
    for node in body:
        if isinstance(node, kind):
            return True
        for name, part in _blocks(node):
            if isinstance(node, _LOOPS) and name == "body":
                continue
            if _jumps(part, kind):
                return True
    return False


def _surely_leaves(body: list[ast.stmt], kinds: tuple[type, ...]) -> bool:
    for node in body:
        if isinstance(node, kinds):
            return True
        if isinstance(node, ast.If) and node.orelse:
            if _surely_leaves(node.body, kinds) and _surely_leaves(node.orelse, kinds):
                return True
        if isinstance(node, ast.With) and _surely_leaves(node.body, kinds):
            return True
    return False


def _absorb(node: ast.If, rest: list[ast.stmt], leaving: tuple[type, ...]) -> bool:
    """What follows an `if` becomes part of the branch that goes on, if there is only one."""
    if _surely_leaves(node.body, leaving):
        if not _surely_leaves(node.orelse, leaving):
            node.orelse = [*node.orelse, *rest]
        return True
    if _surely_leaves(node.orelse, leaving):
        node.body = [*node.body, *rest]
        return True
    return False


def _load(name: str, like: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), like)


def _assign(name: str, value: ast.expr, like: ast.AST) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.fix_missing_locations(ast.copy_location(made, like))


def _guard(flags: list[str], body: list[ast.stmt], like: ast.AST) -> ast.If:
    names: list[ast.expr] = [_load(flag, like) for flag in flags]
    test = names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)
    made = ast.If(ast.UnaryOp(ast.Not(), test), body, [])
    return ast.fix_missing_locations(ast.copy_location(made, like))


def _drop_assignments(body: list[ast.stmt], name: str) -> None:
    kept = []
    for node in body:
        for _, part in _blocks(node):
            _drop_assignments(part, name)
        is_one = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if not (is_one and node.targets[0].id == name):  # type: ignore[attr-defined]
            kept.append(node)
    body[:] = kept or [ast.Pass(lineno=1, col_offset=0)]
