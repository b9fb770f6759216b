# SPDX-License-Identifier: Apache-2.0
"""Loops over tensors, recorded as structural steps of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.jit import control_flow
from tenon.jit.syntax import merging
from tenon.jit.syntax.jumps import RESULT
from tenon.jit.syntax.merging import Keep, Leaf, Lost, Mismatch, NotAsPlanned, Rule, Unset
from tenon.jit.syntax.plans import Plan
from tenon.jit.syntax.regions import Structural, holds, what
from tenon.jit.syntax.session import session
from tenon.jit.syntax.state import After, State

_Suspended = control_flow._Suspended


class CannotLoop(Exception):
    """The body of a `for` over a tensor's rows changes what a loop of a program cannot carry."""


class Loop(Structural):
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
                session().is_live &= holds(self._test())
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
            control_flow._check_predicate(truth[0], self._kind)
            is_live = holds(truth[0])
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
                return plan.typed(control_flow._own([*clones, *found], self._kind))
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
                found = plan.tensors(after.values, after.contents, state, after.see)
            except (NotAsPlanned, IndexError):
                self._merged(after, None)
                raise ValueError(
                    f"export: the {self._kind} at {self._location} changes the kind of a value in a later turn "
                    f"than the first; expected every turn to keep shapes and dtypes"
                ) from None
            return plan.typed(control_flow._own([*clones, *found], self._kind))

    def _check_targets(self, targets: list[Tensor], after: After) -> None:
        if self._rows is not None and any(after.is_dirty):
            raise CannotLoop  # perhaps into rows that are still to come
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
            plan.names.append(
                known if isinstance(known, Lost) else self._rule(name, a, b, after.see)
            )
        indices = {*after.contents, *(old.containers if old else ())}
        for index in sorted(indices):
            container = state.containers[index]
            try:
                content = after.contents.get(index, container.saved)
                rule = merging.merge(container.saved, content, see_other=after.see)
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

    def _rule(self, name: str, a: Any, b: Any, see: merging.See) -> Rule:
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
                return merging.rule_of(b, see)
            return self._lost(
                name,
                a.reason
                or f"`{name}` has a value only in the {self._kind} at {self._location}, which may have no turn; "
                f"expected one before: assign it there",
            )
        try:
            rule = merging.merge(a, b, see_other=see)
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
            f"{what(name)} is {mismatch.one} before the {self._kind} at {self._location}, and "
            f"{mismatch.other} after one turn; expected a loop to keep shape and dtype: {mismatch.fix}"
        )
