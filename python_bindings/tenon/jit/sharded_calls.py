# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled functions with sharded tensors: a program of each rank has its parts as arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tenon import _core
from tenon._core import Tensor

from . import structures

KIND = "sharded"
Place = tuple[
    int, ...
]  # of a sharded tensor: its words and the shape of the whole; nothing of a plain one
_WORDS = 10


def place_of(tensor: Tensor) -> Place:
    if tensor.layout != KIND:
        return ()
    return (*_core.words_of(tensor), *tensor.shape)


def local_of(tensor: Tensor) -> Tensor:
    return _core.parts_of(tensor)[0].detach() if tensor.layout == KIND else tensor


def whole_of(local: Tensor, place: Place) -> Tensor:
    if not place:
        return local
    return _core.shard_tensor(place[0], list(place[_WORDS:]), local, list(place[1:9]))


def call_with_parts(
    function: Callable[..., Any], structure: str, layouts: tuple[Place, ...], *parts: Tensor
) -> Any:
    """function, whose sharded arguments come as parts; what it returns is taken apart in the same way."""
    wholes: Iterator[Tensor] = map(whole_of, parts, layouts)
    args, kwargs = structures.unflatten(_structures[structure], wholes)
    found: list[Tensor] = []
    returned = structures.flatten(function(*args, **kwargs), found)
    results = structures.unflatten(returned, map(local_of, found))
    return results, tuple(map(place_of, found))


# Of functions that are compiled, by their texts, which stand in keys; values in them are plain.
_structures: dict[str, Any] = {}


def know(structure: list[Any]) -> None:
    """Keep a structure for `call_with_parts`, for ever: only of what is compiled, whose number has a limit."""
    _structures.setdefault(repr(structure), structure)


def joined(result: Any) -> Any:
    """What `call_with_parts` returned, with wholes again."""
    results, layouts = result
    parts: list[Tensor] = []
    structure = structures.flatten(results, parts)
    return structures.unflatten(structure, map(whole_of, parts, layouts))
