# SPDX-License-Identifier: Apache-2.0
"""Shared memory in which batches cross from a worker process to the program.

A slot is a memfd, whose descriptor crosses once and is closed on both sides. Slots are used again, so
that pages are zeroed and mapped once. In a slot lie the tensors and arrays of one batch, and a pickle
of everything else, in which they are named by dtype, shape and offset.
"""

from __future__ import annotations

import io
import mmap
import pickle
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import tenon
from tenon import Tensor, _core
from tenon.runtime.shared_memory import reserve

ALIGNMENT = 64
_LEAST_BYTES = 1 << 16


class Slot:
    """The worker's side of one slot."""

    def __init__(self, number: int, bytes: int) -> None:
        self.number, self.bytes = number, bytes
        self.descriptor = reserve(bytes)  # until it has been sent
        self.memory = memoryview(_core.map_shared_memory(self.descriptor, bytes))  # type: ignore[arg-type]
        self.address = tenon.frombuffer(self.memory).data_ptr()

    def offset_of(self, tensor: Tensor) -> int | None:
        """Where the tensor lies, if it lies here in row-major order."""
        offset = tensor.data_ptr() - self.address
        return offset if 0 <= offset < self.bytes and tensor.is_contiguous() else None


class Sent(NamedTuple):
    """A batch in a slot."""

    slot: Slot
    is_new: bool
    pickle_offset: int
    bytes: int  # of the slot that are used; the pickle comes last


class Arena:
    """The worker's slots, and the batch that is being written."""

    def __init__(self) -> None:
        self._free: list[Slot] = []
        self._busy: dict[int, Slot] = {}
        self._numbers = 0
        self._slot: Slot | None = None  # into which allocate() puts tensors
        self._used = 0

    def give_back(self, numbers: Sequence[int]) -> None:
        """Slots whose batches have died."""
        self._free += [self._busy.pop(number) for number in numbers]

    def begin(self) -> None:
        """Begin a batch in the largest free slot, if there is one."""
        self._slot = max(self._free, key=lambda slot: slot.bytes, default=None)
        self._used = 0

    def allocate(self, shape: Sequence[int], dtype: Any) -> Tensor | None:
        """A tensor in the slot; None if it has no room."""
        count = 1
        for extent in shape:
            count *= extent
        bytes = count * dtype.itemsize
        if self._slot is None or self._used + bytes > self._slot.bytes or not bytes:
            return None
        tensor = tenon.frombuffer(self._slot.memory, dtype, shape, self._used)
        self._used += _aligned(bytes)
        return tensor

    def write(self, batch: Any) -> Sent:
        """Put a batch into a slot, which is the program's until it is given back."""
        writer = _Writer(self._slot, self._used)
        writer.dump(batch)
        text = writer.file.getvalue()
        pickle_offset = writer.used
        bytes = pickle_offset + len(text)
        slot, is_new = self._slot, False
        if slot is None or slot.bytes < bytes:
            slot, is_new = self._new_slot(bytes), True
        else:
            self._free.remove(slot)
        self._busy[slot.number] = slot
        for value, offset, is_there in writer.leaves:
            if slot is self._slot and is_there:
                continue
            if isinstance(value, Tensor):
                target = tenon.frombuffer(slot.memory, value.dtype, value.shape, offset)
                target.copy_(value.detach())
            else:
                target = _array(slot.memory, value.dtype, value.shape, offset)
                target[...] = value
        slot.memory[pickle_offset:bytes] = text
        self._slot = None
        return Sent(slot, is_new, pickle_offset, bytes)

    def _new_slot(self, bytes: int) -> Slot:
        """A slot with some room to grow. It takes the place of a free one, which is too small."""
        number = self._free.pop().number if self._free else self._numbers
        self._numbers = max(self._numbers, number + 1)
        wanted = max(bytes + bytes // 4, _LEAST_BYTES)
        return Slot(number, -(-wanted // mmap.PAGESIZE) * mmap.PAGESIZE)


class _Writer(pickle.Pickler):
    """Pickles all but tensors and arrays, for which it finds offsets."""

    def __init__(self, slot: Slot | None, used: int) -> None:
        self.file = io.BytesIO()
        super().__init__(self.file, pickle.HIGHEST_PROTOCOL)
        self.leaves: list[tuple[Any, int, bool]] = []  # value, offset, whether it lies there
        self.used = _aligned(used)
        self._slot = slot

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if (
            kind is Tensor and value.layout == "strided"
        ):  # others are pickled, and their parts come here
            return "tensor", value.dtype.name, value.shape, self._place(value), value.requires_grad
        numpy = sys.modules.get("numpy")
        if numpy is not None and kind is numpy.ndarray and value.dtype.isbuiltin == 1:
            if not value.dtype.hasobject:
                return "array", value.dtype.str, value.shape, self._place(value)
        return None

    def _place(self, value: Any) -> int:
        is_there = False
        if isinstance(value, Tensor):
            if value.device.type != "cpu":
                raise TypeError(
                    f"DataLoader: expected tensors in host memory from a worker process, got one on "
                    f"{value.device}; let the dataset return host tensors and pass device= to the "
                    "DataLoader"
                )
            offset = self._slot.offset_of(value) if self._slot is not None else None
            if offset is not None:
                self.leaves.append((value, offset, True))
                return offset
        offset = self.used
        self.used += _aligned(value.nbytes)
        self.leaves.append((value, offset, is_there))
        return offset


class _Reader(pickle.Unpickler):
    """Makes tensors and arrays on `memory`, which lives as long as they do."""

    def __init__(self, memory: memoryview, pickle_offset: int, bytes: int) -> None:
        super().__init__(io.BytesIO(memory[pickle_offset:bytes]))
        self._memory = memory

    def persistent_load(self, description: Any) -> Any:
        if description[0] == "array":
            return _array(self._memory, *description[1:])
        _, dtype, shape, offset, requires_grad = description
        tensor = tenon.frombuffer(self._memory, dtype, shape, offset)
        return tensor.requires_grad_() if requires_grad else tensor


def read(memory: memoryview, pickle_offset: int, bytes: int) -> Any:
    """The batch in the first `bytes` of a slot; its tensors and arrays keep `memory`."""
    return _Reader(memory, pickle_offset, bytes).load()


def _array(memory: Any, dtype: Any, shape: Sequence[int], offset: int) -> Any:
    import numpy  # the process that sent an array has it

    count = 1
    for extent in shape:
        count *= extent
    return numpy.frombuffer(memory, dtype, count, offset).reshape(shape)


def _aligned(bytes: int) -> int:
    return -(-bytes // ALIGNMENT) * ALIGNMENT
