# SPDX-License-Identifier: Apache-2.0
"""Who is a worker and who is a server, and how workers reach servers, also those that were started again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import rpc
from ..environment import read_environment
from ..rpc.processes import own_address
from ..secret import job_secret
from ..world import DEFAULT_TIMEOUT, open_store
from .server import LOG_LIMIT, Server

_RETRY = 0.05  # seconds


@dataclass(frozen=True)
class Role:
    """Of this process: `index` among the workers, or among the servers."""

    is_server: bool
    index: int
    workers: int
    servers: int


def read_role(variables: Mapping[str, str] | None = None) -> Role:
    """By the variables of `tenon run --servers`."""
    variables = os.environ if variables is None else variables
    try:
        servers, workers = int(variables["TENON_SERVERS"]), int(variables["TENON_WORKERS"])
        server = variables.get("TENON_SERVER")
        index = int(variables["RANK"] if server is None else server)
    except (KeyError, ValueError):
        raise RuntimeError(
            "expected a job with servers, got none in the variables of this process; start it with "
            "`tenon run -n 2 --servers 2 train.py`"
        ) from None
    return Role(server is not None, index, workers, servers)


class Job:
    """A worker's way to its servers."""

    def __init__(
        self, agent: rpc.Agent, worker: int, workers: int, servers: int, recovery: float = 60.0
    ) -> None:
        if servers < 1:
            raise ValueError(f"ps: expected one server or more, got {servers}")
        self.agent, self.worker, self.workers, self.servers = agent, worker, workers, servers
        self._recovery = recovery
        self._is_closed = False

    def begin(self, server: int, method: str, name: str, arguments: Sequence[Any]) -> rpc.Reply:
        to = f"server{server}"
        # Servers end waits by themselves, and say for whom they waited.
        limit = self.agent.timeout * 2
        return self.agent.call(to, "_ps", (method, name, list(arguments)), {}, limit)

    def call_all(
        self, method: str, name: str, arguments: Mapping[int, Sequence[Any]], again: Any = None
    ) -> list[Any]:
        """Call servers by number, all at a time. One that is lost is waited for and, after `again(server)`, called again."""
        replies: dict[int, rpc.Reply | None] = {}
        lost: dict[int, rpc.PeerLost] = {}
        values: dict[int, Any] = {}
        for server, given in arguments.items():
            try:
                replies[server] = self.begin(server, method, name, given)
            except rpc.PeerLost as error:
                lost[server] = error
        for server, reply in replies.items():
            try:
                values[server] = reply.wait() if reply is not None else None
            except rpc.PeerLost as error:
                lost[server] = error
        for server, loss in lost.items():
            given = arguments[server]
            values[server] = self._call_again(server, method, name, given, again, loss)
        return [values[server] for server in arguments]

    def _call_again(
        self,
        server: int,
        method: str,
        name: str,
        given: Sequence[Any],
        again: Any,
        error: rpc.PeerLost,
    ) -> Any:
        deadline = time.monotonic() + self._recovery
        while True:
            try:
                if again is not None:
                    again(server)
                return self.begin(server, method, name, given).wait()
            except rpc.PeerLost as now:
                if time.monotonic() > deadline:
                    raise rpc.PeerLost(
                        f"ps: server {server} is gone, and did not come back within {self._recovery:g} s: {now}"
                    ) from error
                time.sleep(_RETRY)

    def close(self) -> None:
        """This worker needs no server any more; they end when all workers have said so."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.call_all("leave", "", {server: [self.worker] for server in range(self.servers)})
        finally:
            self.agent.close()


_jobs: list[Job] = []  # of this process, at most one
_of_thread = threading.local()  # of workers that are threads: ps.local


@contextlib.contextmanager
def as_worker(job: Job) -> Iterator[None]:
    """Inside, this thread is that worker."""
    _of_thread.job = job
    try:
        yield
    finally:
        _of_thread.job = None


def is_server() -> bool:
    """Whether this process is to call serve(), and not init()."""
    return read_role().is_server


def init(*, timeout: float = DEFAULT_TIMEOUT, recovery: float = 60.0) -> Job:
    """Join a job with servers as a worker. `timeout`, in seconds, limits waits for other workers, `recovery` those for a
    server that is started again."""
    if _jobs:
        raise RuntimeError(
            "ps.init: expected to be called once, got a second call; call ps.close() first"
        )
    role = read_role()
    if role.is_server:
        raise RuntimeError("ps.init: expected a worker, got a server; servers call ps.serve()")
    agent = _agent(f"worker{role.index}", role.index, timeout)
    _jobs.append(Job(agent, role.index, role.workers, role.servers, recovery))
    return _jobs[0]


def current_job() -> Job:
    """This process's, or this thread's, way to the servers."""
    own = getattr(_of_thread, "job", None)
    if own is not None:
        return own
    if not _jobs:
        raise RuntimeError("ps: expected ps.init() to be called first")
    return _jobs[0]


def close() -> None:
    """Leave. Servers end when all workers have left."""
    own = getattr(_of_thread, "job", None)
    if own is not None:
        own.close()
    elif _jobs:
        _jobs.pop().close()


def serve(
    folder: str | os.PathLike | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    log_limit: int = LOG_LIMIT,
) -> None:
    """Be a server until all workers have left. What workers push is in `folder` before they know that it was taken; a
    server that is started again with the same folder goes on from there. Without one, rows are in memory alone."""
    role = read_role()
    if not role.is_server:
        raise RuntimeError("ps.serve: expected a server, got a worker; workers call ps.init()")
    path = None if folder is None else os.fspath(folder)
    server = Server(
        role.index,
        role.servers,
        role.workers,
        path,
        timeout=timeout,
        log_limit=log_limit,
        job=_job_name(),
    )
    server.begin(_agent(server.name, role.workers + role.index, timeout, False))
    try:
        server.wait()
    finally:
        server.end()


def _job_name() -> str:
    """Another one in each job: launchers choose a secret and a port."""
    environment = read_environment()
    told = f"{job_secret().hex()} {environment.address} {environment.port} {environment.attempt}"
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _agent(name: str, rank: int, timeout: float, is_announced: bool = True) -> rpc.Agent:
    environment = read_environment()
    return rpc.Agent(
        name,
        rank,
        open_store(environment, timeout),
        job_secret(),
        address=own_address(environment.address),
        timeout=timeout,
        room=f"ps/{environment.attempt}",
        is_announced=is_announced,
    )
