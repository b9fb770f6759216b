# SPDX-License-Identifier: Apache-2.0
"""Switches of layers take nothing but True and False.

A layer whose settings come in another order than its caller thinks would take a name or a size for a
switch, and compute something else. What a constructor declares as `bool` is checked before it runs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

_KINDS = {"bool": "True or False", "bool | None": "True, False or None"}


def check_flags(classes: Iterable[type]) -> None:
    """Have the constructors of these classes, and of their bases beside them, refuse what is no
    switch."""
    package = __name__.rpartition(".")[0]
    for cls in {base for each in classes for base in each.__mro__}:
        if "__init__" in vars(cls) and cls.__module__.startswith(package):
            cls.__init__ = _checked(cls.__init__)  # type: ignore[misc]


def _checked(init: Callable[..., None]) -> Callable[..., None]:
    names = list(inspect.signature(init).parameters)
    flags = {
        name: (names.index(name), _KINDS[kind])
        for name, kind in init.__annotations__.items()
        if kind in _KINDS
    }
    if not flags:
        return init

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name, (place, wanted) in flags.items():
            if name in kwargs:
                value = kwargs[name]
            elif place <= len(args):  # `self` is at place 0
                value = args[place - 1]
            else:
                continue
            if not is_flag(value) and not (value is None and "None" in wanted):
                raise TypeError(
                    f"{type(self).__name__}: expected {name} to be {wanted}, got {value!r}; pass "
                    f"settings by name"
                )
        init(self, *args, **kwargs)

    return checked


def is_flag(value: Any) -> bool:
    """Python's and NumPy's truth values, and 0 and 1."""
    if isinstance(value, int):
        return value in (0, 1)
    return type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")
