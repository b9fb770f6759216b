# SPDX-License-Identifier: Apache-2.0
"""The functions that other processes may call: those that this one has registered, by name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

_functions: dict[str, Callable[..., Any]] = {}
_names: dict[Callable[..., Any], str] = {}
_lock = threading.Lock()


@overload
def register(function: F) -> F: ...
@overload
def register(*, name: str) -> Callable[[F], F]: ...
def register(function: Any = None, *, name: str | None = None) -> Any:
    """Let other processes of the job call a function or a class, by its qualified name or by `name`:

    @rpc.register
    def lookup(key): ...
    """
    if function is None:
        return lambda given: _add(given, name)
    return _add(function, name)


def _add(function: Any, name: str | None) -> Any:
    if not callable(function):
        raise TypeError(f"register: expected a function or a class, got {type(function).__name__}")
    name = name or function.__qualname__
    with _lock:
        known = _functions.get(name)
        if known is not None and _place(known) != _place(function):
            raise ValueError(
                f"register: expected a name of its own, got {name!r} for two functions; give name="
            )
        _functions[name] = function
        _names[function] = name
    return function


def _place(function: Any) -> tuple[Any, Any]:
    """The same for a function that is defined again, as when its cell of a notebook runs twice."""
    return getattr(function, "__module__", None), getattr(function, "__qualname__", None)


def name_of(function: Any) -> str | None:
    """The name under which a function was registered here."""
    return _names.get(function)


def find(name: str) -> Callable[..., Any] | None:
    return _functions.get(name)


def names() -> list[str]:
    return sorted(name for name in _functions if not name.startswith("_"))
