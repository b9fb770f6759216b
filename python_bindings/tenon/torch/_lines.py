# SPDX-License-Identifier: Apache-2.0
"""The lines of opdefs/aten: which ATen calls can be told in operators, and the telling of one."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenon import _aten_calls
from tenon.jit.foreign_calls import Call, Parameter, Refused, bound, chosen
from tenon.torch import _native, _native_layers
from tenon.torch._promotion import promoted

__all__ = ["CALLS", "CORE", "NATIVE", "PARAMETERS", "Refused", "has_line", "reason", "tell"]

CORE: tuple[str, ...] = _aten_calls.CORE  # the set to which PyTorch breaks all others down
CALLS = {name: Call.of(*row) for name, row in _aten_calls.CALLS.items()}
PARAMETERS = {
    name: tuple(map(Parameter._make, rows)) for name, rows in _aten_calls.PARAMETERS.items()
}

# Functions that lines leave calls to, by their names.
NATIVE: dict[str, Callable[..., Any]] = {
    name: value
    for module in (_native, _native_layers)
    for name, value in vars(module).items()
    if isinstance(value, types.FunctionType) and not name.startswith("_")
}


def has_line(name: str) -> bool:
    """Whether some call of `name`, "add.Tensor", can be told."""
    return reason(name) is None


def reason(name: str) -> str | None:
    """Why no call of `name` can be told; None: some can."""
    call = CALLS.get(name)
    if call is None:
        return "there is no line for it"
    reasons = [case.refuse for case in call.cases]
    return reasons[0] if all(reasons) else None


def tell(
    add: Callable[..., Any], name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Adds the calls of operators that the ATen call is, by `add(operator, ...)`, and returns the value of its result, a
    list where it has several. Raises Refused with the reason."""
    why = reason(name)
    if why is not None:
        raise Refused(why)
    parameters = PARAMETERS[name]
    call = CALLS[name]
    values = promoted(add, name, bound(parameters, arguments, keywords))
    case, given = chosen(call, parameters, values)
    if case.native:
        return NATIVE[case.native](add, **dict(zip(call.names, given, strict=True)))
    assert case.build is not None
    return case.build(add, *given)
