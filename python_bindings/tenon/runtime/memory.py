# SPDX-License-Identifier: Apache-2.0
"""Memory of a device: how much is used and cached, by which blocks, and since which call."""

import json

from tenon import _core
from tenon.runtime.memory_holders import holders
from tenon.runtime.memory_timeline import timeline

__all__ = ["holders", "pinned", "reset_peak", "snapshot", "stats", "timeline", "trim"]


def stats(device=None):
    """Bytes in use now and at most, reserved from the device, allocations, cache hits: a dict."""
    return json.loads(_core.memory_stats(device, False))


def snapshot(device=None):
    """The statistics, with every block that the allocator holds."""
    return json.loads(_core.memory_stats(device, True))


def pinned(shape, dtype=None, device=None):
    """A tensor of the host in memory that `device` copies from and to without a detour, uninitialised.

    Copies between it and the device may run while the program goes on: `x.to(device)` returns at once, and the
    numbers may be changed after `tenon.synchronize(device)`. On a device whose memory is the host's it is an ordinary
    tensor; one that has no pinned memory raises an error. Such memory is scarce and slow to get: keep it.
    """
    if device is None:
        raise ValueError(
            "pinned: expected the device that copies from it, as in pinned([4], device='cuda')"
        )
    return _core.pinned_empty(device, dtype or "float32", list(shape))


def trim(device=None):
    """Give cached memory back to the device. Returns how many bytes."""
    return _core.memory_trim(device)


def reset_peak(device=None):
    """Let the peak start again from what is in use now."""
    _core.memory_reset_peak(device)
