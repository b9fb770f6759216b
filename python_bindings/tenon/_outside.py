# SPDX-License-Identifier: Apache-2.0
"""What a function reads beside its arguments, so far as it can be told from outside.

Looked at are the variables that the function closes over, the globals that its code names, default arguments, and the
object of a method. Of these: numbers, texts and None by value; containers and small arrays of NumPy by their items;
functions as this one; modules and objects by the attributes that code on the way names, and objects also by what the
methods read that Python calls by itself (`__len__`, `__getitem__`); modules of layers by the attributes of every
submodule; optimizers by the options of their groups. What cannot be told makes a refusal.
"""

from __future__ import annotations

import array
import collections
import contextvars
import dis
import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tenon
from tenon import _core
from tenon._core import Tensor

PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))
_OPAQUE = (types.BuiltinFunctionType, type, Tensor)
_DEPTH = 6  # of containers in containers, and of attributes
_MOST = 10_000  # values, so that looking at them takes milliseconds
_MOST_BYTES = 4096  # of an array of NumPy
_ABSENT = object()

# What reads variables by names that no code tells, and builtin modules whose functions answer from hidden state.
_HIDDEN_READERS = {"eval", "exec", "globals", "locals", "vars", "__import__", "open", "input"}
_HIDDEN_STATE = {"sys", "posix", "gc"}
# Methods that no reading calls.
_UNREAD = {
    f"__{name}__"
    for name in "init new repr str del format hash dir reduce reduce_ex getstate setstate sizeof setattr delattr setitem "
    "delitem init_subclass subclasshook class_getitem set_name set delete copy deepcopy getnewargs doc module dict "
    "weakref annotations match_args dataclass_fields dataclass_params abstractmethods slots orig_bases parameters".split()
}


