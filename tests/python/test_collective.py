# SPDX-License-Identifier: Apache-2.0
"""Collectives: by the device's own group, and through the host."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import reference_plugin
import tenon
from tenon import _core, collective

pytestmark = reference_plugin.needs_reference


@pytest.fixture(scope="module", autouse=True)
def plugin():
    reference_plugin.load()


@pytest.fixture(params=["cpu", "reference", "reference through the host"])
def device(request, monkeypatch):
    name, _, staged = request.param.partition(" ")
    if staged:
        monkeypatch.setattr(_core, "has_collective", lambda device: False)
        policy = _core.fallback_policy()
        tenon.fallback("allow")
        yield name
        tenon.fallback(policy)
    else:
        yield name


def in_ranks(device, size, work, timeout=60.0):
    """work(communicator, rank) in a thread for each rank; what they returned."""
    id = collective.create_id(device)
    results, errors = [None] * size, []

    def run(rank):
        try:
            with collective.Communicator(device, id, rank, size, timeout) as comm:
                results[rank] = work(comm, rank)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * timeout)
    if errors:
        raise errors[0]
    return results


def values(rank, shape=(6, 2), dtype="float32"):
    return (np.arange(np.prod(shape)).reshape(shape) % 5 + 1 + rank).astype(dtype)


REDUCE = {
    "sum": np.sum,
    "prod": np.prod,
    "min": np.min,
    "max": np.max,
    "mean": np.mean,
}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_operation(device, size):
    arrays = [values(rank, (6 * size, 2)) for rank in range(size)]

    def work(comm, rank):
        x = tenon.tensor(arrays[rank]).to(device)
        result = {op: comm.all_reduce(x, op) for op in REDUCE}
        result["scattered"] = comm.reduce_scatter(x, "max")
        result["gathered"] = comm.all_gather(x)
        result["broadcast"] = comm.broadcast(x * 1, root=size - 1)
        result["scalar"] = comm.all_gather(x[0, 0])
        if size > 1:  # round and round
            if rank == 0:
                comm.send(x, 1)
                result["received"] = comm.recv(x * 0, size - 1)
            else:
                result["received"] = comm.recv(x * 0, rank - 1)
                comm.send(x, (rank + 1) % size)
        return {name: tensor.cpu().numpy() for name, tensor in result.items()}

    for rank, result in enumerate(in_ranks(device, size, work)):
        for op, reduce in REDUCE.items():
            np.testing.assert_allclose(result[op], reduce(arrays, axis=0), rtol=1e-6, err_msg=op)
        whole = np.max(arrays, axis=0)
        np.testing.assert_array_equal(result["scattered"], whole[6 * rank : 6 * (rank + 1)])
        np.testing.assert_array_equal(result["gathered"], np.concatenate(arrays))
        np.testing.assert_array_equal(result["broadcast"], arrays[-1])
        np.testing.assert_array_equal(result["scalar"], [array[0, 0] for array in arrays])
        if size > 1:
            np.testing.assert_array_equal(result["received"], arrays[rank - 1])


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "uint8"])
def test_dtypes(device, dtype):
    arrays = [values(rank, (7,), dtype) for rank in range(3)]

    def work(comm, rank):
        x = tenon.tensor(arrays[rank]).to(device)
        return comm.all_reduce(x, out=x).cpu().numpy(), x.cpu().numpy()

    for result, x in in_ranks(device, 3, work):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, np.sum(arrays, axis=0))
        np.testing.assert_array_equal(x, result)


def test_empty_and_large_tensors(device):
    def work(comm, rank):
        empty = comm.all_reduce(tenon.zeros([0]).to(device))
        x = tenon.tensor(np.full(600_000, rank + 1, np.float32)).to(device)
        return empty.shape, comm.all_reduce(x).cpu().numpy()

    for shape, result in in_ranks(device, 3, work):
        assert shape == (0,)
        assert (result == 6).all()


def test_strided_tensors(device):
    def work(comm, rank):
        return comm.all_reduce(tenon.tensor(values(rank)).to(device).T).cpu().numpy()

    expected = (values(0) + values(1)).T
    for result in in_ranks(device, 2, work):
        np.testing.assert_array_equal(result, expected)


def test_wrong_arguments(device):
    def work(comm, rank):
        x = tenon.ones([5, 2]).to(device)
        for error, text, call in [
            (
                ValueError,
                "expected a reduction out of sum, prod",
                lambda: comm.all_reduce(x, "xor"),
            ),
            (ValueError, "first axis that 2 ranks", lambda: comm.reduce_scatter(x)),
            (ValueError, "root: expected a rank from 0 to 1", lambda: comm.broadcast(x, 2)),
            (ValueError, f"send: rank {rank} is this one", lambda: comm.send(x, rank)),
            (ValueError, "expected room for", lambda: comm.all_reduce(x, out=x[0])),
            (ValueError, "contiguous tensor", lambda: comm.broadcast(x.T)),
            (TypeError, "the mean of", lambda: comm.all_reduce(x.to(tenon.int32), "mean")),
            (ValueError, "on meta", lambda: comm.all_reduce(tenon.ones([2], device="meta"))),
        ]:
            with pytest.raises(error, match=text):
                call()
        return repr(comm)

    texts = in_ranks(device, 2, work)
    assert texts[1] == f"<tenon.collective.Communicator on {device}:0, rank 1 of 2>"
    with pytest.raises(ValueError, match="expected a rank from 0 to 1, got 2"):
        collective.Communicator(device, b"", 2, 2)
    with pytest.raises(ValueError, match="that create_id"):
        collective.Communicator(device, b"nonsense", 0, 2)


def test_abort_frees_who_waits(device):
    started = time.monotonic()

    def work(comm, rank):
        if rank == 0:
            time.sleep(0.3)  # let the other wait
            comm.abort()
            return None
        with pytest.raises((RuntimeError, tenon.DeviceError), match="abort"):
            comm.recv(tenon.zeros([4]).to(device), 0)
            tenon.synchronize(device)
        return "freed"

    assert in_ranks(device, 2, work)[1] == "freed"
    assert time.monotonic() - started < 20


def test_going_through_the_host_is_a_fallback(monkeypatch):
    monkeypatch.setattr(_core, "has_collective", lambda device: False)
    tenon.fallback_report(reset=True)

    def work(comm, rank):
        return comm.all_reduce(tenon.ones([10]).to("reference")).tolist()

    with tenon.fallback("allow"):
        in_ranks("reference", 2, work)
    row = next(row for row in tenon.fallback_report("reference") if row["op"] == "all_reduce")
    assert (row["host"], row["host_bytes"]) == (2, 160)
    with tenon.fallback("warn_once"), pytest.warns(RuntimeWarning, match="no `collective` group"):
        in_ranks("reference", 1, work)
    with (
        tenon.fallback("deny"),
        pytest.raises(
            tenon.PolicyError, match=r"\[all_reduce\] reference has no `collective` group"
        ),
    ):
        in_ranks("reference", 1, work)
    with tenon.fallback("deny,reference:all_reduce=allow"):
        assert in_ranks("reference", 1, work) == [[1.0] * 10]
    tenon.fallback_report(reset=True)
    assert not [row for row in tenon.fallback_report() if row["op"] == "all_reduce"]


def test_a_rank_that_never_comes():
    id = collective.create_id("cpu")
    with pytest.raises(TimeoutError, match=r"rank 1 of 2 waited 0.2 s for ranks \[0\]; every"):
        collective.Communicator("cpu", id, 1, 2, timeout=0.2)
    with pytest.raises(TimeoutError, match=r"rank 0 of 2 waited 0.2 s for ranks \[1\]"):
        collective.Communicator("cpu", id, 0, 2, timeout=0.2)
    with pytest.raises(ValueError, match="serves one communicator"):
        collective.Communicator("cpu", id, 0, 2, timeout=0.2)


def test_strangers_may_not_meet(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(ValueError, match="not a private folder of this user"):
        collective.Communicator("cpu", b"tenon-staged " + bytes(tmp_path), 0, 2, timeout=0.2)


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_processes(name):
    id = collective.create_id(name)
    program = textwrap.dedent(f"""
        import sys, tenon
        tenon.load_plugin({str(reference_plugin.PATH)!r})
        rank = int(sys.argv[1])
        with tenon.collective.Communicator({name!r}, {id!r}, rank, 3) as comm:
            x = tenon.tensor([1.0, 2.0]).to({name!r}) * (rank + 1)
            print(comm.all_reduce(x).tolist(), comm.all_gather(x).tolist())
    """)
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TENON_NUM_THREADS": "1"},
        )
        for rank in range(3)
    ]
    for process in ranks:
        output, _ = process.communicate(timeout=120)
        assert output.strip() == "[6.0, 12.0] [1.0, 2.0, 2.0, 4.0, 3.0, 6.0]"
