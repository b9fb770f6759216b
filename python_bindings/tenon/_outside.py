# SPDX-License-Identifier: Apache-2.0
"""What a function reads beside its arguments, so far as it can be told from outside.

Looked at are the variables that the function closes over, the globals that its code names, default
arguments, and the object of a method. Of these: numbers, texts and None by value; containers by their items;
functions as this one; modules by the attributes of every submodule; other objects by identity and by their plain
attributes (of an optimizer also by those of its groups).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor

PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))
_OPAQUE = (types.ModuleType, types.BuiltinFunctionType, type, Tensor)
_DEPTH = 3  # of containers in containers, and of attributes
_ABSENT = object()


class Same:
    """An object, equal to itself alone. It keeps the object, so that no other one gets its address."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


class Outside:
    """`value` is equal exactly if all that was looked at is; `is_unchanged` is a quick way to tell that."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._slots: list[tuple[dict, Any, Any]] = []  # dictionary, key, what was there
        self._cells: list[tuple[types.CellType, Any]] = []
        self._sizes: list[tuple[Any, int]] = []  # containers
        self._lists: list[tuple[list, tuple]] = []
        self._seen: set[int] = set()
        self.value: Any = self._of_callable(function, _DEPTH)

    def is_unchanged(self) -> bool:
        for container, size in self._sizes:
            if len(container) != size:
                return False
        for names, key, before in self._slots:
            if names.get(key, _ABSENT) is not before:
                return False
        for cell, before in self._cells:
            try:
                if cell.cell_contents is not before:
                    return False
            except ValueError:  # deleted meanwhile
                return False
        for items, before in self._lists:
            for item, old in zip(items, before):
                if item is not old:
                    return False
        return True

    def tensors(self) -> list[Tensor]:
        """Those that were found."""
        found: list[Tensor] = []

        def look(part: Any) -> None:
            if isinstance(part, Same) and isinstance(part.it, Tensor):
                found.append(part.it)
            elif isinstance(part, tuple):
                for each in part:
                    look(each)

        look(self.value)
        return found

    def _of(self, value: Any, depth: int) -> Any:
        if isinstance(value, (*PLAIN, tenon.dtype, tenon.device)):
            return type(value), repr(value) if isinstance(value, float) else value  # nan is nan
        if depth == 0 or isinstance(value, _OPAQUE) or id(value) in self._seen:
            return Same(value)
        self._seen.add(id(value))
        if type(value) in (tuple, list):
            if type(value) is list:
                self._sizes.append((value, len(value)))
                self._lists.append((value, tuple(value)))
            return type(value), tuple(self._of(item, depth - 1) for item in value)
        if isinstance(value, dict):
            return dict, self._of_names(value, list(value), depth - 1)
        if isinstance(value, (tenon.nn.Module, types.FunctionType, types.MethodType)):
            return self._of_callable(value, depth - 1)
        return Same(value), self._of_plain_attributes(value, depth - 1)

    def _of_names(self, names: dict, keys: list[Any], depth: int) -> tuple[Any, ...]:
        self._sizes.append((names, len(names)))
        parts = []
        for key in keys:
            self._slots.append((names, key, names[key]))
            parts.append((self._of(key, 1), self._of(names[key], depth)))
        return tuple(parts)

    def _of_callable(self, function: Any, depth: int) -> tuple[Any, ...]:
        if isinstance(function, tenon.nn.Module):
            return self._of_module(function)
        if isinstance(function, types.MethodType):
            owner = self._of(function.__self__, max(depth, 2))
            return owner, *self._of_callable(function.__func__, depth)
        if not isinstance(function, types.FunctionType):
            return Same(function), self._of_plain_attributes(function, depth)
        parts = [Same(function.__code__), self._of(function.__defaults__, 2)]
        parts.append(self._of(function.__kwdefaults__, 2))
        for cell in function.__closure__ or ():
            try:
                contents = cell.cell_contents
            except ValueError:  # not assigned yet
                parts.append(Same(cell))
                continue
            self._cells.append((cell, contents))
            parts.append(self._of(contents, depth))
        for name in names_in(function.__code__):
            there = function.__globals__.get(name, _ABSENT)
            self._slots.append((function.__globals__, name, there))
            if there is not _ABSENT:
                parts.append(self._of(there, depth))
        return tuple(parts)

    def _of_module(self, module: Any) -> tuple[Any, ...]:
        parts: list[Any] = [Same(module)]
        for part in module.modules():
            self._seen.add(id(part))
            parts.append(Same(type(part)))
            parts.append(self._of_names(vars(part), list(vars(part)), 2))
        return tuple(parts)

    def _of_plain_attributes(self, value: Any, depth: int) -> Any:
        names = getattr(value, "__dict__", None)
        if not isinstance(names, dict) or depth < 1:
            return None
        plain = [key for key, item in names.items() if isinstance(item, PLAIN)]
        parts = [self._of_names(names, plain, 1)]
        for group in names.get("param_groups", ()):
            plain = [key for key, item in group.items() if isinstance(item, PLAIN)]
            parts.append(self._of_names(group, plain, 1))
        return tuple(parts)


def names_in(code: types.CodeType) -> list[str]:
    """Every name in the code and in that of the functions inside of it, globals among them."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += names_in(constant)
    return list(dict.fromkeys(names))
