# SPDX-License-Identifier: Apache-2.0
"""Collectives beside programs and gradients, which know nothing of them: neither loses one in silence."""

import re
import time

import numpy as np
import pytest
import reference_plugin
import tenon
import test_collective
from test_collective import in_ranks

pytestmark = reference_plugin.needs_reference
plugin, device = test_collective.plugin, test_collective.device  # fixtures

# Each with a function of (communicator, rank, x) that calls it, x being [2, 3].
CALLS = {
    "all_reduce": lambda comm, rank, x: comm.all_reduce(x),
    "all_gather": lambda comm, rank, x: comm.all_gather(x),
    "reduce_scatter": lambda comm, rank, x: comm.reduce_scatter(x),
    "broadcast": lambda comm, rank, x: comm.broadcast(x, 0),
    "send": lambda comm, rank, x: comm.send(x, 1) if rank == 0 else comm.recv(x, 0),
    "recv": lambda comm, rank, x: comm.recv(x, 1) if rank == 0 else comm.send(x, 0),
    "reduce": lambda comm, rank, x: comm.reduce(x),
    "exchange": lambda comm, rank, x: comm.exchange([(x, 1 - rank)], [(x * 0, 1 - rank)]),
    "all_to_all": lambda comm, rank, x: comm.all_to_all(x),
    "gather": lambda comm, rank, x: comm.gather(x),
    "scatter": lambda comm, rank, x: comm.scatter(x, 0, out=x[:1]),
    "barrier": lambda comm, rank, x: comm.barrier(),
    "split": lambda comm, rank, x: comm.split(0),
    "check": lambda comm, rank, x: comm.check(),
}
DIFFERENT = [name for name in CALLS if name not in ("barrier", "split", "check")]  # take tensors


def ones(device, number=1.0, shape=(2, 3)):
    return tenon.full(shape, number).to(device)


@pytest.mark.parametrize("name", CALLS)
def test_export_refuses_every_collective(name, device):
    def work(comm, rank):
        with pytest.raises(
            NotImplementedError, match=rf"Communicator\.{name}\(\) at .*talks to other ranks"
        ) as caught:
            tenon.export(lambda x: CALLS[name](comm, 0, x * 1), (ones(device),))
        assert "make programs of what comes before and behind it" in str(caught.value)
        return comm.all_reduce(ones(device)).tolist()[0][0]  # no rank is out of step

    assert in_ranks(device, 2, work) == [2.0, 2.0]


def test_export_for_many_sizes_refuses_collectives(device):
    def work(comm, rank):
        with pytest.raises(NotImplementedError, match="talks to other ranks"):
            tenon.export(
                lambda x: comm.all_reduce(x * 1),
                (ones(device),),
                dynamic_shapes=[{0: tenon.Dim("rows", max=8)}],
            )

    in_ranks(device, 2, work)


def test_making_a_communicator_is_refused_in_a_program():
    def function(x):
        id = tenon.collective.create_id("cpu")
        with tenon.collective.Communicator("cpu", id, 0, 1) as comm:
            return comm.all_reduce(x)

    with pytest.raises(NotImplementedError, match=r"Communicator\(\) at .*talks to other ranks"):
        tenon.export(function, (tenon.ones(2),))


def eager_and_compiled(device, function, calls=6):
    """What `function(comm, rank, x)` gives in each of several calls, for both ranks, as it is and compiled."""

    def work(comm, rank):
        compiled = tenon.compile(lambda x: function(comm, rank, x))
        results = []
        for call in range(calls):
            number = float(3 * call + rank + 1)
            with tenon.no_grad():
                expected = function(comm, rank, ones(device, number)).tolist()
                results.append((expected, compiled(ones(device, number)).tolist()))
        return results, compiled.explain()

    return in_ranks(device, 2, work)


