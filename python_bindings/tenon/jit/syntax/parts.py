# SPDX-License-Identifier: Apache-2.0
"""A function in pieces: runs of statements that become functions of their own, and what Python does between them.

A statement stays in the function where it stands on one of the given lines, where it jumps out of a run (`return` in a
branch, `break`), or where it reads a number that changes from call to call, such as a counter. Of such an `if`, `for`, `while`
or `with` the bodies are divided again. What a statement computes before it reads data is taken out of it: `float(f(x))` becomes a
run that computes `f(x)`, and `float` of its result.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Collection, Iterable
from typing import NamedTuple

from tenon.jit.syntax import rewriter
from tenon.jit.syntax.scopes import PREFIX, Scope, bound, own_nodes

_READERS = {"float", "int", "bool", "complex"}
_READING_METHODS = {"item", "tolist", "numpy"}
_COUNTING = {"range", "enumerate"}
_WORK = (ast.Call, ast.BinOp)  # a run of other expressions is not worth a call
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
# Of `with`: they let errors pass, so that no statement behind finds half of a run done.
_PLAIN_MANAGERS = {"no_grad", "enable_grad", "set_grad_enabled", "autocast", "inference_mode"}


class Part(NamedTuple):
    """A run of statements as a function of the variables that it reads; it returns those that are read behind it."""

    name: str  # by which the divided function calls it
    node: ast.FunctionDef
    first: int  # lines
    last: int


class Unfit(Exception):
    """Why a function is not divided."""


def divide(
    node: ast.FunctionDef | ast.Lambda, lines: dict[int, bool], outside: Collection[str]
) -> tuple[ast.FunctionDef, list[Part]]:
    """The function without its runs, and these. `lines`: where it stays, and whether what is computed there before is taken
    out. `outside`: parameters that the parts do not take, as they close over them."""
    return _Divider(node, lines, outside).divided()


class _Divider:
    def __init__(
        self, node: ast.FunctionDef | ast.Lambda, lines: dict[int, bool], outside: Collection[str]
    ) -> None:
        if isinstance(node, ast.Lambda):
            returned = ast.copy_location(ast.Return(node.body), node.body)
            made = ast.FunctionDef("<lambda>", node.args, [returned], [], None)
            if "type_params" in made._fields:
                made.type_params = []  # type: ignore[attr-defined]
            node = ast.copy_location(made, node)
        self._node, self._lines, self._outside = node, lines, set(outside)
        self._scope = scope = Scope(node)
        if scope.globals or scope.nonlocals:
            raise Unfit("it assigns variables from outside")
        self._locals = scope.locals - self._outside
        self._parts: list[Part] = []
        self._count = 0
        every = list(ast.walk(node))
        if any(isinstance(each, ast.Name) and each.id in ("super", "__class__") for each in every):
            raise Unfit("it calls super()")
        self._stores: dict[str, int] = {name: 1 for name in scope.parameters}
        self._deleted: set[str] = set()
        for each in own_nodes(node.body):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                self._stores[each.id] = self._stores.get(each.id, 0) + 1
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Del):
                self._deleted.add(each.id)
        self._check_functions_inside()
        if set(bound(node.body)) & self._outside:
            raise Unfit("it assigns what it is a method of")
        self._loads = _count_loads(node.body)
        self._taken: set[str] = set()  # names of what was taken out of statements
        self._containers = {
            name
            for each in own_nodes(node.body)
            if isinstance(each, ast.Assign) and _makes_container(each.value)
            for name in bound(each.targets)
        }
        self._kept = self._containers | self._names_of_numbers()

    def _check_functions_inside(self) -> None:
        """A variable that a function inside reads has to be the same one for all of that function's life."""
        in_loops = {
            name
            for loop in own_nodes(self._node.body)
            if isinstance(loop, (ast.For, ast.While))
            for name in bound([loop])
        }
        for each in own_nodes(self._node.body):
            if not isinstance(each, _FUNCTIONS):
                continue
            for name in _loaded([each]) & self._locals:
                if self._stores.get(name, 0) > 1 or name in in_loops:
                    raise Unfit(f"a function inside reads its variable {name}, which changes")
            if any(isinstance(part, ast.Nonlocal) for part in ast.walk(each)):
                raise Unfit("a function inside assigns its variables")

    def _names_of_numbers(self) -> set[str]:
        """Variables that hold another number each time: as an argument of a part each would be a signature."""
        names: set[str] = set()
        for each in own_nodes(self._node.body):
            if isinstance(each, ast.For) and _callee(each.iter) in _COUNTING:
                targets = (
                    each.target.elts[:1] if isinstance(each.target, ast.Tuple) else [each.target]
                )
                names.update(bound(targets))
            elif isinstance(each, ast.Assign):
                if _is_number(each.value) and self._changes(each.targets):
                    names.update(bound(each.targets))
                if self._is_named(each):
                    names.update(bound(each.targets))
        return names

    def _changes(self, targets: list[ast.expr]) -> bool:
        return any(self._stores.get(name, 0) > 1 for name in bound(targets))

    def _is_named(self, node: ast.AST) -> bool:
        """Whether one of the lines is in it."""
        return any(node.lineno <= line <= node.end_lineno for line in self._lines)  # type: ignore[attr-defined]

    # -- blocks ------------------------------------------------------------------------------------------------

    def divided(self) -> tuple[ast.FunctionDef, list[Part]]:
        node = self._node
        known = {*self._scope.parameters} - self._outside - self._deleted
        node.body = self._block(node.body, known, False) or [ast.Pass()]
        if not self._parts:
            raise Unfit("it computes nothing beside that statement")
        return node, self._parts

    def _block(self, body: list[ast.stmt], known: set[str], is_in_loop: bool) -> list[ast.stmt]:
        """`known`: variables that have values where it begins."""
        known, made, run = set(known), list[ast.stmt](), list[ast.stmt]()
        before = set(known)  # the run
        for statement in body:
            for each in self._taken_apart(statement):
                if self._joins(each, run, before, known, is_in_loop):
                    run.append(each)
                else:
                    made += self._emit(run, before, is_in_loop)
                    run = []
                    made.append(self._stays(each, known, is_in_loop))
                    before = known | (_definitely_bound(each) & self._locals)
                known |= _definitely_bound(each) & self._locals - self._deleted
        return made + self._emit(run, before, is_in_loop)

    def _stays(self, node: ast.stmt, known: set[str], is_in_loop: bool) -> ast.stmt:
        if isinstance(node, ast.If):
            node.body = self._block(node.body, known, is_in_loop) or [ast.Pass()]
            node.orelse = self._block(node.orelse, known, is_in_loop)
        elif isinstance(node, (ast.For, ast.While)):
            inside = {*known}
            if isinstance(node, ast.For):
                inside |= set(bound([node.target])) & self._locals - self._deleted
            node.body = self._block(node.body, inside, True) or [ast.Pass()]
        elif isinstance(node, ast.With) and all(
            _callee(item.context_expr) in _PLAIN_MANAGERS and item.optional_vars is None
            for item in node.items
        ):
            node.body = self._block(node.body, known, is_in_loop) or [ast.Pass()]
        return node

    def _joins(
        self,
        node: ast.stmt,
        run: list[ast.stmt],
        before: set[str],
        known: set[str],
        is_in_loop: bool,
    ) -> bool:
        if self._is_named(node) and not hasattr(node, "is_apart"):
            return False
        if run and isinstance(run[-1], ast.Return):
            return False
        if _jumps_out(node) or isinstance(node, (ast.Delete, ast.Import, ast.ImportFrom)):
            return False
        if isinstance(node, ast.AugAssign) and _is_number(node.value):
            return False
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return False  # a docstring
        needed = _read_first([node]) & self._locals
        if needed & self._deleted or needed & self._kept & before:
            return False
        inside = set(bound([*run, node]))
        elsewhere = self._names_elsewhere([*run, node])
        for name in needed - known:  # it may have a value or not
            if name not in inside or name in elsewhere or is_in_loop:  # of the pass before
                return False
        # What is read behind has to have a value then, whichever way the statement goes.
        outputs = self._outputs([*run, node], is_in_loop)
        # Containers are not passed on either way: a part would change, or make, another one.
        return outputs <= known | _definitely_bound(node) and not outputs & self._containers

    def _names_elsewhere(self, run: list[ast.stmt]) -> set[str]:
        """Variables that the function assigns outside of the run."""
        inside: dict[str, int] = {}
        for each in own_nodes(run):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                inside[each.id] = inside.get(each.id, 0) + 1
        return {name for name, count in self._stores.items() if count > inside.get(name, 0)}

    def _outputs(self, run: list[ast.stmt], is_in_loop: bool) -> set[str]:
        stored = set(bound(run)) & self._locals
        if run and isinstance(run[-1], ast.Return):
            return set()
        own = _count_loads(run)
        behind = {name for name in stored if self._loads.get(name, 0) > own.get(name, 0)}
        behind |= stored & self._taken
        if is_in_loop:
            behind |= stored & _read_first(run)  # in the next pass
        return behind

    def _emit(self, run: list[ast.stmt], before: set[str], is_in_loop: bool) -> list[ast.stmt]:
        """The call of a part in the place of the run."""
        if not any(isinstance(each, _WORK) for each in own_nodes(run)):
            return run
        first, last = run[0], run[-1]
        parameters = sorted(_read_first(run) & before & self._locals | self._passed(run, before))
        outputs = sorted(self._outputs(run, is_in_loop))
        body = list(run)
        returns = isinstance(last, ast.Return)
        if not returns:
            body.append(rewriter._place(ast.Return(_tuple(outputs, ast.Load())), last))
        name = f"{PREFIX}_part_{len(self._parts)}"
        made = ast.FunctionDef(self._node.name, rewriter._arguments(parameters), body, [], None)
        if "type_params" in made._fields:
            made.type_params = []  # type: ignore[attr-defined]
        made = ast.copy_location(made, first)
        made.lineno = self._node.lineno  # where the function of the code begins
        self._parts.append(Part(name, made, first.lineno, last.end_lineno or first.lineno))
        call = ast.Call(
            ast.Name(name, ast.Load()), [ast.Name(p, ast.Load()) for p in parameters], []
        )
        if returns:
            return [rewriter._place(ast.Return(call), first)]
        if not outputs:
            return [rewriter._place(ast.Expr(call), first)]
        return [rewriter._place(ast.Assign([_tuple(outputs, ast.Store())], call), first)]

    def _passed(self, run: list[ast.stmt], before: set[str]) -> set[str]:
        """What a run may leave as it was."""
        certain = set[str]()
        for each in run:
            certain |= _definitely_bound(each)
        return set(bound(run)) & before & self._locals - certain

    # -- statements that read data -----------------------------------------------------------------------------

    def _taken_apart(self, node: ast.stmt) -> list[ast.stmt]:
        """What the statement computes before it reads data, and the statement."""
        head = _head(node)
        if head is None or not (head.lineno <= self._deepest(head) <= (head.end_lineno or 0)):
            return [node]
        if isinstance(head, ast.IfExp):
            chosen = [self._choice(node, each) for each in (head.body, head.orelse)]
            test = ast.If(head.test, [chosen[0]], [chosen[1]])
            return self._taken_apart(rewriter._place(test, node))
        found = self._operand(head)
        if found is None and isinstance(node, ast.If):
            found = _tested(head)
        if found is None or not any(isinstance(each, _WORK) for each in own_nodes([found])):
            return [node]
        if _assigns_for_others(found, node):
            return [node]
        name = f"{PREFIX}_value_{self._count}"
        self._count += 1
        self._locals.add(name)
        self._taken.add(name)
        self._stores[name] = 1
        value = copy.deepcopy(found)
        taken = rewriter._place(ast.Assign([ast.Name(name, ast.Store())], value), found)
        taken.is_apart = True  # type: ignore[attr-defined]
        return [taken, _Replace(found, name).visit(node)]

    def _deepest(self, head: ast.expr) -> int:
        """The first line in it at which something may be taken out; 0 for none."""
        inside = [
            line
            for line, is_taken in self._lines.items()
            if is_taken and head.lineno <= line <= (head.end_lineno or 0)
        ]
        return min(inside, default=0)

    def _choice(self, node: ast.stmt, value: ast.expr) -> ast.stmt:
        made = copy.copy(node)
        made.value = value  # type: ignore[attr-defined]
        made.is_apart = True  # type: ignore[attr-defined]
        return ast.copy_location(made, value)

    def _operand(self, node: ast.expr) -> ast.expr | None:
        """What `float(...)` or `(...).item()` reads, if nothing that counts is computed before it."""
        if isinstance(node, ast.Call) and not node.keywords:
            name = _callee(node)
            if isinstance(node.func, ast.Attribute) and name in _READING_METHODS and not node.args:
                return self._operand(node.func.value) or node.func.value
            if isinstance(node.func, ast.Name) and len(node.args) == 1:
                if hasattr(builtins, name) and name not in self._locals:
                    inner = self._operand(node.args[0])
                    return inner or (node.args[0] if name in _READERS else None)
            return None
        parts: Iterable[ast.expr] = ()
        if isinstance(node, ast.Compare):
            parts = [node.left, node.comparators[0]]  # others may not be evaluated
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.BoolOp):
            parts = node.values[:1]
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
        elif isinstance(node, (ast.Tuple, ast.List)):
            parts = node.elts
        elif isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            parts = node.values
        for part in parts:
            if (found := self._operand(part)) is not None:
                return found
            is_local = isinstance(part, ast.Name) and part.id in self._locals
            if not is_local and not isinstance(part, ast.Constant):
                return None
        return None


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.expr, name: str) -> None:
        self._old, self._name = old, name

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._old:
            return ast.copy_location(ast.Name(self._name, ast.Load()), node)
        return super().visit(node)


