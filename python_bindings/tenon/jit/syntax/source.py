# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a function, and the function that is made of a rewritten one."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tenon.jit.syntax import rewriter
from tenon.jit.syntax.scopes import PREFIX
from tenon.jit.syntax.user_code import is_users

_MARK = "_tenon_not_to_static"
_CALL = "__call__"
COMPILED = "_tenon_is_compiled"  # the attribute that marks the class of compiled functions
# What rewritten functions close over. The module `runtime`, which asks for rewritten functions itself, puts itself here.
RUNTIME_CELL = types.CellType()
_F = TypeVar("_F")

_files: dict[str, _File] = {}
_codes: dict[types.CodeType, types.CodeType | None] = {}  # what was made of a function's code
_made: set[types.CodeType] = set()


def not_to_static(function: _F) -> _F:
    """Leave a function, method or module as it is when `tenon.export` calls it: its `if`, `while` and `for` are
    Python's, and a test of a tensor in it is an error.

        @tenon.jit.not_to_static
        def helper(x): ...
    """
    setattr(getattr(function, "__func__", function), _MARK, True)
    return function


def rewritten_source(function: Callable[..., Any]) -> str:
    """The text of what `tenon.export` runs in the place of a function, method or module.

    `_tenon` in it is the module with the functions that decide. Raises ValueError with the reason where a function
    is left as it is.
    """
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        function = getattr(function, "forward", None) or type(function).__call__
    plain = inspect.unwrap(getattr(function, "__func__", function))
    node, reason = _find(plain)
    if node is None:
        raise ValueError(f"rewritten_source: {plain.__qualname__} is left as it is: {reason}")
    node = rewriter.rewrite(node, rewriter.plain_names(plain.__globals__))
    return ast.unparse(ast.fix_missing_locations(node))


def rewritten(function: Any) -> Any:
    """What to call in the place of `function` while it is exported; `function` itself where nothing is to be done."""
    if isinstance(function, types.FunctionType):
        return _of_function(function)
    if isinstance(function, types.MethodType):
        inner = rewritten(function.__func__)
        same = inner is function.__func__
        return function if same else types.MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        inner = rewritten(function.func)
        if inner is function.func:
            return function
        return functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, type) or isinstance(function, types.BuiltinFunctionType):
        return function
    if getattr(type(function), COMPILED, False) is True:
        return rewritten(function._function)
    call = getattr(type(function), _CALL, None)
    if isinstance(call, types.FunctionType) and not getattr(function, _MARK, False):
        inner = _of_function(call)
        return function if inner is call else types.MethodType(inner, function)
    return function


def tree_of(function: types.FunctionType) -> tuple[Any, str]:
    """(a copy of the function's tree, "") or (None, why there is none)."""
    return _find(function) if is_users(function) else (None, "it is no code of the user's")


def function_of(
    node: ast.FunctionDef, like: types.FunctionType, cells: dict[str, types.CellType]
) -> types.FunctionType:
    """The function of a tree. It closes over what `like` does, and over `cells`; `node` itself is changed."""
    code = _compile(node, like, [*cells])
    every = {**dict(zip(like.__code__.co_freevars, like.__closure__ or ())), **cells}
    closure = tuple(every[name] for name in code.co_freevars)
    made = types.FunctionType(code, like.__globals__, code.co_name, None, closure)
    made.__qualname__, made.__module__ = like.__qualname__, like.__module__
    return made