@pytest.mark.parametrize(
    "function",
    [
        lambda comm, rank, x: comm.all_reduce(x * 1, "mean") + 0,
        lambda comm, rank, x: comm.broadcast(x * 1, 0) + 0,
        lambda comm, rank, x: comm.all_reduce(x, out=x * 0) * 1,
        lambda comm, rank, x: comm.all_gather(x * 2),
        lambda comm, rank, x: comm.all_to_all(x * 2),
        lambda comm, rank, x: (comm.barrier(), x * 2)[1],
    ],
    ids=["all_reduce", "broadcast", "out", "all_gather", "all_to_all", "barrier"],
)
def test_compiled_functions_with_collectives_stay_eager_and_right(function, device):
    for results, explanation in eager_and_compiled(device, function):
        assert [expected for expected, _ in results] == [got for _, got in results]
        assert "talks to other ranks" in explanation and "a program of" not in explanation


def test_a_buffer_that_receives_is_written_in_every_call(device):
    def work(comm, rank):
        buffer = ones(device, 0.0)
        step = tenon.compile(lambda x: comm.all_reduce(x, out=buffer) * 1)
        return [step(ones(device, float(k + rank))).tolist()[0][0] for k in range(1, 6)]

    assert in_ranks(device, 2, work) == [[3, 5, 7, 9, 11]] * 2


def test_compiled_training_keeps_the_weights_of_all_ranks_equal(device):
    def work(comm, rank):
        tenon.manual_seed(0)
        layer = tenon.nn.Linear(3, 2).to(device)
        with tenon.no_grad():
            for p in layer.parameters():
                p.copy_(tenon.ones_like(p))
        optimizer = tenon.optim.SGD(layer.parameters(), 0.1)

        def step(x):
            optimizer.zero_grad()
            loss = (layer(x) ** 2).mean()
            loss.backward()
            for p in layer.parameters():
                comm.all_reduce(p.grad, "mean", out=p.grad)
            optimizer.step()
            return loss

        compiled = tenon.compile(step)
        for k in range(6):
            compiled(ones(device, 0.1 * (k + 1) * (rank + 1)))
        return [p.detach().tolist() for p in layer.parameters()]

    first, second = in_ranks(device, 2, work)
    assert first == second


def test_collectives_in_hooks_of_a_backward_pass_are_seen(device):
    def work(comm, rank):
        weight = ones(device, 1.0, (3,))
        weight.requires_grad = True
        weight.register_hook(lambda grad: comm.all_reduce(grad))

        def step(x):
            weight.grad = None
            (weight * x).sum().backward()
            return weight.grad * 1

        compiled = tenon.compile(step)
        with pytest.raises(NotImplementedError, match="talks to other ranks"):
            tenon.export(step, (ones(device, 1.0, (3,)),))
        results = [compiled(ones(device, float(k + rank), (3,))).tolist()[0] for k in range(5)]
        return results, compiled.explain()

    for results, explanation in in_ranks(device, 2, work):
        assert results == [1, 3, 5, 7, 9] and "a program of" not in explanation


def test_captured_graphs_hold_collectives_of_devices():
    def work(comm, rank):
        x, graph = ones("reference", rank + 1.0), tenon.Graph("reference")
        with graph.capture():
            y = comm.all_reduce(x) * 1
        results = []
        for k in range(3):
            x.copy_(tenon.full([2, 3], float(rank + k)))
            graph.replay()
            results.append(y.tolist()[0][0])
        return results

    assert in_ranks("reference", 2, work) == [[1, 3, 5]] * 2


def test_captured_graphs_refuse_collectives_through_the_host(monkeypatch):
    monkeypatch.setattr(tenon._core, "has_collective", lambda device: False)

    def work(comm, rank):
        x, graph = ones("reference"), tenon.Graph("reference")
        with pytest.raises(RuntimeError, match="waits for its stream, which is being captured"):
            with graph.capture():
                comm.all_reduce(x)
        return True

    with tenon.fallback("allow"):
        assert in_ranks("reference", 2, work) == [True, True]


def test_sync_batch_norm_in_a_compiled_function_stays_eager():
    def work(comm, rank):
        layer = tenon.nn.SyncBatchNorm(3, communicator=comm)
        twin = tenon.nn.SyncBatchNorm(3, communicator=comm)
        step = tenon.compile(lambda x: layer(x) * 1)
        for k in range(5):
            x = tenon.arange(6.0).reshape(2, 3) * (k + rank + 1)
            np.testing.assert_array_equal(step(x).detach().numpy(), twin(x).detach().numpy())
        return step.explain()

    for explanation in in_ranks("cpu", 2, work):
        assert "talks to other ranks" in explanation


