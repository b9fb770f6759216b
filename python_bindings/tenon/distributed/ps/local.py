# SPDX-License-Identifier: Apache-2.0
"""Servers and workers inside of one process, for programs that are tried out and for tests."""

from __future__ import annotations

import concurrent.futures
import os
import secrets
from collections.abc import Callable
from typing import Any

from .. import rpc
from ..store import LocalStore
from ..world import DEFAULT_TIMEOUT
from .job import Job, as_worker
from .server import LOG_LIMIT, Server


class LocalJob:
    """`workers` workers, which are threads, and `servers` servers. Use as a context.

    with ps.local(2, servers=2) as job:
        losses = job.run(train)
    """

    def __init__(
        self,
        workers: int,
        servers: int,
        folder: str | os.PathLike | None = None,
        timeout: float = 60.0,
        log_limit: int = LOG_LIMIT,
    ) -> None:
        self._workers, self._folder = workers, None if folder is None else os.fspath(folder)
        self._timeout, self._log_limit = timeout, log_limit
        self._store, self._secret = LocalStore(), secrets.token_bytes(16)
        self._name = secrets.token_hex(8)
        self.servers: list[Server] = []
        for index in range(servers):
            self.servers.append(self._start(index, servers))
        self.jobs = [
            Job(self._agent(f"worker{worker}", worker), worker, workers, servers, timeout)
            for worker in range(workers)
        ]

    def _agent(self, name: str, rank: int, is_announced: bool = True) -> rpc.Agent:
        return rpc.Agent(
            name,
            rank,
            self._store,
            self._secret,
            timeout=max(self._timeout, DEFAULT_TIMEOUT),  # a slow machine is no fault
            is_announced=is_announced,
        )

    def _start(self, index: int, servers: int) -> Server:
        made = Server(
            index,
            servers,
            self._workers,
            self._folder,
            timeout=self._timeout,
            log_limit=self._log_limit,
            job=self._name,
        )
        made.begin(self._agent(made.name, self._workers + index, False))
        return made

    def start_again(self, index: int) -> None:
        """End a server, between two calls, as a process that is killed ends; another one takes its place."""
        self.servers[index].end()
        self.servers[index] = self._start(index, len(self.servers))

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Call a function on all workers at a time; what one of them raises is raised."""

        def work(job: Job) -> Any:
            with as_worker(job):
                return function(*args, **kwargs)

        with concurrent.futures.ThreadPoolExecutor(max(1, self._workers)) as pool:
            futures = [pool.submit(work, job) for job in self.jobs]
            return [future.result() for future in futures]

    def close(self) -> None:
        for job in self.jobs:
            job.agent.close()
        for server in self.servers:
            server.end()

    def __enter__(self) -> LocalJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def local(
    workers: int = 1,
    *,
    servers: int = 1,
    folder: str | os.PathLike | None = None,
    timeout: float = 60.0,
) -> LocalJob:
    """A job of this process alone, whose workers are threads."""
    return LocalJob(workers, servers, folder, timeout)
