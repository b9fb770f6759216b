# SPDX-License-Identifier: Apache-2.0
"""Calls of other processes: what they carry, how they fail, and what strangers may send."""

import contextlib
import errno
import gc
import operator
import os
import socket
import threading

import pytest
import tenon
import tenon.distributed as dist
from ranks import Processes
from tenon.distributed import rpc
from tenon.distributed.rpc import wire

SECRET = bytes(range(1, 17))


@rpc.register
def echo(*args, **kwargs):
    return args, kwargs


@rpc.register
def fail(text):
    raise ValueError(text)


class Gate:
    """What a call waits at, so that tests need not sleep."""

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, value=None):
        self.entered.set()
        assert self.opened.wait(60)
        return value


class Both:
    """Two agents of this process."""

    def __init__(self, **settings):
        self.store = dist.LocalStore()
        self.a = rpc.Agent("a", 0, self.store, SECRET, **settings)
        self.b = rpc.Agent("b", 1, self.store, SECRET, **settings)

    def call(self, function, *args, timeout=30.0, **kwargs):
        return self.a.call("b", function, args, kwargs, timeout).wait()


@pytest.fixture
def both():
    made = Both()
    yield made
    made.a.close()
    made.b.close()


VALUES = [
    None,
    True,
    -(1 << 80),
    0.1,
    float("inf"),
    "ä\ud800$",
    b"\x00\xff",
    [1, (2, [3.5])],
    {"x": {1: "one", None: ()}, "$": 4},
    tenon.bfloat16,
]


def test_values_arrive_as_they_were_sent(both):
    args, kwargs = both.call("echo", *VALUES, key={"$": [b""]})
    assert args == tuple(VALUES) and kwargs == {"key": {"$": [b""]}}
    assert [type(a) for a in args] == [type(v) for v in VALUES]


def test_tensors_travel_as_their_bytes(both):
    x = tenon.arange(6).reshape([2, 3]).to(tenon.float32)
    sent = [
        x,
        x.t(),
        x.to(tenon.bfloat16),
        tenon.empty([0, 3]),
        tenon.tensor(True),
        tenon.tensor(3),
    ]
    (received,), _ = both.call("echo", sent)
    for before, after in zip(sent, received, strict=True):
        assert after.dtype == before.dtype and tuple(after.shape) == tuple(before.shape)
        assert after.tolist() == before.tolist()
    received[0] += 1  # memory of its own
    assert x[0, 0].item() == 0
    counters = both.a.counters()
    assert counters["bytes_sent"] > 6 * 4 and counters == {
        "bytes_sent": both.b.counters()["bytes_received"],
        "bytes_received": both.b.counters()["bytes_sent"],
    }


def test_what_cannot_be_sent_is_refused_by_name(both):
    with pytest.raises(
        TypeError, match="expected numbers, texts.*got object; send what it consists of"
    ):
        both.call("echo", object())
    with pytest.raises(ValueError, match="requires no gradient.*send x.detach"):
        both.call("echo", tenon.ones([1], requires_grad=True))
    with pytest.raises(
        TypeError, match="expected a function that was registered, got VALUES|got .*lambda"
    ):
        both.call(lambda: 1)
    assert both.call(echo, 1) == ((1,), {})  # the connection is as it was


def test_an_exception_comes_back_with_its_traceback(both):
    with pytest.raises(rpc.RemoteError) as caught:
        both.call(fail, "no such key")
    error = caught.value
    assert (error.where, error.kind) == ("b", "ValueError")
    assert str(error).startswith("fail raised ValueError on b: no such key\n\nTraceback")
    assert (
        "raise ValueError(text)" in error.remote_traceback
        and "test_rpc.py" in error.remote_traceback
    )
    assert "agent.py" not in error.remote_traceback
    with pytest.raises(rpc.RemoteError, match="fail raised ValueError on a: here"):
        both.a.call("a", fail, ("here",)).wait()


def test_an_unknown_function_is_told_with_those_that_are_known(both):
    with pytest.raises(
        rpc.RemoteError,
        match="a function that b has registered, got 'nothing'; registered are: .*echo",
    ):
        both.call("nothing")


def test_one_name_is_one_function():
    with pytest.raises(
        ValueError, match="expected a name of its own, got 'echo' for two functions"
    ):
        rpc.register(name="echo")(max)
    with pytest.raises(TypeError, match="expected a function or a class, got int"):
        rpc.register(3)


