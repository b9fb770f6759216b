# SPDX-License-Identifier: Apache-2.0
"""Functions and namespaces that are called by the signatures of a table, a line each: NumPy's and Paddle's."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tenon import _core
from tenon.compat._adapt import Namespace
from tenon.compat._calls import by_signature
from tenon.compat._out import deliver
from tenon.ops._schema import parameters


def _out(
    name: str, function: Callable[..., Any], given: dict[str, Any], chosen: Mapping[str, Any]
) -> Callable[..., Any]:
    """The option `out` of a function that has none."""
    out = chosen["out"]
    if out is None or (isinstance(out, tuple) and all(each is None for each in out)):
        return function
    return lambda *args, **kwargs: deliver(name, function(*args, **kwargs), out)


def bound(
    where: str,
    signature: inspect.Signature,
    function: Callable[..., Any],
    *,
    ignored: frozenset[str] = frozenset(),
    aliases: Mapping[str, str] | None = None,
    by_position: list[str] | None = None,
) -> Callable[..., Any]:
    """`function` behind `signature`. `where` names it in errors.

    Arguments go to the parameters of the same names, or with `by_position`, the names of an
    operator's parameters, to those in the same order. `ignored` say nothing about the result.
    `aliases` are further keywords. `out` is written here where the function has none."""
    names = None
    if by_position is not None:
        counted = [each for each in signature.parameters if each not in ("out", "name")]
        names = dict(zip(counted, by_position, strict=False))
    return by_signature(
        where,
        function,
        signature,
        names=names,
        synonyms={alias: (name,) for alias, name in (aliases or {}).items()},
        options={"out": _out},
        ignored=ignored,
    )


class SignedNamespace(Namespace):
    """A namespace whose functions are called by the signatures of a table, in the module `signatures` as FUNCTIONS."""

    def __init__(
        self,
        *given: Any,
        signatures: str,
        ignored: Iterable[str] = (),
        aliases: Mapping[str, str] | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self._table = signatures
        self._ignored = frozenset(ignored)
        self._aliases = aliases or {}

    @functools.cached_property
    def signatures(self) -> dict[str, inspect.Signature]:
        """The signatures by name."""
        return importlib.import_module(self._table).FUNCTIONS

    def _in_place(self, name: str) -> Any:
        """The operator in place of a name that ends in "_", if there is one."""
        if name.endswith("_") and name[:-1] in self.operators:
            with contextlib.suppress(AttributeError):
                return _core.operator(f"{self.operators[name[:-1]]}_")
        return None

    def find(self, name: str) -> Any:
        """What the library calls `name`, behind its signature; AttributeError if it is not covered."""
        value = None if name in self.own else self._in_place(name)
        in_place = value is not None
        base = name[:-1] if in_place else name
        if not in_place:
            value = super().find(name)
        signature = self.signatures.get(base)
        if signature is None or not callable(value):
            return value
        by_position = None
        if base in self.operators and base not in self.own:
            by_position = [each.name for each in parameters(value.schema)]
        if in_place:  # the result is the first argument
            kept = [each for each in signature.parameters.values() if each.name != "out"]
            signature = signature.replace(parameters=kept)
        return bound(
            f"tenon.compat.{self.library}.{name}",
            signature,
            value,
            ignored=self._ignored,
            aliases=self._aliases,
            by_position=by_position,
        )
