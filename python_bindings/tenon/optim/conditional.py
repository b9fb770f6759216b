# SPDX-License-Identifier: Apache-2.0
"""Steps that happen only if a number on the device says so, without the host waiting for it."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor


def runs_behind_host(device: tenon.device) -> bool:
    """Whether work on the device may be unfinished when a call returns: then reading a number waits."""
    return not tenon.device_properties(device)["host_memory"]


class ConditionalStep:
    """One step of an optimizer under the condition that `found_inf` is 0.

    Tensors are restored on the device. What the host counts, such as the number of steps, it counts as
    if the step happened; settle() looks, once the device has gone on, and takes that back.
    """

    def __init__(self, found_inf: Tensor) -> None:
        # A copy: the caller may write into its own until settle().
        self._is_bad = (found_inf != 0).reshape([])
        self._before: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._tensors: list[tuple[Tensor, Tensor]] = []

    def keep(self, param: Tensor, state: dict[str, Any]) -> None:
        """Before an update of `param` and `state`."""
        tensors = [param, *(value for value in state.values() if isinstance(value, Tensor))]
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self._before.append((state, dict(state)))

    def undo_if_bad(self, param: Tensor) -> None:
        """After the update."""
        is_bad = self._is_bad.to(param.device)
        for tensor, before in self._tensors:
            tenon.where(is_bad, before, tensor, out=tensor)
        self._tensors = []

    def settle(self) -> None:
        """Give the states their former entries back if the step did not happen. Waits for its number."""
        if self._is_bad.item():
            for state, before in self._before:
                state.clear()
                state.update(before)
