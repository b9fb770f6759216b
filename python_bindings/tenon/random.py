# SPDX-License-Identifier: Apache-2.0
"""The random state: each device counts through a stream of numbers given by one seed."""

from tenon import _core

__all__ = ["get_state", "manual_seed", "set_state"]

manual_seed = _core.manual_seed


def get_state(device=None):
    """Seed and position of a device's stream."""
    return _core.random_state(device)


def set_state(state, device=None):
    """Continue a device's stream from what get_state returned."""
    seed, offset = state
    _core.set_random_state(seed, offset, device)
