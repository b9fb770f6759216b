# SPDX-License-Identifier: Apache-2.0
"""Watching the operator calls of a thread from Python, for debugging."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tenon
from tenon import Tensor, _core

Observe = Callable[[str, tuple[Any, ...], tuple[Any, ...]], None]
ObserveFailure = Callable[[str, tuple[Any, ...]], None]


class Observer:
    """Call `observe(operator, arguments, results)` after every operator call of this thread in a block.

    Arguments and results are as the operator has them: in the dtypes it computes in, numbers and lists
    as Python values. Parts of composite operators and calls of backward passes are seen; calls that
    `observe` makes are not, and neither record gradients nor are cast. What it raises, the call raises.
    `failed(operator, arguments)` is called after calls that fail.
    """

    def __init__(self, observe: Observe, failed: ObserveFailure | None = None) -> None:
        self._observe = observe
        self._failed = failed

    def __enter__(self) -> Observer:
        _core.observe_push(self._after)
        return self

    def __exit__(self, *exception: object) -> None:
        _core.observe_pop()

    def _after(self, name: str, args: tuple[Any, ...], results: tuple[Any, ...] | None) -> None:
        name = name.removeprefix("tenon::")
        with tenon.no_grad():
            _core.amp_push_off()
            try:
                if results is not None:
                    self._observe(name, args, results)
                elif self._failed is not None:
                    self._failed(name, args)
            finally:
                _core.amp_pop()


def tensors_in(values: tuple[Any, ...]) -> Iterator[Tensor]:
    """The tensors among arguments or results, those in lists as well."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple):
            yield from tensors_in(value)
