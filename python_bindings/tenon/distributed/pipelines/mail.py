# SPDX-License-Identifier: Apache-2.0
"""Tensors between the stages of a pipeline.

Messages between two ranks keep their order, and both sides know it from the table. The shapes of what stages hand on
travel in front of it when a batch has a shape that was not there before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import tenon
from tenon import Tensor

from ..group import ProcessGroup
from ..work import Work
from .schedule import FORWARD, Message, Schedule

_MOST_TENSORS, _MOST_AXES = 8, 8
_DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()


class Kind(NamedTuple):
    """What a tensor between two stages is like."""

    dtype: str
    shape: tuple[int, ...]
    needs_grad: bool


def kinds_of(tensors: tuple[Tensor, ...]) -> tuple[Kind, ...]:
    return tuple(Kind(x.dtype.name, tuple(x.shape), x.requires_grad) for x in tensors)


@dataclass
class KnownShapes:
    """Of batches of one shape."""

    received: dict[Message, tuple[Kind, ...]] = field(default_factory=dict)
    sent: dict[Message, tuple[Kind, ...]] = field(default_factory=dict)
    is_complete: bool = False


class Mail:
    """What one rank sends and receives in one step. `known` holds what messages are like, of steps before."""

    def __init__(self, group: ProcessGroup, schedule: Schedule, known: KnownShapes) -> None:
        self._group, self._schedule = group, schedule
        self._shapes, self._handed_on = known.received, known.sent
        # Without the gradients, if the step has forward passes only.
        self._expected = {
            peer: deque(schedule.messages(peer, group.rank)) for peer in range(group.size)
        }
        self._knows_all = known.is_complete
        self._known = known
        self._arriving: dict[Message, tuple[tuple[Tensor, ...], list[Work]]] = {}
        self._sent: deque[Work] = deque()

    def forward_only(self) -> Mail:
        """Of a step in which no rank goes backward."""
        for peer, messages in self._expected.items():
            self._expected[peer] = deque(m for m in messages if m.kind == FORWARD)
        return self

    def send(self, message: Message, tensors: tuple[Tensor, ...]) -> None:
        """Begin to send. The tensors stay as they are until the step ends."""
        peer = self._schedule.rank_of(message.stage)
        if message.kind == FORWARD:
            kinds = kinds_of(tensors)
            if self._handed_on.setdefault(message, kinds) != kinds:
                raise ValueError(
                    f"pipeline: expected stage {message.stage - 1} to hand on the same as for earlier batches of this "
                    f"shape, {self._handed_on[message]}, got {kinds}; call clear_cache() on all ranks behind a change "
                    "of the model"
                )
        if peer == self._group.rank:
            self._arriving[message] = (tuple(x.detach() for x in tensors), [])
            return
        if message.kind == FORWARD and not self._knows_all:
            self._sent.append(self._group.send(_packed(message, kinds_of(tensors)), peer, True))
        for x in tensors:
            self._sent.append(self._group.send(x.detach(), peer, True))
        while self._sent and self._sent[0].is_completed():
            self._sent.popleft().wait()

    def take(self, message: Message, sender: int) -> tuple[Tensor, ...]:
        """What an action waits for; returns when it is there."""
        expected = self._expected[sender]
        while message not in self._arriving:
            self._begin(expected.popleft(), sender)
        tensors, works = self._arriving.pop(message)
        for work in works:
            work.wait()
        # The next one travels while this rank computes; of one that has its shape in front the rank would have to wait.
        if expected and expected[0] in self._shapes and expected[0] not in self._arriving:
            self._begin(expected.popleft(), sender)
        return tensors

    def kinds(self, message: Message) -> tuple[Kind, ...]:
        """What a message is like that has come, or been sent."""
        return self._handed_on.get(message) or self._shapes[message]

    def expect(self, message: Message, kinds: tuple[Kind, ...]) -> None:
        """Say what a message is like that comes without saying so."""
        self._shapes[message] = kinds

    def _begin(self, message: Message, sender: int) -> None:
        if message.kind == FORWARD and not self._knows_all:
            head = self._group.recv(
                tenon.empty([1 + _MOST_TENSORS * (3 + _MOST_AXES)], dtype=tenon.int64), sender
            )
            self._shapes[message] = _unpacked(head)
        tensors = tuple(
            tenon.empty(list(kind.shape), dtype=getattr(tenon, kind.dtype))
            for kind in self._shapes[message]
        )
        works = [self._group.recv(x, sender, True) for x in tensors]
        self._arriving[message] = (tensors, works)

    def finish(self) -> None:
        """Returns when all that was sent has been taken."""
        while self._sent:
            self._sent.popleft().wait()
        self._known.is_complete = True


def _packed(message: Message, kinds: tuple[Kind, ...]) -> Tensor:
    if len(kinds) > _MOST_TENSORS or any(len(kind.shape) > _MOST_AXES for kind in kinds):
        raise ValueError(
            f"pipeline: expected stage {message.stage - 1} to hand on {_MOST_TENSORS} tensors at most, of "
            f"{_MOST_AXES} axes at most, got shapes {[kind.shape for kind in kinds]}"
        )
    numbers = [len(kinds)]
    for kind in kinds:
        if kind.dtype not in _DTYPES:
            raise TypeError(
                f"pipeline: stage {message.stage - 1} handed on a tensor of {kind.dtype}; expected one of "
                f"{', '.join(_DTYPES)}"
            )
        axes = [*kind.shape, *[0] * (_MOST_AXES - len(kind.shape))]
        numbers += [_DTYPES.index(kind.dtype), int(kind.needs_grad), len(kind.shape), *axes]
    numbers += [0] * ((3 + _MOST_AXES) * (_MOST_TENSORS - len(kinds)))
    return tenon.tensor(numbers, dtype=tenon.int64)


def _unpacked(head: Tensor) -> tuple[Kind, ...]:
    count, *numbers = head.tolist()
    step = 3 + _MOST_AXES
    rows = [numbers[step * i : step * (i + 1)] for i in range(count)]
    return tuple(
        Kind(_DTYPES[dtype], tuple(axes[:ndim]), bool(needs_grad))
        for dtype, needs_grad, ndim, *axes in rows
    )
