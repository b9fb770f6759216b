# SPDX-License-Identifier: Apache-2.0
"""What a call of another process may end with, besides its value."""

from __future__ import annotations


class RpcError(RuntimeError):
    """A call has no value."""


class PeerLost(RpcError, ConnectionError):
    """The other process is not there, ended, or its connection broke; whether it carried out the call is not known."""


class RpcTimeout(RpcError, TimeoutError):
    """No answer within the time limit."""


class RemoteError(RpcError):
    """The function raised there. `kind` is the class's name, `remote_traceback` what Python printed of it."""

    def __init__(self, where: str, function: str, kind: str, text: str, trace: str) -> None:
        super().__init__(f"{function} raised {kind} on {where}: {text}\n\n{trace.rstrip()}")
        self.where, self.kind, self.remote_traceback = where, kind, trace


class ProtocolError(RpcError):
    """Bytes that no process of this job has sent: the connection is closed."""
