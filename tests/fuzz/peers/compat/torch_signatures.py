# SPDX-License-Identifier: Apache-2.0
"""The ways to call a function of PyTorch: what Python says of it, the schemas of its operators, and the
first lines of its documentation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

_Parameter = inspect.Parameter

# Namespaces whose operators have a prefix, and the prefix.
_PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_", "nn.functional": "", "": ""}

# What neither Python nor a schema nor the documentation says.
_BY_HAND = {
    "lu": "A, pivot=True, get_infos=False, out=None",
    "where": "condition, input, other, *, out=None",
    "asarray": "obj, *, dtype=None, device=None, copy=None, requires_grad=False",
    "from_numpy": "ndarray, /",
}

_FACTORY_ONLY = (_Parameter("requires_grad", _Parameter.KEYWORD_ONLY, default=False),)


def signatures(name: str, function: Callable[..., Any]) -> list[inspect.Signature]:
    """All that are known, without repetitions; whether PyTorch takes the keywords is for a call to say."""
    found: list[inspect.Signature] = []
    if name in _BY_HAND:
        return [_made(_BY_HAND[name])]
    try:
        own = inspect.signature(function)
        if not _is_variadic(own):
            found.append(own)
    except (TypeError, ValueError):
        pass
    if not found:
        found = [*_of_schemas(name), *_of_documentation(name, function)]
    kept: dict[str, inspect.Signature] = {}
    for each in found:
        names = [(p.name, p.kind, repr(p.default)) for p in each.parameters.values()]
        kept.setdefault(repr(names), each)
    return list(kept.values())


def _is_variadic(signature: inspect.Signature) -> bool:
    kinds = [p.kind for p in signature.parameters.values()]
    return _Parameter.VAR_KEYWORD in kinds


@cache
def _schemas(name: str) -> tuple[Any, ...]:
    space, _, last = name.rpartition(".")
    if space not in _PREFIXES:
        return ()
    packet = getattr(torch.ops.aten, _PREFIXES[space] + last, None)
    if packet is None:
        return ()
    return tuple(getattr(packet, each)._schema for each in packet.overloads())


def _of_schemas(name: str) -> list[inspect.Signature]:
    plain, out_names = [], set()
    for schema in _schemas(name):
        arguments = list(schema.arguments)
        out = [each for each in arguments if each.is_out]
        if out:
            out_names.add(tuple(a.name for a in arguments if not a.is_out))
        elif arguments and any("Dimname" in str(each.type) for each in arguments):
            continue
        else:
            plain.append(arguments)
    result = []
    for arguments in plain:
        parameters = [_of_argument(each) for each in arguments]
        names = {p.name for p in parameters}
        if {"dtype", "layout"} <= names:
            parameters += _FACTORY_ONLY
        if tuple(a.name for a in arguments) in out_names or {"dtype", "layout"} <= names:
            parameters.append(
                _Parameter("out", _Parameter.KEYWORD_ONLY, default=None, annotation="Tensor out")
            )
        result.append(inspect.Signature(_in_order(parameters)))
    return result


def _of_argument(argument: Any) -> inspect.Parameter:
    default: Any = _Parameter.empty
    kind = str(argument.type)
    if argument.has_default_value():
        default = argument.default_value
        if "ScalarType" in kind and isinstance(default, int):
            default = None
        elif isinstance(default, list) and len(set(default)) == 1:
            default = default[0]
    return _Parameter(
        "input" if argument.name == "self" else argument.name,
        _Parameter.KEYWORD_ONLY if argument.kwarg_only else _Parameter.POSITIONAL_OR_KEYWORD,
        default=default,
        annotation=kind,
    )


def _in_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Python wants parameters with a default behind those without, which schemas do not."""
    placed = [p for p in parameters if p.kind is _Parameter.POSITIONAL_OR_KEYWORD]
    for index, each in enumerate(placed):
        if each.default is not _Parameter.empty and any(
            later.default is _Parameter.empty for later in placed[index:]
        ):
            placed[index] = each.replace(default=_Parameter.empty)
    return placed + [p for p in parameters if p.kind is _Parameter.KEYWORD_ONLY]


_LINE = re.compile(r"(?:\.\. function:: )?(?:torch\.)?[\w.]+\((.*)\)(?: ->.*)?$")


def _of_documentation(name: str, function: Callable[..., Any]) -> list[inspect.Signature]:
    """The lines of the documentation that show a call: "sum(input, dim, keepdim=False, *, dtype=None) -> Tensor"."""
    last = name.rpartition(".")[2]
    result = []
    for line in (function.__doc__ or "").splitlines():
        match = _LINE.match(line.strip())
        if not match or f"{last}(" not in line or ">>>" in line:
            continue
        try:
            # The text is a list of parameters, of which Python makes a signature.
            result.append(_made(re.sub(r":[^,=)]*", "", match[1])))
        except (SyntaxError, NameError, AttributeError):
            continue
    return result


def _made(text: str) -> inspect.Signature:
    made: dict[str, Any] = {}
    exec(f"def shown({text}): pass", {"torch": torch}, made)
    return inspect.signature(made["shown"])
