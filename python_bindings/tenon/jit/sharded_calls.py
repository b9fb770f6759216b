# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled functions with sharded tensors: a program of each rank has its parts as arguments and results, and
makes the parts of what the function leaves in `.grad` of sharded tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    """function, whose sharded arguments come as parts; what it returns is taken apart in the same way, but for wholes with
    a history of gradients, which parts have not."""
    wholes: Iterator[Tensor] = map(whole_of, parts, layouts)
    args, kwargs = structures.unflatten(_structures[structure], wholes)
    found: list[Tensor] = []
    returned = structures.flatten(function(*args, **kwargs), found)
    results = structures.unflatten(returned, (t if t.requires_grad else local_of(t) for t in found))
    return results, tuple(() if t.requires_grad else place_of(t) for t in found)


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


class Wholes:
    """Of a recording in which sharded tensors are: which results of its program are parts of wholes, and of which sharded
    tensors it leaves another `.grad`. Programs have the parts of these as further results."""

    def __init__(self, outputs: list[Tensor]) -> None:
        self._places = tuple(map(place_of, outputs))
        self._grads: list[tuple[Tensor, Place | None]] = []  # None: no gradient
        self._from_none: list[Tensor] = []  # without a gradient before and after
        self.parts = list(map(local_of, outputs))

    def add_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """`tensor` has `grad` behind a call, whatever it had before."""
        self._grads.append((tensor, None if grad is None else place_of(grad)))
        if grad is not None:
            self.parts.append(local_of(grad))

    def expect_none(self, tensor: Tensor) -> None:
        """A call begins without a gradient of `tensor`, and leaves none."""
        self._from_none.append(tensor)

    def is_needed(self) -> bool:
        return any(self._places) or bool(self._grads) or bool(self._from_none)

    def key(self) -> Any:
        """Equal for recordings that treat the same tensors in the same way."""
        return (
            self._places,
            tuple((id(tensor), place) for tensor, place in self._grads),
            tuple(map(id, self._from_none)),
        )

    def fits(self) -> bool:
        """Whether a call of the program does what the function would."""
        return all(tensor.grad is None for tensor in self._from_none)

    def assemble(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """What the function returns, of results of its program; gradients are put where they belong."""
        count = len(self._places)
        results = list(map(whole_of, parts[:count], self._places))
        following = iter(parts[count:])
        for tensor, place in self._grads:
            tensor.grad = None if place is None else whole_of(next(following), place)
        return results
