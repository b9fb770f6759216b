# SPDX-License-Identifier: Apache-2.0
"""Bytes between the processes of one machine: every rank is connected to every other.

The meeting point is a private folder; rank r listens there under the name `r` and calls all ranks
below it. Who may enter the folder may join: it belongs to the user alone.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import stat
import struct
import tempfile
import time

from tenon import _core

_HELLO = struct.Struct("<8sii")
_MAGIC = b"TENONMSH"


def make_meeting_point():
    """A new folder to meet in; rank 0 removes it once all have met."""
    base = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="tenon-", dir=base if len(base) < 64 else "/tmp")  # of 108


class Mesh:
    """Connections of one rank to all others."""

    def __init__(self, folder, rank, size, timeout):
        self.rank, self.size, self._timeout = rank, size, timeout
        self._peers = {}
        self._aborted = False
        _check_folder(folder)
        deadline = time.monotonic() + timeout
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(os.path.join(folder, str(rank)))
                listener.listen(size)
                for other in range(rank):
                    self._peers[other] = _call(
                        os.path.join(folder, str(other)), rank, size, deadline
                    )
                while len(self._peers) < size - 1:
                    self._accept(listener, deadline)
            self._meet()
        except BaseException:
            self.close()
            raise
        finally:
            if rank == 0:
                shutil.rmtree(folder, ignore_errors=True)

    def _meet(self):
        """Wait until all ranks have come. Afterwards no rank needs the folder."""
        for peer in self._peers.values():
            peer.setblocking(False)
        self.barrier()

    def _accept(self, listener, deadline):
        listener.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            peer, _ = listener.accept()
        except TimeoutError:
            missing = sorted(set(range(self.size)) - {self.rank} - set(self._peers))
            raise TimeoutError(
                f"rank {self.rank} of {self.size} waited {self._timeout} s for ranks {missing}; "
                "every rank must make its communicator with the same id and size"
            ) from None
        peer.settimeout(10)
        magic, rank, size = _HELLO.unpack(_read_exactly(peer, _HELLO.size))
        if (
            magic != _MAGIC
            or size != self.size
            or not self.rank < rank < size
            or rank in self._peers
        ):
            peer.close()
            raise ValueError(
                f"rank {self.rank} of {self.size} was called by rank {rank} of {size}; ranks must be "
                "different and sizes equal"
            )
        self._peers[rank] = peer

    def exchange(self, to, out, source, into):
        """Send the buffer `out` to rank `to` and fill `into` from rank `source`, both at once, so that
        ranks cannot wait for each other in a circle. Either may be empty."""
        out, into = memoryview(out).cast("B"), memoryview(into).cast("B")
        deadline = time.monotonic() + self._timeout
        while out or into:
            poll = select.poll()
            if into:
                poll.register(self._peers[source], select.POLLIN)
            if out:
                both = select.POLLIN if into and source == to else 0
                poll.register(self._peers[to], select.POLLOUT | both)
            ready = poll.poll(1000)
            if self._aborted:
                raise RuntimeError("the communicator was aborted")
            if not ready and time.monotonic() > deadline:
                raise TimeoutError(
                    f"rank {self.rank} heard nothing for {self._timeout} s; it waits for ranks "
                    f"{sorted({to} if out else set()) + sorted({source} if into else set())}"
                )
            if ready:
                deadline = time.monotonic() + self._timeout
            if out:
                out = out[self._try(to, self._peers[to].send, out) or 0 :]
            if into:
                count = self._try(source, self._peers[source].recv_into, into)
                if count == 0:
                    raise self._lost(source)
                into = into[count or 0 :]

    def barrier(self):
        """Return when every rank has come here."""
        for step in range(1, self.size):
            to, source = (self.rank + step) % self.size, (self.rank - step) % self.size
            self.exchange(to, b"\0", source, bytearray(1))

    def _try(self, rank, call, buffer):
        """How many bytes were moved; None: it would block."""
        try:
            return call(buffer)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._lost(rank) from error

    def _lost(self, rank):
        if self._aborted:
            return RuntimeError("the communicator was aborted")
        return _core.DeviceError(
            f"rank {rank} is gone: it ended, closed its communicator or aborted"
        )

    def check(self):
        """Raise if this rank or another has left; wait for nothing."""
        if self._aborted:
            raise RuntimeError("the communicator was aborted")
        for rank, peer in self._peers.items():
            if self._try(rank, lambda _, peer=peer: len(peer.recv(1, socket.MSG_PEEK)), None) == 0:
                raise self._lost(rank)

    def abort(self):
        """From any thread: every call that waits fails, here and on the other ranks."""
        self._aborted = True
        for peer in self._peers.values():
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        for peer in self._peers.values():
            peer.close()
        self._peers = {}


def _check_folder(folder):
    try:
        status = os.stat(folder)
    except OSError:
        raise ValueError(
            f"the meeting point {folder} does not exist: it serves one communicator, and ranks on one "
            "machine; make a new id with create_id()"
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise ValueError(f"the meeting point {folder} is not a private folder of this user")


def _call(path, rank, size, deadline):
    while True:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            peer.connect(path)
            peer.sendall(_HELLO.pack(_MAGIC, rank, size))
            return peer
        except (FileNotFoundError, ConnectionRefusedError):
            peer.close()
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"rank {rank} of {size} waited for rank {os.path.basename(path)}; every rank must "
                    "make its communicator with the same id and size"
                ) from None
            time.sleep(0.01)
        except BaseException:
            peer.close()
            raise


def _read_exactly(peer, count):
    data = b""
    while len(data) < count:
        part = peer.recv(count - len(data))
        if not part:
            raise _core.DeviceError("a rank went away while it said hello")
        data += part
    return data