def test_calls_overlap_and_each_has_its_own_answer(both):
    gate = Gate()
    rpc.register(name="gate of overlap")(gate)
    slow = both.a.call("b", "gate of overlap", ("late",))
    assert gate.entered.wait(60) and not slow.done()
    assert both.call("echo", 1) == ((1,), {})
    doubled = slow.then(lambda reply: reply.value() * 2)
    gate.opened.set()
    assert doubled.wait() == "latelate" and slow.done()


def test_a_call_that_takes_too_long_is_an_error_and_its_answer_is_dropped(both):
    gate = Gate()
    rpc.register(name="gate of time")(gate)
    with pytest.raises(
        rpc.RpcTimeout, match="expected an answer of b to gate of time within 0 s, got none"
    ):
        both.call("gate of time", timeout=0.0)
    gate.opened.set()
    assert both.call("echo", 2) == ((2,), {})


def test_a_process_that_ends_ends_the_calls_that_wait_for_it(both):
    gate = Gate()
    rpc.register(name="gate of the end")(gate)
    lost = threading.Event()
    both.b.lost.append(lambda name: lost.set() if name == "a" else None)
    reply = both.a.call("b", "gate of the end")
    assert gate.entered.wait(60)
    both.b.close()
    with pytest.raises(
        rpc.PeerLost, match="b has ended.*whether it carried out gate of the end is not known"
    ):
        reply.wait()
    gate.opened.set()
    with pytest.raises(rpc.PeerLost, match="b does not answer at 127.0.0.1:"):
        both.call("echo")
    # One that is started again under the name is found.
    both.b = rpc.Agent("b", 1, both.store, SECRET)
    assert both.call("echo", 3) == ((3,), {})
    both.a.close()
    with pytest.raises(rpc.RpcError, match="a has called shutdown"):
        both.call("echo")


def test_a_process_that_goes_away_is_told_to_who_wants_to_know(both):
    lost = threading.Event()
    both.b.lost.append(lambda name: lost.set() if name == "a" else None)
    both.call("echo")
    both.a.close()
    assert lost.wait(60)


def test_a_name_belongs_to_one_process_that_is_alive(both):
    with pytest.raises(
        ValueError, match="expected a name of its own for each process, got 'b' twice"
    ):
        rpc.Agent("b", 2, both.store, SECRET)
    with pytest.raises(rpc.RpcTimeout, match="expected a process named 'c' to call init_rpc"):
        both.a.call("c", "echo", (), {}, 0.0)


def test_a_process_is_found_when_it_says_so(both):
    late = rpc.Agent("c", 2, both.store, SECRET, is_announced=False)
    try:
        with pytest.raises(rpc.RpcTimeout, match="expected a process named 'c'"):
            both.a.call("c", "echo", (), {}, 0.0)
        late.announce()
        assert both.a.call("c", "echo", (7,)).wait() == ((7,), {})
    finally:
        late.close()


def test_references_stay_where_they_are_until_they_are_let_go(both):
    made = both.a.remote("b", "echo", ("kept",), {}, None)
    assert made.to_here() == (("kept",), {}) and made.owner() == "b" and not made.is_owner()
    with pytest.raises(
        rpc.RpcError, match="expected to be called on b, which keeps the value, got a"
    ):
        made.local_value()
    (again,), _ = both.call("echo", made)  # a copy, of the same value
    assert again.to_here() == (("kept",), {}) and len(both.b.kept) == 1
    failed = both.a.remote("b", fail, ("kept error",), {}, None)
    with pytest.raises(rpc.RemoteError, match="kept error"):
        failed.to_here()
    key = made._key
    both.b.kept.drop(key)
    with pytest.raises(rpc.RemoteError, match="is kept no longer"):
        again.to_here()
    del made, again, failed
    gc.collect()


def test_pickles_travel_where_both_processes_say_so(both):
    trusting = Both(pickles=True)
    try:
        assert trusting.call(os.path.join, "x", "y") == "x/y"
        assert trusting.call("echo", {1, 2})[0] == ({1, 2},)
        # One that does not closes the connection.
        trusting.b.close()
        trusting.b = rpc.Agent("b", 1, trusting.store, SECRET)
        with pytest.raises(rpc.PeerLost, match="b has ended, or the connection to it broke"):
            trusting.call("echo", {1, 2})
    finally:
        trusting.a.close()
        trusting.b.close()


class Opened:
    def __reduce__(self):
        return operator.truediv, (1, 0)


