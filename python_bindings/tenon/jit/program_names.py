# SPDX-License-Identifier: Apache-2.0
"""What the inputs and results of an exported function are called."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any


def names_of_inputs(function: Callable[..., Any], structure: list[Any]) -> list[str]:
    """A name for each tensor of the arguments: the parameter, with keys and indices of containers behind points;
    "" where nothing names it."""
    parameters = _parameters(function)
    names = []
    for index, argument in enumerate(structure[1]):
        first = parameters[min(index, len(parameters) - 1)] if parameters else ""
        if first.startswith("*"):
            first = f"{first[1:]}.{index - len(parameters) + 1}"
        elif index >= len(parameters):
            first = ""
        names += [".".join([first, *path]) if first else "" for path in _paths(argument)]
    return _distinct(names, "input")


def names_of_results(structure: list[Any]) -> list[str]:
    """A name for each tensor of the results: the keys of dictionaries on the way to it; "" without any."""
    names = [
        ".".join(path) if any(not step.isdecimal() for step in path) else ""
        for path in _paths(structure)
    ]
    return _distinct(names, "output")


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The positional parameters; a last one that takes the rest begins with a star."""
    called = getattr(function, "forward", function)
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # not written in Python
        return []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return names + [f"*{p.name}" for p in parameters if p.kind == p.VAR_POSITIONAL]


def _paths(structure: list[Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Keys and indices on the way to each tensor."""
    kind = structure[0]
    if kind == "tensor":
        yield path
    elif kind == "dict":
        for key, item in structure[1]:
            yield from _paths(item, (*path, str(key)))
    elif kind != "value":
        for index, item in enumerate(structure[1]):
            yield from _paths(item, (*path, str(index)))


def _distinct(names: list[str], kind: str) -> list[str]:
    """Without names that a program cannot have: those that occur twice, and what stands for no name."""
    taken = Counter(name or f"{kind}_{index}" for index, name in enumerate(names))
    return [
        name if taken[name] == 1 and name.isprintable() and len(name) <= 256 else ""
        for name in names
    ]
