# SPDX-License-Identifier: Apache-2.0
"""Forward mode: a function is called once with dual tensors, whose tangents the layer `forward` carries along.

Each tangent lives as long as its tensor, so that the memory is that of the function, twice. What the layer refuses (a write
into a part of a tensor, a tenon.Function, tensors composed of others) is a NotImplementedError whose text begins with
"forward mode:".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tenon import _core
from tenon._core import Tensor


class Refused(Exception):
    """The layer does not differentiate this function; nothing is wrong with it."""


@contextmanager
def level() -> Iterator[int]:
    """A differentiation within those that run on this thread."""
    number = _core._forward_push()
    try:
        yield number
    except NotImplementedError as error:
        if "forward mode: " in str(error):
            raise Refused(str(error)) from error
        raise
    finally:
        _core._forward_pop()


def dual(x: Tensor, number: int, tangent: Tensor) -> Tensor:
    """`x` with a tangent: another tensor of the same memory, which has the history of `x`, and its tangents at the other
    levels."""
    if x.requires_grad:
        result = _core.operator("expand")(x, x.shape)
    else:
        result = x.detach()
        _core._forward_copy(x, result)
    if tangent.dtype != x.dtype:
        tangent = tangent.to(x.dtype)
    _core._forward_set_tangent(result, number, tangent)
    return result


def push(
    call: Callable[[Sequence[Tensor]], Sequence[Any]],
    primals: Sequence[Tensor],
    tangents: Sequence[Tensor],
) -> tuple[list[Any], list[Tensor | None]]:
    """Results of call(primals), a flat list, and the tangents of those that are tensors and depend on `primals`."""
    with level() as number:
        duals = [dual(x, number, t) for x, t in zip(primals, tangents, strict=True)]
        results = list(call(duals))
        found: list[Tensor | None] = [
            _core._forward_tangent(result, number) if isinstance(result, Tensor) else None
            for result in results
        ]
        # After all are read, since one tensor may be several results.
        for result in results:
            if isinstance(result, Tensor):
                _core._forward_set_tangent(result, number, None)
        return results, found


def refuse_function(name: str, tensors: Sequence[Any]) -> None:
    """An error for a tenon.Function that is given duals: its gradient is its own, and not that of its operators."""
    if any(isinstance(x, Tensor) and _core._forward_is_dual(x) for x in tensors):
        raise NotImplementedError(
            f"forward mode: {name} has a gradient of its own, and no rule for tangents"
        )
