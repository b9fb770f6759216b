# SPDX-License-Identifier: Apache-2.0
"""Operators under the names and keywords of another library.

A namespace has three sources. Functions whose order of arguments or results differ are written out
in its `_functions.py`. Names that the operator files give (`names:` in opdefs) come from the
generated table tenon._spellings. The rest are operators and functions of the same name in both
libraries. The last two are wrapped, so that they take the other library's keywords.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tenon
from tenon import _core
from tenon.ops._schema import parameters

# What other libraries call a parameter, and what it may be called here; the first that there is
# counts.
KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "input": ("x", "a", "weights", "sorted"),
    "a": ("x",),
    "arr": ("x",),
    "other": ("y",),
    "x1": ("x",),
    "x2": ("y",),
    "mat2": ("y",),
    "vec2": ("y",),
    "dim": ("axis", "axes"),
    "dims": ("axes", "axis", "repeats"),
    "axes": ("axis",),
    "axis": ("axes",),
    "keepdims": ("keepdim",),
    "size": ("shape",),
    "shifts": ("shift",),
    "k": ("diagonal", "offset"),
    "src": ("source",),
    "num_samples": ("count",),
    "N": ("n",),
}


# Of two axes, where the other library counts from 1 and Tenon from 0.
_TWO_AXES = {"axis1": "axis0", "axis2": "axis1"}


def _of_operator(op: Any) -> dict[str, str]:
    """The other libraries' keywords of an operator, with its own."""
    own = [each.name for each in parameters(op.schema)]
    result = {}
    for theirs, ours in KEYWORDS.items():
        found = next((name for name in ours if name in own), None)
        if found is not None and theirs not in own:
            result[theirs] = found
    return result


def renamed(name: str, keywords: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by Tenon's keywords. Two keywords for one parameter are an error."""
    if "axis2" in given and "axis2" not in keywords:
        keywords = {**keywords, **_TWO_AXES}
    result: dict[str, Any] = {}
    for key, value in given.items():
        ours = keywords.get(key, key)
        if ours in result:
            other = next(each for each in given if keywords.get(each, each) == ours)
            raise TypeError(
                f"{name}(): expected one value for {ours!r}, got two, by the keywords {other!r} and {key!r}"
            )
        result[ours] = value
    return result


def operator(name: str, convert: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """The operator `name`, which takes other libraries' keywords. With `convert`, arguments for
    tensors that are neither tensors nor numbers are converted by it."""
    op: Any = _core.operator(name)
    keywords = _of_operator(op)
    known = parameters(op.schema)
    lists = {i for i, each in enumerate(known) if each.kind.startswith("Tensor[")}
    singles = {i for i, each in enumerate(known) if each.kind in ("Tensor", "Tensor?")}
    positions = {each.name: i for i, each in enumerate(known)}

    def converted(i: int | None, value: Any) -> Any:
        if convert is None:
            return value
        if i in singles and not isinstance(value, (tenon.Tensor, bool, int, float, complex)):
            return value if value is None else convert(value)
        if i in lists:
            return [convert(each) for each in value]
        return value

    @functools.wraps(op, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = renamed(op.__name__, keywords, kwargs)
        if convert is not None:
            args = tuple(converted(i, value) for i, value in enumerate(args))
            kwargs = {key: converted(positions.get(key), value) for key, value in kwargs.items()}
        return op(*args, **kwargs)

    return call


class Namespace:
    """The names of a namespace, for its module's __getattr__ and __dir__."""

    def __init__(
        self,
        library: str,
        functions: str,
        same: Iterable[str],
        ours: Mapping[str, str],
        convert: Callable[[Any], Any] | None = None,
        methods: Iterable[str] = (),
        adapt: Callable[[str, Any], Any] | None = None,
    ) -> None:
        self._methods = frozenset(methods)  # spellings that name a method there, no function
        self.library = library  # "torch", a key of the generated table
        self._functions = functions.split()  # the modules with functions of its own
        self._same = frozenset(same)  # operators whose arguments and results agree
        self._ours = ours  # their name -> "tenon's attribute.by path"
        self._convert = convert
        self._adapt = adapt  # a name and its function -> the function as the library calls it

    @functools.cached_property
    def spellings(self) -> dict[str, str]:
        """Names in the generated table that are not in a submodule."""
        from tenon._spellings import SPELLINGS  # a large table that the build generates

        table = SPELLINGS.get(self.library, {})
        return {
            theirs: ours
            for theirs, ours in table.items()
            if "." not in theirs and theirs not in self._methods
        }

    @functools.cached_property
    def own(self) -> dict[str, Any]:
        """Functions that are written out for this library."""
        import importlib

        modules = [importlib.import_module(name) for name in self._functions]
        return {name: getattr(module, name) for module in modules for name in module.__all__}

    def find(self, name: str) -> Any:
        """What the library calls `name`; AttributeError if it is not covered."""
        found = self._find(name)
        return found if self._adapt is None else self._adapt(name, found)

    def _operator(self, name: str) -> Any:
        return _core.operator(name) if self._adapt else operator(name, self._convert)

    def _find(self, name: str) -> Any:
        if name in self.own:
            return self.own[name]
        if name in self._ours:
            value: Any = tenon
            for part in self._ours[name].split("."):
                value = getattr(value, part)
            return value
        if name in self._same:
            return self._operator(name)
        if name in self.spellings:
            return self._operator(self.spellings[name])
        if name.endswith("_") and name[:-1] in self._same and self._adapt is None:
            try:
                return operator(name)
            except AttributeError:
                pass
        raise AttributeError(
            f"tenon.compat.{self.library} does not cover {self.library}.{name}; "
            f"docs/compat_namespaces.md says what it covers"
        )

    def names(self) -> list[str]:
        """All names that are covered."""
        return sorted({*self.own, *self._ours, *self._same, *self.spellings})
