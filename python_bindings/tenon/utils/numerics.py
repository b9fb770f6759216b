# SPDX-License-Identifier: Apache-2.0
"""Where NaN and infinities come from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import tenon
from tenon import Tensor, _core

from .observation import Observer, tensors_in
from .replay import save_call

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def user_line() -> str:
    """`file.py:12 in function`: the innermost line outside of Tenon that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_PACKAGE):
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
    """`-inf at element 3 of float32 (4,)`: the first element that is not finite."""
    flat = tensor.detach().to("cpu").reshape([-1])
    index = int(tenon.argmax(tenon.logical_not(tenon.isfinite(flat)).cast(tenon.int32)).item())
    return f"{flat[index].item()} at element {index} of {tensor.dtype.name} {tuple(tensor.shape)}"


class check_numerics:
    """Stop at the first operator that makes NaN or an infinity from finite arguments, in a block.

        with tenon.utils.check_numerics():
            loss = loss_of(model(x), target)
            loss.backward()

    The error, a FloatingPointError, names the operator, the element and the line of the program; in a
    backward pass also the operator whose gradient it belongs to and the line that called that one.
    Calls of this thread are checked, and each waits for the device. `action`: a function that is called
    with the text instead. `save`: a file for the call, which `tenon.utils.replay` runs again.
    Functions may well return infinities, as the logarithm of 0 in a mask does; leave those out
    of the block.
    """

    def __init__(
        self,
        action: Callable[[str], None] | None = None,
        save: str | os.PathLike[str] | None = None,
    ) -> None:
        self._action = action
        self._save = save
        self._observer = Observer(self._check)
        self._forward: dict[int, tuple[str, str]] = {}  # recorded call: operator, line

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
        self._forward.clear()

    def _check(self, name: str, args: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        for result in tensors_in(results):
            if result.requires_grad and (node := _core.autograd_node(result)):
                self._forward[node] = (name, user_line())
        bad = [result for result in tensors_in(results) if not is_finite(result)]
        if not bad:
            return
        numbers = (value for value in args if isinstance(value, float))
        if any(number - number != 0 for number in numbers):
            return
        if not all(is_finite(tensor) for tensor in tensors_in(args)):
            return
        text = f"[{name}] made {first_bad(bad[0])} from finite arguments, at {self._where()}"
        if self._save is not None:
            save_call(self._save, name, args)
            text += f"; tenon.utils.replay({os.fspath(self._save)!r}) makes the call again"
        text += "; keep its arguments within the function's domain and the range of their dtype"
        if self._action is None:
            raise FloatingPointError(text)
        self._action(text)

    def _where(self) -> str:
        line = user_line()
        node = _core.autograd_running_node()
        if not node:
            return line
        operator, called_at = self._forward.get(node, ("an operator", "a line before this block"))
        return f"{line}, in the gradient of [{operator}], which was called at {called_at}"


def detect_anomaly() -> check_numerics:
    """Stop at the first operator of forward or backward passes in a block that makes NaN or an infinity
    from finite arguments: tenon.utils.check_numerics, under PyTorch's name (tenon.autograd.detect_anomaly)."""
    return check_numerics()