class Same:
    """An object, equal to itself alone. It keeps the object, so that no other one gets its address."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


class Names(NamedTuple):
    """Of the code of a function and of those inside of it."""

    of_globals: frozenset[str]
    of_attributes: frozenset[str]


@functools.lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> Names:
    of_globals, of_attributes = set(), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            of_globals.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"):
            of_attributes.add(instruction.argval)
        elif isinstance(instruction.argval, str) and instruction.opname == "LOAD_CONST":
            of_attributes.add(instruction.argval)  # getattr(x, "scale")
        elif isinstance(instruction.argval, types.CodeType):
            inner = names_in(instruction.argval)
            of_globals |= inner.of_globals
            of_attributes |= inner.of_attributes
    return Names(frozenset(of_globals), frozenset(of_attributes))


class Outside:
    """`value` is equal exactly if all that was looked at is; `is_unchanged` is a quick way to tell that.

    `refusal` says what cannot be told; nothing if there is nothing."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.refusal = ""
        self._slots: list[tuple[Any, Any, Any]] = []  # dictionary, key, what was there
        self._cells: list[tuple[types.CellType, Any]] = []
        self._sizes: list[tuple[Any, int]] = []  # containers
        self._items: list[
            tuple[Iterable[Any], tuple]
        ] = []  # of lists; keys of dictionaries, in order
        self._equal: list[tuple[Any, Any]] = []  # sets, as they were
        self._calls: list[tuple[Callable[[], Any], Any]] = []  # cheap ones, with what they returned
        self._functions: list[tuple[types.FunctionType, Any, Any, Any]] = []
        self._sees_order = True  # of dictionaries
        self._seen: set[int] = set()
        self._kept: list[Any] = []  # so that no other object gets the address of one in `_seen`
        self.value: Any = self._of_callable(function, _DEPTH, frozenset())
        self.watched = (
            self._sizes,
            self._slots,
            self._cells,
            self._items,
            self._functions,
            self._equal,
            self._calls,
            _ABSENT,
        )

    def is_unchanged(self) -> bool:
        return _core.is_unchanged(self.watched)

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

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or reason

    # `names`: the attributes that the code on the way here names.
    def _of(self, value: Any, depth: int, names: frozenset[str]) -> Any:
        if isinstance(value, (*PLAIN, tenon.dtype, tenon.device)):
            return type(value), repr(value) if isinstance(value, (float, complex)) else value
        if isinstance(value, types.BuiltinFunctionType) and value.__module__ in _HIDDEN_STATE:
            self._refuse(f"it calls {value.__module__}.{value.__name__}, whose answer may change")
        if depth == 0 or isinstance(value, _OPAQUE) or id(value) in self._seen:
            owner = (
                getattr(value, "__self__", None)
                if isinstance(value, types.BuiltinFunctionType)
                else None
            )
            if owner is None or isinstance(owner, types.ModuleType) or depth == 0:
                return Same(value)
            return Same(value), self._of(owner, depth - 1, names)
        if len(self._slots) > _MOST or len(self._kept) > _MOST:
            self._refuse(f"it reaches more than {_MOST} values; pass what it needs as arguments")
            return Same(value)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            return type(value), value.tobytes()
        self._seen.add(id(value))
        self._kept.append(value)
        if numpy is not None and isinstance(value, numpy.ndarray):
            return self._of_array(value, value.nbytes, value.tobytes)
        if isinstance(value, array.array):
            return self._of_array(value, len(value) * value.itemsize, value.tobytes)
        if isinstance(value, (bytearray, memoryview)):
            return self._of_array(value, memoryview(value).nbytes, lambda: bytes(value))
        if isinstance(value, types.MappingProxyType):
            self._refuse("it reads a mapping proxy, which shows another dictionary")
            return Same(value)
        if isinstance(value, (tuple, list, collections.deque)):
            return self._of_items(value, depth, names)
        if isinstance(value, dict):
            if self._sees_order:
                self._items.append((value, tuple(value)))
            return (
                dict,
                self._of_names(value, list(value), depth - 1, names),
                self._of_attributes(value, depth, names),
            )
        if isinstance(value, (set, frozenset)):
            self._equal.append((value, frozenset(value)))
            return type(value), frozenset(value)
        if isinstance(value, (tenon.nn.Module, types.FunctionType, types.MethodType)):
            return self._of_callable(value, depth - 1, names)
        if isinstance(value, types.ModuleType):
            return self._of_module_of_python(value, depth, names)
        if isinstance(value, functools.partial):
            parts = (value.func, value.args, value.keywords)
            return Same(value), tuple(self._of(part, depth - 1, names) for part in parts)
        if isinstance(value, contextvars.ContextVar):
            return self._of_call(lambda: value.get(_ABSENT), depth, names)
        if isinstance(value, weakref.ref):
            self._refuse("it reads a weak reference, whose object may go")
            return Same(value)
        if (type(value).__module__ or "").partition(".")[0] == "tenon":
            return Same(value), self._of_plain_attributes(value)
        return Same(value), self._of_attributes(value, depth, names)

    def _of_array(self, numbers: Any, size: int, read: Callable[[], bytes]) -> Any:
        if size > _MOST_BYTES:
            kind = f"{type(numbers).__module__}.{type(numbers).__name__}"
            self._refuse(
                f"it reads a {kind} of {size} bytes, which may change; make a tensor of it"
            )
            return Same(numbers)
        before = read()
        self._calls.append((read, before))
        return Same(numbers), before

    def _of_items(self, items: Any, depth: int, names: frozenset[str]) -> Any:
        if len(items) > _MOST:
            self._refuse(f"it reaches a {type(items).__name__} of {len(items)} items")
            return Same(items)
        if not isinstance(items, tuple):
            self._sizes.append((items, len(items)))
            self._items.append((items, tuple(items)))
        return type(items), tuple(self._of(item, depth - 1, names) for item in items)

    def _of_call(self, call: Callable[[], Any], depth: int, names: frozenset[str]) -> Any:
        found = call()
        self._calls.append((call, found))
        return Same(found) if found is _ABSENT else self._of(found, depth - 1, names)

    def _of_names(self, table: Any, keys: list[Any], depth: int, names: frozenset[str]) -> Any:
        self._sizes.append((table, len(table)))
        return tuple(
            (self._of(key, 1, names), self._of_slot(table, key, depth, names)) for key in keys
        )

    def _of_slot(self, table: Any, key: Any, depth: int, names: frozenset[str]) -> Any:
        there = table.get(key, _ABSENT)
        self._slots.append((table, key, there))
        return Same(there) if there is _ABSENT else self._of(there, depth, names)

    def _of_callable(self, function: Any, depth: int, names: frozenset[str]) -> tuple[Any, ...]:
        if isinstance(function, tenon.nn.Module):
            return self._of_module(function)
        if isinstance(function, types.MethodType):
            own = (
                names_in(function.__func__.__code__)
                if isinstance(function.__func__, types.FunctionType)
                else None
            )
            known = names | own.of_attributes if own else names
            owner = self._of(function.__self__, max(depth, 2), known)
            return owner, *self._of_callable(function.__func__, depth, names)
        if not isinstance(function, types.FunctionType):
            return (self._of(function, max(depth, 2), names),)
        code = function.__code__
        self._functions.append((function, code, function.__defaults__, function.__kwdefaults__))
        if (function.__module__ or "").partition(".")[
            0
        ] == "tenon":  # reads no state of the program's
            return (Same(code),)
        own = names_in(code)
        hidden = own.of_globals & _HIDDEN_READERS
        if hidden:
            self._refuse(f"it calls {min(hidden)}, which reads what no name tells")
        names = names | own.of_attributes
        parts = [Same(code), self._of(function.__defaults__, 2, names)]
        parts.append(self._of(function.__kwdefaults__, 2, names))
        for cell in function.__closure__ or ():
            try:
                contents = cell.cell_contents
            except ValueError:  # not assigned yet
                parts.append(Same(cell))
                continue
            self._cells.append((cell, contents))
            parts.append(self._of(contents, depth, names))
        for name in sorted(own.of_globals):
            there = function.__globals__.get(name, _ABSENT)
            self._slots.append((function.__globals__, name, there))
            if there is not _ABSENT:
                parts.append(self._of(there, depth, names))
        if function.__dict__:
            wanted = [key for key in function.__dict__ if key in names]
            parts.extend(self._of_slot(function.__dict__, key, depth, names) for key in wanted)
        return tuple(parts)

    def _of_module(self, module: Any) -> tuple[Any, ...]:
        parts: list[Any] = [Same(module)]
        read: dict[type, frozenset[str]] = {}
        sees_order, self._sees_order = (
            self._sees_order,
            False,
        )  # those of a module change by its methods
        for part in module.modules():
            self._seen.add(id(part))
            self._kept.append(part)
            kind = type(part)
            parts.append(Same(kind))
            if kind not in read:
                read[kind] = frozenset()
                forward = getattr(kind, "forward", None)
                if isinstance(forward, types.FunctionType):
                    read[kind] = names_in(forward.__code__).of_attributes
                    if kind.__module__.partition(".")[0] != "tenon":
                        self._slots.append(
                            (vars(kind), "forward", vars(kind).get("forward", _ABSENT))
                        )
                        parts.append(self._of_callable(forward, 3, read[kind]))
            parts.append(self._of_names(vars(part), list(vars(part)), 2, read[kind]))
        self._sees_order = sees_order
        return tuple(parts)

    def _of_module_of_python(
        self, module: types.ModuleType, depth: int, names: frozenset[str]
    ) -> Any:
        if module.__name__.partition(".")[0] == "tenon":
            return Same(module)
        table = vars(module)
        wanted = [name for name in sorted(names) if name in table]
        return Same(module), tuple(self._of_slot(table, n, depth - 1, names) for n in wanted)

    def _of_plain_attributes(self, value: Any) -> Any:
        table = getattr(value, "__dict__", None)
        if not isinstance(table, dict):
            return None
        none = frozenset[str]()
        plain = [key for key, item in table.items() if isinstance(item, PLAIN)]
        parts = [self._of_names(table, plain, 1, none)]
        for group in table.get("param_groups", ()):
            plain = [key for key, item in group.items() if isinstance(item, PLAIN)]
            parts.append(self._of_names(group, plain, 1, none))
        return tuple(parts)

    def _of_attributes(self, value: Any, depth: int, names: frozenset[str]) -> Any:
        """The attributes that are named, on the way or by methods that are reached, and these methods."""
        if depth < 1:
            return None
        try:
            own = object.__getattribute__(value, "__dict__")
        except AttributeError:
            own = None
        classes = [
            cls for cls in type(value).__mro__ if cls is not object and cls.__module__ != "builtins"
        ]
        implicit = {
            name
            for cls in classes
            for name, item in vars(cls).items()
            if name.startswith("__")
            and name not in _UNREAD
            and isinstance(item, (types.FunctionType, staticmethod, classmethod))
        }
        parts: list[Any] = []
        waiting, done = [*sorted(names), *sorted(implicit)], set[str]()
        while waiting:
            name = waiting.pop()
            if name in done:
                continue
            done.add(name)
            if isinstance(own, dict):
                parts.append(self._of_slot(own, name, depth - 1, names))
            elif isinstance(value, threading.local):
                parts.append(
                    self._of_call(functools.partial(getattr, value, name, _ABSENT), depth, names)
                )
                continue
            for cls in classes:
                there = vars(cls).get(name, _ABSENT)
                self._slots.append((vars(cls), name, there))
                if there is _ABSENT:
                    continue
                if isinstance(there, types.MemberDescriptorType):
                    read = functools.partial(getattr, value, name, _ABSENT)
                    parts.append(self._of_call(read, depth, names))
                    break
                for function in _functions_of(there):
                    waiting += sorted(names_in(function.__code__).of_attributes - done)
                    parts.append(self._of_callable(function, depth - 1, names))
                if not _functions_of(there):
                    parts.append(self._of(there, depth - 1, names))
                break
        return tuple(parts)


def _functions_of(item: Any) -> list[types.FunctionType]:
    """The functions in Python that reading or calling an attribute of a class runs."""
    if isinstance(item, types.FunctionType):
        return [item]
    if isinstance(item, (staticmethod, classmethod)):
        return _functions_of(item.__func__)
    if isinstance(item, property):
        return _functions_of(item.fget)
    if isinstance(item, functools.cached_property):
        return _functions_of(item.func)
    return []
