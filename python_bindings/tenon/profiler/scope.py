# SPDX-License-Identifier: Apache-2.0
"""Parts of a program that show in profiles under names of their own."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tenon import _core

F = TypeVar("F", bound=Callable[..., Any])

_lock = threading.Lock()
_numbers: dict[tuple[str, str], int] = {}
_names: list[tuple[str, str]] = []  # (kind, name) by number


def number_of(kind: str, name: str) -> int:
    """What records hold for a scope."""
    with _lock:
        number = _numbers.setdefault((kind, name), len(_names))
        if number == len(_names):
            _names.append((kind, name))
        return number


def all_scopes() -> list[tuple[str, str]]:
    """Kinds and names, by number."""
    with _lock:
        return list(_names)


def name_of(number: int) -> tuple[str, str]:
    return _names[number]


class record_function:
    """Show a block, or a function that is decorated with it, in profiles under `name`.

        with tenon.profiler.record_function("data"):
            batch = next(batches)

    Does next to nothing while this thread is not profiled.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: expected a name, got {type(name).__name__}")
        self.name = name
        self._number = number_of("scope", name)
        self._begun: list[bool] = []

    def __enter__(self) -> record_function:
        is_recorded = _core.is_profiling()
        self._begun.append(is_recorded)
        if is_recorded:
            _core.scope_begin(self._number)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._begun.pop():
            _core.scope_end()

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return recorded  # type: ignore[return-value]
