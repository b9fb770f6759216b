# SPDX-License-Identifier: Apache-2.0
"""Lines of other libraries' calls (opdefs/aten, opdefs/paddle), as the generated tables hold them, and how one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

REQUIRED: Final = ...  # the default of a parameter that has none


class Refused(Exception):
    """A call that cannot be told in operators; the text is the reason."""


class Parameter(NamedTuple):
    """A parameter of a foreign call; `type` is as the library writes it, "Tensor?"."""

    name: str
    type: str
    default: Any


class Case(NamedTuple):
    """One way to tell a call: `build` or the bridge's function `native`, or the reason to refuse it."""

    when: Callable[..., Any] | None
    build: Callable[..., Any] | None
    native: str
    refuse: str
    origin: str  # "elementwise.yaml:12"


class Call(NamedTuple):
    """The line of a call: the parameters that it is about, and its cases."""

    names: tuple[str, ...]
    cases: tuple[Case, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], cases: Sequence[Any]) -> Call:
        """From a row of the generated table."""
        return cls(names, tuple(map(Case._make, cases)))


def bound(
    parameters: Sequence[Parameter], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by name, with defaults. Raises Refused for those that the call does not have, or lacks."""
    values = {parameter.name: parameter.default for parameter in parameters}
    if len(arguments) > len(parameters):
        raise Refused(f"expected at most {len(parameters)} arguments, got {len(arguments)}")
    for parameter, argument in zip(parameters, arguments, strict=False):
        values[parameter.name] = argument
    for name, argument in keywords.items():
        if name not in values:
            raise Refused(f"it has no parameter `{name}` as this version knows it")
        values[name] = argument
    for name, value in values.items():
        if value is REQUIRED:
            raise Refused(f"its argument `{name}` is missing")
    return values


def chosen(
    call: Call, parameters: Sequence[Parameter], values: Mapping[str, Any]
) -> tuple[Case, list[Any]]:
    """The case for these arguments, and what it is given. Raises Refused with the reason."""
    for parameter in parameters:
        if parameter.name in call.names or same(values[parameter.name], parameter.default):
            continue
        raise Refused(
            f"its argument `{parameter.name}` is {values[parameter.name]!r}, and only "
            f"{parameter.default!r} can be told"
        )
    given = [values[name] for name in call.names]
    for case in call.cases:
        if case.when is None or case.when(None, *given):
            if case.refuse:
                raise Refused(case.refuse)
            return case, given
    shown = ", ".join(
        f"{name}={value!r}"
        for name, value in zip(call.names, given, strict=True)
        if isinstance(value, (bool, int, float, str)) or value is None
    )
    raise Refused(f"no case is for {shown} ({call.cases[0].origin})")


def same(value: Any, default: Any) -> bool:
    """Whether an argument is the default; lists and tuples are alike."""
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    if value is None or default is None:
        return value is default
    if isinstance(value, (bool, int, float, str)) and isinstance(default, (bool, int, float, str)):
        return value == default
    return False
