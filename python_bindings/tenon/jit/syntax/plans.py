# SPDX-License-Identifier: Apache-2.0
"""What a branch or loop was found to leave, which the next recording of it follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tenon._core import Tensor
from tenon.jit.syntax import merging
from tenon.jit.syntax.merging import NotAsPlanned, Rule
from tenon.jit.syntax.numbers import Number
from tenon.jit.syntax.state import State


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

    def tensors(
        self,
        values: list[Any],
        contents: dict[int, Any],
        state: State,
        see: merging.See = merging.as_it_is,
    ) -> list[Tensor]:
        """Of values that are as planned; raises NotAsPlanned."""
        found: list[Tensor] = []
        for rule, value in zip(self.names, values, strict=True):
            merging.take(rule, value, found, see)
        for index, rule in self.containers.items():
            content = contents.get(index, state.containers[index].saved)
            merging.take(rule, content, found, see)
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
