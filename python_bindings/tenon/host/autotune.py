# SPDX-License-Identifier: Apache-2.0
"""Kernels chosen by measuring them."""

from __future__ import annotations

import json
from typing import Any

from tenon import _core


class autotune:
    """Run every call of this thread in a block by the fastest kernel that can run it.

    with tenon.autotune():
        model(x)

    Where several kernels can run a call, all are measured the first time that a call with these
    dtypes, shapes, strides and attributes occurs on this device with this number of threads. The
    fastest runs it from then on, also in other processes: choices are kept in
    TENON_AUTOTUNE_CACHE, by default ~/.cache/tenon/autotune. A kernel replaces the dispatcher's own
    choice only if it takes at most 0.97 of its time. Results may differ in rounding from those of
    another kernel. The algorithms of GPU libraries for products and convolutions are kernels in this sense.

    `measure=False`: use what is remembered, and measure nothing. `autotune.enable()` and
    `autotune.disable()` do the same without a block, TENON_AUTOTUNE=1 (or `use`) for a whole
    program. `tenon.explain(op)` has the choices of an operator.
    """

    _enabled = 0

    def __init__(self, measure: bool = True) -> None:
        self._measure = bool(measure)

    def __enter__(self) -> autotune:
        _core.autotune_push(self._measure)
        return self

    def __exit__(self, *exception: object) -> None:
        _core.autotune_pop()

    @classmethod
    def enable(cls, measure: bool = True) -> None:
        """Tune calls of this thread until `disable`."""
        _core.autotune_push(bool(measure))
        cls._enabled += 1

    @classmethod
    def disable(cls) -> None:
        """End what the last `enable` began."""
        if not cls._enabled:
            raise RuntimeError("autotune.disable: expected a call of autotune.enable() before it")
        _core.autotune_pop()
        cls._enabled -= 1

    @staticmethod
    def report() -> dict[str, Any]:
        """The choices of this process, each with the measured times and the reason, and the files
        that keep them."""
        return json.loads(_core.autotune_report())

    @staticmethod
    def clear(files: bool = False) -> None:
        """Forget the choices of this process; `files=True`: and those in the files of the devices
        that it has used."""
        _core.autotune_clear(bool(files))