def test_export_with_ranks_as_threads_does_not_hang():
    # Comparing two recordings reads data: it waits for the device, behind a call that the other thread has yet to join.
    def work(comm, rank):
        constants = iter([ones("reference", 2.0) for _ in range(4)])
        with tenon.Stream("reference"):
            if rank == 1:
                time.sleep(0.3)
            x = comm.all_reduce(ones("reference"))
            program = tenon.export(lambda x: x * next(constants), (x,))
            return program(x).tolist()[0]

    assert in_ranks("reference", 2, work, 30) == [[4.0, 4.0, 4.0]] * 2


# -- gradients ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIFFERENT)
def test_tensors_that_require_a_gradient_are_refused(name, device):
    def work(comm, rank):
        x = ones(device)
        x.requires_grad = True
        text = rf"Communicator\.{name}\(\): expected tensors without gradient.*x\.detach\(\)"
        with pytest.raises(ValueError, match=text):
            CALLS[name](comm, 0, x)
        with pytest.raises(ValueError, match=text):
            CALLS[name](comm, 0, x * 2)
        with tenon.no_grad():
            CALLS[name](comm, rank, x * 2)
        CALLS[name](comm, rank, x.detach())
        return True

    assert in_ranks(device, 2, work) == [True, True]


def test_rooms_that_require_a_gradient_are_refused(device):
    def work(comm, rank):
        x, room = ones(device), ones(device)
        room.requires_grad = True
        for call in (
            lambda: comm.all_reduce(x, out=room),
            lambda: comm.all_gather(x[:1], out=room),
            lambda: comm.recv(room, 1 - rank),
            lambda: comm.exchange((), [(room, 1 - rank)]),
            lambda: comm.all_to_all(list(x), list(room)),
        ):
            with pytest.raises(ValueError, match="expected tensors without gradient"):
                call()
        with tenon.no_grad():
            comm.all_reduce(x, out=room)
        return room.tolist()[0][0]

    assert in_ranks(device, 2, work) == [2.0, 2.0]


# -- ranks that differ --------------------------------------------------------------------------------


def differing(device, first, second):
    """What both ranks are told when they call these."""
    texts = [None, None]

    def work(comm, rank):
        with pytest.raises((ValueError, RuntimeError, tenon.DeviceError)) as caught:
            (second if rank else first)(comm)
            comm.barrier()  # through the host a sender hears of it later
        texts[rank] = str(caught.value)

    in_ranks(device, 2, work, 20)
    return texts


