# SPDX-License-Identifier: Apache-2.0
"""Lists and dictionaries that a recorded call was given: a program leaves them as they are, and makes those of its results anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenon._core import Tensor
from tenon.jit import structures
from tenon.jit.signature import Refused, hashable


def check_arguments(given: Any, structure: list[Any], tensors: list[Tensor]) -> None:
    """Raises Refused where the call has changed one. `structure` and `tensors` are those of before it."""
    after: list[Tensor] = []
    is_same = hashable(structures.flatten(given, after)) == hashable(structure)
    if not is_same or list(map(id, after)) != list(map(id, tensors)):
        raise Refused("it changes a list or a dictionary that is an argument")


def check_variables(given: Any, result: Any) -> None:
    """Raises Refused where two variables of a function would no longer hold the same one behind a part of it."""
    made = [id(each) for each in _mutable(result)]
    if len(set(made)) < len(made) or {*made} & {id(each) for each in _mutable(given)}:
        raise Refused("two of its variables hold the same list or dictionary")


def _mutable(tree: Any) -> Iterator[list[Any] | dict[Any, Any]]:
    if type(tree) in (list, dict):
        yield tree
    if type(tree) in (tuple, list, dict):
        for item in tree.values() if type(tree) is dict else tree:
            yield from _mutable(item)
