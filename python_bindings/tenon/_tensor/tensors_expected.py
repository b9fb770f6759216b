# SPDX-License-Identifier: Apache-2.0
"""Functions written in Python say that they expect tensors, as operators do.

A list or a number has none of a tensor's attributes, and the first one that is read would be the error.
Arguments are looked at when that has happened, so that calls with tensors cost nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from tenon._core import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def expects_tensors(function: F) -> F:
    """`function`, whose AttributeError for an argument that is no tensor is a TypeError with its
    name."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except AttributeError:
            _explain(function, args, kwargs)
            raise

    return wrapper  # type: ignore[return-value]


def expect_tensors(namespace: dict[str, Any]) -> None:
    """expects_tensors() for all functions of a module, or of a package, that are public."""
    package = namespace["__name__"]
    for name, value in list(namespace.items()):
        if name.startswith("_") or not isinstance(value, FunctionType):
            continue
        if value.__module__ == package or value.__module__.startswith(f"{package}."):
            namespace[name] = expects_tensors(value)


_ONE = ("Tensor", "Tensor | None")
_SEVERAL = ("Sequence[Tensor]", "Iterable[Tensor]", "list[Tensor]")
_USUAL_NAMES = ("x", "x1", "tensors", "arrays")  # where nothing is annotated


def _explain(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
    signature = inspect.signature(function)
    given = signature.bind_partial(*args, **kwargs).arguments
    for name, parameter in signature.parameters.items():
        if name not in given:
            continue
        value, kind = given[name], parameter.annotation
        are_several = kind in _SEVERAL or parameter.kind is parameter.VAR_POSITIONAL
        if kind is parameter.empty:
            if name not in _USUAL_NAMES:
                continue
            are_several = isinstance(value, list | tuple)
        elif kind not in (*_ONE, *_SEVERAL) or (value is None and kind == _ONE[1]):
            continue
        values = list(value) if are_several and isinstance(value, list | tuple) else [value]
        for each in values:
            if not isinstance(each, Tensor):
                raise TypeError(
                    f"{function.__name__}(): argument '{name}': expected "
                    f"{'Tensors' if are_several else 'Tensor'}, got {type(each).__name__}; convert "
                    f"it with tenon.tensor(...)"
                ) from None
