# SPDX-License-Identifier: Apache-2.0
"""A connection with another process: the calls that wait for its answers, and the thread that reads them."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

from .errors import PeerLost, ProtocolError, RpcError
from .reply import Reply
from .values import Packed
from .wire import CALL, ERROR, NOTE, REPLY, Channel, Message

if TYPE_CHECKING:
    from .agent import Agent


class Connection:
    def __init__(self, link: socket.socket, name: str, most_bytes: int, agent: Agent) -> None:
        self.name = name  # of the other process; "" until it said so
        self.channel = Channel(link, most_bytes)
        self.is_open = True
        self._agent = agent
        self._waiting: dict[int, tuple[Reply, str]] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(
            target=self._read, name=f"rpc-{self._agent.name}-read", daemon=True
        ).start()

    def call(self, number: int, reply: Reply, label: str, packed: Packed) -> None:
        with self._lock:
            if not self.is_open:
                raise PeerLost(f"rpc: the connection to {self.name} has ended")
            self._waiting[number] = (reply, label)
        try:
            self.channel.write(CALL, number, packed.text, packed.frames)
        except OSError as error:
            self._end(PeerLost(f"rpc: the connection to {self.name} broke ({error})"))
        except BaseException:
            self.forget(number)
            raise

    def forget(self, number: int) -> None:
        with self._lock:
            self._waiting.pop(number, None)

    def note(self, packed: Packed) -> None:
        with contextlib.suppress(OSError):  # the thread that reads sees it, too
            self.channel.write(NOTE, 0, packed.text)

    def answer(self, number: int, packed: Packed) -> None:
        with contextlib.suppress(OSError):
            self.channel.write(REPLY, number, packed.text, packed.frames)

    def refuse(self, number: int, packed: Packed) -> None:
        with contextlib.suppress(OSError):
            self.channel.write(ERROR, number, packed.text)

    def _read(self) -> None:
        try:
            while True:
                message = self.channel.read()
                if message.kind in (CALL, NOTE):
                    self._agent.receive(self, message)
                else:
                    self._settle(message)
        except ProtocolError as error:
            self._end(error)
        except (OSError, PeerLost):
            self._end(
                PeerLost(
                    f"rpc: {self.name or 'a process'} has ended, or the connection to it broke"
                )
            )
        except MemoryError as error:
            self._end(ProtocolError(f"rpc: there is no memory for a message ({error})"))

    def _settle(self, message: Message) -> None:
        with self._lock:
            reply, label = self._waiting.pop(message.call, (None, ""))
        if reply is None:
            return  # it came too late
        try:
            value = self._agent.unpack(message)
        except RpcError as error:
            reply.set_exception(error)
            raise
        if message.kind == REPLY:
            reply.set_result(value)
        else:
            reply.set_exception(self._agent.remote_error(self.name, label, value))

    def _end(self, error: RpcError) -> None:
        with self._lock:
            if not self.is_open:
                return
            self.is_open = False
            waiting, self._waiting = self._waiting, {}
        self.channel.close()
        for reply, label in waiting.values():
            text = f"{error}, and whether it carried out {label} is not known"
            reply.set_exception(type(error)(text))
        self._agent.ended(self)

    def close(self) -> None:
        self._end(PeerLost(f"rpc: {self._agent.name} has called shutdown()"))
