# SPDX-License-Identifier: Apache-2.0
"""The lines of opdefs/paddle: which operators of Paddle can be told in ours, and the telling of one."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Final

from tenon import _paddle_calls
from tenon.jit.foreign_calls import Call, Parameter, Refused, bound, chosen
from tenon.paddle import _detection, _images, _native, _recurrent

__all__ = ["CALLS", "NATIVE", "PARAMETERS", "Refused", "reason", "tell"]

CALLS: Final = {name: Call.of(*row) for name, row in _paddle_calls.CALLS.items()}
PARAMETERS: Final = {
    name: tuple(map(Parameter._make, rows)) for name, rows in _paddle_calls.PARAMETERS.items()
}

# Functions that lines leave operators to, by their names.
NATIVE: Final[dict[str, Callable[..., Any]]] = {
    name: value
    for module in (_native, _images, _recurrent, _detection)
    for name, value in vars(module).items()
    if isinstance(value, types.FunctionType)
    and not name.startswith("_")
    and value.__module__ == module.__name__
}


def reason(kind: str) -> str | None:
    """Why no operator of `kind` can be told; None: some can."""
    call = CALLS.get(kind)
    if call is None:
        return "there is no line for it"
    reasons = [case.refuse for case in call.cases]
    return reasons[0] if all(reasons) else None


def tell(add: Callable[..., Any], kind: str, given: Mapping[str, Any]) -> list[Any]:
    """Adds the calls of operators that an operator of Paddle is, by `add(operator, ...)`, and returns the values of its results.
    Raises Refused with the reason."""
    why = reason(kind)
    if why is not None:
        raise Refused(why)
    parameters, call = PARAMETERS[kind], CALLS[kind]
    case, arguments = chosen(call, parameters, bound(parameters, (), given))
    if case.native:
        result = NATIVE[case.native](add, **dict(zip(call.names, arguments, strict=True)))
    else:
        assert case.build is not None
        result = case.build(add, *arguments)
    return result if isinstance(result, list) else [result]
