# SPDX-License-Identifier: Apache-2.0
"""What happens to the tensors that recorded calls save for backward."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tenon import _core
from tenon._tensor.batched import levels_of, of_levels, raw_of

Tensor = _core.Tensor


class SavedTensor:
    """A tensor kept for backward, with the version it had. Under vmap() that is the one with the
    memory of all samples, and what comes back is a sample of it again."""

    __slots__ = ("_levels", "_saved")

    def __init__(self, tensor: Tensor, is_output: bool) -> None:
        self._levels = levels_of(tensor)
        self._saved = _core.SavedTensor(raw_of(tensor), is_output)

    def unpack(self) -> Tensor:
        return of_levels(self._saved.unpack(), self._levels)


_forbidden = threading.local()  # .reason: the message of disable_saved_tensors_hooks


class saved_tensors_hooks:
    """Keep what operators save for backward in another form, for calls in this block.

    `pack(tensor)` is called with each saved tensor, without its history, and may return any object.
    `unpack(object)` gets that object in backward, once in each backward through the call, and
    returns a tensor of the same shape, dtype, device and values. Both run with recording off. The
    innermost block of a thread counts.

    A tensor that pack returns and that is modified later is an error in backward; what other
    objects hold is up to the hooks. Custom functions (`ctx.save_for_backward`) take part.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self._hooks = _core._SavedTensorHooks(pack_hook, unpack_hook)

    def __enter__(self) -> None:
        reason = getattr(_forbidden, "reason", None)
        if reason is not None:
            raise RuntimeError(reason)
        self._hooks.enter()

    def __exit__(self, *exception: object) -> None:
        self._hooks.exit()


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory until backward needs them, for calls in this block.

    Saved tensors that are in host memory already are not copied.
    """

    def __init__(self) -> None:
        super().__init__(_to_host, _from_host)


def _to_host(tensor: Tensor) -> Any:
    return tensor if tensor.device.kind == "cpu" else (tensor.device, tensor.cpu())


def _from_host(packed: Any) -> Tensor:
    if isinstance(packed, Tensor):
        return packed
    device, tensor = packed
    return tensor.to(device)


@contextlib.contextmanager
def disable_saved_tensors_hooks(message: str) -> Iterator[None]:
    """Entering saved_tensors_hooks in this block, on this thread, raises RuntimeError(message)."""
    before = getattr(_forbidden, "reason", None)
    _forbidden.reason = message
    try:
        yield
    finally:
        _forbidden.reason = before
