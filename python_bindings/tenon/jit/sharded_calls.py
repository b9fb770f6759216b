# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled functions with sharded tensors as arguments: the program of each rank has local tensors as arguments and
results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tenon import _core
from tenon._core import Tensor

from . import structures

KIND = "sharded"
# Of a sharded tensor the number of its mesh, its placements and its global shape; empty of a plain tensor.
Spec = tuple[int, ...]
_WORDS = 10  # before the shape


def spec_of(tensor: Tensor) -> Spec:
    if tensor.layout != KIND:
        return ()
    return (*_core.words_of(tensor), *tensor.shape)


def local_of(tensor: Tensor) -> Tensor:
    return _core.parts_of(tensor)[0].detach() if tensor.layout == KIND else tensor


def tensor_of(local: Tensor, spec: Spec) -> Tensor:
    """The inverse of local_of and spec_of."""
    if not spec:
        return local
    return _core.shard_tensor(spec[0], list(spec[_WORDS:]), local, list(spec[1:9]))


def call_with_local_tensors(
    function: Callable[..., Any], structure: str, specs: tuple[Spec, ...], *local: Tensor
) -> Any:
    """function, whose sharded arguments come as local tensors. Its sharded results become local tensors, except those that
    record gradients, as local tensors have no history."""
    given: Iterator[Tensor] = map(tensor_of, local, specs)
    args, kwargs = structures.unflatten(_structures[structure], given)
    found: list[Tensor] = []
    returned = structures.flatten(function(*args, **kwargs), found)
    results = structures.unflatten(returned, (t if t.requires_grad else local_of(t) for t in found))
    return results, tuple(() if t.requires_grad else spec_of(t) for t in found)


# Of arguments of compiled functions, by their texts, which are part of keys; values in them are plain.
_structures: dict[str, Any] = {}


def register(structure: list[Any]) -> None:
    """Keep a structure for `call_with_local_tensors`, for ever: only of what is compiled, whose number has a limit."""
    _structures.setdefault(repr(structure), structure)


def sharded_again(result: Any) -> Any:
    """What the function returned, of what `call_with_local_tensors` did."""
    results, specs = result
    local: list[Tensor] = []
    structure = structures.flatten(results, local)
    return structures.unflatten(structure, map(tensor_of, local, specs))
