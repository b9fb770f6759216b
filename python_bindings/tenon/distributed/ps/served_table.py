# SPDX-License-Identifier: Apache-2.0
"""A server's part of a table: who may read and write when, and what is on the disk before it is acknowledged.

Workers count their pushes, on each server from 0. A push that comes again, because its answer was lost, is known by its
number and acknowledged without being carried out twice; so are the other calls that change something.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor

from . import log as logs
from . import table_files
from .row_optimizer import Block, RowOptimizer, push
from .settings import Settings, check_change

_LOG, _SNAPSHOT = "log-", "snapshot-"


class ServedTable:
    def __init__(
        self,
        name: str,
        settings: Settings,
        server: int,
        servers: int,
        workers: int,
        folder: str | None,
        timeout: float,
        log_limit: int,
        job: str,
    ) -> None:
        self.name, self.settings = name, settings
        self._server, self._servers, self._workers = server, servers, workers
        self._folder, self._timeout, self._log_limit = folder, timeout, log_limit
        self._job = job  # of an earlier one in the same folder all workers have left
        self._optimizer = RowOptimizer(settings)
        self._width = settings.dim + self._optimizer.state_width
        self._cold = None
        if settings.hot_rows:
            if folder is None:
                raise ValueError(
                    "Table: expected servers with a folder, in which cold rows lie, where hot_rows is given"
                )
            self._cold = os.path.join(folder, "cold")
        self._table = self._make()
        self._clocks = [0] * workers  # pushes taken of each worker
        self._others = [0] * workers  # other changes that each worker ordered
        self._pending: dict[int, Block] = {}  # of mode sync: this round's
        self._left: set[int] = set()
        self._lost: set[int] = set()
        self._saved: list[Any] = ["", 0]  # the last save or load: its token, and the version then
        self._results: dict[int, Any] = {}  # of each worker's last other change
        self._changed = threading.Condition(threading.RLock())
        self._log: logs.Log | None = None
        self._number = 0  # of the log
        self._record = 0  # the last one
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
            self._recover(folder)

    def _make(self) -> Any:
        if self._cold is not None:
            os.makedirs(self._cold, exist_ok=True)
        return self.settings.make(
            self._optimizer.state_width, self._optimizer.initial_state, self._cold
        )

    # -- who takes part

    def attach(self, worker: int, settings: dict[str, Any]) -> list[int]:
        """The numbers of this worker's next push and of its next other change."""
        own = self.settings.words()
        differing = sorted(key for key in own if settings.get(key) != own[key])
        if differing:
            key = differing[0]
            raise ValueError(
                f"Table {self.name!r}: expected {key}={own[key]!r}, with which the table was made, got "
                f"{settings.get(key)!r} from worker {worker}"
            )
        with self._changed:
            self._require(worker)
            self._lost.discard(worker)
            if worker in self._left:
                self._left.discard(worker)
                self._write({"attach": worker, "job": self._job})
            self._changed.notify_all()
            return [self._clocks[worker], self._others[worker]]

    def detach(self, worker: int) -> None:
        with self._changed:
            self._require(worker)
            if worker not in self._left:
                self._left.add(worker)
                self._write({"detach": worker, "job": self._job})
            self._lost.discard(worker)
            self._finish_round()
            self._changed.notify_all()
        self._sync()

    def left(self) -> set[int]:
        """Workers that need the table no more."""
        return set(self._left)

    def lose(self, worker: int) -> None:
        """Its connection ended, without a word."""
        with self._changed:
            if worker not in self._left:
                self._lost.add(worker)
            self._changed.notify_all()

    def _require(self, worker: int) -> None:
        if not 0 <= worker < self._workers:
            raise ValueError(
                f"Table {self.name!r}: expected a worker below {self._workers}, got {worker}"
            )

    def _wait(self, is_done: Callable[[], bool], late: Callable[[], list[int]], what: str) -> None:
        """For other workers; `late` are those that are waited for."""
        deadline = time.monotonic() + self._timeout
        while not is_done():
            gone = sorted(self._lost.intersection(late()))
            if gone:
                raise RuntimeError(
                    f"Table {self.name!r}: worker {gone[0]} is gone, of which {what} was expected"
                )
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(
                    f"Table {self.name!r}: expected {what} of worker {', '.join(map(str, late()))} within {self._timeout:g} s, got none"
                )
            self._changed.wait(left)

    def _active(self) -> list[int]:
        return [worker for worker in range(self._workers) if worker not in self._left]

    def _waited_for(self, worker: int) -> list[int]:
        """Those whose push a worker's own push waits for."""
        return self._active() if self.settings.mode == "sync" else [worker]

    # -- reading

    def pull(self, worker: int, step: int, ids: Tensor) -> Tensor:
        """As rows are when this worker's pushes below `step` are in, and those of others as far as the mode says."""
        rows = tenon.empty([ids.numel(), self.settings.dim])
        with self._changed:
            self._require(worker)
            self._lost.discard(worker)  # it is there, by another connection
            # A worker reads what it pushed itself; in mode sync that is there when all have pushed.
            self._wait(
                lambda: self._clocks[worker] >= step,
                lambda: [w for w in self._waited_for(worker) if w not in self._pending],
                f"push {step - 1}",
            )
            if self.settings.staleness is not None:
                least = step - self.settings.staleness
                self._wait(
                    lambda: all(self._clocks[w] >= least for w in self._active()),
                    lambda: [w for w in self._active() if self._clocks[w] < least],
                    f"push {least - 1}",
                )
        self._table.pull(ids, rows)
        return rows

    # -- writing

    def push(
        self,
        worker: int,
        step: int,
        ids: Tensor,
        gradients: Tensor,
        shows: Tensor | None,
        clicks: Tensor | None,
    ) -> None:
        self.settings.check_push(ids, gradients, shows, clicks)
        block: Block = (ids, gradients, shows, clicks)
        with self._changed:
            self._require(worker)
            self._lost.discard(worker)
            self._in_order(worker, step, self._clocks[worker], "push")
            if step == self._clocks[worker]:
                if self.settings.mode == "sync":
                    self._pending[worker] = block
                    self._finish_round()
                    self._wait(
                        lambda: self._clocks[worker] > step,
                        lambda: [w for w in self._active() if w not in self._pending],
                        f"push {step}",
                    )
                else:
                    self._take([worker], [block], 1)
        self._sync()

    def _in_order(self, worker: int, number: int, expected: int, what: str) -> None:
        if number > expected:
            raise RuntimeError(
                f"Table {self.name!r}: expected {what} {expected} of worker {worker}, got {number}: server {self._server} has "
                "lost what it had acknowledged, as it was started again without its folder"
            )

    def _finish_round(self) -> None:
        if self._pending and self._pending.keys() >= set(self._active()):
            workers = sorted(self._pending)
            blocks = [self._pending[worker] for worker in workers]
            self._take(workers, blocks, len(blocks))

    def _take(self, workers: list[int], blocks: list[Block], divisor: int) -> None:
        self._write({"push": workers, "blocks": [list(block) for block in blocks]})
        self._apply(workers, blocks, divisor)
        self._changed.notify_all()
        if self._log is not None and self._log.bytes > self._log_limit:
            self._snapshot()

    def _apply(self, workers: list[int], blocks: list[Block], divisor: int) -> None:
        push(self._table, self._optimizer, self.settings.dim, blocks, float(divisor))
        for worker in workers:
            self._clocks[worker] += 1
            self._pending.pop(worker, None)

    # -- other changes

    def change(self, worker: int, number: int, what: str, arguments: list[Any]) -> Any:
        """day_end, shrink or load, ordered by one worker."""
        with self._changed:
            self._require(worker)
            self._in_order(worker, number, self._others[worker], what)
            if number == self._others[worker]:
                if what == "load":
                    self._load(*arguments)
                    self._others[worker] += 1
                    self._results[worker] = None
                    self._snapshot()
                else:
                    check_change(what, arguments)
                    self._write({"change": what, "worker": worker, "arguments": arguments})
                    self._change(worker, what, arguments)
            result = self._results.get(worker)
        self._sync()
        return result

    def _change(self, worker: int, what: str, arguments: list[Any]) -> None:
        result = None
        if what == "day_end":
            self._table.day_end()
        else:
            result = self._table.shrink(*arguments)
        self._others[worker] += 1
        self._results[worker] = result

    def save(self, folder: str, token: str, is_delta: bool) -> dict[str, Any]:
        with self._changed:
            before, since = self._saved if is_delta else ("", 0)
            if is_delta and not before:
                raise ValueError(
                    f"Table {self.name!r}: expected a save or a load before a delta, got none; save all first"
                )
            written = table_files.write_part_files(
                self._table, self._width, folder, token, self._server, since
            )
            counters = self._table.counters()
            return {
                "written": written,
                "base": before,
                "day": counters["day"],
                "version": counters["version"],
            }

    def saved(self, token: str, version: int) -> None:
        """What save() wrote is committed: the next delta follows it."""
        with self._changed:
            self._saved = [token, version]
            self._write({"saved": self._saved})
        self._sync()

    def _load(self, folder: str) -> None:
        reader = table_files.open_save(folder)
        values = reader.manifest.values
        base = values["base"]
        if base and base != self._saved[0]:
            raise ValueError(
                f"Table.load: expected the save that the delta {folder} follows to be loaded before, got "
                + ("none" if not self._saved[0] else "another one")
            )
        if not base:
            self._table = None  # its cold rows' folder is one table's at a time
            self._table = self._make()
        highest = table_files.read_into(
            self._table, reader, self._width, self._server, self._servers
        )
        version = max(highest, self._table.counters()["version"])
        self._table.set_version(version, values["day"])
        self._saved = [reader.manifest.token, version]

    def counters(self) -> dict[str, int]:
        return self._table.counters()

    # -- what survives

    def _write(self, content: dict[str, Any]) -> None:
        if self._log is not None:
            self._record = self._log.append(content)

    def _sync(self) -> None:
        log = self._log
        if log is not None:
            log.wait(min(self._record, log.written))

    def _recover(self, folder: str) -> None:
        """Begin where the server's last run ended: at its last snapshot, and what the log behind that has."""
        snapshots = sorted(
            int(n[len(_SNAPSHOT) :]) for n in os.listdir(folder) if n.startswith(_SNAPSHOT)
        )
        whole = [
            n
            for n in snapshots
            if os.path.exists(os.path.join(folder, f"{_SNAPSHOT}{n}", "manifest.json"))
        ]
        self._number = whole[-1] if whole else 0
        if whole:
            self._restore(os.path.join(folder, f"{_SNAPSHOT}{self._number}"))
        path = os.path.join(folder, f"{_LOG}{self._number}")
        if os.path.exists(path):
            for record in logs.read(path):
                self._replay(record)
        self._log = logs.Log(path)
        if self._log.bytes == 0:
            self._write({"table": self.name, "settings": self.settings.words()})
            self._log.wait_for_all()
        self._remove_old(folder)

    def _replay(self, record: dict[str, Any]) -> None:
        if "push" in record:
            divisor = len(record["blocks"]) if self.settings.mode == "sync" else 1
            self._apply(record["push"], [tuple(block) for block in record["blocks"]], divisor)
        elif "change" in record:
            self._change(record["worker"], record["change"], record["arguments"])
        elif record.get("job", self._job) != self._job:
            return
        elif "detach" in record:
            self._left.add(record["detach"])
        elif "attach" in record:
            self._left.discard(record["attach"])
        elif "saved" in record:
            self._saved = record["saved"]

    def _snapshot(self) -> None:
        """All of the table beside the log, which begins anew."""
        if self._folder is None or self._log is None:
            return
        number = self._number + 1
        folder = os.path.join(self._folder, f"{_SNAPSHOT}{number}")
        shutil.rmtree(folder, ignore_errors=True)
        token = table_files.new_token()
        written = table_files.write_part_files(self._table, self._width, folder, token, 0, 0)
        counters = self._table.counters()
        values = {
            "kind": "table",
            "name": self.name,
            "settings": self.settings.words(),
            "width": self._width,
            "base": "",
            "day": counters["day"],
            "version": counters["version"],
            "clocks": self._clocks,
            "others": self._others,
            "left": sorted(self._left),
            "job": self._job,
            "saved": self._saved,
        }
        table_files.commit(folder, token, 1, self._width, written, values)
        log = logs.Log(os.path.join(self._folder, f"{_LOG}{number}"))
        before, self._log, self._number, self._record = self._log, log, number, 0
        self._write({"table": self.name, "settings": self.settings.words()})
        before.finish()
        self._remove_old(self._folder)

    def _restore(self, folder: str) -> None:
        reader = table_files.open_save(folder)
        values = reader.manifest.values
        table_files.read_into(self._table, reader, self._width, 0, 1)
        self._table.set_version(values["version"], values["day"])
        self._clocks, self._others = list(values["clocks"]), list(values["others"])
        self._left = set(values["left"] if values["job"] == self._job else [])
        self._saved = list(values["saved"])

    def _remove_old(self, folder: str) -> None:
        for name in os.listdir(folder):
            for prefix in (_LOG, _SNAPSHOT):
                if name.startswith(prefix) and int(name[len(prefix) :]) != self._number:
                    path = os.path.join(folder, name)
                    if prefix == _LOG:
                        os.unlink(path)
                    else:
                        shutil.rmtree(path)


def known_tables(folder: str) -> dict[str, Settings]:
    """The tables of a server that ran before in this folder, by what their logs begin with."""
    found = {}
    for entry in sorted(os.scandir(folder), key=lambda e: e.name) if os.path.isdir(folder) else []:
        if not entry.is_dir():
            continue
        for name in sorted(os.listdir(entry.path), reverse=True):
            if name.startswith(_LOG):
                record = next(iter(logs.read(os.path.join(entry.path, name))), None)
                if record is not None:
                    found[record["table"]] = Settings.of(record["settings"])
    return found
