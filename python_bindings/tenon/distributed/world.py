# SPDX-License-Identifier: Apache-2.0
"""The group of all ranks of a job: how it is made, found and ended."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import traceback
from typing import Any

import tenon
from tenon import _core

from .environment import Environment, read_environment
from .group import ProcessGroup
from .host_group import FILE_STORE, LOCAL_STORE, NAMES, NO_SECRET, TCP_STORE, HostGroup
from .secret import job_secret

DEFAULT_TIMEOUT = 60.0
TRANSPORTS = {None: 0, "host": 0, "mpi": 1}  # TENON_TRANSPORT_* of the service, by backend
FIRST_FAILURE = "first-failure"  # a key of the launcher's store

_process_world: list[ProcessGroup] = []  # at most one
_thread_world = threading.local()  # of ranks that are threads: dist.local
_servers: list[_core.StoreServer] = []
_stores: list[_core.Store] = []  # of the launcher, which asks for the first failure
_times = 0


def init_process_group(
    backend: str | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    rank: int | None = None,
    world_size: int | None = None,
    store: _core.Store | None = None,
    name: str = "world",
) -> ProcessGroup:
    """Meet all other ranks of the job, and return the group of all of them, which calls without `group=` use.

    Who the ranks are is said by the variables of `tenon run`, torchrun, mpirun or srun; without any of them there is one
    rank. `rank`, `world_size` and `store`, all three, say it instead. `timeout`, in seconds, limits meeting and every
    wait without progress. `backend` says what moves the host's memory: None or "host", shared memory and TCP; "mpi",
    the library of the MPI that started the ranks. Tensors of devices that communicate by themselves do that in any case.
    """
    global _times
    if backend not in TRANSPORTS:
        raise NotImplementedError(
            f"init_process_group: expected backend None, 'host' or 'mpi', got {backend!r}; "
            + (
                "'host' does what Gloo does"
                if backend == "gloo"
                else "devices that communicate by themselves (NCCL, RCCL, HCCL, BKCL) need no name"
            )
        )
    if is_initialized():
        raise RuntimeError(
            "init_process_group: expected no group of all ranks, got one; call destroy_process_group() first"
        )
    given = [rank is not None, world_size is not None, store is not None]
    if any(given) and not all(given):
        raise ValueError("init_process_group: expected rank, world_size and store, or none of them")
    _times += 1
    if store is None:
        environment = read_environment()
        rank, world_size = environment.rank, environment.size
        store = open_store(environment, timeout)
        if environment.has_store:
            _stores[:] = [store]
        meeting = f"{name}/{environment.attempt}/{_times}"
    else:
        meeting = f"{name}/{_times}"
    assert rank is not None and world_size is not None
    if not 0 <= rank < world_size:
        raise ValueError(f"expected a rank from 0 to {world_size - 1}, got {rank}")
    world = _make_world(
        store, meeting, name, rank, world_size, timeout, transport=TRANSPORTS[backend]
    )
    _process_world.append(world)
    if _times == 1:
        _end_with_process()
    return world


def _make_world(
    store: _core.Store,
    meeting: str,
    name: str,
    rank: int,
    size: int,
    timeout: float,
    turn: Any = None,
    transport: int = 0,
) -> ProcessGroup:
    ranks = _core.RankGroup(store, meeting, rank, size, timeout, transport)
    return ProcessGroup(HostGroup(ranks, rank, size, turn), name, range(size), rank)


def open_store(environment: Environment, timeout: float) -> _core.Store:
    if environment.size == 1:
        return _core.Store(LOCAL_STORE, "", 0, NO_SECRET, timeout)
    if environment.folder is not None:
        os.makedirs(environment.folder, mode=0o700, exist_ok=True)
        return _core.Store(FILE_STORE, environment.folder, 0, NO_SECRET, timeout)
    assert environment.address is not None
    secret = environment.secret or job_secret()
    if environment.rank == 0 and not environment.has_store and not _servers:
        _servers.append(_core.StoreServer(environment.address, environment.port, secret))
    return _core.Store(TCP_STORE, environment.address, environment.port, secret, timeout)


def _end_with_process() -> None:
    """The end of this process is told to the other ranks, with the exception if that is why."""
    before = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        # A group that has ended says so on every rank by itself.
        if _process_world and not _has_ended(_process_world[0]):
            lines = traceback.extract_tb(trace)
            line = f" at {os.path.basename(lines[-1].filename)}:{lines[-1].lineno}" if lines else ""
            world = _process_world[0]
            text = f"rank {world.rank} ended with {kind.__name__}: {error}{line}"
            for store in _stores:
                with contextlib.suppress(Exception):  # the launcher is gone
                    store.compare_set(FIRST_FAILURE, b"", text.encode())
            world.abort(text)
        before(kind, error, trace)

    sys.excepthook = tell
    atexit.register(_leave)


def _has_ended(world: ProcessGroup) -> bool:
    return world._host is not None and world._host.ranks.failure()[0] != 0


def _leave() -> None:
    for world in _process_world:
        try:
            world.close()
        except Exception:  # another thread is inside a call, and the process ends
            world.abort(f"rank {world.rank} ended while another of its threads was in a call")
    _process_world.clear()
    for server in _servers:
        server.close()
    _servers.clear()


def is_initialized() -> bool:
    """Whether init_process_group has been called in this process, or, in tenon.distributed.local, for this rank."""
    return getattr(_thread_world, "group", None) is not None or bool(_process_world)


def world() -> ProcessGroup:
    """The group of all ranks."""
    own = getattr(_thread_world, "group", None)
    if own is not None:
        return own
    if not _process_world:
        raise RuntimeError(
            "expected a group of ranks, got none; call tenon.distributed.init_process_group() first"
        )
    return _process_world[0]


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group, by default that of all ranks. The other ranks are told."""
    if group is not None and group is not world():
        group.close()
        return
    world().close()
    if getattr(_thread_world, "group", None) is not None:
        _thread_world.group = None
    else:
        _process_world.clear()


def abort(text: str = "a rank called abort()") -> None:
    """End all groups on all ranks: every call that waits raises CollectiveAborted with this text."""
    world().abort(text)


def get_rank(group: ProcessGroup | None = None) -> int:
    """This rank, in `group` or among all."""
    return (group or world()).rank


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many ranks there are, in `group` or in all."""
    return (group or world()).size


def get_local_rank() -> int:
    """This rank among those of its machine: the index of its device."""
    return read_environment().local_rank


def new_group(ranks: list[int] | None = None, name: str | None = None) -> ProcessGroup | None:
    """A group of some of all ranks, by default of all. Every rank calls this, in the same order, with the same list;
    who is not in it gets None."""
    everyone = world()
    return everyone.part(range(everyone.size) if ranks is None else ranks, name)


def dump(group: ProcessGroup | None = None) -> dict[str, Any]:
    """What this rank did last, for people who look for the first difference between ranks: the last 2,048 calls of all
    groups, and what is known of the other ranks. Can be written as JSON."""
    group = group or world()

    def named(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "kind": NAMES[record["kind"]]} if record["sequence"] else {}

    peers = [{**peer, "last": named(peer["last"])} for peer in group.peers()]
    calls = [{**record, "kind": NAMES[record["kind"]]} for record in group.records()]
    return {
        "version": tenon.__version__,
        "rank": group.rank,
        "size": group.size,
        "calls": calls,
        "peers": peers,
        "counters": group.counters(),
    }
