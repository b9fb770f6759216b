# SPDX-License-Identifier: Apache-2.0
"""Steps of a decoder as recorded programs.

A step of few rows takes a good part of its time in Python, which calls its operators one by one. Steps whose
numbers have the same shapes make the same calls; so calls of a shape that comes again are recorded, and later
steps run the program. Its bits are those of the calls. Pools are inputs that the program writes. What is recorded
are steps that are made anyway: calls for the recording alone would make all that runs wait for two steps more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.jit.program import Recorder
from tenon.llm.models.step import Numbers, Pools

MOST_ROWS = 64  # of a step that is worth a program; with more, products take the time
MOST_PROGRAMS = 64  # of one decoder
CALLS_BEFORE = 1  # steps of a shape before the two that are recorded, as many come once


class StepPrograms:
    """Runs functions of the numbers of a step and of pools, as programs where they are known."""

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._seen: dict[Any, int] = {}
        self._recorders: dict[Any, Recorder] = {}
        self._lock = threading.Lock()

    @property
    def known(self) -> int:
        """How many programs there are."""
        return sum(each.program is not None for each in list(self._recorders.values()))

    def run(self, function: Callable[..., Tensor], numbers: Numbers, pools: Pools) -> Tensor:
        """`function(*numbers, pools)`, without gradients."""
        with tenon.no_grad():
            if not self._enabled or numbers.tokens.shape[0] > MOST_ROWS:
                return function(*numbers, pools)
            key = (
                function.__name__,
                *(each.shape for each in numbers),
                *(each.dtype for each in numbers),
                pools[0][0].shape,
                pools[0][0].dtype,
            )
            recorder = self._recorders.get(key)
            if recorder is None or recorder.program is None:
                return self._recorded(key, function, numbers, pools)
            return recorder.program(*_flat(numbers, pools))

    def _recorded(
        self, key: Any, function: Callable[..., Tensor], numbers: Numbers, pools: Pools
    ) -> Tensor:
        """The step, which is recorded if there have been enough of its shapes and no other thread records."""
        if _core.is_recording() or not self._lock.acquire(blocking=False):
            return function(*numbers, pools)
        try:
            if len(self._seen) > 16 * MOST_PROGRAMS:
                self._seen.clear()
            seen = self._seen[key] = self._seen.get(key, 0) + 1
            if seen <= CALLS_BEFORE:
                return function(*numbers, pools)
            if key not in self._recorders:
                if len(self._recorders) >= MOST_PROGRAMS:
                    del self._recorders[next(iter(self._recorders))]
                count = len(numbers)

                def step(
                    *tensors: Tensor,
                ) -> Tensor:  # one tensor after another, which are fast to pass
                    given = list(zip(tensors[count::2], tensors[count + 1 :: 2]))
                    return function(*tensors[:count], given)

                self._recorders[key] = Recorder(step)
            return self._recorders[key](*_flat(numbers, pools))
        finally:
            self._lock.release()


def _flat(numbers: Numbers, pools: Pools) -> tuple[Tensor, ...]:
    return (*numbers, *(tensor for pool in pools for tensor in pool))
