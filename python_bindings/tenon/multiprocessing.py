# SPDX-License-Identifier: Apache-2.0
"""The package `multiprocessing`, whose queues, pipes and spawned processes carry tensors in shared memory.

    import tenon.multiprocessing as mp

    queue = mp.Queue()
    queue.put(tensor)          # copied once, into memory that the receiver maps
    x = mp.share(tensor)       # a copy in shared memory: it crosses as it is, and both sides see changes

Importing this teaches pickles of multiprocessing how large tensors of the host's memory cross; others, and
those on devices, are pickled with their bytes. The memory is a memfd: it has no name, and goes when the last
process that maps it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import weakref
from multiprocessing import *  # noqa: F403
from multiprocessing import context, reduction
from typing import Any

import tenon
from tenon import Tensor
from tenon.runtime.shared_memory import NoMemoryError, map_and_close, reserve

__all__ = [*multiprocessing.__all__, "is_shared", "share"]  # type: ignore[attr-defined]

# Smaller tensors cross with their bytes: a descriptor is an open file until it is received, and processes
# have about a thousand of them.
_LEAST_BYTES = 1 << 20

_shared: dict[
    int, tuple[int, int]
] = {}  # address: bytes and descriptor of memory that share() made
_received: dict[int, int] = {}  # address: bytes of memory that came from another process


def share(tensor: Tensor) -> Tensor:
    """A copy of a tensor in shared memory. It crosses to other processes, views of it too, without a copy;
    a change in one process shows in all. Forked processes share it as well.

    Raises OutOfMemoryError if the system has no memory left, TypeError for a tensor of a device.
    """
    if tensor.device.type != "cpu":
        raise TypeError(
            f"share(): expected a tensor in host memory, got one on {tensor.device}; use "
            "tenon.runtime.ipc.share, or move it with .to('cpu')"
        )
    descriptor, bytes = _reserve(tensor)
    block = memoryview(map_and_close(os.dup(descriptor), bytes))  # type: ignore[arg-type]
    address = tenon.frombuffer(block).data_ptr()
    _shared[address] = bytes, descriptor
    weakref.finalize(block, _forget, address)
    copy = tenon.frombuffer(block, tensor.dtype, tensor.shape)
    copy.copy_(tensor.detach())
    return copy


def is_shared(tensor: Tensor) -> bool:
    """Whether the tensor lies in memory that share() made, or that came from another process."""
    address = tensor.data_ptr()
    sizes = _received | {start: bytes for start, (bytes, _) in _shared.items()}
    return any(start <= address < start + bytes for start, bytes in sizes.items())


def _forget(address: int) -> None:
    _, descriptor = _shared.pop(address)
    os.close(descriptor)


def _reserve(tensor: Tensor) -> tuple[int, int]:
    bytes = max(tensor.nbytes, 1)
    try:
        return reserve(bytes), bytes
    except NoMemoryError as error:
        raise tenon.OutOfMemoryError(
            f"share(): expected {bytes} bytes of shared memory, got none from the system "
            f"({error.reason}); share less, or free memory"
        ) from None


def _reduce(tensor: Tensor) -> Any:
    """How a tensor crosses. Called while an object is pickled for another process."""
    if tensor.device.type != "cpu":
        return tensor.__reduce__()
    address = tensor.data_ptr()
    for start, (bytes, descriptor) in _shared.items():
        if start <= address < start + bytes and tensor.is_contiguous():
            return _description(tensor, reduction.DupFd(descriptor), bytes, address - start)
    if tensor.nbytes < _LEAST_BYTES:
        return tensor.__reduce__()
    descriptor, bytes = _reserve(tensor)
    memory = memoryview(map_and_close(os.dup(descriptor), bytes))  # type: ignore[arg-type]
    tenon.frombuffer(memory, tensor.dtype, tensor.shape).copy_(tensor.detach())
    duplicate = reduction.DupFd(descriptor)
    if (process := context.get_spawning_popen()) is None:
        os.close(descriptor)  # the duplicate has its own
    else:
        weakref.finalize(process, os.close, descriptor)  # the process is started after this
    return _description(tensor, duplicate, bytes, 0)


def _description(tensor: Tensor, duplicate: Any, bytes: int, offset: int) -> tuple[Any, ...]:
    details = (tensor.dtype.name, tensor.shape, tensor.requires_grad)
    return _rebuild, (duplicate, bytes, offset, *details)


def _rebuild(
    duplicate: Any, bytes: int, offset: int, dtype: str, shape: Any, requires_grad: bool
) -> Tensor:
    block = memoryview(map_and_close(duplicate.detach(), bytes))  # type: ignore[arg-type]
    address = tenon.frombuffer(block).data_ptr()
    _received[address] = bytes
    weakref.finalize(block, _received.pop, address)
    tensor = tenon.frombuffer(block, dtype, shape, offset)
    return tensor.requires_grad_() if requires_grad else tensor


reduction.ForkingPickler.register(Tensor, _reduce)
