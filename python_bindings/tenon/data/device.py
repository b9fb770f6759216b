# SPDX-License-Identifier: Apache-2.0
"""Batches on a device, copied while the program works on the batch before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tenon
from tenon import Tensor


def map_tensors(function: Callable[[Tensor], Any], batch: Any) -> Any:
    """`batch` with `function` applied to its tensors; dicts, lists, tuples and named tuples are kept."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        return {key: map_tensors(function, value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(map_tensors(function, value) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map_tensors(function, value) for value in batch)
    return batch


class PinnedPool:
    """Pinned memory of the host for one device, kept from batch to batch."""

    _SMALLEST = 4096

    def __init__(self, device: Any) -> None:
        self._device = device
        self._free: dict[int, list[Tensor]] = {}  # by size, a power of two

    def staged(self, batch: Any) -> tuple[Any, list[Tensor]]:
        """The batch with its tensors in pinned memory, and that memory, for `give_back`."""
        taken: list[Tensor] = []
        return map_tensors(lambda tensor: self._copy(tensor, taken), batch), taken

    def _copy(self, tensor: Tensor, taken: list[Tensor]) -> Tensor:
        if tensor.device.type != "cpu" or not tensor.numel():
            return tensor
        size = 1 << (max(self._SMALLEST, tensor.nbytes) - 1).bit_length()
        free = self._free.get(size)
        memory: Any = (
            free.pop() if free else tenon.runtime.memory.pinned([size], tenon.uint8, self._device)
        )
        taken.append(memory)
        copy = tenon.frombuffer(memory, tensor.dtype, tuple(tensor.shape))
        copy.copy_(tensor)
        return copy

    def give_back(self, taken: list[Tensor]) -> None:
        """The device has read them."""
        for memory in taken:
            self._free.setdefault(memory.numel(), []).append(memory)


def copied_ahead(batches: Iterator[Any], device: Any, pin_memory: bool = False) -> Iterator[Any]:
    """The batches with their tensors on `device`. Where it has streams, the next batch is copied on one
    of its own while the program computes; elsewhere each is copied as it is taken. `pin_memory`: by way of
    pinned memory, from which a device copies without holding up the thread."""
    if not tenon.runtime.capabilities(device).streams:
        yield from (map_tensors(lambda tensor: tensor.to(device), batch) for batch in batches)
        return
    stream = tenon.Stream(device)
    pool = PinnedPool(device) if pin_memory else None
    ahead: _Ahead | None = None
    try:
        for batch in batches:
            # A batch that was staged needs its own memory no more.
            source, taken = (batch, []) if pool is None else pool.staged(batch)
            with stream:
                moved = map_tensors(lambda tensor: tensor.to(device), source)
                event = stream.record()
            if ahead is not None:
                yield from ahead.given(pool)
            ahead = _Ahead(source, moved, event, taken)
        if ahead is not None:
            yield from ahead.given(pool)
    finally:
        stream.synchronize()


class _Ahead:
    """A batch that is being copied."""

    def __init__(self, source: Any, moved: Any, copied: Any, taken: list[Tensor]) -> None:
        self._source, self._moved, self._copied, self._taken = source, moved, copied, taken

    def given(self, pool: PinnedPool | None) -> Iterator[Any]:
        """The batch on the device. The host's memory under it is kept until it has been copied: another
        batch is written there afterwards."""
        self._copied.wait()
        yield self._moved
        self._copied.synchronize()
        if pool is not None:
            pool.give_back(self._taken)
