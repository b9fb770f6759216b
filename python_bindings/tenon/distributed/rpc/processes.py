# SPDX-License-Identifier: Apache-2.0
"""The agent of this process: how it is made, used and ended."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any

from tenon import _core

from ..environment import read_environment
from ..secret import job_secret
from ..world import DEFAULT_TIMEOUT, open_store
from .agent import Agent, WorkerInfo
from .errors import RpcTimeout
from .references import RRef
from .reply import Reply

_agents: list[
    tuple[Agent, int, str]
] = []  # at most one, the number of processes, and the room of the store
_times = 0


def init_rpc(
    name: str,
    *,
    rank: int | None = None,
    world_size: int | None = None,
    store: _core.Store | None = None,
    address: str = "127.0.0.1",
    timeout: float = DEFAULT_TIMEOUT,
    pickles: bool = False,
    most_bytes: int = 1 << 32,
) -> None:
    """Let the job's other processes call this one by `name`, and this one call them.

    Who this is, and where processes meet, is said by the variables of `tenon run`, torchrun, mpirun or srun; `rank`,
    `world_size` and `store`, all three, say it instead, with the `address` by which others reach this machine. Others are met when they are first called. `timeout`, in seconds,
    limits every call that does not say another. `pickles=True` lets arguments be any object, and functions any that can
    be imported: a process that another one of the job can break into is then broken, too. `most_bytes` limits a message.
    """
    global _times
    if _agents:
        raise RuntimeError(
            "init_rpc: expected to be called once, got a second call; call rpc.shutdown() first"
        )
    given = [rank is not None, world_size is not None, store is not None]
    if any(given) and not all(given):
        raise ValueError("init_rpc: expected rank, world_size and store, or none of them")
    if not name or "/" in name or name.startswith("_"):
        raise ValueError(
            f"init_rpc: expected a name without '/', that does not begin with '_', got {name!r}"
        )
    _times += 1
    room = f"rpc/{_times}"
    if store is None:
        environment = read_environment()
        rank, world_size = environment.rank, environment.size
        store = open_store(environment, timeout)
        room = f"rpc/{environment.attempt}/{_times}"
        address = own_address(environment.address)
    assert rank is not None and world_size is not None
    if not 0 <= rank < world_size:
        raise ValueError(f"expected a rank from 0 to {world_size - 1}, got {rank}")
    agent = Agent(
        name,
        rank,
        store,
        job_secret(),
        address=address,
        timeout=timeout,
        pickles=pickles,
        most_bytes=most_bytes,
        room=room,
    )
    _agents.append((agent, world_size, room))


def own_address(master: str | None) -> str:
    """Of this machine, as those see it that reach `master`."""
    if master is None:
        return "127.0.0.1"
    family, kind, _, _, where = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(where)  # of datagrams: nothing is sent
        return str(probe.getsockname()[0])


def current_agent() -> Agent:
    if not _agents:
        raise RuntimeError("rpc: expected init_rpc() to be called first")
    return _agents[0][0]


def rpc_sync(
    to: str | WorkerInfo,
    function: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> Any:
    """Call a function that `to` has registered, given by itself or by its name, and return what it returns."""
    return rpc_async(to, function, args, kwargs, timeout).wait()


def rpc_async(
    to: str | WorkerInfo,
    function: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> Reply:
    """The same, begun: a Future, whose wait() returns the value or raises what went wrong."""
    return current_agent().call(_name(to), function, args, kwargs, timeout)


def remote(
    to: str | WorkerInfo,
    function: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> RRef:
    """Call a function there, and leave what it makes where it is."""
    return current_agent().remote(_name(to), function, args, kwargs, timeout)


def _name(to: str | WorkerInfo) -> str:
    return to.name if isinstance(to, WorkerInfo) else to


def get_worker_info(name: str | None = None, timeout: float | None = None) -> WorkerInfo:
    """Of this process, or of another one, which is waited for until it has called init_rpc()."""
    agent = current_agent()
    return agent.info if name is None else agent.worker(name, timeout)


def shutdown(graceful: bool = True, timeout: float | None = None) -> None:
    """Leave. A graceful one waits until all processes of the job have called it, so that none is called that has left."""
    agent, size, room = _agents[0] if _agents else (current_agent(), 0, "")
    limit = agent.timeout if timeout is None else timeout
    try:
        if graceful and size > 1:
            if agent.store.add(f"{room}/leaving", 1) >= size:
                agent.store.set(f"{room}/left", b"1")
            try:
                agent.store.get(f"{room}/left", limit)
            except TimeoutError:
                raise RpcTimeout(
                    f"shutdown: expected all {size} processes to call it within {limit:g} s; shutdown(graceful=False) "
                    "leaves at once"
                ) from None
    finally:
        agent.close()
        _agents.clear()
