# SPDX-License-Identifier: Apache-2.0
"""What ends a group of ranks. Whatever it is, it ends the group on every rank, with the same text."""

from tenon import _core

__all__ = [
    "CollectiveAborted",
    "CollectiveError",
    "CollectiveMismatch",
    "CollectiveTimeout",
    "PeerFailed",
]


class CollectiveError(RuntimeError):
    """A group has ended. Make a new one with the ranks that are left, or end the job."""


class CollectiveMismatch(CollectiveError, ValueError):
    """Ranks were in different calls: the text says which rank called what, and where."""


class PeerFailed(CollectiveError, _core.DeviceError):
    """A rank is dead, or left while others waited for it."""


class CollectiveAborted(CollectiveError):
    """A rank has ended the group: by abort(), by an exception that was not caught, or by an interrupt."""


class CollectiveTimeout(CollectiveError, TimeoutError):
    """A rank waited for longer than the time limit: the text says for whom, and where those are."""
