# SPDX-License-Identifier: Apache-2.0
"""Branches over tensors, recorded as structural steps of a program, and what loops have in common with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import control_flow
from tenon.jit.syntax import merging
from tenon.jit.syntax.jumps import RESULT
from tenon.jit.syntax.merging import Keep, Lost, Mismatch, NotAsPlanned, Rule, Unset
from tenon.jit.syntax.plans import Plan
from tenon.jit.syntax.session import session
from tenon.jit.syntax.state import After, State
from tenon.jit.syntax.user_code import PACKAGE

_MOST_TRIES = 8
_DEEPEST = 30
_Suspended = control_flow._Suspended


def location() -> str:
    """The innermost line outside of the package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Structural:
    """What branches and loops have in common."""

    def __init__(self, kind: str, functions: tuple[Any, ...], state: State) -> None:
        self._kind, self._state = kind, state
        self._functions = functions
        codes = (getattr(function, "__code__", None) for function in functions)
        self._location = location()
        self._key = (kind, self._location, *codes)

    def record(self) -> None:
        if session().depth >= _DEEPEST:
            raise NotImplementedError(
                f"export: {_DEEPEST} branches and loops over tensors lie in each other at {self._location}; a "
                f"function that calls itself until a tensor says stop has no end in a program: write a while"
            )
        try:
            self._state.remember(self._functions)
        except NotImplementedError as error:
            raise NotImplementedError(f"export: {error} (at {self._location})") from None
        session().depth += 1
        try:
            for _ in range(_MOST_TRIES):
                plan = session().plans.get(self._key)
                if plan is not None and len(plan.names) != len(self._state.names):
                    plan = None
                if self._try(plan):
                    return
        finally:
            session().depth -= 1
        raise RuntimeError(
            f"export: the {self._kind} at {self._location} does something else each time it is recorded"
        )

    def _try(self, plan: Plan | None) -> bool:
        raise NotImplementedError

    def _region(
        self,
        run: Callable[[], Any],
        values: list[Any],
        targets: list[Tensor],
        inputs: list[Tensor],
        results: Callable[[Any, After], list[Tensor] | None],
        is_live: bool,
    ) -> tuple[_core.Region | None, list[Tensor], After]:
        """`run` as a region, or no region where `results` finds none."""
        _core.region_begin(inputs)
        was_live, session().is_live = session().is_live, session().is_live and is_live
        try:
            # A region must not write into what it is given.
            clones = [tensor.clone() for tensor in inputs[: len(targets)]]
            self._clones = clones
            _core.region_hide(targets, clones)
            self._state.enter(values, targets, clones)
            result = run()
            after = self._state.leave()
            found = results(result, after)
            if found is None:
                _core.region_abandon()
                return None, [], after
        except BaseException:
            _core.region_abandon()
            self._state.restore()
            raise
        finally:
            session().is_live = was_live
        return _core.region_end(found), found, after

    def _results(self, plan: Plan, after: After, targets: list[Tensor]) -> list[Tensor]:
        """Of a region: what was written into, then what the variables and containers hold."""
        found = plan.tensors(after.values, after.contents, self._state, after.see)
        clones = dict(zip(map(id, targets), self._clones))
        return [*self._clones, *(clones.get(id(tensor), tensor) for tensor in found)]

    def _lost(self, name: str, text: str) -> Lost:
        """A variable without a value: an error where it is read, or at once."""
        if self._state.is_eager or name == RESULT:
            raise ValueError(f"export: {text}")
        return Lost(text)

    def _write_back(self, targets: list[Tensor], results: list[Tensor]) -> None:
        for target, result in zip(targets, results):
            target.copy_(result)
        _core.record_join()


def holds(value: Any) -> bool:
    with _Suspended():
        return bool(value)


def what(name: str) -> str:
    if name == RESULT:
        return "what the function returns"
    return name if " " in name or name.startswith("`") else f"`{name}`"


