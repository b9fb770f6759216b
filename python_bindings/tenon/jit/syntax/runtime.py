# SPDX-License-Identifier: Apache-2.0
"""What rewritten code calls: each function looks at the value that decides, and does what Python does unless that
is a tensor while operators are recorded."""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.jit.syntax import source
from tenon.jit.syntax.loops import CannotLoop, Loop
from tenon.jit.syntax.merging import describe, shape_of
from tenon.jit.syntax.numbers import Number
from tenon.jit.syntax.regions import Branches, location
from tenon.jit.syntax.session import session
from tenon.jit.syntax.state import State, Unset

__all__ = ["Unset"]

_MOST_UNROLLED = 1_000
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}
Thunk = Callable[[], Any]


def decides(value: Any) -> bool:
    """Whether a test of `value` is a branch of the program."""
    return isinstance(value, Tensor) and _core.is_recording()


def truth(value: Tensor) -> Tensor:
    """A bool tensor with the truth of one that is recorded."""
    count = math.prod(shape_of(value))
    if count != 1:
        raise ValueError(
            f"export: the truth of a tensor with {count} elements at {location()} is ambiguous; "
            f"use .any() or .all()"
        )
    value = value if value.dtype == tenon.bool else tenon.not_equal(value, 0)
    return _scalar(value)


def _scalar(value: Tensor) -> Tensor:
    return value if value.ndim == 0 else value.reshape(())


# -- statements --------------------------------------------------------------------------------------------


def if_(
    test: Any,
    then: Thunk,
    other: Thunk | None,
    get: Thunk,
    put: Callable[[Any], None],
    names: tuple[str, ...],
    changed: tuple[str, ...],
) -> None:
    if decides(test):
        state = State(names, changed, get, put)
        Branches("if", truth(test), (then, other or _nothing), state).record()
    elif test:
        then()
    elif other is not None:
        other()


def while_(
    test: Thunk,
    body: Thunk,
    get: Thunk,
    put: Callable[[Any], None],
    names: tuple[str, ...],
    changed: tuple[str, ...],
) -> None:
    while True:
        value = test()
        if decides(value):
            state = State(names, changed, get, put)
            Loop("while", lambda: _as_truth(test()), body, state).record()
            return
        if not value:
            return
        body()


def for_(
    values: Any,
    body: Callable[[Any], None],
    stop: Thunk | None,
    get: Thunk,
    put: Callable[[Any], None],
    names: tuple[str, ...],
    changed: tuple[str, ...],
) -> None:
    state = State(names, changed, get, put)
    if isinstance(values, TensorRange):
        values.record(body, stop, state)
        return
    if decides(values) and values.ndim and shape_of(values)[0] and not session().unrolls:

        def guarded(row: Any) -> None:
            if_(not_(stop()) if stop else True, lambda: body(row), None, get, put, names, changed)

        try:
            Loop("for", None, guarded, state, rows=values).record()
            return
        except CannotLoop:
            pass  # rows one by one, as Python does
    taken = 0
    for value in values:
        if stop is None:
            body(value)
            continue
        stopped = stop()
        if decides(stopped):
            taken += 1
            if taken > _MOST_UNROLLED:
                raise NotImplementedError(
                    f"export: the loop at {location()} is left by a test of a tensor and has more than "
                    f"{_MOST_UNROLLED} values; expected a while, or range() of a tensor"
                )
            if_(not_(stopped), functools.partial(body, value), None, get, put, names, changed)
            continue
        if stopped:
            return
        body(value)


class TensorRange:
    """range() of tensors that are recorded."""

    def __init__(self, *limits: Any) -> None:
        for limit in limits:
            if isinstance(limit, Tensor) and not (
                math.prod(shape_of(limit)) == 1 and limit.dtype.name.startswith(("int", "uint"))
            ):
                raise TypeError(
                    f"export: range() at {location()} expected integers, got a tensor "
                    f"{limit.dtype.name}{list(shape_of(limit))}"
                )
        start, stop, step = (0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]
        if isinstance(step, Tensor) or step == 0:
            raise NotImplementedError(
                f"export: range() at {location()} expected a step that is a number and not 0, got "
                f"{describe(step)}; "
                f"count in a while"
            )
        self._start, self._stop, self._step = start, stop, step

    def record(self, body: Callable[[Any], None], stop: Thunk | None, state: State) -> None:
        index = self._start
        index = index if isinstance(index, Tensor) else tenon.full((), int(index), dtype="int64")
        index = _scalar(index)
        index = index if index.dtype == tenon.int64 else index.to("int64")
        state.add_hidden(Number(index))

        last = _scalar(self._stop) if isinstance(self._stop, Tensor) else self._stop

        def test() -> Any:
            inside = state.hidden < last if self._step > 0 else state.hidden > last
            return and_test(not_(stop()), lambda: inside) if stop else inside

        def turn() -> None:
            body(state.hidden)
            state.hidden = state.hidden + self._step

        Loop("for", lambda: _as_truth(test()), turn, state).record()


