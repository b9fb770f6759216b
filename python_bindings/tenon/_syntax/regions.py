# SPDX-License-Identifier: Apache-2.0
"""Branches and loops over tensors, recorded as structural steps of a program."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tenon
from tenon import _control_flow, _core
from tenon._core import Tensor
from tenon._syntax import merging
from tenon._syntax.jumps import RESULT
from tenon._syntax.merging import Keep, Leaf, Lost, Mismatch, NotAsPlanned, Rule, Unset
from tenon._syntax.numbers import Number
from tenon._syntax.session import session
from tenon._syntax.state import After, State

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MOST_TRIES = 8
_DEEPEST = 30
_Suspended = _control_flow._Suspended


class CannotLoop(Exception):
    """The body of a `for` over a tensor's rows changes what a loop of a program cannot carry."""


def location() -> str:
    """The innermost line outside of the package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@dataclass
class Plan:
    """What becomes of each variable and of each container that changes, and which tensors are written into."""

    names: list[Rule]
    containers: dict[int, Rule] = field(default_factory=dict)
    is_dirty: list[bool] = field(default_factory=list)

    def is_like(self, other: Plan | None) -> bool:
        return (
            other is not None
            and self.is_dirty == other.is_dirty
            and len(self.names) == len(other.names)
            and all(map(merging.same_rules, self.names, other.names))
            and self.containers.keys() == other.containers.keys()
            and all(merging.same_rules(r, other.containers[i]) for i, r in self.containers.items())
        )

    def tensors(self, values: list[Any], contents: dict[int, Any], state: State) -> list[Tensor]:
        """Of values that are as planned; raises NotAsPlanned."""
        found: list[Tensor] = []
        for rule, value in zip(self.names, values, strict=True):
            merging.take(rule, value, found)
        for index, rule in self.containers.items():
            merging.take(rule, contents.get(index, state.containers[index].saved), found)
        if any(index not in self.containers for index in contents):
            raise NotAsPlanned
        return found

    def typed(self, tensors: list[Tensor]) -> list[Tensor]:
        """Numbers among the tensors of this plan, the last of `tensors`, as such."""
        found = [leaf for rule in self._rules() for leaf in merging.leaves(rule)]
        first = len(tensors) - len(found)
        made = [Number(t) if leaf.is_number else t for t, leaf in zip(tensors[first:], found)]
        return [*tensors[:first], *made]

    def _rules(self) -> list[Rule]:
        return [*self.names, *self.containers.values()]

    def put(self, tensors: list[Tensor], state: State) -> None:
        """Set the variables and fill the containers."""
        rest = iter(tensors)
        values = [
            merging.put(rule, rest, name)
            for rule, name in zip(self.names, state.names, strict=True)
        ]
        state.set(values)
        for index, rule in self.containers.items():
            state.containers[index].put(merging.put(rule, rest, state.containers[index].label))


class _Structural:
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
        found = plan.tensors(after.values, after.contents, self._state)
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


def _holds(value: Any) -> bool:
    with _Suspended():
        return bool(value)


def _what(name: str) -> str:
    if name == RESULT:
        return "what the function returns"
    return name if " " in name or name.startswith("`") else f"`{name}`"


class Branches(_Structural):
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
            owned = plan.typed(_control_flow._own(chosen, self._kind))
        _core.record_cond(self._predicate, targets, then, other, owned)
        new.put(owned[len(targets) :], state)
        self._write_back(targets, owned)
        return True

    def _merged(self, one: After, other: After, old: Plan | None) -> Plan:
        rules: list[Rule] = []
        for name, a, b in zip(self._state.names, one.values, other.values, strict=True):
            rules.append(self._rule(name, a, b))
        plan = Plan(rules)
        for index in sorted({*one.contents, *other.contents}):
            container = self._state.containers[index]
            a = one.contents.get(index, container.saved)
            b = other.contents.get(index, container.saved)
            try:
                plan.containers[index] = merging.merge(a, b)
            except Mismatch as mismatch:
                raise ValueError(f"export: {self._text(container.label, mismatch)}") from None
        if old is not None and sum(old.is_dirty) == len(one.is_dirty) != len(old.is_dirty):
            plan.is_dirty = old.is_dirty
        else:
            plan.is_dirty = [a or b for a, b in zip(one.is_dirty, other.is_dirty)]
        return plan

    def _rule(self, name: str, a: Any, b: Any) -> Rule:
        if isinstance(a, Unset) and isinstance(b, Unset):
            return Keep(a if a.reason else b)
        if isinstance(a, Unset) or isinstance(b, Unset):
            unset, value = (a, b) if isinstance(a, Unset) else (b, a)
            if unset.reason:
                return self._lost(name, unset.reason)
            if (
                name == RESULT
            ):  # what is returned is read only where a flag says that there is something
                return merging.rule_of(value)
            side = "where the test does not hold" if unset is a else "where the test holds"
            return self._lost(
                name,
                f"`{name}` has a value only {side} ({self._kind} at {self._location}); expected one on both "
                f"sides: assign it before the `if`, or in both branches",
            )
        try:
            return merging.merge(a, b)
        except Mismatch as mismatch:
            return self._lost(name, self._text(name, mismatch))

    def _text(self, name: str, mismatch: Mismatch) -> str:
        return (
            f"{_what(name)} is {mismatch.one} where the test at {self._location} holds, and {mismatch.other} "
            f"where it does not; expected the same kind of value: {mismatch.fix}"
        )


class Loop(_Structural):
    """`while`, and `for` over the rows of a tensor: a body runs again and again."""

    def __init__(
        self,
        kind: str,
        test: Callable[[], Any] | None,
        body: Callable[..., None],
        state: State,
        rows: Tensor | None = None,
    ) -> None:
        super().__init__(kind, (body, *([test] if test else [])), state)
        self._test, self._body, self._rows = test, body, rows

    def _try(self, plan: Plan | None) -> bool:
        state = self._state
        targets = state.targets
        if plan is None:  # nothing is carried but what may be written into
            start: list[Any] = state.before
            initial: list[Tensor] = []
        else:
            if len(plan.is_dirty) == len(targets):
                targets = [t for t, is_dirty in zip(targets, plan.is_dirty) if is_dirty]
            try:
                initial = plan.tensors(state.before, {}, state)
            except (NotAsPlanned, IndexError):
                del session().plans[self._key]
                return False
        with _Suspended():
            inputs = [tensor.clone() for tensor in [*targets, *initial]]
            inputs = plan.typed(inputs) if plan else inputs
            row = [] if self._rows is None else [self._rows[0].clone()]
        carried = inputs[len(targets) :]

        def begin() -> None:
            if plan is not None:
                rest = iter(carried)
                known = dict(zip(map(id, targets), self._clones))
                values = [
                    merging.put(rule, rest, name)
                    for rule, name in zip(plan.names, state.names, strict=True)
                ]
                values = [
                    known[id(value)]
                    if id(value) in known
                    else value.clone()
                    if name in state.changed and isinstance(rule, Leaf) and not rule.is_number
                    else value
                    for name, rule, value in zip(state.names, plan.names, values, strict=True)
                ]
                state.set(values)
                for index, rule in plan.containers.items():
                    container = state.containers[index]
                    container.put(merging.put(rule, rest, container.label))

        def test() -> Any:
            begin()
            assert self._test is not None
            return self._test()

        def turn() -> None:
            begin()
            if plan is None and self._test is not None:
                session().is_live &= _holds(self._test())
            self._body(*row)

        def results(_: Any, after: After) -> list[Tensor] | None:
            self._check_targets(targets, after)
            if plan is None:
                return None
            try:
                return self._results(plan, after, targets)
            except (NotAsPlanned, IndexError):
                return None

        start = state.before
        condition, is_live = None, True
        if plan is not None and self._test is not None:
            condition, truth, _ = self._region(
                test,
                start,
                targets,
                inputs,
                lambda value, _: [
                    value if isinstance(value, Tensor) else tenon.full((), value, dtype=tenon.bool)
                ],
                True,
            )
            _control_flow._check_predicate(truth[0], self._kind)
            is_live = _holds(truth[0])
        body, made, after = self._region(turn, start, targets, [*inputs, *row], results, is_live)
        new = self._merged(after, plan)
        if plan is None or body is None or not new.is_like(plan):
            session().plans[self._key] = new
            return False
        owned = self._run(plan, targets)
        every = [*targets, *initial]
        if self._rows is not None:
            _core.record_scan(every, [self._rows], body, owned)
            session().has_scans = True
        else:
            assert condition is not None
            _core.record_while(every, condition, body, owned)
        plan.put(owned[len(targets) :], state)
        self._write_back(targets, owned)
        return True

    def _run(self, plan: Plan, targets: list[Tensor]) -> list[Tensor]:
        """The loop as Python runs it, for its results."""
        state = self._state
        with _Suspended():
            clones = [target.clone() for target in targets]
            if not session().is_live:  # of values that are no example: the loop might have no end
                found = plan.tensors(state.before, {}, state)
                return plan.typed(_control_flow._own([*clones, *found], self._kind))
            state.enter(state.before, targets, clones)
            try:
                if self._rows is not None:
                    for row in self._rows:
                        self._body(row)
                else:
                    assert self._test is not None
                    while self._test():
                        self._body()
                after = state.leave()
            except BaseException:
                state.restore()
                raise
            try:
                found = plan.tensors(after.values, after.contents, state)
            except (NotAsPlanned, IndexError):
                self._merged(after, None)
                raise ValueError(
                    f"export: the {self._kind} at {self._location} changes the kind of a value in a later turn "
                    f"than the first; expected every turn to keep shapes and dtypes"
                ) from None
            return plan.typed(_control_flow._own([*clones, *found], self._kind))

    def _check_targets(self, targets: list[Tensor], after: After) -> None:
        for target, is_dirty in zip(targets, after.is_dirty):
            for name, before, value in zip(self._state.names, self._state.before, after.values):
                if before is target and is_dirty and value is not target:
                    raise ValueError(
                        f"export: the {self._kind} at {self._location} writes into `{name}` and assigns it anew; "
                        f"expected one of both: write `{name} = {name} + ...` for `{name} += ...`"
                    )

    def _merged(self, after: After, old: Plan | None) -> Plan:
        state = self._state
        plan = Plan([])
        for index, (name, a, b) in enumerate(
            zip(state.names, state.before, after.values, strict=True)
        ):
            known = old.names[index] if old else None
            plan.names.append(known if isinstance(known, Lost) else self._rule(name, a, b))
        indices = {*after.contents, *(old.containers if old else ())}
        for index in sorted(indices):
            container = state.containers[index]
            try:
                rule = merging.merge(container.saved, after.contents.get(index, container.saved))
            except Mismatch as mismatch:
                if self._rows is not None:
                    raise CannotLoop from None
                text = self._text(container.label, mismatch)
                raise ValueError(f"export: {text}") from None
            plan.containers[index] = rule
        if old is not None and sum(old.is_dirty) == len(after.is_dirty) != len(old.is_dirty):
            plan.is_dirty = old.is_dirty
        else:
            plan.is_dirty = list(after.is_dirty)
        return plan

    def _rule(self, name: str, a: Any, b: Any) -> Rule:
        if isinstance(b, Unset):
            return (
                Keep(b)
                if isinstance(a, Unset)
                else self._lost(
                    name, b.reason or f"`{name}` is deleted in the loop at {self._location}"
                )
            )
        if isinstance(a, Unset):
            if name == RESULT:
                return merging.rule_of(b)
            return self._lost(
                name,
                a.reason
                or f"`{name}` has a value only in the {self._kind} at {self._location}, which may have no turn; "
                f"expected one before: assign it there",
            )
        try:
            rule = merging.merge(a, b)
        except Mismatch as mismatch:
            if self._rows is not None:
                raise CannotLoop from None
            return self._lost(name, self._text(name, mismatch))
        if self._rows is not None and not isinstance(rule, Keep) and not isinstance(a, Tensor):
            raise CannotLoop
        if isinstance(a, Tensor) and not isinstance(b, Tensor) and isinstance(rule, Keep):
            raise AssertionError(name)
        return rule

    def _text(self, name: str, mismatch: Mismatch) -> str:
        return (
            f"{_what(name)} is {mismatch.one} before the {self._kind} at {self._location}, and "
            f"{mismatch.other} after one turn; expected a loop to keep shape and dtype: {mismatch.fix}"
        )
