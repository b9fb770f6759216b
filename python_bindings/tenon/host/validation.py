# SPDX-License-Identifier: Apache-2.0
"""Kernels watched for what they must not do."""

from __future__ import annotations

import os
import threading

from tenon import _core

_here = threading.local()  # .depth: of blocks that this thread is in


def is_on() -> bool:
    """Whether kernel calls of this thread are watched."""
    return getattr(_here, "depth", 0) > 0 or os.environ.get("TENON_VALIDATE", "") not in ("", "0")


class validation:
    """Watch every kernel call of this thread in a block.

    with tenon.validation():
        model(x)

    Results lie between guard bands and are filled before the call. A kernel that writes outside its
    result or into an argument, or leaves elements unwritten, is an InternalError that names the
    operator, the plugin, the result and the byte. TENON_VALIDATE=1 does the same for a whole program.

    `nan="error"`: so is NaN or infinity made from finite arguments. `compare="cpu"`: so is a result
    that differs from what the host computes from the same arguments by more than
    atol + rtol * |expected|; by default as much as rounding in the dtype explains.
    """

    def __init__(
        self,
        nan: str | None = None,
        compare: str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> None:
        if nan not in (None, "error"):
            raise ValueError(f"validation: expected nan=None or 'error', got {nan!r}")
        if compare not in (None, "cpu"):
            raise ValueError(f"validation: expected compare=None or 'cpu', got {compare!r}")
        for name, tolerance in (("rtol", rtol), ("atol", atol)):
            if tolerance is not None and not tolerance >= 0:
                raise ValueError(f"validation: expected {name} of at least 0, got {tolerance!r}")
            if tolerance is not None and compare is None:
                raise ValueError(f"validation: {name} is for comparing; pass compare='cpu' as well")
        self._options = (
            nan is not None,
            compare is not None,
            -1.0 if rtol is None else float(rtol),
            -1.0 if atol is None else float(atol),
        )
        self._starts: list[int] = []
        self._calls = 0

    @property
    def calls(self) -> int:
        """Calls that were watched in the blocks that this object has ended or is in."""
        return self._calls + (_core.validation_calls() - self._starts[0] if self._starts else 0)

    def __enter__(self) -> validation:
        _core.validation_push(*self._options)
        _here.depth = getattr(_here, "depth", 0) + 1
        self._starts.append(_core.validation_calls())
        return self

    def __exit__(self, *exception: object) -> None:
        start = self._starts.pop()
        if not self._starts:
            self._calls += _core.validation_calls() - start
        _core.validation_pop()
        _here.depth -= 1
