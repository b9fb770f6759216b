# SPDX-License-Identifier: Apache-2.0
"""`.grad` as an argument: what a compiled function reads there, and other code assigns anew before each call.

The memory of a `.grad` that a function reads belongs to the signature, as its program may add to it. Where it is another one in
each call, as before an `optimizer.step()` that is compiled alone, no signature would come again. Such a `.grad` is given to
the program as one more argument, a list behind the others.
"""

from __future__ import annotations

from typing import Any

from tenon._core import Tensor
from tenon.jit.captured_state import Outside
from tenon.jit.signature import Refused

_CHANGES = 2  # before it is taken for assigned anew each time


class GivenGrads:
    def __init__(self) -> None:
        self._tensors: tuple[Tensor, ...] = ()
        self._changes = 0

    def __bool__(self) -> bool:
        return bool(self._tensors)

    def behind(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, and what is in `.grad` now."""
        return (*args, [tensor.grad for tensor in self._tensors]) if self._tensors else args

    def adopt(self, before: Outside | None, after: Outside) -> bool:
        """Whether `.grad` is an argument from the next call on."""
        if before is None or not _other_grads(before, after):
            return False
        self._changes += 1
        if self._changes < _CHANGES:
            return False
        self._changes = 0
        self._tensors += after.grads
        return True

    def without(self, tensors: list[Tensor]) -> list[Tensor]:
        """Those of them whose `.grad` is no argument."""
        known = {id(tensor) for tensor in self._tensors}
        return [tensor for tensor in tensors if id(tensor) not in known]

    def refuse_sharded(self) -> None:
        if self._tensors:
            raise Refused("it reads .grad that is assigned anew each time, beside sharded tensors")


def _other_grads(before: Outside, after: Outside) -> bool:
    """Whether only the memory of what is in `.grad` has changed."""
    if before.refusal or after.refusal:
        return False
    code, grads, *others = before.value
    code_now, grads_now, *others_now = after.value
    if (code, others) != (code_now, others_now) or grads == grads_now:
        return False
    # Of each: the tensor, and where its .grad is; nothing where it has none.
    return [(of, bool(at)) for of, at in grads] == [(of, bool(at)) for of, at in grads_now]
