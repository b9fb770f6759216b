# SPDX-License-Identifier: Apache-2.0
"""A process that keeps rows: its tables, and what workers may call."""

from __future__ import annotations

import os
import threading
from typing import Any

from .. import rpc
from ..rpc.agent import called_agent
from .served_table import ServedTable, known_tables
from .settings import Settings, check_name

LOG_LIMIT = 256 << 20  # bytes, until a snapshot takes the place of the log

# Of this process, of which it usually is the only one.
_servers: dict[rpc.Agent, Server] = {}


class Server:
    """Number `index` of `servers`, for `workers` that are named worker0 and on. `job` is the same for a server that is
    started again while its workers go on, and another in their next job."""

    def __init__(
        self,
        index: int,
        servers: int,
        workers: int,
        folder: str | None = None,
        *,
        timeout: float = 60.0,
        log_limit: int = LOG_LIMIT,
        job: str = "",
    ) -> None:
        self.name = f"server{index}"
        self._index, self._count, self._workers = index, servers, workers
        self._timeout, self._log_limit, self._job = timeout, log_limit, job
        self._folder = None if folder is None else os.path.join(os.fspath(folder), self.name)
        self._tables: dict[str, ServedTable] = {}
        self._lock = threading.Lock()
        self._gone: set[int] = set()  # workers that have left
        self._connected: set[int] = set()
        self._all_gone = threading.Event()
        self._agent: rpc.Agent | None = None
        if self._folder is not None:
            for name, settings in known_tables(self._folder).items():
                self._make(name, settings)
        if self._tables:
            self._gone = set.intersection(*(table.left() for table in self._tables.values()))

    def begin(self, agent: rpc.Agent) -> None:
        """Take calls, by an agent that is not announced yet: what was there before is there again."""
        self._agent = agent
        agent.lost.append(self._lose)
        _servers[agent] = self
        agent.announce()

    def _make(self, name: str, settings: Settings) -> ServedTable:
        folder = None if self._folder is None else os.path.join(self._folder, name)
        table = ServedTable(
            name,
            settings,
            self._index,
            self._count,
            self._workers,
            folder,
            self._timeout,
            self._log_limit,
            self._job,
        )
        self._tables[name] = table
        return table

    def attach(self, name: str, worker: int, settings: dict[str, Any]) -> list[int]:
        check_name(name)
        with self._lock:
            table = self._tables.get(name) or self._make(name, Settings.of(settings))
            self._gone.discard(worker)
            self._connected.add(worker)
        return table.attach(worker, settings)

    def table(self, name: str) -> ServedTable:
        table = self._tables.get(name)
        if table is None:
            raise RuntimeError(
                f"{self.name} has no table {name!r}: it was started again without the folder of its tables"
            )
        return table

    def leave(self, worker: int) -> None:
        """A worker needs no table any more. The server ends when all have said so."""
        for table in list(self._tables.values()):
            table.detach(worker)
        with self._lock:
            self._gone.add(worker)
            self._connected.add(worker)

    def wait(self) -> None:
        """Until all workers have left, and know that this server knows it."""
        self._all_gone.wait()

    def _lose(self, name: str) -> None:
        digits = name.removeprefix("worker")
        if digits != name and digits.isdecimal():
            for table in list(self._tables.values()):
                table.lose(int(digits))
            with self._lock:
                self._connected.discard(int(digits))
                if len(self._gone) == self._workers and not self._connected:
                    self._all_gone.set()

    def end(self) -> None:
        if self._agent is not None:
            _servers.pop(self._agent, None)
            self._agent.close()


@rpc.register(name="_ps")
def answer(method: str, name: str, arguments: list[Any]) -> Any:
    """What workers call."""
    server = _servers.get(called_agent())
    if server is None:
        raise RuntimeError("this process serves no tables")
    if method == "attach":
        return server.attach(name, *arguments)
    if method == "leave":
        return server.leave(*arguments)
    if method not in ("pull", "push", "change", "save", "saved", "counters"):
        raise ValueError(f"{method!r:.40} is nothing that servers of tables do")
    return getattr(server.table(name), method)(*arguments)
