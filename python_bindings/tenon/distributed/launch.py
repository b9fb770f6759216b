# SPDX-License-Identifier: Apache-2.0
"""The ranks of one machine as processes, from their start to the end of the last one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from tenon import _core

from .host_group import TCP_STORE
from .world import FIRST_FAILURE

# Ranks that see another one fail say so and end by themselves; who does not is asked to, and then made to.
_GRACE = 2.0
_GRACE_AFTER_SIGNAL = 5.0
_PR_SET_PDEATHSIG = 1


@dataclass
class Job:
    """What is started: `count` ranks on this machine, of those on `machines`, of which this is number `machine`."""

    command: Sequence[str]
    count: int
    machines: int = 1
    machine: int = 0
    address: str = "127.0.0.1"
    port: int = 0
    secret: bytes | None = None
    restarts: int = 0  # how often all ranks are started again when one has failed
    least: int | None = (
        None  # of ranks, of which there is one less at each restart; None: as many as before
    )
    servers: int = 0  # processes beside the ranks, which keep their tables (tenon.distributed.ps)


def run(job: Job) -> int:
    """Start all ranks, pass their output on, and wait; start all of them, or one less, again if one fails and restarts are left. The
    result is that of the rank that failed first, 128 and the signal if that ended it, or 0."""
    secret = job.secret or secrets.token_bytes(16)
    # The store lives here, so that no rank's end takes it along.
    server = None
    port = job.port
    if job.machine == 0:
        server = _core.StoreServer(job.address, port, secret)
        port = server.port
    attempt = 0
    while True:
        failed, is_ended_by_user = _run_once(job, port, secret, attempt)
        if failed is None:
            break
        text = _first_failure(job, port, secret, failed)
        if attempt >= job.restarts or is_ended_by_user:
            print(f"tenon run: {text}", file=sys.stderr)
            break
        attempt += 1
        before = job.count
        job.count = max(before - 1, min(before, job.least or before))
        ranks = "all ranks start" if job.count == before else f"{job.count} ranks start"
        print(
            f"tenon run: {text}; {ranks} again, restart {attempt} of {job.restarts}",
            file=sys.stderr,
            flush=True,
        )
    if server is not None:
        server.close()
    return 0 if failed is None else failed.code


def _run_once(job: Job, port: int, secret: bytes, attempt: int) -> tuple[_Rank | None, bool]:
    """The rank that failed first, and whether a signal that ends a job was passed on."""
    ranks = [_Rank(job, local_rank, port, secret, attempt) for local_rank in range(job.count)]
    servers = [_Server(job, index, port, secret, attempt) for index in range(job.servers)]
    started = [*servers, *ranks]
    seen: set[int] = set()
    try:
        with _forwarded(started, seen):
            for rank in started:
                rank.start()
            failed = _watch(ranks, servers, job.restarts)
    finally:
        for rank in started:
            rank.end()
    return failed, bool(seen & {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class _Rank:
    def __init__(self, job: Job, local_rank: int, port: int, secret: bytes, attempt: int) -> None:
        self.rank = job.machine * job.count + local_rank
        self._command = job.command
        size = job.machines * job.count
        self._prefix = f"[{self.rank}] " if size > 1 or job.servers else ""
        self._label = f"rank {self.rank}"
        self._environment = {
            **os.environ,
            "RANK": str(self.rank),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(job.count),
            "MASTER_ADDR": job.address,
            "MASTER_PORT": str(port),
            "PADDLE_TRAINER_ID": str(self.rank),
            "PADDLE_TRAINERS_NUM": str(size),
            "TENON_STORE": "launcher",
            "TENON_JOB_SECRET": secret.hex(),
            "TENON_ATTEMPT": str(attempt),
            "PYTHONUNBUFFERED": "1",
        }
        if job.servers:
            self._environment |= {
                "TENON_SERVERS": str(job.servers),
                "TENON_WORKERS": str(size),
                "TRAINING_ROLE": "TRAINER",
            }
        threads = max(1, len(os.sched_getaffinity(0)) // (job.count + job.servers))
        self._environment.setdefault("TENON_NUM_THREADS", str(threads))
        self.process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # signals of the terminal reach ranks once: through the launcher
            preexec_fn=_end_with_parent(),
        )
        for source, target in (
            (self.process.stdout, sys.stdout),
            (self.process.stderr, sys.stderr),
        ):
            reader = threading.Thread(target=self._pass_on, args=(source, target), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _pass_on(self, source: IO[bytes], target: Any) -> None:
        for line in source:
            text = line.decode("utf-8", "replace")
            with _output, contextlib.suppress(OSError, ValueError):  # the reader of it has left
                target.write(self._prefix + text + ("" if text.endswith("\n") else "\n"))
                target.flush()

    @property
    def code(self) -> int:
        """Of the process, which has ended."""
        assert self.process is not None
        code = self.process.returncode
        return code if code >= 0 else 128 - code

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def how(self) -> str:
        assert self.process is not None
        code = self.process.returncode
        if code >= 0:
            return f"{self._label} ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"{self._label} was ended by {name}"

    def send(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def end(self) -> None:
        """Whatever is left of the rank and of what it started."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for reader in self._readers:
            reader.join(2.0)


