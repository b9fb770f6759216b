# SPDX-License-Identifier: Apache-2.0
"""A saved model of Paddle, as both of its formats say it: blocks of operators over values that have keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

Key = int | str  # of a value: its number in files of 3.x, its name in those of 2.x
MOST_VALUES: Final = 1 << 22  # operators and values of a model
MOST_AXES: Final = 32


@dataclass
class ValueType:
    """`shape` has -1 where the file leaves a size open; None: the file says nothing."""

    dtype: str
    shape: tuple[int, ...] | None


@dataclass
class Operator:
    kind: str  # by the name that Paddle 3 has for it, without the `_` of those that write
    label: str  # as the file has it
    arguments: dict[str, Key | list[Key] | None]  # by the names of parameters
    attributes: dict[str, Any]
    results: list[Key]
    types: list[ValueType | None]
    regions: list[Block] = field(default_factory=list)
    written: Key | None = None  # an argument that holds the first result from then on

    def uses(self) -> Iterator[Key]:
        for each in self.arguments.values():
            if isinstance(each, list):
                yield from each
            elif each is not None:
                yield each


@dataclass
class Block:
    arguments: list[Key] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    results: list[Key] = field(default_factory=list)

    def free(self) -> list[Key]:
        """Values that it, or a block in it, reads from around it, in order."""
        known = set(self.arguments)
        found: dict[Key, None] = {}
        for operator in self.operators:
            used = list(operator.uses())
            for region in operator.regions:
                used += region.free()
            found.update(dict.fromkeys(key for key in used if key not in known))
            known.update(operator.results)
        found.update(dict.fromkeys(key for key in self.results if key not in known))
        return list(found)


@dataclass
class Input:
    name: str
    type: ValueType
    key: Key


@dataclass
class SavedModel:
    name: str  # of the file, for errors
    block: Block
    inputs: list[Input]
    outputs: list[tuple[str, Key]]
    parameters: list[Input]  # in the order of the file of weights
