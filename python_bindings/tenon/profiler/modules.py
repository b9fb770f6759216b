# SPDX-License-Identifier: Apache-2.0
"""Calls of modules as scopes of a profile, by their paths in the model."""

from __future__ import annotations

import threading
from typing import Any

from tenon import _core
from tenon.nn import Module

from .scope import number_of


class ModuleScopes:
    """While one lives, module calls of this thread are recorded as scopes of the kind "module"."""

    _original: Any = None
    _count = 0

    def __init__(self) -> None:
        cls = ModuleScopes
        if cls._count == 0:
            cls._original = Module.__call__
            Module.__call__ = _recorded_call(cls._original)  # type: ignore[method-assign]
        cls._count += 1

    def close(self) -> None:
        cls = ModuleScopes
        cls._count -= 1
        if cls._count == 0:
            Module.__call__ = cls._original  # type: ignore[method-assign]


class _Calls(threading.local):
    """Of one thread."""

    def __init__(self) -> None:
        self.depth = 0
        self.paths: dict[int, str] = {}  # of modules below the outermost that was called


def _recorded_call(original: Any) -> Any:
    calls = _Calls()

    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        if not _core.is_profiling():
            return original(self, *args, **kwargs)
        if calls.depth == 0:
            root = type(self).__name__
            calls.paths = {}
            for path, module in self.named_modules():
                calls.paths.setdefault(id(module), f"{root}.{path}" if path else root)
        name = calls.paths.get(id(self), type(self).__name__)
        _core.scope_begin(number_of("module", name))
        calls.depth += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            calls.depth -= 1
            _core.scope_end()

    return call
