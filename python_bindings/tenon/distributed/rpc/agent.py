# SPDX-License-Identifier: Apache-2.0
"""A process's end of all its calls: it listens, finds the others by name, sends calls and carries out theirs."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tenon import _core

from . import functions
from .connection import Connection
from .errors import PeerLost, ProtocolError, RemoteError, RpcError, RpcTimeout
from .references import Kept, RRef
from .reply import Reply
from .values import Packer, Unpacker
from .wire import NOTE, Message, greet, prepare

_GREETING = 10.0  # seconds for a stranger to show that it knows the secret
_PAUSE = 0.05  # seconds
_MOST_STRANGERS = 64  # at a time
_THREADS = 256  # of which those that wait for others cost little

_TALKS = (
    " calls another process, and a program does not: it would go on with what that answered while it was recorded; make "
    "programs of what comes before and behind it, and call it between them"
)

_called = threading.local()


@dataclass(frozen=True)
class WorkerInfo:
    """A process of the job: where it listens, and its rank among all that called init_rpc()."""

    name: str
    rank: int
    address: str
    port: int


class Agent:
    """What init_rpc() makes. Programs that are several processes in one, as tests are, make agents of their own."""

    def __init__(
        self,
        name: str,
        rank: int,
        store: _core.Store,
        secret: bytes,
        *,
        address: str = "127.0.0.1",
        timeout: float = 60.0,
        pickles: bool = False,
        most_bytes: int = 1 << 32,
        room: str = "rpc",
        is_announced: bool = True,
    ) -> None:
        self.name, self.rank, self.timeout, self.store = name, rank, timeout, store
        self._secret, self._most_bytes, self._room = secret, most_bytes, room
        self.kept = Kept()
        self._packer = Packer(pickles, lambda v: v.words() if isinstance(v, RRef) else None)
        self._unpacker = Unpacker(pickles, self._reference)
        self._pool = ThreadPoolExecutor(_THREADS, f"rpc-{name}")
        self._connections: dict[str, Connection] = {}
        self._connecting: dict[str, threading.Lock] = {}
        self._all: set[Connection] = set()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._strangers = threading.Semaphore(_MOST_STRANGERS)
        self._is_closed = False
        self._sent = self._received = 0  # on connections that are closed
        self.lost: list[
            Callable[[str], None]
        ] = []  # called with the name of a process that is gone
        self._listener = socket.create_server((address, 0), backlog=128)
        self.info = WorkerInfo(name, rank, address, self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name=f"rpc-{name}-accept", daemon=True).start()
        if is_announced:
            self.announce()

    # -- who is there

    def announce(self) -> None:
        """Let others find this process; what they may call has to be there by then."""
        key = f"{self._room}/{self.name}"
        own = json.dumps([self.name, self.rank, self.info.address, self.info.port]).encode()
        before = self.store.compare_set(key, b"", own)
        if before == own:
            return
        # A process that was started again takes the place of the one before, unless that is alive.
        with contextlib.suppress(OSError, RpcError):
            link = self._connect(_info(before), 2.0)
            link.close()
            self.close()
            raise ValueError(
                f"init_rpc: expected a name of its own for each process, got {self.name!r} twice"
            )
        self.store.set(key, own)

    def worker(self, name: str, timeout: float | None = None) -> WorkerInfo:
        """Where a process is; waits until it has called init_rpc()."""
        if name == self.name:
            return self.info
        limit = self.timeout if timeout is None else timeout
        try:
            return _info(self.store.get(f"{self._room}/{name}", limit))
        except TimeoutError:
            raise RpcTimeout(
                f"rpc: expected a process named {name!r} to call init_rpc() within {limit:g} s, got none"
            ) from None

    # -- calls of others

    def call(
        self,
        to: str,
        function: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        keep: str | None = None,
    ) -> Reply:
        """Begin a call. `keep`: the value stays there, under this key."""
        _core.record_effect("rpc", _TALKS)
        self._require_open()
        limit = self.timeout if timeout is None else float(timeout)
        name = function if isinstance(function, str) else functions.name_of(function)
        content: dict[str, Any] = {"args": list(args), "kwargs": dict(kwargs or {})}
        if name is None:
            content["callable"] = function  # a pickle, where both allow it
        else:
            content["function"] = name
        if keep is not None:
            content["keep"] = keep
        label = str(name or getattr(function, "__qualname__", repr(function)))
        number = next(self._numbers)
        connection: Connection | None = None

        def late() -> RpcError:
            if connection is not None:
                connection.forget(number)
            return RpcTimeout(
                f"rpc: expected an answer of {to} to {label} within {limit:g} s, got none; it is connected, and still at "
                "it or stopped"
            )

        reply = Reply(limit, late)
        if to == self.name:
            kept = self.kept.begin(keep, limit) if keep is not None else None
            self._pool.submit(self._run_here, reply, kept, content)
            return reply
        try:
            packed = self._packer.pack(content)
        except TypeError as error:
            if name is None:
                raise TypeError(
                    f"rpc: expected a function that was registered, got {label}; decorate it with @rpc.register in all "
                    "processes, or let all of them call init_rpc(pickles=True)"
                ) from None
            raise error
        connection = self._connection(to, limit)
        connection.call(number, reply, label, packed)
        return reply

    def let_go(self, owner: str, key: str) -> None:
        """Of an RRef that is gone: its owner keeps the value no longer. Nothing is waited for."""
        if self._is_closed:
            return
        if owner == self.name:
            self.kept.drop(key)
            return
        connection = self._connections.get(owner)
        if connection is not None:
            # Not here: this runs wherever an object is freed, perhaps amid another write.
            with contextlib.suppress(RuntimeError):  # the pool is closed
                self._pool.submit(connection.note, self._packer.pack({"drop": key}))

    def remote(self, to: str, function: Any, args: Any, kwargs: Any, timeout: float | None) -> RRef:
        key = f"{self.name}-{secrets.token_hex(8)}"
        reply = self.call(to, function, args, kwargs, timeout, keep=key)
        del reply  # to_here() tells how it ended
        return RRef(self, to, key, is_first=True)

    def _reference(self, words: dict[str, Any]) -> RRef:
        if (
            words.get("$") != "rref"
            or type(words.get("owner")) is not str
            or type(words.get("key")) is not str
        ):
            raise ProtocolError(f"rpc: {str(words.get('$'))!r:.40} is no kind of value")
        return RRef(self, words["owner"], words["key"])

    # -- connections

    def _connection(self, to: str, timeout: float) -> Connection:
        with self._lock:
            lock = self._connecting.setdefault(to, threading.Lock())
        with lock:
            known = self._connections.get(to)
            if known is not None and known.is_open:
                return known
            info = self.worker(to, timeout)
            try:
                link = self._connect(info, _GREETING)
            except (OSError, PeerLost) as error:
                raise PeerLost(
                    f"rpc: {to} does not answer at {info.address}:{info.port}: it has ended, or cannot be reached ({error})"
                ) from None
            connection = self._begin(link, to)
            connection.note(self._packer.pack({"name": self.name}))
            self._connections[to] = connection
            return connection

    def _connect(self, info: WorkerInfo, timeout: float) -> socket.socket:
        link = socket.create_connection((info.address, info.port), timeout)
        try:
            prepare(link)
            greet(link, self._secret, True, timeout)
        except BaseException:
            link.close()
            raise
        return link

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                if self._is_closed:
                    return
                time.sleep(_PAUSE)  # it was reset at once, or there are too many open files
                continue
            if not self._strangers.acquire(blocking=False):
                link.close()
                continue
            threading.Thread(target=self._meet, args=(link,), daemon=True).start()

    def _meet(self, link: socket.socket) -> None:
        try:
            prepare(link)
            greet(link, self._secret, False, _GREETING)
        except (OSError, RpcError):  # a stranger, whom nothing is told
            link.close()
            return
        finally:
            self._strangers.release()
        with contextlib.suppress(RpcError):  # it was closed meanwhile
            self._begin(link, "")

    def _begin(self, link: socket.socket, name: str) -> Connection:
        connection = Connection(link, name, self._most_bytes, self)
        with self._lock:
            self._require_open_or_close(link)
            self._all.add(connection)
        connection.start()
        return connection

    def _require_open_or_close(self, link: socket.socket) -> None:
        if self._is_closed:
            link.close()
            self._require_open()

    def unpack(self, message: Message) -> Any:
        return self._unpacker.unpack(message.text, message.frames)

    def ended(self, connection: Connection) -> None:
        """A connection is closed: by this end, or because the other process is gone."""
        with self._lock:
            self._all.discard(connection)
            self._sent += connection.channel.bytes_sent
            self._received += connection.channel.bytes_received
            is_closed = self._is_closed
        if connection.name and not is_closed:
            for tell in list(self.lost):
                tell(connection.name)

    # -- what others call

    def receive(self, connection: Connection, message: Message) -> None:
        """A call or a note came: on the thread that reads, which must not wait."""
        content = self.unpack(message)
        if type(content) is not dict:
            raise ProtocolError("rpc: a call is no object")
        if message.kind == NOTE:
            if "drop" in content:
                self.kept.drop(str(content["drop"]))
            elif type(content.get("name")) is str:
                connection.name = content["name"]
            return
        keep = content.get("keep")
        kept = self.kept.begin(str(keep), self.timeout) if keep is not None else None
        with contextlib.suppress(RuntimeError):  # closing
            self._pool.submit(self._answer, connection, message.call, kept, content)

    def _answer(
        self, connection: Connection, number: int, kept: Reply | None, content: dict[str, Any]
    ) -> None:
        try:
            value = self._run(content)
            if kept is not None:
                kept.set_result(value)
                value = None
            connection.answer(number, self._packer.pack(value))
        except BaseException as error:
            if kept is not None:
                kept.set_exception(error)
            connection.refuse(number, self._packer.pack(_told(error)))

    def _run_here(self, reply: Reply, kept: Reply | None, content: dict[str, Any]) -> None:
        label = content.get("function") or getattr(
            content.get("callable"), "__qualname__", "the function"
        )
        try:
            value = self._run(content)
            if kept is not None:
                kept.set_result(value)
                value = None
            reply.set_result(value)
        except BaseException as error:
            if kept is not None:
                kept.set_exception(error)
            reply.set_exception(self.remote_error(self.name, str(label), _told(error)))

    def _run(self, content: dict[str, Any]) -> Any:
        _called.agent = self
        args, kwargs = content.get("args"), content.get("kwargs")
        if type(args) is not list or type(kwargs) is not dict:
            raise ProtocolError("rpc: a call has no arguments")
        if "callable" in content:
            return content["callable"](*args, **kwargs)
        name = content.get("function")
        if name == "_kept_value":
            return self.kept.get(*args)
        function = functions.find(name) if type(name) is str else None
        if function is None:
            known = ", ".join(functions.names()[:20]) or "none"
            raise LookupError(
                f"rpc: expected a function that {self.name} has registered, got {name!r:.100}; registered are: {known}; "
                "decorate it with @rpc.register in a module that both import"
            )
        return function(*args, **kwargs)

    @staticmethod
    def remote_error(where: str, label: str, told: Any) -> RpcError:
        words = told if type(told) is dict else {}
        kind, text, trace = (str(words.get(key, "")) for key in ("kind", "text", "trace"))
        return RemoteError(where, label, kind or "an error", text, trace)

    # -- the end

    def counters(self) -> dict[str, int]:
        """Bytes of all messages, heads included."""
        with self._lock:
            channels = [connection.channel for connection in self._all]
            return {
                "bytes_sent": self._sent + sum(c.bytes_sent for c in channels),
                "bytes_received": self._received + sum(c.bytes_received for c in channels),
            }

    def _require_open(self) -> None:
        if self._is_closed:
            raise RpcError(f"rpc: {self.name} has called shutdown(); call init_rpc() again")

    def close(self) -> None:
        """Calls that wait raise; nothing is told to the others, who see that the connections end."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            connections = list(self._all)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in connections:
            connection.close()
        self._pool.shutdown(wait=False, cancel_futures=True)


def called_agent() -> Agent:
    """For a function that another process has called: the agent that carries it out."""
    return _called.agent


def _info(value: bytes) -> WorkerInfo:
    try:
        name, rank, address, port = json.loads(value)
        return WorkerInfo(str(name), int(rank), str(address), int(port))
    except (ValueError, TypeError):
        raise RpcError(
            "rpc: what the store has under the name of a process cannot be read"
        ) from None


def _told(error: BaseException) -> dict[str, str]:
    """Of an exception, for the process that called: frames of this package's own are left out."""
    here = os.path.dirname(__file__)
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if os.path.dirname(f.filename) != here
    ]
    lines = (
        ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    )
    lines += traceback.format_exception_only(type(error), error)
    return {"kind": type(error).__name__, "text": str(error), "trace": "".join(lines)[-20_000:]}
