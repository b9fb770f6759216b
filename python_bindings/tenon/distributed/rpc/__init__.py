# SPDX-License-Identifier: Apache-2.0
"""Calls of functions in other processes of the job, by name.

    @rpc.register
    def lookup(key): ...

    rpc.init_rpc("worker0")                       # tenon run -n 2 program.py
    rpc.rpc_sync("worker1", lookup, args=("x",))
    rpc.shutdown()

Arguments and results are values and tensors, and no code; both ends of a connection know the job's secret. Nothing is
encrypted: trusted networks only (docs/parameter_server.md).
"""

from .agent import Agent, WorkerInfo
from .errors import PeerLost, ProtocolError, RemoteError, RpcError, RpcTimeout
from .functions import register
from .processes import get_worker_info, init_rpc, remote, rpc_async, rpc_sync, shutdown
from .references import RRef
from .reply import Reply

__all__ = [
    "Agent",
    "PeerLost",
    "ProtocolError",
    "RRef",
    "RemoteError",
    "Reply",
    "RpcError",
    "RpcTimeout",
    "WorkerInfo",
    "get_worker_info",
    "init_rpc",
    "register",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]
