# SPDX-License-Identifier: Apache-2.0
"""Memory of a device: how much is used and cached, by which blocks, and since which call."""

import json

from tenon import _core
from tenon._memory_timeline import timeline

__all__ = ["reset_peak", "snapshot", "stats", "timeline", "trim"]


def stats(device=None):
    """Bytes in use now and at most, reserved from the device, allocations, cache hits: a dict."""
    return json.loads(_core.memory_stats(device, False))


def snapshot(device=None):
    """The statistics, with every block that the allocator holds."""
    return json.loads(_core.memory_stats(device, True))


def trim(device=None):
    """Give cached memory back to the device. Returns how many bytes."""
    return _core.memory_trim(device)


def reset_peak(device=None):
    """Let the peak start again from what is in use now."""
    _core.memory_reset_peak(device)