def test_a_pickle_that_raises_ends_its_connection(both):
    trusting = Both(pickles=True)
    try:
        with pytest.raises(rpc.PeerLost, match="b has ended, or the connection to it broke"):
            trusting.call("echo", Opened(), timeout=20.0)
        assert trusting.call("echo", {1, 2})[0] == ({1, 2},)
    finally:
        trusting.a.close()
        trusting.b.close()


def test_a_listener_outlives_connections_that_cannot_be_taken(monkeypatch):
    accept, errors = (
        socket.socket.accept,
        [OSError(errno.ECONNABORTED, "reset"), OSError(errno.EMFILE, "files")],
    )

    def flaky(listener):
        if errors:
            raise errors.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", flaky)
    made = Both()
    try:
        assert made.call("echo", 1) == ((1,), {})
    finally:
        made.a.close()
        made.b.close()


# -- strangers


def test_a_greeting_is_as_long_as_it_may_be_however_slowly_it_comes():
    here, there = socket.socketpair()
    with here, there:
        is_over = threading.Event()

        def drip():
            while not is_over.wait(0.02):
                with contextlib.suppress(OSError):
                    there.send(b"T")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(TimeoutError):
                wire.greet(here, SECRET, False, 0.2)
        finally:
            is_over.set()
            thread.join()


def connected(agent):
    link = socket.create_connection((agent.info.address, agent.info.port), 30)
    link.settimeout(30)
    return link


def test_who_does_not_know_the_secret_learns_nothing(both):
    with connected(both.b) as link, pytest.raises(rpc.RpcError):
        wire.greet(link, b"x" * 16, True, 30)
    stranger = rpc.Agent("c", 2, both.store, b"y" * 16)
    try:
        with pytest.raises(rpc.RpcError, match="does not know this job's secret|does not answer"):
            stranger.call("b", "echo").wait()
    finally:
        stranger.close()
    assert both.call("echo", 4) == ((4,), {})


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HTTP/1.1\r\n\r\n" + b"x" * 64, os.urandom(40)],
    ids=["nothing", "http", "noise"],
)
def test_strangers_disturb_nobody(both, said):
    with connected(both.b) as link:
        link.sendall(said)
        assert both.call("echo", 5) == ((5,), {})
        if said:
            with contextlib.suppress(ConnectionResetError):
                while link.recv(4096):
                    pass  # it is closed


def test_a_proof_is_no_proof_of_the_other_end(both):
    """A stranger that sends back what it got knows no secret."""
    with connected(both.b) as link:
        hello = link.recv(40, socket.MSG_WAITALL)
        link.sendall(hello)
        link.sendall(link.recv(32, socket.MSG_WAITALL))
        with contextlib.suppress(ConnectionResetError):
            assert link.recv(1) == b""


def head(kind=wire.CALL, frames=0, text=0, total=0, mark=b"TnRm", zero=0):
    return wire._HEAD.pack(mark, kind, zero, frames, 7, text, total)


def with_text(text, frames=()):
    lengths = b"".join(len(f).to_bytes(8, "little") for f in frames)
    return (
        head(1, len(frames), len(text), sum(map(len, frames))) + lengths + text + b"".join(frames)
    )


HOSTILE = {
    "mark": head(mark=b"TnRx"),
    "kind": head(kind=9),
    "flags": head(zero=1),
    "text of an exabyte": head(text=1 << 60),
    "frames of an exabyte": head(frames=1, total=1 << 60) + (1 << 60).to_bytes(8, "little"),
    "many frames": head(frames=65535),
    "lengths that do not add up": head(frames=2, total=8) + (1 << 63).to_bytes(8, "little") * 2,
    "no JSON": with_text(b"{"),
    "no UTF-8": with_text(b"\xff\xfe"),
    "no object": with_text(b"[]"),
    "deep": with_text(b"[" * 100_000 + b"]" * 100_000),
    "unknown value": with_text(b'{"args":[{"$":"code"}]}'),
    "frame that is not there": with_text(b'{"args":[{"$":"bytes","frame":0}]}'),
    "frame before the first": with_text(b'{"args":[{"$":"bytes","frame":-1}]}', [b"x"]),
    "shape": with_text(
        b'{"args":[{"$":"tensor","frame":0,"dtype":"float32","shape":[1099511627776,4]}]}',
        [b"1234"],
    ),
    "negative shape": with_text(
        b'{"args":[{"$":"tensor","frame":0,"dtype":"float32","shape":[-1,-1]}]}', [b"1234"]
    ),
    "dtype": with_text(
        b'{"args":[{"$":"tensor","frame":0,"dtype":"__init__","shape":[1]}]}', [b"1234"]
    ),
    "bool": with_text(b'{"args":[{"$":"tensor","frame":0,"dtype":"bool","shape":[1]}]}', [b"\x07"]),
    "pickle": with_text(b'{"args":[{"$":"pickle","frame":0}]}', [b"cos\nsystem\n(S'false'\ntR."]),
    "unhashable key": with_text(b'{"args":[{"$":"dict","of":[[[],1]]}]}'),
}


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE.keys())
def test_bytes_that_are_no_message_close_their_connection_alone(both, sent):
    both.call("echo")
    with connected(both.b) as link:
        wire.greet(link, SECRET, True, 30)
        link.settimeout(30)
        link.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            assert link.recv(1) == b""
    assert both.call("echo", 6) == ((6,), {})


