# SPDX-License-Identifier: Apache-2.0
"""What a branch or loop can change: variables, tensors that it writes into, and lists, dictionaries and attributes that
it can reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tenon._core import Tensor
from tenon.jit.syntax.containers import containers_of
from tenon.jit.syntax.merging import Unset
from tenon.jit.syntax.numbers import Number

__all__ = ["After", "State", "Unset"]


class After:
    """What a branch or the body of a loop left."""

    def __init__(
        self,
        values: list[Any],
        contents: dict[int, Any],
        is_dirty: list[bool],
        held: dict[int, Any],
    ) -> None:
        self.values, self.contents, self.is_dirty = values, contents, is_dirty
        self._held = held

    def see(self, value: Any) -> Any:
        """What a list or dictionary held then; by now it holds again what it held before."""
        return self._held.get(id(value), value)


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
        values = zip(self.names, self.before, strict=True)
        self.containers = list(containers_of([*functions, *self._code], values))
        # Tensors that may be written into, each once.
        found = {
            id(value): value
            for name, value in zip(self.names, self.before, strict=True)
            if name in self.changed and isinstance(value, Tensor) and not isinstance(value, Number)
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
        known = {container.identity for container in self.containers}
        values = [_replaced(value, back, known) for value in self.values()]
        self.set(self.before)  # variables are cells of functions, too, which are looked at next
        contents = {
            index: _replaced(container.now(), back, known)
            for index, container in enumerate(self.containers)
            if container.is_changed()
        }
        is_dirty = [clone._version != version for _, clone, version in self._marked]
        held = {
            key: contents[index]
            for index, container in enumerate(self.containers)
            if index in contents and (key := container.identity)
        }
        self.restore()
        return After(values, contents, is_dirty, held)

    def restore(self) -> None:
        self.set(self.before)
        for container in self.containers:
            if container.is_changed():
                container.restore()


def _replaced(value: Any, back: dict[int, Tensor], known: set[int]) -> Any:
    if not back or id(value) in known:
        return value
    if id(value) in back:
        return back[id(value)]
    if type(value) in (list, tuple):
        items = [_replaced(item, back, known) for item in value]
        is_other = any(a is not b for a, b in zip(items, value, strict=True))
        return type(value)(items) if is_other else value
    if type(value) is dict:
        made = {key: _replaced(item, back, known) for key, item in value.items()}
        return made if any(made[key] is not value[key] for key in made) else value
    return value
