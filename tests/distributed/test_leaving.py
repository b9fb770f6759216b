# SPDX-License-Identifier: Apache-2.0
"""Ranks that leave, or are copied by fork, take nothing along that others still need."""

import socket
import struct
import threading
import time

import numpy as np
import pytest
import tenon.distributed as dist
from ranks import Processes
from tenon import _core
from tenon.distributed import host_group as host

HELLO_BYTES = 240  # the first words on a connection
DATA = 1  # its purpose, behind 8 bytes of magic and 32 of the token


class SlowData:
    """Stands before a listening rank and passes on what is sent to it: data later than signs of life."""

    def __init__(self, port, delay):
        self.port, self._to, self._delay = 0, port, delay
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            called = socket.create_connection(("127.0.0.1", self._to))
            hello = b""
            while len(hello) < HELLO_BYTES:
                hello += caller.recv(HELLO_BYTES - len(hello))
            called.sendall(hello)
            is_data = struct.unpack_from("<I", hello, 40)[0] == DATA
            for source, target, delay in (
                (caller, called, self._delay if is_data else 0.0),
                (called, caller, 0.0),
            ):
                threading.Thread(target=self._pass_on, args=(source, target, delay)).start()

    @staticmethod
    def _pass_on(source, target, delay):
        try:
            while piece := source.recv(1 << 16):
                time.sleep(delay)
                target.sendall(piece)
            time.sleep(delay)
            target.shutdown(socket.SHUT_WR)
        except OSError:  # the other side has left
            pass

    def close(self):
        self._listener.close()


def test_data_that_come_behind_the_news_that_their_sender_left(monkeypatch):
    monkeypatch.setenv("TENON_COLLECTIVES_TRANSPORT", "tcp")
    stores = [dist.LocalStore(), dist.LocalStore()]
    seen, errors = np.zeros(1000, "f4"), []

    def rank_0():
        group = _core.RankGroup(stores[0], "slow", 0, 2, 20.0)
        into = _core.asarray(seen)
        group.run_list(host.EXCHANGE, [], [(into, 1)], 0, "test:0")
        seen[:] = np.asarray(into)
        # What never comes is told as ever.
        with pytest.raises(dist.PeerFailed, match="rank 1 is gone: it left its groups"):
            group.run_list(host.EXCHANGE, [], [(into, 1)], 0, "test:0")
        group.close()

    def rank_1():
        group = _core.RankGroup(stores[1], "slow", 1, 2, 20.0)
        ones = _core.asarray(np.ones(1000, "f4"))
        group.run_list(host.EXCHANGE, [(ones, 0)], [], 0, "test:1")
        group.close()

    def guarded(rank):
        try:
            rank()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(rank,)) for rank in (rank_0, rank_1)]
    threads[0].start()
    stores[1].set("slow/token", stores[0].get("slow/token", 20.0))
    size, address, port, machine = stores[0].get("slow/rank/0", 20.0).decode().split()
    proxy = SlowData(int(port), 0.4)
    stores[1].set("slow/rank/0", f"{size} 127.0.0.1 {proxy.port} {machine}".encode())
    threads[1].start()
    for thread in threads:
        thread.join()
    proxy.close()
    assert not errors, errors
    assert (seen == 1).all() and address


def test_a_call_outlives_its_group():
    """close() ends what was started; its result, and what went wrong, are told afterwards."""
    store = dist.LocalStore()
    told = [None, None]

    def rank(number, counts, name):
        group = _core.RankGroup(store, name, number, 2, 20.0)
        x = _core.asarray(np.ones(counts[number], "f4"))
        work = group.start(host.ALL_REDUCE, x, x, 0, 0, "test:1")
        group.close()
        del group
        try:
            told[number] = work.wait(20.0), work.is_completed(), np.asarray(x).tolist()
        except dist.CollectiveError as error:
            told[number] = error

    def run(*arguments):
        threads = [threading.Thread(target=rank, args=(i, *arguments)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run((3, 3), "equal")
    assert told == [(True, True, [2.0] * 3)] * 2
    run((3, 4), "differing")
    for error in told:
        assert isinstance(error, dist.CollectiveMismatch)
        assert "rank 0 all_reduce(float32[3], sum) at test:1; rank 1 all_reduce(float32[4]" in str(
            error
        )


@pytest.mark.parametrize("transport", ["shared memory", "tcp"])
def test_a_forked_process_closes_nothing_twice_and_never_waits(transport):
    # The child of each rank has a copy of the group, of its thread that is not there, and of a call under way.
    program = """
        import tempfile
        dist.init_process_group(timeout=20)
        group = dist.world()
        group.all_reduce(tenon.ones([4]), async_op=True).wait()
        begun = group.all_reduce(tenon.ones([4]), async_op=True) if rank == 0 else None
        child = os.fork()
        if child == 0:
            # They take the descriptors that were given back, which must not be closed again.
            files = [tempfile.TemporaryFile("w", buffering=1) for _ in range(12)]
            if begun is not None:
                try:
                    begun.wait()
                except RuntimeError as error:
                    print(error, flush=True)
                del begun
            dist.destroy_process_group()
            for file in files:
                file.write("still open")
                file.close()
            print("child ends", flush=True)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        begun = begun or group.all_reduce(tenon.ones([4]), async_op=True)
        begun.wait()
        print(begun.result().tolist(), group.all_reduce(tenon.ones([2])).tolist())
    """
    with Processes(2, program, TENON_COLLECTIVES_TRANSPORT=transport) as processes:
        for rank, (output, errors) in enumerate(processes.finish()):
            assert "child ends\n" in output, errors
            assert output.endswith("[2.0, 2.0, 2.0, 2.0] [2.0, 2.0]\n"), errors
            assert errors == ""
            told = "this process was made by fork, and the call goes on in its parent"
            assert (told in output) == (rank == 0)