class _Server(_Rank):
    """A process that keeps tables. One that is killed is started again by itself, as its folder has what it took."""

    def __init__(self, job: Job, index: int, port: int, secret: bytes, attempt: int) -> None:
        super().__init__(job, index, port, secret, attempt)
        self._prefix = f"[server {index}] "
        self._label = f"server {index}"
        self._environment |= {
            "TENON_SERVER": str(index),
            "TRAINING_ROLE": "PSERVER",
            "RANK": "0",  # servers are no ranks
            "LOCAL_RANK": "0",
        }
        self.starts = 0

    def start(self) -> None:
        self.starts += 1
        super().start()


_output = threading.Lock()


def _end_with_parent() -> Callable[[], None]:
    """For the child: it is ended when the launcher is, however that ends."""
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def _forwarded(ranks: Sequence[_Rank], seen: set[int]) -> Any:
    def forward(number: int, _frame: Any) -> None:
        seen.add(number)
        for rank in ranks:
            rank.send(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    before = [(number, signal.signal(number, forward)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _watch(ranks: Sequence[_Rank], servers: Sequence[_Server], restarts: int) -> _Rank | None:
    """Returns when all ranks, and the servers behind them, have ended: the first one that failed, or None."""
    failed: _Rank | None = None
    signals = [(signal.SIGTERM, _GRACE), (signal.SIGKILL, _GRACE_AFTER_SIGNAL)]
    deadline = 0.0
    while True:
        waiting = [rank for rank in [*ranks, *servers] if not rank.has_ended()]
        if failed is None:
            are_running = any(not rank.has_ended() for rank in ranks)
            failed = next((rank for rank in ranks if rank.has_ended() and rank.code), None)
            if failed is None and are_running:
                failed = _start_again(servers, restarts)
            if failed is not None or are_running:
                deadline = time.monotonic() + _GRACE
        if not waiting:
            return failed
        if all(rank.has_ended() for rank in ranks) and signals and time.monotonic() > deadline:
            # Servers that no worker told that it left.
            number, _ = signals.pop(0)
            for server in servers:
                server.send(number)
            deadline = time.monotonic() + _GRACE_AFTER_SIGNAL
        elif failed is not None and time.monotonic() > deadline and signals:
            number, _ = signals.pop(0)
            for rank in waiting:
                rank.send(number)
            deadline = time.monotonic() + _GRACE_AFTER_SIGNAL
        time.sleep(0.02)


def _start_again(servers: Sequence[_Server], restarts: int) -> _Server | None:
    """Servers that failed while ranks go on; the result is one that may not be started again."""
    for server in servers:
        if not server.has_ended() or not server.code:
            continue
        if server.starts > restarts:
            return server
        text = f"tenon run: {server.how()}; it starts again, restart {server.starts} of {restarts}"
        print(text, file=sys.stderr, flush=True)
        server.end()
        server.start()
    return None


def _first_failure(job: Job, port: int, secret: bytes, failed: _Rank) -> str:
    """What the first rank that failed told the store; one that was killed told nothing."""
    with contextlib.suppress(Exception):
        store = _core.Store(TCP_STORE, job.address, port, secret, 1.0)
        told = store.get(FIRST_FAILURE, 0.0).decode()
        store.delete(FIRST_FAILURE)  # of this attempt
        return f"the first failure: {told}"
    return f"the first failure: {failed.how()}"