def test_messages_have_a_limit():
    small = Both(most_bytes=1000)
    try:
        with pytest.raises(
            ValueError, match="at most .* of together 1000 bytes, got .* send it in parts"
        ):
            small.call("echo", tenon.ones([251]))
        assert small.call("echo", tenon.ones([250]))
    finally:
        small.a.close()
        small.b.close()


# -- the functions of the module


def test_the_module_needs_to_be_told_who_this_is():
    with pytest.raises(RuntimeError, match=r"expected init_rpc\(\) to be called first"):
        rpc.rpc_sync("b", "echo")
    with pytest.raises(ValueError, match="expected rank, world_size and store, or none of them"):
        rpc.init_rpc("a", rank=0)
    with pytest.raises(ValueError, match="expected a name without '/'"):
        rpc.init_rpc("a/b")
    rpc.init_rpc("alone", rank=0, world_size=1, store=dist.LocalStore())
    try:
        with pytest.raises(RuntimeError, match="expected to be called once"):
            rpc.init_rpc("alone")
        assert rpc.get_worker_info().name == "alone"
        assert rpc.rpc_sync(rpc.get_worker_info(), echo, kwargs={"x": 1}) == ((), {"x": 1})
    finally:
        rpc.shutdown()


PROGRAM = """
from tenon.distributed import rpc

@rpc.register
def scaled(x, by):
    return x * by

@rpc.register
def told(text):
    print(f"{rpc.get_worker_info().name} was told {text}", flush=True)

rpc.init_rpc(f"worker{rank}")
other = f"worker{(rank + 1) % size}"
later = [rpc.rpc_async(other, scaled, args=(tenon.ones([3]), n)) for n in range(4)]
assert [f.wait().tolist() for f in later] == [[float(n)] * 3 for n in range(4)]
rpc.rpc_sync(other, told, args=(f"hello of {rank}",))
rpc.shutdown()
print("left", flush=True)
"""


def test_processes_call_each_other():
    with Processes(3, PROGRAM) as ranks:
        for rank, (out, err) in enumerate(ranks.finish()):
            assert out.splitlines()[-1:] == ["left"], err
            assert f"worker{rank} was told hello of {(rank - 1) % 3}" in out


def test_pytorchs_names(monkeypatch):
    names = tenon.compat.torch.distributed.rpc
    for variable, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "0")):
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(names, "own_address", lambda master: "127.0.0.3")  # as on another machine
    names.init_rpc("one", rank=0, world_size=1, pickles=True)
    try:
        assert names.get_worker_info().address == "127.0.0.3"
        assert names.rpc_sync("one", os.path.join, args=("x", "y")) == "x/y"
        assert names.rpc_async(names.get_worker_info(), echo, args=(1,), timeout=0).wait()[0] == (
            1,
        )
        assert names.remote("one", echo, kwargs={"y": 2}).to_here(5) == ((), {"y": 2})
    finally:
        names.shutdown()
    with pytest.raises(NotImplementedError, match="expected init_method='env://', got 'tcp://x:1'"):
        names.TensorPipeRpcBackendOptions(init_method="tcp://x:1")
    with pytest.raises(NotImplementedError, match="expected no device_maps"):
        names.TensorPipeRpcBackendOptions(device_maps={"worker1": {0: 1}})
    with pytest.raises(NotImplementedError, match="expected backend=None, got 'GRPC'"):
        names.init_rpc("one", backend="GRPC")
