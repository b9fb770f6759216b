# SPDX-License-Identifier: Apache-2.0
"""Operators for optimizers, whose operands are tensors or lists of tensors.

An update that is written with the operators of this module works for one parameter and for a list of them: a call with a
TensorList calls the operator for each of its tensors from one call of Python, which costs a tenth of a call each. The
calls are those of the single updates, so that their bits are too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from tenon import _core
from tenon._core import Tensor

# A parameter of more elements gains nothing; and lists of more have temporaries that leave the cache.
MOST_ELEMENTS = 1 << 16
MOST_ELEMENTS_OF_A_LIST = 1 << 18


class TensorList:
    """Tensors that one update is for. Operators act on each; numbers are for all."""

    __slots__ = ("tensors",)

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self.tensors = list(tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __add__(self, other: Many) -> TensorList:
        return _each(_ADD, self, other)

    def __sub__(self, other: Many) -> TensorList:
        return _each(_SUBTRACT, self, other)

    def __mul__(self, other: Many) -> TensorList:
        return _each(_MULTIPLY, self, other)

    def __truediv__(self, other: Many) -> TensorList:
        return _each(_DIVIDE, self, other)

    def __pow__(self, other: float) -> TensorList:
        return _each(_POW, self, other)

    def __neg__(self) -> TensorList:
        return _each(_NEGATIVE, self)

    def __lt__(self, other: float) -> TensorList:
        return _each(_LESS, self, other)

    def __gt__(self, other: float) -> TensorList:
        return _each(_GREATER, self, other)

    def __rmul__(self, other: float) -> TensorList:
        return _each(_MULTIPLY, self, other)


Many: TypeAlias = "Tensor | TensorList | float"


def _each(op: Any, *args: Any, **keywords: Any) -> TensorList:
    """`op` for each tensor of the lists among its arguments."""
    lists = [each.tensors if type(each) is TensorList else each for each in args]
    return TensorList(_core.call_each(op, *lists, **keywords))


def _operator(name: str) -> Callable[..., Any]:
    op = _core.operator(name)

    def call(*args: Any, out: Any = None, **keywords: Any) -> Any:
        lists = [each.tensors if type(each) is TensorList else each for each in args]
        if not any(type(each) is list for each in lists):
            return op(*args, out=out, **keywords)
        if out is None:
            return TensorList(_core.call_each(op, *lists, **keywords))
        results = out if isinstance(out, tuple) else (out,)
        _core.call_each(op, *lists, out=tuple(each.tensors for each in results), **keywords)
        return out

    return call


_ADD = _core.operator("add")
_SUBTRACT = _core.operator("subtract")
_MULTIPLY = _core.operator("multiply")
_DIVIDE = _core.operator("divide")
_POW = _core.operator("pow")
_NEGATIVE = _core.operator("negative")
_LESS = _core.operator("less")
_GREATER = _core.operator("greater")

abs = _operator("abs")
add = _operator("add")
adagrad_update = _operator("adagrad_update")
adam_update = _operator("adam_update")
adam_update_counted = _operator("adam_update_counted")
adamw_update = _operator("adamw_update")
clip = _operator("clip")
clone = _operator("clone")
lerp = _operator("lerp")
logical_and = _operator("logical_and")
maximum = _operator("maximum")
momentum_update = _operator("momentum_update")
multiply = _operator("multiply")
norm = _operator("norm")
rmsprop_update = _operator("rmsprop_update")
sgd_update = _operator("sgd_update")
sign = _operator("sign")
sqrt = _operator("sqrt")
subtract = _operator("subtract")
where = _operator("where")
zeros_like = _operator("zeros_like")


def divided(sizes: list[int]) -> Iterator[slice]:
    """The parts of a list, of tensors of so many elements, whose temporaries fit into a cache together."""
    start = elements = 0
    for i, size in enumerate(sizes):
        elements += size
        if elements > MOST_ELEMENTS_OF_A_LIST and i > start:
            yield slice(start, i)
            start, elements = i, size
    yield slice(start, len(sizes))


def joined(states: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The states of several parameters as one, whose tensors are lists and whose numbers are those of all. None: they
    have other entries or numbers."""
    first = states[0]
    names = first.keys()
    if not all(state.keys() == names for state in states):
        return None
    one: dict[str, Any] = {}
    for name, value in first.items():
        column = [state[name] for state in states]
        if isinstance(value, Tensor):
            if not all(isinstance(each, Tensor) for each in column):
                return None
            one[name] = TensorList(column)
        elif column.count(value) == len(column):
            one[name] = value
        else:
            return None
    return one


def part_back(one: dict[str, Any], before: dict[str, Any], states: list[dict[str, Any]]) -> None:
    """Give each state what an update of the joined one has changed."""
    for name, value in one.items():
        if name in before and before[name] is value:
            continue
        values = value.tensors if isinstance(value, TensorList) else [value] * len(states)
        for state, each in zip(states, values, strict=True):
            state[name] = each
