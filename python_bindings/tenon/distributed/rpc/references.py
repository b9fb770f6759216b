# SPDX-License-Identifier: Apache-2.0
"""Values that stay in the process that made them, and what others know of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .errors import RpcError
from .reply import Reply

if TYPE_CHECKING:
    from .agent import Agent


class RRef:
    """A value that `owner` keeps: what `remote` called there has made. It is kept until the RRef that remote() returned
    is gone; copies that were sent to other processes are valid as long."""

    def __init__(self, agent: Agent, owner: str, key: str, is_first: bool = False) -> None:
        self._agent, self._owner, self._key, self._is_first = agent, owner, key, is_first

    def owner(self) -> str:
        """The name of the process that keeps the value."""
        return self._owner

    def is_owner(self) -> bool:
        return self._owner == self._agent.name

    def local_value(self) -> Any:
        """The value itself, in its owner's process."""
        if not self.is_owner():
            raise RpcError(
                f"RRef: expected to be called on {self._owner}, which keeps the value, got {self._agent.name}; "
                "to_here() brings a copy"
            )
        return self._agent.kept.get(self._key)

    def to_here(self, timeout: float | None = None) -> Any:
        """A copy of the value, once it is there; raises what making it raised."""
        if self.is_owner():
            return self.local_value()
        return self._agent.call(self._owner, "_kept_value", (self._key,), {}, timeout).wait()

    def words(self) -> dict[str, str]:
        return {"$": "rref", "owner": self._owner, "key": self._key}

    def __repr__(self) -> str:
        return f"RRef(owner={self._owner!r}, key={self._key!r})"

    def __del__(self) -> None:
        if self._is_first:
            self._agent.let_go(self._owner, self._key)


class Kept:
    """What this process keeps for RRefs, by key."""

    def __init__(self) -> None:
        self._values: dict[str, Reply] = {}
        self._lock = threading.Lock()

    def begin(self, key: str, timeout: float) -> Reply:
        """In the order in which messages come, so that who asks for a value finds that it is on its way."""
        reply = Reply(
            timeout,
            lambda: RpcError(
                f"RRef: the call that makes {key} goes on for longer than {timeout:g} s"
            ),
        )
        with self._lock:
            self._values[key] = reply
        return reply

    def get(self, key: str) -> Any:
        with self._lock:
            reply = self._values.get(key)
        if reply is None:
            raise RpcError(
                f"RRef: {key} is kept no longer, as the RRef that remote() returned is gone"
            )
        return reply.wait()

    def drop(self, key: str) -> None:
        with self._lock:
            self._values.pop(key, None)

    def __len__(self) -> int:
        return len(self._values)
