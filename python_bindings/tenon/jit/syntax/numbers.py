# SPDX-License-Identifier: Apache-2.0
"""Python's numbers whose value a program knows only when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor

_PYTHON = (bool, int, float)


class Number(Tensor):
    """A bool or int that depends on a tensor: a tensor of no dimensions that computes as Python's number does.

    With tensors it takes their dtype, as a number would, and `+=` makes another one. Quotients are float64.
    """

    def __new__(cls, value: Tensor) -> Number:
        return super().__new__(cls, value)

    def __init__(self, value: Tensor) -> None:
        pass

    __hash__ = Tensor.__hash__


def _kind(value: Any) -> int:
    """0: a bool, 1: an integer, 2: a real number, 3: a complex one."""
    if isinstance(value, _PYTHON):
        return _PYTHON.index(type(value))
    name = value.dtype.name
    if name == "bool":
        return 0
    if name.startswith(("int", "uint")):
        return 1
    return 3 if name.startswith("complex") else 2


def beside(number: Tensor, other: Tensor) -> Tensor:
    """The number as the tensor that Python's would be beside `other`."""
    kind = _kind(other)
    if _kind(number) <= kind:
        return number.to(other.dtype)
    return number.to(tenon.int64 if _kind(number) == 1 else tenon.get_default_dtype())


def _plain(value: Any, kind: int) -> Any:
    if not isinstance(value, Tensor):
        return float(value) if kind == 2 else int(value)
    wanted = tenon.float64 if kind == 2 else tenon.int64
    return value.to(wanted) if value.dtype != wanted else value


def _binary(name: str) -> Callable[[Any, Any], Any]:
    compute = getattr(Tensor, name)

    def method(self: Number, other: Any) -> Any:
        if isinstance(other, Tensor) and not isinstance(other, Number):
            return compute(beside(self, other), other)
        if type(other) not in (*_PYTHON, Number):
            return compute(self, other)
        kind = max(_kind(self), _kind(other))
        if kind == 0 and ("and" in name or "or" in name):
            return Number(compute(self, other))  # of two bools: a bool
        kind = 2 if "truediv" in name else max(kind, 1)
        if name == "__pow__" and isinstance(other, int) and other < 0:
            kind = 2
        return Number(compute(_plain(self, kind), _plain(other, kind)))

    method.__name__ = name
    return method


def _unary(name: str) -> Callable[[Any], Any]:
    compute = getattr(Tensor, name)

    def method(self: Number) -> Any:
        return Number(compute(_plain(self, max(_kind(self), 1))))

    method.__name__ = name
    return method


for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split():
    for _method in (f"__{_name}__", f"__r{_name}__"):
        if hasattr(Tensor, _method):
            setattr(Number, _method, _binary(_method))
    # n += 1 gives n another number, and changes none.
    setattr(Number, f"__i{_name}__", getattr(Number, f"__{_name}__"))
for _name in "eq ne lt le gt ge".split():
    setattr(Number, f"__{_name}__", _binary(f"__{_name}__"))
for _name in "neg pos abs invert".split():
    if hasattr(Tensor, f"__{_name}__"):
        setattr(Number, f"__{_name}__", _unary(f"__{_name}__"))
