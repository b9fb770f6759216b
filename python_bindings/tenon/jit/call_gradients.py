# SPDX-License-Identifier: Apache-2.0
"""What a recorded call tells of gradients: `.grad` that it read, and histories that a program would not give its results."""

from __future__ import annotations

from typing import Any

from tenon import _core
from tenon._core import Tensor


def lost_history(outputs: list[Tensor], given: list[Tensor]) -> str:
    """Why results of a program would carry another history of gradients than those of the function."""
    known = {id(tensor) for tensor in given}
    made = [t for t in outputs if t.requires_grad and id(t) not in known]
    if made and not _core.is_grad_enabled():
        return "it records gradients though they are off around it"
    if made and (any(t.is_leaf for t in made) or not any(t.requires_grad for t in given)):
        return "it returns what gradients pass to a tensor that it has made"
    return ""


def changed_leaf(tensors: list[Tensor], required: list[bool]) -> str:
    """Why a program would leave arguments otherwise than the function. `required`: their requires_grad of before."""
    if any(t.is_leaf and t.requires_grad != before for t, before in zip(tensors, required)):
        return "it sets requires_grad of an argument, or detaches it"
    return ""


def read_from_before(
    read: dict[int, Tensor | None], before: list[tuple[Tensor, Tensor | None]]
) -> list[Tensor]:
    """The tensors whose .grad of before the function ran was read in it."""

    def memory(grad: Tensor | None) -> Any:
        return None if grad is None else _core.tensor_layout(grad)

    return [t for t, grad in before if id(t) in read and memory(read[id(t)]) == memory(grad)]
