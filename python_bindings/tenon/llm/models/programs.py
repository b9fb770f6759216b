# SPDX-License-Identifier: Apache-2.0
"""Steps of a decoder as recorded programs.

A step of few rows takes a good part of its time in Python, which calls its operators one by one. Steps whose
numbers have the same shapes make the same calls; so after some of them the calls are recorded, and later
steps run the program. Its bits are those of the calls. Pools are inputs that the program writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.llm.models.step import Numbers, Pools

MOST_ROWS = 64  # of a step that is worth a program; with more, products take the time
MOST_PROGRAMS = 64  # of one decoder
CALLS_BEFORE = 2  # steps of a shape before it is recorded, as many come once


class StepPrograms:
    """Runs functions of the numbers of a step and of pools, as programs where they are known."""

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._seen: dict[Any, int] = {}
        self._programs: dict[Any, Callable[..., Tensor]] = {}
        self._lock = threading.Lock()

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
            program = self._programs.get(key) or self._recorded(key, function, numbers, pools)
            if program is None:
                return function(*numbers, pools)
            return program(*numbers, *(tensor for pool in pools for tensor in pool))

    def _recorded(
        self, key: Any, function: Callable[..., Tensor], numbers: Numbers, pools: Pools
    ) -> Callable[..., Tensor] | None:
        """A program of the step, if there have been enough of its shapes and no other thread records."""
        if _core.is_recording() or not self._lock.acquire(blocking=False):
            return None
        try:
            if len(self._seen) > 16 * MOST_PROGRAMS:
                self._seen.clear()
            seen = self._seen[key] = self._seen.get(key, 0) + 1
            if seen <= CALLS_BEFORE:
                return None
            if len(self._programs) >= MOST_PROGRAMS:
                del self._programs[next(iter(self._programs))]
            count = len(numbers)

            @tenon.jit.not_to_static
            def step(
                *tensors: Tensor,
            ) -> Tensor:  # one tensor after another, which are fast to pass
                given = list(zip(tensors[count::2], tensors[count + 1 :: 2]))
                return function(*tensors[:count], given)

            flat = (*numbers, *(tensor for pool in pools for tensor in pool))
            program = tenon.export(step, flat)
            self._programs[key] = program
            return program
        finally:
            self._lock.release()
