# SPDX-License-Identifier: Apache-2.0
"""Small values under names, where ranks meet."""

from __future__ import annotations

from collections.abc import Iterable

from tenon import _core

from .host_group import FILE_STORE, LOCAL_STORE, NO_SECRET, TCP_STORE
from .secret import job_secret


class Store(_core.Store):
    """Keys are texts, values bytes. `set`, `get(key, timeout)`, which waits, `add(key, number)`, which gives the sum,
    `compare_set(key, expected, value)`, which gives the value that the key has then, and `delete`. Time limits are in
    seconds; TimeoutError names the key."""

    def wait(self, keys: Iterable[str], timeout: float) -> None:
        """Return when all keys are there."""
        for key in keys:
            self.get(key, timeout)


class LocalStore(Store):
    """Of this process: its threads share the object."""

    def __init__(self) -> None:
        super().__init__(LOCAL_STORE, "", 0, NO_SECRET, 60.0)


class FileStore(Store):
    """In a folder that exists, that only this user may enter, and that processes of one machine, or of a shared file
    system with locks, see."""

    def __init__(self, folder: str) -> None:
        super().__init__(FILE_STORE, folder, 0, NO_SECRET, 60.0)


class TcpStore(Store):
    """At a server, which serve_store started with the same 16 bytes as secret: by default those of the job."""

    def __init__(
        self, address: str, port: int, secret: bytes | None = None, timeout: float = 60.0
    ) -> None:
        super().__init__(TCP_STORE, address, port, secret or job_secret(), timeout)


def serve_store(
    address: str | None = None, port: int = 0, secret: bytes | None = None
) -> _core.StoreServer:
    """A server for stores, until `close()`; `.port` is the one that it listens on. Without an address it listens on all
    of this machine. A program that knows the secret may read and write; nothing is encrypted. Without a secret it is
    that of the job: of the variable TENON_JOB_SECRET, or of a file that only this user may read."""
    if secret is not None and not any(secret):
        raise ValueError(
            "serve_store: expected a secret of 16 random bytes, got zeros, which can be guessed; "
            "leave it out, or take secrets.token_bytes(16)"
        )
    return _core.StoreServer(address, port, secret or job_secret())
