# SPDX-License-Identifier: Apache-2.0
"""Memory without a name that processes share. It is a memfd, which goes when the last process that maps it
ends, however it ends. It is reserved when it is made, so that a full memory is an error there and not a
SIGBUS when a page is touched, and it cannot be cut off."""

from __future__ import annotations

import fcntl
import os

from tenon import Tensor, _core


class NoMemoryError(Exception):
    """The system could not reserve `bytes`."""

    def __init__(self, bytes: int, reason: str) -> None:
        super().__init__(bytes, reason)
        self.bytes, self.reason = bytes, reason


def reserve(bytes: int) -> int:
    """The descriptor of `bytes` of new shared memory."""
    descriptor = os.memfd_create("tenon", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.posix_fallocate(descriptor, 0, bytes)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    except OSError as error:
        os.close(descriptor)
        raise NoMemoryError(bytes, os.strerror(error.errno or 0)) from None
    return descriptor


def map_and_close(descriptor: int, bytes: int) -> Tensor:
    """The memory as a uint8 tensor. Mappings are not limited as open files are."""
    try:
        return _core.map_shared_memory(descriptor, bytes)
    finally:
        os.close(descriptor)