def _of_function(function: types.FunctionType) -> types.FunctionType:
    code = function.__code__
    if code in _made or getattr(function, _MARK, False):
        return function
    if not is_users(function):
        return function
    if code not in _codes:
        _codes[code] = _rewritten_code(function)
    new = _codes[code]
    if new is None:
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[rewriter.RUNTIME] = RUNTIME_CELL
    closure = tuple(cells[name] for name in new.co_freevars)
    made = types.FunctionType(
        new, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__doc__, made.__annotations__ = function.__doc__, function.__annotations__
    made.__dict__.update(function.__dict__)
    return made


def _rewritten_code(function: types.FunctionType) -> types.CodeType | None:
    node, _ = _find(function)
    if node is None:
        return None
    node = rewriter.rewrite(node, rewriter.plain_names(function.__globals__))
    code = _compile(node, function)
    _made.add(code)
    _made.update(_codes_in(code))
    return code


def _compile(
    node: ast.FunctionDef | ast.Lambda, function: types.FunctionType, more: Sequence[str] = ()
) -> types.CodeType:
    """In a function whose parameters are what the original closes over, and in a class if its names are mangled.

    What stands there has names that no code uses: `def` and `class` bind their names where they stand, and the
    function's own name, or its class's, would mean these in the place of a global."""
    code = function.__code__
    line = node.lineno
    if isinstance(node, ast.Lambda):
        inner: list[ast.stmt] = [ast.Return(node)]
        name = made_as = code.co_name
    else:
        inner = [node]
        name, made_as = node.name, f"{PREFIX}_function"
        node.name = made_as
    owner = getattr(code, "co_qualname", function.__qualname__).split(".")[-2:-1]
    if owner and owner[0].strip("_") and owner[0] != "<locals>":
        # Mangling leaves out the underscores in front.
        inner = [ast.ClassDef(f"____{owner[0]}", [], [], inner, [])]
    names = [rewriter.RUNTIME, *code.co_freevars, *more]
    outer = ast.FunctionDef(f"{PREFIX}_outer", rewriter._arguments(names), inner, [], None)
    for made in (outer, *inner):
        if "type_params" in made._fields and not hasattr(made, "type_params"):
            made.type_params = []  # type: ignore[attr-defined]
        if not hasattr(made, "lineno"):
            made.lineno, made.col_offset = line, 0
            made.end_lineno, made.end_col_offset = node.end_lineno, node.end_col_offset
    tree = ast.fix_missing_locations(ast.Module([outer], []))
    flags = code.co_flags & _FUTURE
    module = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
    for each in _codes_in(module):
        if each.co_name == made_as and each.co_firstlineno == line:
            return each.replace(co_name=name)
    raise AssertionError(name)


_FUTURE = 0
for _feature in ("annotations", "barry_as_FLUFL", "generator_stop"):
    _FUTURE |= getattr(__import__("__future__"), _feature).compiler_flag


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes_in(constant)


def _find(function: types.FunctionType) -> tuple[Any, str]:
    """(a copy of the function's tree, "") or (None, why there is none)."""
    code = function.__code__
    by_line = _file_of(code.co_filename, function.__globals__)
    if by_line is None:
        return None, f"there is no source of {code.co_filename}"
    candidates = [
        node
        for node in by_line.functions.get(code.co_firstlineno, ())
        if _name_of(node) == code.co_name
    ]
    # pytest puts other code in the place of assert.
    has_assert = any(isinstance(part, ast.Assert) for n in candidates for part in ast.walk(n))
    if candidates and not has_assert and not any(_is_same(code, c) for c in by_line.codes(code)):
        return None, f"{code.co_filename} is another one than when it was imported"
    if len(candidates) > 1 and sys.version_info >= (3, 11):
        starts = {(a, c) for a, _, c, _ in code.co_positions() if c is not None}
        candidates = [n for n in candidates if (n.body.lineno, n.body.col_offset) in starts]
    if len(candidates) != 1:
        what = "several functions" if candidates else "no such function"
        return None, f"{code.co_filename}:{code.co_firstlineno} has {what}; has the file changed?"
    node = copy.deepcopy(candidates[0])
    if reason := rewriter.refusal(node):
        return None, reason
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns = [], None
    # The function that is made has the original's defaults; the tree says only that there are none.
    arguments = node.args
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*every, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    return node, ""


def _name_of(node: ast.AST) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name  # type: ignore[attr-defined]


class _File:
    """A file's functions by the line at which their code begins."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.lines = lines
        text = "".join(lines)
        self.functions: dict[int, list[Any]] = {}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                marks = (mark.lineno for mark in getattr(node, "decorator_list", ()))
                self.functions.setdefault(min([node.lineno, *marks]), []).append(node)
        self._codes: dict[tuple[int, str], list[types.CodeType]] = {}
        for code in _codes_in(compile(text, name, "exec", dont_inherit=True)):
            self._codes.setdefault((code.co_firstlineno, code.co_name), []).append(code)

    def codes(self, like: types.CodeType) -> list[types.CodeType]:
        return self._codes.get((like.co_firstlineno, like.co_name), [])


def _file_of(name: str, globals_: dict[str, Any]) -> _File | None:
    lines = linecache.getlines(name, globals_)
    known = _files.get(name)
    if lines and (known is None or known.lines is not lines):
        try:
            _files[name] = known = _File(name, lines)
        except SyntaxError:
            return None
    return known if lines else None


def _is_same(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two code objects do the same: a file may have been edited since it was imported."""
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and len(one.co_consts) == len(other.co_consts)
        and all(
            _is_same(a, b)
            if isinstance(a, types.CodeType) and isinstance(b, types.CodeType)
            else repr(a) == repr(b)
            for a, b in zip(one.co_consts, other.co_consts)
        )
    )