def assert_(test: Any, message: Thunk | None) -> None:
    if decides(test):
        raise NotImplementedError(
            f"export: assert at {location()} tests a tensor, and a program does not raise; assert outside "
            f"of the exported function, or return the value of the test"
        )
    if not test:
        raise AssertionError(message()) if message else AssertionError


def raised(error: Any) -> Any:
    """What `raise` raises: in a branch over a tensor, that a program cannot."""
    if session().depth and _core.is_recording():
        raise NotImplementedError(
            f"export: raise at {location()} stands in a branch or loop over a tensor, and a program does not "
            f"raise; check outside of the exported function"
        )
    return error


# -- variables ---------------------------------------------------------------------------------------------


def read(value: Any, name: str) -> Any:
    if type(value) is Unset:
        raise value.error()
    return value


def delete(value: Any, name: str) -> Any:
    read(value, name)
    return Unset(name)


# -- expressions -------------------------------------------------------------------------------------------


def choose(test: Any, then: Thunk, other: Thunk, what: str = "the conditional expression") -> Any:
    if not decides(test):
        return then() if test else other()
    made: list[Any] = [None]

    def put(values: Any) -> None:
        made[:] = values

    def run(thunk: Thunk) -> Thunk:
        return lambda: put((thunk(),))

    state = State((what,), (), lambda: tuple(made), put, is_eager=True, code=(then, other))
    Branches("if", truth(test), (run(then), run(other)), state, (then, other)).record()
    return made[0]


def and_(value: Any, *others: Thunk) -> Any:
    if not others:
        return value
    if decides(value):
        return choose(value, lambda: and_(others[0](), *others[1:]), lambda: value, "`and`")
    return and_(others[0](), *others[1:]) if value else value


def or_(value: Any, *others: Thunk) -> Any:
    if not others:
        return value
    if decides(value):
        return choose(value, lambda: value, lambda: or_(others[0](), *others[1:]), "`or`")
    return value if value else or_(others[0](), *others[1:])


def and_test(value: Any, *others: Thunk) -> Any:
    """`and` where only the truth matters."""
    if not others:
        return value
    if not decides(value):
        return and_test(others[0](), *others[1:]) if value else value
    held = truth(value)
    return choose(
        held, lambda: _as_truth(and_test(others[0](), *others[1:])), lambda: held, "`and`"
    )


def or_test(value: Any, *others: Thunk) -> Any:
    if not others:
        return value
    if not decides(value):
        return value if value else or_test(others[0](), *others[1:])
    held = truth(value)
    return choose(held, lambda: held, lambda: _as_truth(or_test(others[0](), *others[1:])), "`or`")


def not_(value: Any) -> Any:
    return tenon.logical_not(truth(value)) if decides(value) else not value


def compare(left: Any, *rest: tuple[str, Thunk]) -> Any:
    """A chain of comparisons; each operand is evaluated once."""
    name, right = rest[0]
    value = right()
    result = _COMPARISONS[name](left, value)
    if len(rest) == 1:
        return result
    if decides(result):
        held = truth(result)
        return choose(
            held, lambda: _as_truth(compare(value, *rest[1:])), lambda: held, "the comparison"
        )
    return compare(value, *rest[1:]) if result else result


def _as_truth(value: Any) -> Any:
    return truth(value) if decides(value) else bool(value)


def _nothing() -> None:
    pass


def call(function: Any) -> Any:
    """What to call in the place of a function of the user's."""
    if not _core.is_recording():
        return function
    if function is range:
        return _range
    if function is map or function is filter:
        return lambda each, *values: function(call(each), *values)
    return source.rewritten(function)


def _range(*limits: Any) -> Any:
    if any(isinstance(limit, Tensor) for limit in limits) and _core.is_recording():
        return TensorRange(*limits)
    return range(*limits)


source.RUNTIME_CELL.cell_contents = sys.modules[__name__]