def _head(node: ast.stmt) -> ast.expr | None:
    """What a statement evaluates first."""
    if isinstance(node, ast.If):
        return node.test
    if isinstance(node, (ast.Return, ast.Assign, ast.Expr)):
        return node.value
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return node.value
    return None


def _tested(node: ast.expr) -> ast.expr:
    """What a test asks first whether it is true."""
    while True:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node = node.operand
        elif isinstance(node, ast.BoolOp):
            node = node.values[0]
        else:
            return node


def _assigns_for_others(found: ast.expr, node: ast.stmt) -> bool:
    """Whether `found` assigns (`:=`) what the rest of the statement reads, which may be the value of before."""
    names = {each.target.id for each in ast.walk(found) if isinstance(each, ast.NamedExpr)}
    read, own = _count_loads([node]), _count_loads([found])
    return any(read.get(name, 0) > own.get(name, 0) for name in names)


def _callee(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "id", "") or getattr(function, "attr", "")


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _makes_container(node: ast.AST) -> bool:
    kinds = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    return isinstance(node, kinds) or _callee(node) in ("list", "dict", "set", "deque")


def _jumps_out(node: ast.stmt) -> bool:
    """Whether it may end what is around it; a `return` that stands alone ends a run."""
    if isinstance(node, ast.Return):
        return False
    stack: list[tuple[ast.AST, bool]] = [(node, False)]
    while stack:
        each, is_in_loop = stack.pop()
        if isinstance(each, ast.Return) or (
            isinstance(each, (ast.Break, ast.Continue)) and not is_in_loop
        ):
            return True
        if isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        is_loop = isinstance(each, (ast.For, ast.While))
        stack += [(child, is_in_loop or is_loop) for child in ast.iter_child_nodes(each)]
    return False


