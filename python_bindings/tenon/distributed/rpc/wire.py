# SPDX-License-Identifier: Apache-2.0
"""Messages on a connection, and how both ends show that they know the job's secret before the first of them.

hello       8 bytes "TnRpc" and a version, 32 random bytes; then 32 bytes, the HMAC-SHA256 of the job's secret over
            the end that says it and both ends' random bytes
message     32 bytes (_HEAD), 8 bytes for the length of each frame, the text, the frames
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import PeerLost, ProtocolError

CALL, REPLY, ERROR, NOTE = 1, 2, 3, 4

_HELLO = b"TnRpc\x00\x01\x00"
_RANDOM = 32
_HEAD = struct.Struct("<4sBBHQQQ")  # mark, kind, 0, frames, call, bytes of text, bytes of frames
_MARK = b"TnRm"
_MOST_TEXT = 64 << 20
_MOST_FRAMES = 4096
_MOST_BUFFERS = 512  # of one system call
_SECONDS_OF_SILENCE = 15  # until a machine that is gone is known to be


@dataclass
class Message:
    kind: int
    call: int
    text: bytes
    frames: list[bytearray]


def greet(link: socket.socket, secret: bytes, is_caller: bool, timeout: float) -> None:
    """Raise unless the other end knows the secret, too. Neither learns it, and nothing can be said again later."""
    deadline = time.monotonic() + timeout
    link.settimeout(timeout)
    own = secrets.token_bytes(_RANDOM)
    link.sendall(_HELLO + own)
    said = _read(link, len(_HELLO) + _RANDOM, deadline)
    if said[: len(_HELLO)] != _HELLO:
        raise ProtocolError(
            "rpc: what is at the other end of a connection is no process of Tenon's rpc of this version"
        )
    other = bytes(said[len(_HELLO) :])
    link.sendall(_proof(secret, is_caller, own, other))
    proof = bytes(_read(link, 32, deadline))
    if not hmac.compare_digest(proof, _proof(secret, not is_caller, other, own)):
        raise ProtocolError(
            "rpc: the process at the other end of a connection does not know this job's secret; start both with "
            "`tenon run`, or export the same TENON_JOB_SECRET for all"
        )
    link.settimeout(None)


def _proof(secret: bytes, is_caller: bool, own: bytes, other: bytes) -> bytes:
    return hmac.new(
        secret, (b"caller" if is_caller else b"callee") + own + other, hashlib.sha256
    ).digest()


def prepare(link: socket.socket) -> None:
    """Small messages go at once, and a machine that is gone is noticed."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SECONDS_OF_SILENCE // 3)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _SECONDS_OF_SILENCE // 3)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SECONDS_OF_SILENCE * 1000)


def _read(link: socket.socket, count: int, deadline: float | None = None) -> bytearray:
    data = bytearray(count)
    view = memoryview(data)
    while view:
        if deadline is not None:  # for all, however few bytes come at a time
            link.settimeout(max(deadline - time.monotonic(), 1e-3))
        got = link.recv_into(view)
        if got == 0:
            raise PeerLost("the connection was closed")
        view = view[got:]
    return data


class Channel:
    """Messages both ways; any thread writes, one reads."""

    def __init__(self, link: socket.socket, most_bytes: int) -> None:
        self._link, self._most_bytes = link, most_bytes
        self._writing = threading.Lock()
        self.bytes_sent = 0
        self.bytes_received = 0

    def write(self, kind: int, call: int, text: bytes, frames: Sequence[memoryview] = ()) -> None:
        total = sum(frame.nbytes for frame in frames)
        self._check(len(text), len(frames), total, ValueError)
        head = _HEAD.pack(_MARK, kind, 0, len(frames), call, len(text), total)
        lengths = struct.pack(f"<{len(frames)}Q", *(frame.nbytes for frame in frames))
        buffers = [memoryview(head + lengths + text), *(frame for frame in frames if frame.nbytes)]
        with self._writing:
            self.bytes_sent += sum(buffer.nbytes for buffer in buffers)
            while buffers:
                sent = self._link.sendmsg(buffers[:_MOST_BUFFERS])
                while buffers and sent >= buffers[0].nbytes:
                    sent -= buffers.pop(0).nbytes
                if sent:
                    buffers[0] = buffers[0][sent:]

    def read(self) -> Message:
        head = _read(self._link, _HEAD.size)
        mark, kind, zero, count, call, text_bytes, total = _HEAD.unpack(head)
        if mark != _MARK or zero or not CALL <= kind <= NOTE:
            raise ProtocolError("rpc: what came on a connection is no message; it was closed")
        self._check(text_bytes, count, total, ProtocolError)
        lengths = struct.unpack(f"<{count}Q", _read(self._link, 8 * count))
        if sum(lengths) != total:
            raise ProtocolError("rpc: the frames of a message are not as long as its head says")
        text = bytes(_read(self._link, text_bytes))
        message = Message(kind, call, text, [_read(self._link, length) for length in lengths])
        self.bytes_received += _HEAD.size + 8 * count + text_bytes + total
        return message

    def _check(self, text: int, frames: int, total: int, error: type[Exception]) -> None:
        if text > _MOST_TEXT or frames > _MOST_FRAMES or total > self._most_bytes:
            raise error(
                f"rpc: expected a message of at most {_MOST_TEXT} bytes of text and {_MOST_FRAMES} tensors of together "
                f"{self._most_bytes} bytes, got {text}, {frames} and {total}; send it in parts"
            )

    def close(self) -> None:
        """Ends the thread that reads, too."""
        try:
            self._link.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is closed
            pass
        self._link.close()
