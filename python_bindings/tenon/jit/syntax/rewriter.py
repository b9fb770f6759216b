# SPDX-License-Identifier: Apache-2.0
"""Calls of `runtime` in the place of `if`, `while`, `for`, `and`, `or`, `not`, conditional expressions and calls."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterable

import tenon
from tenon.jit.syntax import jumps
from tenon.jit.syntax.scopes import PREFIX, Scope, bound, own_nodes, written

RUNTIME = PREFIX  # the name by which rewritten code knows the module `runtime`
_CONSTRUCTS = (ast.If, ast.While, ast.For)
_READ_ALL = {"locals", "eval", "exec", "vars", "dir"}  # they would see what was added
_CONVERTED = {"range", "map", "filter", "super"}  # builtins that look at their arguments


def refusal(node: ast.AST) -> str:
    """Why a function is left as it is, or ""."""
    if isinstance(node, ast.AsyncFunctionDef):
        return "it is a coroutine"
    body = node.body if isinstance(node.body, list) else [node.body]  # type: ignore[attr-defined]
    for part in own_nodes(body):
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return "it is a generator"
        if isinstance(part, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return "it awaits"
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            if part.func.id in _READ_ALL and not (part.func.id == "vars" and part.args):
                return f"it calls {part.func.id}()"
    return ""


def rewrite(
    node: ast.FunctionDef | ast.Lambda, plain: frozenset[str]
) -> ast.FunctionDef | ast.Lambda:
    """The function, rewritten; `node` itself is changed. Calls of names in `plain` are left alone."""
    return _Rewriter(plain, None, None).function(node)


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function, and with others of its kind those inside."""

    def __init__(self, plain: frozenset[str], outer: _Rewriter | None, first: str | None) -> None:
        self._plain, self._outer, self._first = plain, outer, first
        self._scope: Scope | None = None
        self._tracked: set[str] = set()  # names that may hold no value: every use of them asks
        self._count = 0

    def function(self, node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef | ast.Lambda:
        if isinstance(node, ast.FunctionDef):
            jumps.lower(node)
        self._scope = scope = Scope(node)
        if scope.parameters and isinstance(node, ast.FunctionDef):
            self._first = scope.parameters[0]
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            return node
        inside = [part for part in own_nodes(node.body) if isinstance(part, _CONSTRUCTS)]
        self._tracked = {name for name in bound(inside) if not name.startswith(PREFIX)}
        starts = [
            self._at(node.body[0], f"{name} = {RUNTIME}.Unset({name!r})")
            for name in bound(inside)
            if name in scope.locals and name not in (*scope.parameters, jumps.RETURNED)
        ]
        declared = [part for part in node.body if isinstance(part, (ast.Global, ast.Nonlocal))]
        # The docstring stays where it is, and declarations stand before what they speak of.
        head = node.body[: 1 if ast.get_docstring(node, clean=False) is not None else 0]
        rest = [part for part in node.body[len(head) :] if part not in declared]
        node.body = [*head, *declared, *starts, *self._block(rest)]
        node.body = node.body or [ast.Pass()]
        return node

    # -- statements ----------------------------------------------------------------------------------------

    def _block(self, body: Iterable[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in body:
            result = self.visit(node)
            made += result if isinstance(result, list) else [result]
        return made

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        number = self._next()
        names = self._state([*node.body, *node.orelse])
        changed = self._changed([*node.body, *node.orelse])
        then = self._define(f"{PREFIX}_then_{number}", node.body, node)
        other = self._define(f"{PREFIX}_else_{number}", node.orelse, node) if node.orelse else None
        call = self._call("if_", node.test, [self._test(node.test), _name(then.name)])
        call.args.append(_name(other.name) if other else ast.Constant(None))
        return self._finish(node, call, number, names, changed, [then, *([other] if other else [])])

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        if any(isinstance(part, ast.NamedExpr) for part in own_nodes([node.test])):
            return self._while_assigning(node)
        number = self._next()
        names, changed = self._state([node]), self._changed([node])
        test: ast.expr = node.test
        if node.broken:  # type: ignore[attr-defined]
            flag = _name(node.broken)  # type: ignore[attr-defined]
            test = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), flag), test])
            _place(test, node.test)
        condition = ast.Return(self._test(test))
        ast.copy_location(condition, node.test)
        define = self._function(f"{PREFIX}_test_{number}", [condition], node)
        body = self._define(f"{PREFIX}_body_{number}", node.body, node)
        call = self._call("while_", node.test, [_name(define.name), _name(body.name)])
        return self._finish(node, call, number, names, changed, [define, body])

    def _while_assigning(self, node: ast.While) -> list[ast.stmt]:
        """With := in the test: the test is a statement before the loop and at the end of its body."""
        name = f"{PREFIX}_go_{self._next()}"
        first = ast.Assign([ast.Name(name, ast.Store())], node.test)
        _place(first, node.test)
        again: ast.stmt = copy.deepcopy(first)
        first.owned_flags = [name]  # type: ignore[attr-defined]
        if node.broken:  # type: ignore[attr-defined]
            flag = _name(node.broken)  # type: ignore[attr-defined]
            again = ast.If(ast.UnaryOp(ast.Not(), flag), [again], [])
            _place(again, node.test)
        loop = ast.While(_place(_name(name), node.test), [*node.body, again], [])
        ast.copy_location(loop, node)
        loop.broken = node.broken  # type: ignore[attr-defined]
        made = self.visit(first)
        return [made, *self.visit_While(loop)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        number = self._next()
        names = self._state([ast.Expr(node.target), *node.body])
        changed = self._changed(node.body)
        value = f"{PREFIX}_value_{number}"
        take = ast.Assign([node.target], _name(value))
        _place(take, node.target)
        body = self._define(f"{PREFIX}_body_{number}", [take, *node.body], node, [value])
        stop: ast.expr = ast.Constant(None)
        if node.broken:  # type: ignore[attr-defined]
            flag = self.visit(_name(node.broken))  # type: ignore[attr-defined]
            stop = ast.Lambda(_arguments([]), flag)
        call = self._call("for_", node.iter, [self.visit(node.iter), _name(body.name), stop])
        return self._finish(node, call, number, names, changed, [body])

    def _finish(
        self,
        node: ast.stmt,
        call: ast.Call,
        number: int,
        names: list[str],
        changed: list[str],
        functions: list[ast.FunctionDef],
    ) -> list[ast.stmt]:
        """The functions, those that read and set the variables, and the call that decides."""
        every = [*names, *(name for name in changed if name not in names)]
        get = self._function(
            f"{PREFIX}_get_{number}",
            [ast.Return(ast.Tuple([_name(name) for name in every], ast.Load()))],
            node,
        )
        given = f"{PREFIX}_values"
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in every]
        sets: list[ast.stmt] = [ast.Pass()]
        if every:
            assert self._scope is not None
            sets = self._scope.declaration(every)
            sets.append(ast.Assign([ast.Tuple(targets, ast.Store())], _name(given)))
        put = self._function(f"{PREFIX}_set_{number}", sets, node, [given])
        call.args += [_name(get.name), _name(put.name)]
        for texts in (every, changed):
            call.args.append(ast.Tuple([ast.Constant(text) for text in texts], ast.Load()))
        for added in (get, put):
            _place(added, node)
        line = ast.Expr(call)
        _place(line, call)
        return [*functions, get, put, line]

    def _define(
        self, name: str, body: list[ast.stmt], node: ast.stmt, parameters: Iterable[str] = ()
    ) -> ast.FunctionDef:
        assert self._scope is not None
        names = [n for n in bound(body) if self._is_own(n)]
        made = self._block(body)
        return self._function(
            name, [*self._scope.declaration(names), *made], node, list(parameters)
        )

    def _function(
        self, name: str, body: list[ast.stmt], node: ast.AST, parameters: Iterable[str] = ()
    ) -> ast.FunctionDef:
        made = ast.FunctionDef(name, _arguments(parameters), body or [ast.Pass()], [], None)
        if "type_params" in made._fields:
            made.type_params = []  # type: ignore[attr-defined]
        return _place(made, node)

    def _state(self, parts: list[ast.stmt]) -> list[str]:
        return [name for name in bound(parts) if self._is_own(name)]

    def _changed(self, parts: list[ast.stmt]) -> list[str]:
        assert self._scope is not None
        return sorted(name for name in written(parts) if name in self._scope.locals)

    def _is_own(self, name: str) -> bool:
        scope = self._scope
        assert scope is not None
        return (
            name in scope.locals
            or name in scope.globals
            or name in scope.nonlocals
            or name.startswith(PREFIX)
        )

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.decorator_list = [self.visit(part) for part in node.decorator_list]
        node.args.defaults = [self.visit(part) for part in node.args.defaults]
        node.args.kw_defaults = [part and self.visit(part) for part in node.args.kw_defaults]
        if refusal(node):
            return node
        inner = _Rewriter(self._plain - Scope(node).locals, self, self._first)
        return inner.function(node)  # type: ignore[return-value]

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node  # its methods are rewritten where they are called

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self._tracked:
                text = f"{target.id} = {RUNTIME}.delete({target.id}, {target.id!r})"
                made.append(self._at(node, text))
            else:
                made.append(ast.copy_location(ast.Delete([self.visit(target)]), node))
        return made

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
        elif node.target.id in self._tracked:
            return [self._at(node, f"{RUNTIME}.read({node.target.id}, {node.target.id!r})"), node]
        return [node]

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        if node.exc is None:
            return node
        node.exc = self._call("raised", node.exc, [self.visit(node.exc)])
        node.cause = node.cause and self.visit(node.cause)
        return node

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        message: ast.expr = ast.Constant(None)
        if node.msg:
            message = ast.Lambda(_arguments([]), self.visit(node.msg))
        call = self._call("assert_", node, [self._test(node.test), message])
        held = ast.If(ast.Constant(True), [_place(ast.Expr(call), node)], [])
        held.test = ast.Name("__debug__", ast.Load())
        return [_place(held, node)]

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if isinstance(node.value, ast.Name) and node.value.id == jumps.RESULT:
            return node
        self.generic_visit(node)
        return node

    # -- expressions ---------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return node
        owner = self._owner(node.id)
        if owner is None or node.id not in owner._tracked:
            return node
        return self._call("read", node, [node, ast.Constant(node.id)])

    def _owner(self, name: str) -> _Rewriter | None:
        """The function whose variable it is."""
        at: _Rewriter | None = self
        while at is not None:
            assert at._scope is not None
            if name in at._scope.globals:
                return at
            if name in at._scope.locals or name in at._tracked:
                return at
            at = at._outer
        return None

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        inner = _Rewriter(self._plain - Scope(node).locals, self, self._first)
        node.args.defaults = [self.visit(part) for part in node.args.defaults]
        inner._scope = Scope(node)
        inner._count = self._count
        node.body = inner.visit(node.body)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if _assigns([node.body, node.orelse]):
            self.generic_visit(node)
            return node
        parts: list[ast.expr] = [self._test(node.test)]
        parts += [ast.Lambda(_arguments([]), self.visit(part)) for part in (node.body, node.orelse)]
        return self._call("choose", node, parts)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self._joined(node, is_test=False)

    def _joined(self, node: ast.BoolOp, is_test: bool) -> ast.expr:
        if _assigns(node.values[1:]):
            self.generic_visit(node)
            return node
        visit = self._test if is_test else self.visit
        parts: list[ast.expr] = [visit(node.values[0])]
        parts += [ast.Lambda(_arguments([]), visit(part)) for part in node.values[1:]]
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self._call(name + ("test" if is_test else ""), node, parts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if not isinstance(node.op, ast.Not):
            self.generic_visit(node)
            return node
        return self._call("not_", node, [self._test(node.operand)])

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 or _assigns(node.comparators[1:]):
            self.generic_visit(node)
            return node
        parts: list[ast.expr] = [self.visit(node.left)]
        for operation, right in zip(node.ops, node.comparators):
            sign = ast.Constant(type(operation).__name__)
            value = ast.Lambda(_arguments([]), self.visit(right))
            parts.append(ast.Tuple([sign, value], ast.Load()))
        return self._call("compare", node, parts)

    def _test(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth matters."""
        if isinstance(node, ast.BoolOp):
            return self._joined(node, is_test=True)
        return self.visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "super" and not node.args:
            if self._first is not None and self._owner("super") is None:
                names = ("__class__", self._first)
                node.args = [_place(_name(name), node) for name in names]
                return node
        before = function.lineno, function.end_lineno
        self.generic_visit(node)
        if isinstance(function, ast.Name) and self._owner(function.id) is None:
            if function.id in self._plain:
                return node
        root: ast.AST = function
        while isinstance(root, ast.Attribute):
            root = root.value
        if root is not function and isinstance(root, ast.Name) and root.id == "tenon":
            if root.id in self._plain and self._owner(root.id) is None:
                return node
        node.func = self._call("call", node.func, [node.func])
        # Steps have the line that Python gives a call: of a method, the one with its name.
        if isinstance(function, ast.Attribute) and before[0] != before[1]:
            node.lineno, node.col_offset = before[1] or before[0], 0
        return node

    # -- nodes ---------------------------------------------------------------------------------------------

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _call(self, name: str, like: ast.AST, arguments: list[ast.expr]) -> ast.Call:
        helper = ast.Attribute(_name(RUNTIME), name, ast.Load())
        return _place(ast.Call(helper, arguments, []), like)

    def _at(self, like: ast.AST, text: str) -> ast.stmt:
        (made,) = ast.parse(text).body
        for part in ast.walk(made):
            ast.copy_location(part, like)
        return made


def plain_names(globals_: dict[str, object]) -> frozenset[str]:
    """Names whose calls need no look: builtins that take no function, and the package itself."""
    names = {
        name
        for name in dir(builtins)
        if name not in _CONVERTED and name not in globals_ and not name.startswith("_")
    }
    return frozenset(names | ({"tenon"} if globals_.get("tenon") is tenon else set()))


def _assigns(parts: Iterable[ast.AST]) -> bool:
    """Parts with := or await stay where they are: in a function of their own they would mean another name."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(part, kinds) for part in own_nodes(parts))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _arguments(names: Iterable[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _place(made, like):  # type: ignore[no-untyped-def]
    """`made` and its parts that have no place yet are at that of `like`."""
    for part in ast.walk(made):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, like)
    return made
