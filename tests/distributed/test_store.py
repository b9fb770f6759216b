# SPDX-License-Identifier: Apache-2.0
"""Stores: of a process, in a folder, over TCP."""

import os
import socket
import threading
import time

import pytest
import tenon
import tenon.distributed as dist

SECRET = bytes(range(16))


@pytest.fixture(params=["local", "file", "tcp"])
def stores(request, tmp_path):
    """Two handles of one store."""
    if request.param == "local":
        store = dist.LocalStore()
        yield store, store
    elif request.param == "file":
        folder = tmp_path / "meet"
        folder.mkdir(mode=0o700)
        yield dist.FileStore(str(folder)), dist.FileStore(str(folder))
    else:
        server = dist.serve_store("127.0.0.1", 0, SECRET)
        yield tuple(dist.TcpStore("127.0.0.1", server.port, SECRET) for _ in range(2))
        server.close()


def test_values(stores):
    a, b = stores
    value = bytes(range(256)) * 40
    a.set("x/y z", value)
    assert b.get("x/y z", 1.0) == value
    a.set("empty", b"")
    assert b.get("empty", 1.0) == b""
    assert a.add("n", 3) == 3 and b.add("n", -5) == -2
    assert a.compare_set("c", b"", b"1") == b"1"
    assert b.compare_set("c", b"", b"2") == b"1"
    assert b.compare_set("c", b"1", b"2") == b"2" and a.get("c", 1.0) == b"2"
    assert a.delete("c") and not b.delete("c")
    with pytest.raises(ValueError, match='expected a number under "x/y z"'):
        b.add("x/y z", 1)


def test_waiting(stores):
    a, b = stores
    began = time.monotonic()
    with pytest.raises(TimeoutError, match='no rank has set "later" in time'):
        a.get("later", 0.2)
    assert 0.15 < time.monotonic() - began < 5
    thread = threading.Timer(0.2, lambda: b.set("later", b"now"))
    thread.start()
    a.wait(["later"], 10.0)
    assert a.get("later", 0.0) == b"now"
    thread.join()


def test_adding_from_many_threads(stores):
    def work():
        for _ in range(20):
            stores[0].add("n", 1)
            stores[1].add("n", 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].add("n", 0) == 160


def test_folders_of_others(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(ValueError, match="not a private folder of this user"):
        dist.FileStore(str(tmp_path))
    with pytest.raises(ValueError, match="does not exist"):
        dist.FileStore(str(tmp_path / "none"))


def test_who_does_not_know_the_secret():
    server = dist.serve_store("127.0.0.1", 0, SECRET)
    for guess in (None, bytes(16)):
        with pytest.raises(tenon.PolicyError, match="expects another secret"):
            dist.TcpStore("127.0.0.1", server.port, guess)
    server.close()


def test_hostile_bytes():
    server = dist.serve_store("127.0.0.1", 0, SECRET)
    hello = b"TNSTORE1" + SECRET
    for data in (
        b"GET / HTTP/1.1\r\n\r\n" * 4,
        hello[:5],
        hello + b"\xff" * 24,  # sizes beyond the limits
        hello + (1).to_bytes(4, "little") + (10).to_bytes(4, "little") + bytes(8),  # cut off
        hello + (77).to_bytes(4, "little") + bytes(20),  # an unknown request
        hello + (3).to_bytes(4, "little") + bytes(12) + b"\xff" * 8,  # contradicts itself
        os.urandom(4096),
    ):
        with socket.create_connection(("127.0.0.1", server.port)) as peer:
            peer.sendall(data)
            peer.settimeout(0.2)
            try:
                peer.recv(64)
            except OSError:
                pass
    store = dist.TcpStore("127.0.0.1", server.port, SECRET)
    store.set("x", b"1")
    assert store.get("x", 1.0) == b"1"
    server.close()


def test_a_server_that_is_gone():
    server = dist.serve_store("127.0.0.1", 0, SECRET)
    store = dist.TcpStore("127.0.0.1", server.port, SECRET)
    server.close()
    with pytest.raises(tenon.DeviceError, match="store: the connection is lost"):
        store.set("x", b"")
    with pytest.raises(TimeoutError, match="no server answered at 127.0.0.1"):
        dist.TcpStore("127.0.0.1", server.port, SECRET, timeout=0.1)