def _loaded(parts: Iterable[ast.AST]) -> set[str]:
    return set(_count_loads(parts))


def _count_loads(parts: Iterable[ast.AST]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in parts:
        for node in ast.walk(part):
            name = ""
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                name = node.id
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
            if name:
                counts[name] = counts.get(name, 0) + 1
    return counts


def _read_first(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that they may read before they have bound them."""
    read, known = set[str](), set[str]()
    for node in statements:
        if isinstance(node, ast.If):
            own = _loaded([node.test]) | _read_first(node.body) | _read_first(node.orelse)
        elif isinstance(node, ast.For):
            inside = _read_first(node.body) - set(bound([node.target]))
            own = _loaded([node.iter]) | inside | _read_first(node.orelse)
        elif isinstance(node, ast.While):
            own = _loaded([node.test]) | _read_first([*node.body]) | _read_first(node.orelse)
        elif isinstance(node, ast.With):
            targets = [item.optional_vars for item in node.items if item.optional_vars]
            own = _loaded([item.context_expr for item in node.items])
            own |= _read_first(node.body) - set(bound(targets))
        else:
            own = _loaded([node])
        read |= own - known
        known |= _definitely_bound(node)
    return read


def _definitely_bound(node: ast.stmt) -> set[str]:
    """Names that have values when the statement is over, if it did not raise or jump."""
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return set()
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return set(bound(targets))
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
        return set(bound([node]))
    if isinstance(node, ast.With):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
        names = set(bound(targets))
        for each in node.body:
            names |= _definitely_bound(each)
        return names
    if isinstance(node, ast.If):
        branches = [branch for branch in (node.body, node.orelse) if not _ends(branch)]
        names_of = [set().union(*map(_definitely_bound, branch)) for branch in branches]
        return set.intersection(*names_of) if names_of else set()
    return set()


def _ends(body: list[ast.stmt]) -> bool:
    """Whether what follows the block is not reached from it."""
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue))


def _tuple(names: list[str], context: ast.expr_context) -> ast.expr:
    every: list[ast.expr] = [ast.Name(name, context) for name in names]
    return every[0] if len(every) == 1 else ast.Tuple(every, context)
