# SPDX-License-Identifier: Apache-2.0
"""Tensors in device memory, shared between processes of one machine without a copy.

    # one process                               # another
    handle = tenon.runtime.ipc.share(x)                 x = tenon.runtime.ipc.open(handle)
    connection.send_bytes(handle)

The process that shares keeps `x` alive until the others have dropped theirs. Processes do not wait for each other:
tell the other side when data are written (share() itself waits for work queued before).
"""

from __future__ import annotations

import base64
import json

from tenon import _core

__all__ = ["open", "share"]

_PREFIX = b"tenon-ipc/1 "


def share(tensor: _core.Tensor) -> bytes:
    """Bytes from which another process can open the tensor's memory. Raises NotImplementedError if
    the device's plugin has no `ipc` group."""
    handle, offset = _core.ipc_export(tensor)
    _core.synchronize(tensor.device)
    description = {
        "device": str(tensor.device),
        "dtype": tensor.dtype.name,
        "shape": tensor.shape,
        "strides": tensor.strides,
        "offset": offset,
        "handle": base64.b64encode(handle).decode(),
    }
    return _PREFIX + json.dumps(description).encode()


def open(handle: bytes, device: _core.device | str | None = None) -> _core.Tensor:
    """The tensor that another process shared, on the device of the same name or on `device`."""
    if not isinstance(handle, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"open(): expected the bytes that share() returned, got {type(handle).__name__}"
        )
    handle = bytes(handle)
    if not handle.startswith(_PREFIX):
        raise ValueError("open(): expected the bytes that share() returned, got other bytes")
    try:
        description = json.loads(handle[len(_PREFIX) :])
        raw = base64.b64decode(description["handle"], validate=True)
        arguments = [description[key] for key in ("dtype", "shape", "strides", "offset")]
        name = str(description["device"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("open(): the bytes were cut or changed on the way") from error
    return _core.ipc_open(name if device is None else device, raw, *arguments)
