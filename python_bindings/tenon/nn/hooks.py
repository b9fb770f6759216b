# SPDX-License-Identifier: Apache-2.0
"""What register_forward_hook returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class HookHandle:
    """Removes its hook by remove(), or at the end of a `with` block."""

    _next = 0

    def __init__(self, module: Any, kind: str, hook: Callable) -> None:
        HookHandle._next += 1
        self._module, self._kind, self._id = module, kind, HookHandle._next
        getattr(module, kind)[self._id] = hook

    def remove(self) -> None:
        hooks = getattr(self._module, self._kind)
        if hooks is not None:
            hooks.pop(self._id, None)
            if not hooks:
                setattr(self._module, self._kind, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
