# SPDX-License-Identifier: Apache-2.0
"""Tensors that a module owns: Parameter is trained, Buffer is only kept."""

from __future__ import annotations

from typing import Any

from tenon import Tensor


class Parameter(Tensor):
    """A tensor that an optimizer trains. Assigned to an attribute of a Module, it belongs to it.

    Shares the storage of `data` and starts a history of its own.
    """

    # Whether it is a part of a parameter that no rank of a job has whole.
    is_part: bool = False
    # Which ranks of a job have this one, if not all of them: experts (tenon.distributed.experts).
    expert_place: Any = None
    # A weak reference to the pipeline of several ranks that has it, if one does.
    pipeline: Any = None

    def __new__(cls, data: Tensor, requires_grad: bool = True) -> Parameter:
        self = super().__new__(cls, data)
        self.requires_grad = requires_grad
        return self

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        pass

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that belongs to a Module and is saved with it, but not trained (running statistics).

    `persistent=False` leaves it out of the state dict. An `optional` one may be missing in a state
    dict that is loaded; it then keeps its value.
    """

    persistent: bool
    optional: bool

    def __new__(cls, data: Tensor, persistent: bool = True, optional: bool = False) -> Buffer:
        self = super().__new__(cls, data)
        self.persistent, self.optional = persistent, optional
        return self

    def __init__(self, data: Tensor, persistent: bool = True, optional: bool = False) -> None:
        pass
