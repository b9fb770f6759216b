# SPDX-License-Identifier: Apache-2.0
"""What a branch or loop can change: variables, tensors that it writes into, and lists, dictionaries and attributes that
it can reach."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon._syntax.numbers import Number
from tenon._syntax.merging import Unset, is_same

__all__ = ["After", "Container", "State", "Unset"]

_MOST_OBJECTS = 20_000
_LEAVES = (str, bytes, int, float, complex, type(None), Tensor, type, types.ModuleType, Unset)


class Container:
    """A list, dictionary or object, and what it holds."""

    def __init__(self, label: str, value: Any) -> None:
        self.label, self._object = label, value
        self._is_object = not isinstance(value, (list, dict, set))
        self._items = vars(value) if self._is_object else value
        self.saved = self.now()

    def now(self) -> Any:
        return type(self._items)(self._items)

    def is_changed(self) -> bool:
        items, saved = self._items, self.saved
        if len(items) != len(saved):
            return True
        if isinstance(items, list):
            return not all(map(is_same, items, saved))
        if isinstance(items, set):
            return bool(items != saved)
        return any(k not in saved or not is_same(v, saved[k]) for k, v in items.items())

    def restore(self) -> None:
        self._fill(self.saved)

    def put(self, contents: Any) -> None:
        if not self._is_object:
            self._fill(contents)
            return
        for name in [name for name in self._items if name not in contents]:
            delattr(self._object, name)
        for name, value in contents.items():
            if name not in self._items or not is_same(value, self._items[name]):
                setattr(self._object, name, value)

    def _fill(self, contents: Any) -> None:
        if isinstance(self._items, list):
            self._items[:] = contents
        else:
            self._items.clear()
            self._items.update(contents)


class After:
    """What a branch or the body of a loop left."""

    def __init__(self, values: list[Any], contents: dict[int, Any], is_dirty: list[bool]) -> None:
        self.values, self.contents, self.is_dirty = values, contents, is_dirty


class State:
    """The variables `names`, read by `get` and set by `put`; the tensors in those of `changed` may be written into."""

    def __init__(
        self,
        names: tuple[str, ...],
        changed: tuple[str, ...],
        get: Callable[[], Any],
        put: Callable[[Any], None],
        is_eager: bool = False,
        code: Iterable[Any] = (),
    ) -> None:
        self.names, self.is_eager = list(names), is_eager
        self.changed, self._get, self._put = changed, get, put
        self._has_hidden = False
        self.hidden: Any = None
        self._code = list(code)
        self._marked: list[Any] = []

    def add_hidden(self, value: Any) -> None:
        """A variable of its own, which no code names."""
        self.names.insert(0, "the index")
        self._has_hidden, self.hidden = True, value

    def values(self) -> list[Any]:
        return [*([self.hidden] if self._has_hidden else ()), *self._get()]

    def set(self, values: Iterable[Any]) -> None:
        values = list(values)
        if self._has_hidden:
            self.hidden = values.pop(0)
        self._put(tuple(values))

    def remember(self, functions: Iterable[Any]) -> None:
        """What is there before the branch or loop that `functions` are."""
        self.before = self.values()
        self.containers = list(_containers([*functions, *self._code], self.before, self.names))
        # Tensors that may be written into, each once.
        found = {
            id(value): value
            for name, value in zip(self.names, self.before, strict=True)
            if name in self.changed
            and isinstance(value, Tensor)
            and not isinstance(value, Number)
        }
        self.targets = list(found.values())

    def enter(self, values: Iterable[Any], targets: list[Tensor], clones: list[Tensor]) -> None:
        """Set the variables, with clones in the place of what may be written into."""
        known = {id(t): c for t, c in zip(targets, clones, strict=True)}
        self.set(known.get(id(value), value) for value in values)
        self._marked = [(t, c, c._version) for t, c in zip(targets, clones, strict=True)]

    def leave(self) -> After:
        """What there is now; everything else is as it was before."""
        back = {id(clone): target for target, clone, _ in self._marked}
        values = [_replaced(value, back) for value in self.values()]
        contents = {
            index: _replaced(container.now(), back)
            for index, container in enumerate(self.containers)
            if container.is_changed()
        }
        is_dirty = [clone._version != version for _, clone, version in self._marked]
        self.restore()
        return After(values, contents, is_dirty)

    def restore(self) -> None:
        self.set(self.before)
        for container in self.containers:
            if container.is_changed():
                container.restore()


def _replaced(value: Any, back: dict[int, Tensor]) -> Any:
    if not back:
        return value
    if id(value) in back:
        return back[id(value)]
    if type(value) in (list, tuple):
        items = [_replaced(item, back) for item in value]
        is_other = any(a is not b for a, b in zip(items, value, strict=True))
        return type(value)(items) if is_other else value
    if type(value) is dict:
        made = {key: _replaced(item, back) for key, item in value.items()}
        return made if any(made[key] is not value[key] for key in made) else value
    return value


def _containers(
    functions: Iterable[Any], values: Iterable[Any], names: Iterable[str]
) -> Iterator[Container]:
    """Whatever code in `functions` can reach through variables, and change."""
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [(name, value) for name, value in zip(names, values)]
    stack += [("", function) for function in functions]
    while stack and len(seen) < _MOST_OBJECTS:
        label, value = stack.pop()
        if isinstance(value, _LEAVES) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            stack += _reached(value)
        elif isinstance(value, types.MethodType):
            stack.append((label, value.__self__))
            stack.append(("", value.__func__))
        elif type(value) in (list, set, tuple, frozenset):
            if type(value) in (list, set):
                yield Container(label, value)
            if type(value) in (list, tuple):
                stack += [(f"{label}[{i}]", item) for i, item in enumerate(value)]
        elif type(value) is dict:
            yield Container(label, value)
            stack += [(f"{label}[{key!r}]", item) for key, item in value.items()]
        elif type(getattr(value, "__dict__", None)) is dict and _is_open(value):
            yield Container(label, value)
            stack += [(f"{label}.{key}", item) for key, item in vars(value).items()]


def _is_open(value: Any) -> bool:
    module = type(value).__module__
    return not module.startswith(("tenon._", "builtins", "functools"))


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
            # Functions of modules are looked at where they are called.
            if value is not None and not isinstance(value, (types.FunctionType, *_LEAVES)):
                yield name, value


def hide(targets: list[Tensor]) -> None:
    """Nothing that is recorded in this region may read the memory of `targets`, for which clones stand."""
    if targets:
        _core.region_hide(targets)