DIFFERENCES = {
    "dtype": (
        lambda comm: comm.all_reduce(tenon.ones(4)),
        lambda comm: comm.all_reduce(tenon.ones(4, dtype="int32")),
        ("all_reduce(float32[4], sum)", "all_reduce(int32[4], sum)"),
    ),
    "reduction": (
        lambda comm: comm.all_reduce(tenon.ones(4), "max"),
        lambda comm: comm.all_reduce(tenon.ones(4), "min"),
        ("all_reduce(float32[4], max)", "all_reduce(float32[4], min)"),
    ),
    "count": (
        lambda comm: comm.all_gather(tenon.ones(4)),
        lambda comm: comm.all_gather(tenon.ones(5)),
        ("all_gather(float32[4])", "all_gather(float32[5])"),
    ),
    "root": (
        lambda comm: comm.broadcast(tenon.ones(4), 0),
        lambda comm: comm.broadcast(tenon.ones(4), 1),
        ("broadcast(float32[4], root=0)", "broadcast(float32[4], root=1)"),
    ),
    "root of gather": (
        lambda comm: comm.gather(tenon.ones(4), 0),
        lambda comm: comm.gather(tenon.ones(4), 1),
        ("root=0)", "root=1)"),
    ),
    "root of reduce": (
        lambda comm: comm.reduce(tenon.ones(4), 0),
        lambda comm: comm.reduce(tenon.ones(4), 1),
        ("reduce(float32[4], sum, root=0)", "reduce(float32[4], sum, root=1)"),
    ),
    "call": (
        lambda comm: comm.all_reduce(tenon.ones(4)),
        lambda comm: comm.broadcast(tenon.ones(4)),
        ("all_reduce(float32[4], sum)", "broadcast(float32[4], root=0)"),
    ),
    "order": (
        lambda comm: (comm.barrier(), comm.all_to_all(tenon.ones(4))),
        lambda comm: (comm.all_to_all(tenon.ones(4)), comm.barrier()),
        ("barrier()", "all_to_all(float32["),
    ),
    "parts": (
        lambda comm: comm.scatter(tenon.ones(4), 0),
        lambda comm: comm.scatter(None, 0, out=tenon.ones(3)),
        ("expected 3 elements by rank 1", "expected 2 elements by rank 0"),
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_ranks_that_differ_are_told_so_through_the_host(name):
    first, second, parts = DIFFERENCES[name]
    for text in differing("cpu", first, second):
        assert "call 1 of comm: rank 0 " in text or "call 2 of comm: rank 0 " in text
        assert (
            any(part in text for part in parts)
            if name == "parts"
            else all(p in text for p in parts)
        )
        assert "the communicator was aborted" in text


@pytest.mark.parametrize("name", ["dtype", "reduction", "root"])
def test_ranks_that_differ_are_told_so_by_devices_while_kernels_are_watched(name):
    first, second, _ = DIFFERENCES[name]
    parts = {
        "dtype": [f"all_reduce('sum') of 4 elements of {x}" for x in ("float32", "int32")],
        "reduction": [f"all_reduce({x!r}) of 4" for x in ("max", "min")],
        "root": ["broadcast(root=0)", "broadcast(root=1)"],
    }[name]

    def moved(call):
        def watched(comm):
            with tenon.validation():
                call(OnDevice(comm))

        return watched

    texts = differing("reference", moved(first), moved(second))
    assert f"got {parts[0]}" in texts[0] and "on rank 0 and " + parts[1] in texts[0]
    assert f"got {parts[1]}" in texts[1] and "on rank 1 and " + parts[0] in texts[1]


class OnDevice:
    """A communicator whose tensors are moved to its device."""

    def __init__(self, comm):
        self.comm = comm

    def __getattr__(self, name):
        return lambda x, *args: getattr(self.comm, name)(x.to(self.comm.device), *args)


def test_what_is_sent_and_what_is_expected_must_agree():
    texts = differing(
        "cpu",
        lambda comm: comm.send(tenon.ones(4), 1),
        lambda comm: comm.recv(tenon.ones(4, dtype="int32"), 0),
    )
    assert re.search(
        r"rank 1 expected a message of exchange\(int32\[4\]\) at test_collective_programs.py:\d+ by rank 0 of "
        r"comm, got exchange\(float32\[4\]\) at",
        texts[1],
    )
    texts = differing(
        "cpu",
        lambda comm: comm.exchange([(tenon.ones(4), 1)]),
        lambda comm: comm.exchange((), [(tenon.ones(2, dtype="float64"), 0)]),
    )
    assert "exchange(float64[2])" in texts[1] and "got exchange(float32[4])" in texts[1]
    texts = differing(
        "cpu",
        lambda comm: comm.send(tenon.ones(4), 1),
        lambda comm: comm.all_reduce(tenon.ones(4)),
    )
    # Whichever rank saw it first: the message, or the barrier behind it.
    assert "rank 0 exchange(float32[4])" in texts[1] or "rank 0 barrier()" in texts[1]


def test_ranks_of_three_are_told_which_one_differs():
    texts = [None] * 3

    def work(comm, rank):
        with pytest.raises((ValueError, tenon.DeviceError)) as caught:
            comm.all_reduce(tenon.ones(5 if rank == 1 else 4))
        texts[rank] = str(caught.value)

    in_ranks("cpu", 3, work, 20)
    for text in texts:
        assert "all_reduce(float32[5], sum)" in text and "all_reduce(float32[4], sum)" in text
