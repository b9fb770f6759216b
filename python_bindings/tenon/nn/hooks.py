# SPDX-License-Identifier: Apache-2.0
"""What register_forward_hook and its relatives return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Hooks that Module.__call__ runs; a module without any takes the short way.
_OF_CALLS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class HookHandle:
    """Removes its hook by remove(), or at the end of a `with` block."""

    _next = 0

    def __init__(self, module: Any, kind: str, hook: Callable) -> None:
        HookHandle._next += 1
        self._module, self._kind, self._id = module, kind, HookHandle._next
        if getattr(module, kind) is None:
            setattr(module, kind, {})
        getattr(module, kind)[self._id] = hook
        self._count()

    def remove(self) -> None:
        hooks = getattr(self._module, self._kind)
        if hooks is not None:
            hooks.pop(self._id, None)
            if not hooks:
                setattr(self._module, self._kind, None)
        self._count()

    def _count(self) -> None:
        module = self._module
        module._has_hooks = any(getattr(module, kind) is not None for kind in _OF_CALLS)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
