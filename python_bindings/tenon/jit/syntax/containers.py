# SPDX-License-Identifier: Apache-2.0
"""Lists, dictionaries, attributes and variables of other functions, which code can reach and change."""

from __future__ import annotations

import collections
import dis
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any

from tenon._core import Tensor
from tenon.jit.syntax.merging import Unset, is_same
from tenon.jit.syntax.user_code import is_users

_MOST_OBJECTS = 20_000
_LEAVES = (str, bytes, int, float, complex, type(None), Tensor, type, types.ModuleType, Unset)
_MISSING = object()
# Modules whose objects no branch or loop changes by assigning to their attributes: Python's, and this package's machinery.
_CLOSED = (
    "builtins",
    "functools",
    "tenon._",
    "tenon.autograd.saved_tensors",
    "tenon.host.",
    "tenon.jit.",
    "tenon.ops.",
    "tenon.profiler.device_profile",
    "tenon.runtime.",
)


class Container:
    """A list, dictionary, set or deque, and what it holds."""

    def __init__(self, label: str, items: Any) -> None:
        self.label, self._items = label, items
        self.saved = self.now()

    @property
    def identity(self) -> int:
        """Of the list or dictionary itself; 0 for what is none."""
        return id(self._items) if type(self) is Container else 0

    def now(self) -> Any:
        return self._items.copy()

    def is_changed(self) -> bool:
        now, saved = self.now(), self.saved
        if len(now) != len(saved):
            return True
        if isinstance(now, dict):
            return any(k not in saved or not is_same(v, saved[k]) for k, v in now.items())
        if isinstance(now, (set, frozenset)):
            return bool(now != saved)
        return not all(map(is_same, now, saved))

    def put(self, contents: Any) -> None:
        if isinstance(self._items, list):
            self._items[:] = contents
            return
        self._items.clear()
        if isinstance(self._items, collections.deque):
            self._items.extend(contents)
        else:
            self._items.update(contents)

    def restore(self) -> None:
        self.put(self.saved)


class _Attributes(Container):
    """Of an object, also those in slots."""

    def __init__(self, label: str, value: Any) -> None:
        self._object = value
        self._slots = [
            name
            for kind in type(value).__mro__
            for name in _names(kind.__dict__.get("__slots__", ()))
            if name not in ("__dict__", "__weakref__")
        ]
        super().__init__(label, value)

    def now(self) -> Any:
        found = dict(getattr(self._object, "__dict__", None) or {})
        for name in self._slots:
            value = getattr(self._object, name, _MISSING)
            if value is not _MISSING:
                found[name] = value
        return found

    def put(self, contents: Any) -> None:
        now = self.now()
        for name in now:
            if name not in contents:
                delattr(self._object, name)
        for name, value in contents.items():
            if name not in now or not is_same(value, now[name]):
                setattr(self._object, name, value)

    def restore(self) -> None:
        items = getattr(self._object, "__dict__", None)
        if items is not None:  # without what a module does when it is given an attribute
            items.clear()
            items.update({k: v for k, v in self.saved.items() if k not in self._slots})
        for name in self._slots:
            if name in self.saved:
                object.__setattr__(self._object, name, self.saved[name])


class _Cells(Container):
    """Variables of a function around one that is called."""

    def now(self) -> Any:
        found = {}
        for name, cell in self._items:
            try:
                found[name] = cell.cell_contents
            except ValueError:
                pass
        return found

    def put(self, contents: Any) -> None:
        for name, cell in self._items:
            if name in contents:
                cell.cell_contents = contents[name]


class _Globals(Container):
    """Globals that a function assigns: (names, the module's)."""

    def now(self) -> Any:
        names, space = self._items
        return {name: space[name] for name in names if name in space}

    def put(self, contents: Any) -> None:
        names, space = self._items
        for name in names:
            if name in contents:
                space[name] = contents[name]
            else:
                space.pop(name, None)


def containers_of(
    functions: Iterable[Any], variables: Iterable[tuple[str, Any]]
) -> Iterator[Container]:
    """Whatever the code of `functions` can reach and change. Raises NotImplementedError for iterators, which cannot
    be put back."""
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [*variables, *(("", function) for function in functions)]
    while stack and len(seen) < _MOST_OBJECTS:
        label, value = stack.pop()
        if isinstance(value, _LEAVES) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            if value.__closure__:
                yield _Cells(
                    value.__name__, tuple(zip(value.__code__.co_freevars, value.__closure__))
                )
            if stored := _stored_globals(value.__code__):
                yield _Globals("globals", (stored, value.__globals__))
            stack += _reached(value)
        elif isinstance(value, types.MethodType):
            stack.append((label, value.__self__))
            stack.append(("", value.__func__))
        elif isinstance(value, functools.partial):
            stack += [("", value.func), (label, list(value.args)), (label, dict(value.keywords))]
        elif isinstance(value, (list, dict, set, collections.deque)):
            yield Container(label, value)
            items = value.items() if isinstance(value, dict) else enumerate(value)
            if not isinstance(value, set):
                stack += [(f"{label}[{key!r}]", item) for key, item in items]
        elif type(value) is tuple:
            stack += [(f"{label}[{i}]", item) for i, item in enumerate(value)]
        elif hasattr(type(value), "__next__") and "." not in label and "[" not in label:
            raise NotImplementedError(
                f"`{label}` is an iterator, and a branch or loop over a tensor can take values from it, which cannot "
                f"be put back; take them before, or make a list of it"
            )
        elif _is_open(value):
            yield _Attributes(label, value)
            stack += [(f"{label}.{k}", v) for k, v in getattr(value, "__dict__", {}).items()]


def _names(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _is_open(value: Any) -> bool:
    module = type(value).__module__ or ""
    if module.startswith(_CLOSED) or module in ("tenon", "numpy"):
        return False
    is_plain = type(getattr(value, "__dict__", None)) is dict
    return is_plain or any("__slots__" in kind.__dict__ for kind in type(value).__mro__[:-1])


@functools.cache
def _stored_globals(code: types.CodeType) -> tuple[str, ...]:
    every = [code]
    names: dict[str, None] = {}
    while every:
        each = every.pop()
        every += [c for c in each.co_consts if isinstance(c, types.CodeType)]
        for line in dis.get_instructions(each):
            if line.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                names[line.argval] = None
    return tuple(names)


def _reached(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Variables of functions around it, and globals, that its code names."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            pass
    codes = [code]
    while codes:
        each = codes.pop()
        codes += [c for c in each.co_consts if isinstance(c, types.CodeType)]
        for name in each.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, types.FunctionType) and not is_users(value):
                continue
            if value is not None:
                yield name, value
