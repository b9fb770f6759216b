# SPDX-License-Identifier: Apache-2.0
"""Captured state of a function: what it can read other than its arguments.

Looked at are the variables that the function closes over, the globals that its code names, default arguments, and the
object of a method. Of these: numbers, texts and None by value; containers and small arrays of NumPy by their items;
tensors by their identity and layout; functions as this one; modules, classes and objects by the attributes that any
code on the way names, in the object and in its classes, and by the methods that Python calls by itself (`__len__`,
`__getitem__`); modules of layers and other objects of this package by all their attributes. What an object means also
hangs on its class, so that a class that is assigned or changed is another state. What cannot be told makes a refusal.
"""

from __future__ import annotations

import abc
import array
import builtins
import collections
import contextvars
import datetime
import functools
import operator
import sys
import threading
import types
from collections.abc import Callable, Iterable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.jit import bytecode
from tenon.jit import capture_rules as rules
from tenon.ops._definition import functions_of

_DEPTH = 60  # of containers in containers, and of attributes
_MOST = 10_000  # values, so that looking at them takes milliseconds
_MOST_BYTES = 4096  # of an array of NumPy
_ROUNDS = 20  # names that code reads lead to more code
_ABSENT = object()
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: classes whose attributes can be assigned


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
    """`value` is equal exactly if all that was looked at is; `is_unchanged` is a quick way to tell that.

    `refusal` says what cannot be told; nothing if there is nothing."""

    def __init__(
        self,
        function: Callable[..., Any],
        grads: Iterable[Tensor] = (),
        operators: Iterable[str] = (),
        before: Outside | None = None,
    ) -> None:
        """What the code does not tell: tensors whose `.grad` it reads, and operators defined in Python that it calls.
        `before`: an older one of the same function, whose names spare looking twice."""
        self.grads, self.operators = tuple(grads), tuple(operators)
        self.refusal = bytecode.refusal()
        self._names: set[str] = set[str](before._names if before else ())
        self._are_computed: bool = before is not None and before._are_computed
        self._members: dict[type, list[str]] = {}
        self.value: Any = None
        for _ in range(_ROUNDS):
            known = len(self._names), self._are_computed
            self._begin()
            if self.refusal:
                return
            self.value = (
                self._of(function, _DEPTH),
                tuple(map(self._of_grad, self.grads)),
                tuple(self._of_operator(name) for name in self.operators),
                tuple(self._settings),
            )
            if self.refusal or known == (len(self._names), self._are_computed):
                return
        self._refuse("the code that it reaches does not end")

    def _begin(self) -> None:
        self._slots: list[tuple[Any, Any, Any]] = []  # dictionary, key, what was there
        self._cells: list[tuple[types.CellType, Any]] = []
        self._sizes: list[tuple[Any, int]] = []  # containers
        self._items: list[
            tuple[Iterable[Any], tuple]
        ] = []  # of containers; keys of dictionaries, in order
        self._calls: list[tuple[Callable[[], Any], Any]] = []  # cheap ones, with what they returned
        self._functions: list[tuple[types.FunctionType, Any, Any, Any]] = []
        # Objects or None, their classes, versions of these, and the dictionaries of their attributes or None.
        self._classes: list[tuple[Any, type, int, dict[str, Any] | None]] = []
        self._layouts: list[tuple[Tensor, bytes, int, int]] = []  # tensor, layout, address, hooks
        self._settings: list[bytes] = []  # what they were
        self._watched_slots: set[tuple[int, Any]] = set()
        self._sees_order = True  # of dictionaries
        self._seen: set[int] = set()
        self._kept: list[Any] = []  # so that no other object gets the address of one in `_seen`
        self.watched = (
            self._sizes,
            self._slots,
            self._cells,
            self._items,
            self._functions,
            self._classes,
            self._layouts,
            self._calls,
            _ABSENT,
        )

    def is_unchanged(self) -> bool:
        return _core.is_unchanged(self.watched)

    def tensors(self) -> list[Tensor]:
        """Those that were found."""
        return [tensor for tensor, *_ in self._layouts]

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or reason

    def _of(self, value: Any, depth: int) -> Any:
        if type(value) in rules.PLAIN or isinstance(value, (tenon.dtype, tenon.device)):
            return type(value), repr(value) if isinstance(value, (float, complex)) else value
        if self.refusal or id(value) in self._seen:
            return Same(value)
        if depth == 0:
            self._refuse(f"it reaches values that lie {_DEPTH} deep; pass them as arguments")
            return Same(value)
        if len(self._slots) > _MOST or len(self._kept) > _MOST:
            self._refuse(f"it reaches more than {_MOST} values; pass what it needs as arguments")
            return Same(value)
        self._seen.add(id(value))
        self._kept.append(value)
        for kinds, look in _KINDS:
            if isinstance(value, kinds):
                return look(self, value, depth)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.void):  # a record, which may be written
            return self._of_array(value, value.nbytes, value.tobytes)
        if numpy is not None and isinstance(value, numpy.generic):
            return type(value), value.tobytes()
        if numpy is not None and isinstance(value, numpy.ndarray):
            return self._of_array_of_numpy(value, depth)
        if numpy is not None and isinstance(
            value, (numpy.random.Generator, numpy.random.RandomState)
        ):
            self._refuse("it draws random numbers of NumPy; pass them as arguments")
        return self._of_object(value, depth)

    # -- values of Python's own types ------------------------------------------------------------------

    def _of_builtin_function(self, function: Any, depth: int) -> Any:
        owner = getattr(function, "__self__", None)
        module = getattr(function, "__module__", None)
        self._are_computed = self._are_computed or function in (getattr, hasattr)
        if module in rules.HIDDEN_STATE and function.__name__ != "fspath":
            self._refuse(f"it calls {module}.{function.__name__}, whose answer may change")
        if owner is None or isinstance(owner, types.ModuleType):
            return Same(function)
        return function.__name__, self._of(owner, depth - 1)

    def _of_array_of_numpy(self, numbers: Any, depth: int) -> Any:
        if numbers.dtype.hasobject:
            self._refuse("it reads an array of objects of NumPy")
            return Same(numbers)
        layout = lambda: repr((numbers.shape, numbers.dtype)).encode()  # noqa: E731
        found = self._of_array(numbers, numbers.nbytes, lambda: numbers.tobytes() + layout())
        return found, self._of_own_class(numbers, depth)

    def _of_bytes(self, value: Any, depth: int) -> Any:
        return self._of_array(value, memoryview(value).nbytes, lambda: bytes(value))

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

    def _of_items(self, items: Any, depth: int) -> Any:
        if len(items) > _MOST:
            self._refuse(f"it reaches a {type(items).__name__} of {len(items)} items")
            return Same(items)
        inside = tuple(items)
        if not isinstance(items, (tuple, frozenset)):
            self._sizes.append((items, len(items)))
            self._items.append((items, inside))
        found = tuple(self._of(item, depth - 1) for item in inside)
        return type(items), found, self._of_own_class(items, depth)

    def _of_dict(self, table: dict, depth: int) -> Any:
        if len(table) > _MOST:
            self._refuse(f"it reaches a {type(table).__name__} of {len(table)} items")
            return Same(table)
        if self._sees_order:
            self._items.append((table, tuple(table)))
        factory = None
        if isinstance(table, collections.defaultdict):
            factory = self._of_call(lambda: table.default_factory, depth)
        return (
            type(table),
            self._of_names(table, list(table), depth - 1),
            factory,
            self._of_own_class(table, depth),
        )

    def _of_own_class(self, value: Any, depth: int) -> Any:
        """Of a class that derives from one of Python's: what it adds."""
        if not type(value).__flags__ & _HEAP_TYPE:
            return None
        return self._of_object(value, depth)[1:]  # its items say which one it is

    def _of_call(self, call: Callable[[], Any], depth: int) -> Any:
        found = call()
        self._calls.append((call, found))
        return Same(found) if found is _ABSENT else self._of(found, depth - 1)

    def _of_names(self, table: Any, keys: list[Any], depth: int) -> Any:
        self._sizes.append((table, len(table)))
        return tuple((self._of(key, depth), self._of_slot(table, key, depth)) for key in keys)

    def _of_slot(self, table: Any, key: Any, depth: int) -> Any:
        there = self._watch(table, key)
        return Same(there) if there is _ABSENT else self._of(there, depth)

    def _watch(self, table: Any, key: Any) -> Any:
        there = table.get(key, _ABSENT)
        known = id(table), key
        if known not in self._watched_slots:
            self._watched_slots.add(known)
            self._slots.append((table, key, there))
        return there

    def _of_context_variable(self, variable: Any, depth: int) -> Any:
        return self._of_call(lambda: variable.get(_ABSENT), depth)

    def _of_partial(self, part: Any, depth: int) -> Any:
        parts = (part.func, part.args, part.keywords)
        found = tuple(self._of(each, depth - 1) for each in parts)
        return Same(part), found, self._of_object(part, depth)

    def _of_getter(self, getter: Any, depth: int) -> Any:
        for text in getter.__reduce__()[1]:
            if isinstance(text, str):
                self._names.update(text.split("."))
        return Same(getter)

    def _of_cache(self, function: Any, depth: int) -> Any:
        return Same(function), self._of(function.__wrapped__, depth - 1)

    def _refuse_kind(self, value: Any, depth: int) -> Any:
        for kinds, reason in rules.REFUSED:
            if isinstance(value, kinds):
                self._refuse(reason)
        return Same(value)

    def _of_tensor(self, tensor: Tensor, depth: int) -> Any:
        layout, address = _core.tensor_layout(tensor)
        self._layouts.append((tensor, layout, address, _core.hook_state(tensor)))
        hooks = tuple(self._of(hook, depth - 1) for hook in _core.list_hooks(tensor))
        return Same(tensor), layout, hooks, self._of_object(tensor, depth)

    def _of_grad(self, tensor: Tensor) -> Any:
        def read() -> bytes:
            grad = tensor.grad
            return b"" if grad is None else repr(_core.tensor_layout(grad)).encode()

        self._kept += [tensor, tensor.grad]  # its memory is no other one's
        self._calls.append((read, read()))
        return Same(tensor), read()

    def _of_operator(self, name: str) -> Any:
        return name, tuple(self._of(function, _DEPTH) for function in functions_of(name))

    # -- code ------------------------------------------------------------------------------------------

    def _of_method(self, method: types.MethodType, depth: int) -> Any:
        return self._of(method.__func__, depth - 1), self._of(method.__self__, depth - 1)

    def _of_function(self, function: types.FunctionType, depth: int) -> tuple[Any, ...]:
        code = function.__code__
        self._functions.append((function, code, function.__defaults__, function.__kwdefaults__))
        own = bytecode.names_in(code)
        self._names |= own.of_attributes
        package = (function.__module__ or "").partition(".")[0]
        if package == "tenon" or package in rules.BESIDE:
            # It reads no state of the program's; but others may be put in the place of what it calls.
            return Same(code), *self._of_library(function, own.of_globals)
        self._are_computed = self._are_computed or own.are_computed
        for name in own.computed_of:
            owner = function.__globals__.get(name)
            if not isinstance(owner, types.ModuleType) or not owner.__name__.startswith("tenon"):
                self._are_computed = True
        hidden = own.of_globals & rules.HIDDEN_READERS
        if hidden:
            self._refuse(f"it calls {min(hidden)}, which reads what no name tells")
        parts = [Same(code), self._of(function.__defaults__, depth - 1)]
        parts.append(self._of(function.__kwdefaults__, depth - 1))
        for cell in function.__closure__ or ():
            try:
                contents = cell.cell_contents
            except ValueError:  # not assigned yet
                contents = _ABSENT
            self._cells.append((cell, contents))
            parts.append(Same(cell) if contents is _ABSENT else self._of(contents, depth - 1))
        for name in sorted(own.of_globals):
            there = self._watch(function.__globals__, name)
            if there is _ABSENT:
                there = self._watch(vars(builtins), name)
            if isinstance(there, types.ModuleType):
                # Modules of the standard library leave no trace in results when they use each other, but may ask
                # the system.
                if package not in sys.stdlib_module_names:
                    parts.append(self._of_module(there, own.of_attributes, depth - 1))
                for owner, part in sorted(own.of_parts):
                    if owner != name:
                        continue
                    called = vars(there).get(part)
                    if called is None and package != "tenon" and "__getattr__" in vars(there):
                        parts.append(self._of_slot(vars(there), "__getattr__", depth - 1))
                    if getattr(called, "__module__", None) in rules.HIDDEN_STATE - {"sys"}:
                        self._of_builtin_function(called, depth)
            elif there is not _ABSENT:
                parts.append(self._of(there, depth - 1))
        for name, level in sorted(own.of_modules):
            parts.append(self._of_import(function, name, level, own.of_attributes, depth))
        if function.__dict__:
            wanted = self._wanted(function.__dict__)
            parts.extend(self._of_slot(function.__dict__, key, depth - 1) for key in wanted)
        return tuple(parts)

    def _of_library(self, function: types.FunctionType, names: frozenset[str]) -> Iterable[Any]:
        for name in sorted(names):
            there = self._watch(function.__globals__, name)
            yield Same(there)
            if isinstance(there, types.ModuleType) and there.__name__.startswith("tenon"):
                inside = bytecode.names_in(function.__code__).of_attributes
                for each in sorted(inside & vars(there).keys()):
                    yield Same(self._watch(vars(there), each))

    def _of_import(
        self, function: types.FunctionType, name: str, level: int, names: frozenset[str], depth: int
    ) -> Any:
        if level:
            package = function.__globals__.get("__package__") or ""
            base = package.split(".")
            name = ".".join([*base[: len(base) - level + 1], *([name] if name else [])])
        there = self._watch(sys.modules, name)
        if isinstance(there, types.ModuleType):
            return self._of_module(there, names, depth - 1)
        return Same(there) if there is _ABSENT else self._of(there, depth - 1)

    def _of_module(self, module: types.ModuleType, names: frozenset[str], depth: int) -> Any:
        """By the attributes that the function names which names the module; one that others may be given, by those that
        any names."""
        table, package = vars(module), module.__name__.partition(".")[0]
        if package in rules.BESIDE:
            if read := rules.BESIDE[package] & names:
                self._refuse(f"it reads {package}'s {min(read)}")
            return Same(module)
        wanted = names if package in sys.stdlib_module_names else self._names
        found: list[Any] = []
        for name in sorted(wanted & table.keys()):
            there = self._watch(table, name)
            if any(there is setting for setting in rules.SETTINGS):
                found.append(self._of_setting(there))
            elif package == "tenon":
                found.append(Same(there))
            elif isinstance(there, types.ModuleType):
                found.append(self._of_module(there, names, depth - 1) if depth > 1 else Same(there))
            else:
                found.append(self._of(there, depth - 1))
        return Same(module), tuple(found)

    # -- objects and classes ---------------------------------------------------------------------------

    def _wanted(self, table: Any) -> list[str]:
        """The attributes among `table` that code reads."""
        if self._are_computed:
            return sorted(
                key for key in table if isinstance(key, str) and not rules.is_special(key)
            )
        return sorted(self._names & table.keys())

    def _of_object(self, value: Any, depth: int) -> Any:
        """By the attributes that code names, in the object and in its classes."""
        kind = type(value)
        if (
            rules.module_of(kind) == "tenon.collective"
        ):  # a Communicator, and the sockets that it holds
            self._refuse("it talks to other ranks")
        if (
            rules.module_of(kind).startswith("tenon.distributed.")
            and kind.__name__ in rules.RANK_GROUPS
        ):
            return Same(value)
        if isinstance(value, threading.local):
            names = sorted(self._names)
            reads = [functools.partial(getattr, value, name, _ABSENT) for name in names]
            return Same(value), tuple(self._of_call(read, depth) for read in reads)
        self._watch_decimals(kind)
        if isinstance(value, rules.LOCKS) and self._names & rules.LOCK_STATE:
            self._refuse("it asks whether a lock is held")
        if not kind.__flags__ & _HEAP_TYPE and hasattr(kind, "__next__"):
            self._refuse(f"it reaches a {kind.__name__}, which is used up as it is read")
        own = _core.own_dictionary(value)
        self._classes.append((value, kind, _core.class_version(kind), own))
        parts: list[Any] = [Same(value), self._of_classes(kind, depth)]
        if own is not None:
            parts.append(self._of_own_attributes(value, own, depth))
        for name in self._members_of(kind):
            if name in self._names or self._are_computed:
                read = functools.partial(getattr, value, name, _ABSENT)
                parts.append(self._of_call(read, depth))
        return tuple(parts)

    def _members_of(self, kind: type) -> list[str]:
        """The attributes of `__slots__`."""
        if kind not in self._members:
            self._members[kind] = [
                name
                for cls in kind.__mro__
                for name, item in vars(cls).items()
                if isinstance(item, types.MemberDescriptorType)
            ]
        return self._members[kind]

    def _of_own_attributes(self, value: Any, own: dict[str, Any], depth: int) -> Any:
        if not rules.is_ours(type(value)) and not isinstance(value, tenon.nn.Module):
            self._items.append((own, tuple(own)))  # another attribute may hide one of the class
            return tuple((name, self._of_slot(own, name, depth - 1)) for name in self._wanted(own))
        # Of this package's: code that is not looked at reads them, and nothing by their order.
        sees_order, self._sees_order = self._sees_order, False
        found = self._of_names(own, list(own), depth - 1)
        self._sees_order = sees_order
        return found

    def _of_class(self, cls: type, depth: int) -> Any:
        """A class as a value: code may call it, or read its attributes."""
        self._watch_decimals(cls)
        if cls in (
            operator.attrgetter,
            operator.methodcaller,
        ):  # of names that are made while code runs
            self._are_computed = True
        if not cls.__flags__ & _HEAP_TYPE:
            if issubclass(cls, datetime.date) and self._names & {"now", "today", "utcnow"}:
                self._refuse("it asks for the time")
            return Same(cls)
        if issubclass(cls, tenon.autograd.Function):
            # apply() and backward passes call them.
            self._names |= {"forward", "backward", "setup_context"}
        parts = [Same(cls), self._of_classes(cls, depth)]
        if not rules.is_ours(cls):
            self._classes.append((cls, type(cls), _core.class_version(type(cls)), None))
            parts.append(self._of_classes(type(cls), depth))
            parts.append(self._of_attributes_of_class(cls, rules.MADE, depth))
        if isinstance(cls, abc.ABCMeta):
            # What isinstance says changes as classes are registered.
            parts.append(self._of_setting(abc.get_cache_token))
        return tuple(parts)

    def _watch_decimals(self, kind: type) -> None:
        """What numbers of `decimal` come to hangs on their context."""
        decimal = sys.modules.get("decimal")
        if decimal is not None and kind is decimal.Decimal:
            self._of_setting(decimal.getcontext)

    def _of_setting(self, told_by: Callable[[], Any]) -> bytes:
        read = lambda: repr(told_by()).encode()  # noqa: E731
        before = read()
        self._calls.append((read, before))
        self._settings.append(before)
        return before

    def _of_classes(self, kind: type, depth: int) -> Any:
        """What objects of this class get from it and from those it derives from."""
        if not kind.__flags__ & _HEAP_TYPE or kind in (type, abc.ABCMeta):
            return Same(kind)
        key = id(kind), "attributes"
        if key in self._watched_slots:
            return Same(kind)
        self._watched_slots.add(key)
        self._kept.append(kind)
        self._classes.append((None, kind, _core.class_version(kind), None))
        found = self._of_attributes_of_class(kind, self._names, depth)
        return Same(kind), Same(kind.__mro__), found

    def _of_attributes_of_class(self, kind: type, names: set[str], depth: int) -> Any:
        parts: list[Any] = []
        for cls in kind.__mro__:
            if cls is object or not cls.__flags__ & _HEAP_TYPE:
                continue
            for name, item in sorted(vars(cls).items()):
                if rules.is_special(name):
                    is_read = name in names or (
                        name not in rules.UNREAD and isinstance(item, rules.CODE)
                    )
                else:
                    is_read = name in names or self._are_computed
                if is_read and not isinstance(item, types.MemberDescriptorType):
                    parts.append((name, self._of_attribute_of_class(item, depth)))
        return tuple(parts)

    def _of_attribute_of_class(self, item: Any, depth: int) -> Any:
        functions = rules.functions_of(item)
        if functions:
            return tuple(self._of(function, depth - 1) for function in functions)
        return self._of(item, depth - 1)


# The first that fits.
_KINDS: list[tuple[Any, Callable[[Outside, Any, int], Any]]] = [
    (Tensor, Outside._of_tensor),
    (types.FunctionType, Outside._of_function),
    (types.MethodType, Outside._of_method),
    (
        (types.BuiltinFunctionType, types.MethodWrapperType),
        Outside._of_builtin_function,
    ),
    (type, Outside._of_class),
    (types.ModuleType, lambda self, it, depth: self._of_module(it, frozenset(self._names), depth)),
    (dict, Outside._of_dict),
    ((tuple, list, set, frozenset, collections.deque), Outside._of_items),
    (array.array, lambda self, it, _: self._of_array(it, len(it) * it.itemsize, it.tobytes)),
    ((bytearray, memoryview), Outside._of_bytes),
    (functools.partial, Outside._of_partial),
    (functools._lru_cache_wrapper, Outside._of_cache),
    ((operator.attrgetter, operator.methodcaller), Outside._of_getter),
    (contextvars.ContextVar, Outside._of_context_variable),
    (
        tuple(
            each
            for kinds, _ in rules.REFUSED
            for each in (kinds if isinstance(kinds, tuple) else (kinds,))
        ),
        Outside._refuse_kind,
    ),
]
