# SPDX-License-Identifier: Apache-2.0
"""Where NaN and infinities come from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import tenon
from tenon import Tensor

from .observation import Observer, tensors_in

_PACKAGE = str(Path(__file__).resolve().parents[1]) + "/"


def user_line(frame: FrameType | None = None) -> str:
    """`file.py:12 in function`: the innermost line outside of Tenon that is running."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not str(Path(path).resolve()).startswith(_PACKAGE):
            return f"{path}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return "an unknown line"


def is_finite(tensor: Tensor) -> bool:
    """Whether all elements are; tensors that cannot hold NaN, or hold no data, are."""
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return True
    if tensor.device.type == "meta" or not tensor.numel():
        return True
    return bool(tenon.all(tenon.isfinite(tensor)).item())


def first_bad(tensor: Tensor) -> str:
    """"-inf at element 3 of float32 (4,)": the first element that is not finite."""
    flat = tensor.detach().to("cpu").reshape([-1])
    index = int(tenon.argmax(tenon.logical_not(tenon.isfinite(flat)).cast(tenon.int32)).item())
    return f"{flat[index].item()} at element {index} of {tensor.dtype.name} {tuple(tensor.shape)}"


class check_numerics:
    """Stop at the first operator that makes NaN or an infinity from finite arguments, in a block.

        with tenon.utils.check_numerics():
            loss = loss_of(model(x), target)
            loss.backward()

    The error, a FloatingPointError, names the operator, the element and the line of the program. Calls
    of this thread are checked, in forward and backward passes; each waits for the device. For an operator
    in a backward pass the line is that which started the pass; `detect_anomaly` knows the forward
    line, too. Operators made to show such values, as `full` with `inf` or `log` of 0 in a mask, are found
    as well: leave them out of the block, or pass `action`, a function that is called with the text
    instead of the error.
    """

    def __init__(self, action: Callable[[str], None] | None = None) -> None:
        self._action = action
        self._observer = Observer(self._check)

    def __enter__(self) -> check_numerics:
        self._observer.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._observer.__exit__(kind, error, trace)

    def _check(self, name: str, args: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        for index, result in enumerate(tensors_in(results)):
            if is_finite(result):
                continue
            numbers = (value for value in args if isinstance(value, float))
            if any(number - number != 0 for number in numbers):
                return
            if not all(is_finite(tensor) for tensor in tensors_in(args)):
                return
            text = (
                f"[{name}] made {first_bad(result)} (result {index}) from finite arguments, at "
                f"{self._where()}; keep its arguments within the function's domain and the range of "
                "their dtype"
            )
            if self._action is None:
                raise FloatingPointError(text)
            self._action(text)
            return

    def _where(self) -> str:
        return user_line()

