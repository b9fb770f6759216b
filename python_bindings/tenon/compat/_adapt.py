# SPDX-License-Identifier: Apache-2.0
"""The names of another library, and what answers to them.

A namespace has three sources. Functions whose order of arguments or results differ are written out
in its `_functions.py` and the modules beside it. The other two are generated from `opdefs` (tenon._spellings):
operators that are the library's functions when they are called by its signatures, and functions, dtypes
and classes of Tenon that are the library's as they are.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import tenon
from tenon import _core
from tenon._spellings import FUNCTIONS, SIGNATURES, SPELLINGS


def _in_space(table: Mapping[str, str], space: str) -> dict[str, str]:
    names = {k.removeprefix(space): ours for k, ours in table.items() if k.startswith(space)}
    return {name: ours for name, ours in names.items() if "." not in name}


def operators_of(library: str, space: str = "") -> dict[str, str]:
    """Operators by the library's names in one of its modules, as "special.". Those that have a signature: the others
    are counterparts, for which the namespace has a function of its own."""
    signed = SIGNATURES.get(library, {}).keys() - FUNCTIONS.get(library, {}).keys()
    table = SPELLINGS.get(library, {})
    return _in_space({name: ours for name, ours in table.items() if name in signed}, space)


def functions_of(library: str, space: str = "") -> dict[str, str]:
    """What is no operator, by the library's names in one of its modules: paths in `tenon`."""
    return _in_space(FUNCTIONS.get(library, {}), space)


def at(path: str) -> Any:
    """What lies at a path in `tenon`."""
    value: Any = tenon
    for part in path.split("."):
        value = getattr(value, part)
    return value


class Namespace:
    """The names of a namespace, for its module's __getattr__ and __dir__."""

    def __init__(
        self, library: str, functions: str, adapt: Callable[[str, Any], Any] | None = None
    ) -> None:
        self.library = library  # "torch", a key of the generated tables
        self._functions = functions.split()  # the modules with functions of its own
        self._adapt = adapt  # a name and its function -> the function as the library calls it

    @functools.cached_property
    def operators(self) -> dict[str, str]:
        """Operators by the library's names."""
        return operators_of(self.library)

    @functools.cached_property
    def as_they_are(self) -> dict[str, str]:
        """What is no operator, by the library's names: paths in `tenon`."""
        return functions_of(self.library)

    @functools.cached_property
    def own(self) -> dict[str, Any]:
        """Functions that are written out for this library."""
        modules = [importlib.import_module(name) for name in self._functions]
        return {name: getattr(module, name) for module in modules for name in module.__all__}

    def find(self, name: str) -> Any:
        """What the library calls `name`; AttributeError if it is not covered."""
        found = self._find(name)
        return found if self._adapt is None else self._adapt(name, found)

    def _find(self, name: str) -> Any:
        if name in self.own:
            return self.own[name]
        if name in self.as_they_are:
            return at(self.as_they_are[name])
        if name in self.operators:
            return _core.operator(self.operators[name])
        raise AttributeError(
            f"tenon.compat.{self.library} does not cover {self.library}.{name}; "
            f"docs/compat_namespaces.md says what it covers"
        )

    def names(self) -> list[str]:
        """All names that are covered."""
        return sorted({*self.own, *self.as_they_are, *self.operators})