class Branches(Structural):
    """`if`: one of two functions runs."""

    def __init__(
        self,
        kind: str,
        predicate: Tensor,
        functions: tuple[Any, Any],
        state: State,
        code: tuple[Any, ...] | None = None,
    ) -> None:
        super().__init__(kind, code or functions, state)
        self._predicate, self._runs = predicate, functions

    def _try(self, plan: Plan | None) -> bool:
        state = self._state
        targets = state.targets
        if plan is not None and len(plan.is_dirty) == len(targets):
            targets = [t for t, is_dirty in zip(targets, plan.is_dirty) if is_dirty]

        def results(_: Any, after: After) -> list[Tensor] | None:
            if plan is None:
                return None
            try:
                return self._results(plan, after, targets)
            except (NotAsPlanned, IndexError):
                return None

        sides = []
        for run, holds in zip(self._runs, (True, False), strict=True):
            with _Suspended():
                inputs = [target.clone() for target in targets]
                is_live = bool(self._predicate) == holds
            sides.append(self._region(run, state.before, targets, inputs, results, is_live))
        new = self._merged(sides[0][2], sides[1][2], plan)
        if plan is None or not new.is_like(plan) or any(side[0] is None for side in sides):
            session().plans[self._key] = new
            return False
        (then, then_results, _), (other, other_results, _) = sides
        assert then is not None and other is not None
        if not then_results:
            plan = new
            plan.put([], state)
            return True
        with _Suspended():
            chosen = then_results if bool(self._predicate) else other_results
            owned = plan.typed(control_flow._own(chosen, self._kind))
        _core.record_cond(self._predicate, targets, then, other, owned)
        new.put(owned[len(targets) :], state)
        self._write_back(targets, owned)
        return True

    def _merged(self, one: After, other: After, old: Plan | None) -> Plan:
        rules: list[Rule] = []
        for name, a, b in zip(self._state.names, one.values, other.values, strict=True):
            rules.append(self._rule(name, a, b, one.see, other.see))
        plan = Plan(rules)
        for index in sorted({*one.contents, *other.contents}):
            container = self._state.containers[index]
            a = one.contents.get(index, container.saved)
            b = other.contents.get(index, container.saved)
            try:
                plan.containers[index] = merging.merge(a, b, one.see, other.see)
            except Mismatch as mismatch:
                raise ValueError(f"export: {self._text(container.label, mismatch)}") from None
        if old is not None and sum(old.is_dirty) == len(one.is_dirty) != len(old.is_dirty):
            plan.is_dirty = old.is_dirty
        else:
            plan.is_dirty = [a or b for a, b in zip(one.is_dirty, other.is_dirty)]
        return plan

    def _rule(self, name: str, a: Any, b: Any, see: merging.See, see_other: merging.See) -> Rule:
        if isinstance(a, Unset) and isinstance(b, Unset):
            return Keep(a if a.reason else b)
        if isinstance(a, Unset) or isinstance(b, Unset):
            unset, value = (a, b) if isinstance(a, Unset) else (b, a)
            if unset.reason:
                return self._lost(name, unset.reason)
            if (
                name == RESULT
            ):  # what is returned is read only where a flag says that there is something
                return merging.rule_of(value, see_other if unset is a else see)
            side = "where the test does not hold" if unset is a else "where the test holds"
            return self._lost(
                name,
                f"`{name}` has a value only {side} ({self._kind} at {self._location}); expected one on both "
                f"sides: assign it before the `if`, or in both branches",
            )
        try:
            return merging.merge(a, b, see, see_other)
        except Mismatch as mismatch:
            return self._lost(name, self._text(name, mismatch))

    def _text(self, name: str, mismatch: Mismatch) -> str:
        return (
            f"{what(name)} is {mismatch.one} where the test at {self._location} holds, and {mismatch.other} "
            f"where it does not; expected the same kind of value: {mismatch.fix}"
        )
