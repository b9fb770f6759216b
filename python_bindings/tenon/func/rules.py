# SPDX-License-Identifier: Apache-2.0
"""How operators are called for a whole batch.

A rule gets the arguments by the operator's own names. Those in `call.batched` have the batch as
axis 0, the others are shared by all samples. It returns the result, or results, with the batch as
axis 0; NotImplemented where it does not cover the call. Then, and for operators without a rule,
the operator is called once for each sample and the results are stacked: the same values, at the
cost of as many calls.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenon._core import Tensor, operator
from tenon._spellings import TAKEN
from tenon._tensor.batched import Batched
from tenon.ops._schema import parameters

Rule = Callable[["Call"], Any]
RULES: dict[str, Rule] = {}
# Operators as compositions of others, for what their rules do not cover.
COMPOSED: dict[str, Callable[..., Any]] = {}
_loops: Counter[str] = Counter()
# Operators of a list of tensors, and that parameter.
LISTS = {"concat": "tensors", "stack": "tensors", "index": "indices", "einsum": "operands"}


def loops() -> dict[str, int]:
    """How often each operator was called sample by sample in this program, for want of a rule."""
    return dict(_loops)


@dataclass
class Call:
    """A call of an operator for the samples of one vmap()."""

    op: Any
    args: dict[str, Any]  # by parameter; what was left out has its default
    batched: set[str]
    size: int

    def rank(self, name: str) -> int:
        """Number of axes of one sample of a tensor argument."""
        x = self.args[name]
        return x.ndim - (name in self.batched) if isinstance(x, Tensor) else 0

    def changed(self, **changes: Any) -> Any:
        """The operator's result for these arguments in place of its own."""
        return self.op(**{**self.args, **changes})

    def repeated(self, name: str) -> Tensor:
        """A tensor argument with its batch, also where all samples share it."""
        x = self.args[name]
        if name in self.batched:
            return x
        return operator("expand")(operator("unsqueeze")(x, [0]), (self.size, *x.shape))

    def only(self, *names: str) -> bool:
        """Whether no tensor argument but these is batched."""
        return self.batched <= set(names)


# -- calling ---------------------------------------------------------------------------------------


def _bind(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments by parameter; None for a call that the operator itself has to judge."""
    known = parameters(op.schema)
    names = [each.name for each in known]
    bound = {each.name: each.default for each in known}
    if len(args) > len(names):  # f(x, 2, 3) for f(x, (2, 3))
        last = len(names) - 1
        if not known[-1].kind.startswith("int["):
            return None
        args = (*args[:last], tuple(args[last:]))
    bound.update(zip(names, args))
    for name, value in kwargs.items():
        own = next((each for each in (name, *TAKEN.get(name, ())) if each in bound), None)
        if own is None:
            return None
        bound[own] = value
    return bound


def items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _level(value: Any) -> int:
    return max((x.level for x in items(value) if isinstance(x, Batched)), default=0)


def _of_level(value: Any, level: int, get: Callable[[Batched], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_of_level(each, level, get) for each in value]
    return get(value) if isinstance(value, Batched) and value.level == level else value


def _wrap(result: Any, level: int) -> Any:
    if isinstance(result, Tensor):
        return Batched(result, level)
    if isinstance(result, list):
        return [Batched(each, level) for each in result]
    items = [Batched(each, level) if isinstance(each, Tensor) else each for each in result]
    return tuple(items) if type(result) is tuple else type(result)(items)


def call_operator(op: Any, *args: Any, **kwargs: Any) -> Any:
    """`op(*args, **kwargs)`, where some tensors are batched: called for every operator that meets
    one."""
    name = op.__name__
    if name.endswith("_"):
        target = args[0]
        if not isinstance(target, Batched):
            raise RuntimeError(
                f"vmap: {name}() would write a batch into one tensor that all samples share; use "
                f"{name[:-1]}(), which gives a new one"
            )
        return target.copy_(operator(name[:-1])(*args, **kwargs))
    if kwargs.get("out") is not None:
        raise RuntimeError(f"vmap: {name}() cannot write a batch into out=; use the result")
    kwargs.pop("out", None)
    level = max(map(_level, (*args, *kwargs.values())))
    bound = _bind(op, args, kwargs)
    if bound is not None:
        if name in LISTS:  # one tensor may stand for a list of one
            bound[LISTS[name]] = items(bound[LISTS[name]])
        batched = {key for key, value in bound.items() if _level(value) == level}
        first = next(x for key in batched for x in items(bound[key]) if _level(x) == level)
        physical = {key: _of_level(v, level, lambda x: x.physical) for key, v in bound.items()}
        rule = RULES.get(name)
        if rule is not None:
            call = Call(op, physical, batched, first.physical.shape[0])
            if name in LISTS:
                call.args["is_batched"] = [_level(x) == level for x in bound[LISTS[name]]]
            result = rule(call)
            if result is not NotImplemented:
                return _wrap(result, level)
        if name in COMPOSED:
            result = COMPOSED[name](**bound)
            if result is not NotImplemented:
                return result
    return _wrap(_loop(op, args, kwargs, level), level)


def _sample(i: int, x: Batched) -> Tensor:
    return x.physical[i]


def _loop(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], level: int) -> Any:
    """The operator called for one sample after the other."""
    _loops[op.__name__] += 1
    sizes = [
        x.physical.shape[0]
        for value in (*args, *kwargs.values())
        for x in items(value)
        if _level(x) == level
    ]
    if sizes[0] == 0:
        raise ValueError(
            f"vmap: expected a batch of at least one sample, as {op.__name__}() has no rule for a "
            f"whole batch, got an empty one"
        )
    results = []
    for i in range(sizes[0]):
        get = functools.partial(_sample, i)
        sample = [_of_level(each, level, get) for each in args]
        named = {key: _of_level(value, level, get) for key, value in kwargs.items()}
        results.append(op(*sample, **named))
    stack = operator("stack")
    if isinstance(results[0], Tensor):
        return stack(results, 0)
    parts = [stack(list(part), 0) for part in zip(*results, strict=True)]
    kind = type(results[0])
    return kind(parts) if kind is not list else parts


# -- rules -----------------------------------------------------------------------------------------


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of these operators."""

    def add(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return add


def shifted(axis: int, rank: int) -> int:
    """An axis of a sample of `rank` axes as one of the batch."""
    if not -rank <= axis < rank:
        raise IndexError(f"vmap: expected an axis of a sample of {rank} axes, got {axis}")
    return axis % rank + 1


def aligned(call: Call, name: str, rank: int) -> Any:
    """A batched argument whose samples have axes of length 1 in front, so that there are `rank`."""
    x = call.args[name]
    missing = rank - call.rank(name)
    if name not in call.batched or missing <= 0:
        return x
    return x.reshape((x.shape[0], *(1,) * missing, *x.shape[1:]))


def composed(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: these operators in terms of others, which have rules."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSED.update(dict.fromkeys(names, function))
        return function

    return add


def reduction_axes(axis: Any, rank: int) -> list[int]:
    axes = range(rank) if axis is None else items(axis)
    return [shifted(each, rank) for each in axes]
