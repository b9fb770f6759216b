# SPDX-License-Identifier: Apache-2.0
"""Collectives of the device ascend on a simulated HCCL: ranks in processes, what is missing, what fails."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

LIBRARIES = Path(os.environ["TENON_BUILD_DIR"]) / "tests/simulated/lib"
SIMULATED = {
    "TENON_ASCEND_RUNTIME": LIBRARIES / "libsimulated_ascendcl.so",
    "TENON_ASCEND_OPERATORS": LIBRARIES / "libsimulated_opapi.so",
    "TENON_ASCEND_COLLECTIVE": LIBRARIES / "libsimulated_hccl.so",
}
# A build without tests/simulated, as under sanitizers, has nothing to run the device on.
if not all(path.exists() for path in SIMULATED.values()):
    pytest.skip("not built: ninja simulated_ascend", allow_module_level=True)

# `comm` is the communicator of this process; its id comes by a file.
RANK = """
import os, sys, time
import numpy as np
import tenon
from tenon import collective

rank, size, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
device = f"ascend:{rank}"
try:
    if rank == 0:
        id = collective.create_id(device)
        with open(file + ".new", "wb") as out:
            out.write(id)
        os.rename(file + ".new", file)
    while not os.path.exists(file):
        time.sleep(0.01)
    id = open(file, "rb").read()
    with collective.Communicator(device, id, rank, size) as comm:
CODE
    print("done")
except Exception as error:
    print(type(error).__name__, error)
"""


def in_processes(tmp_path, size, code, timeout=60, **environment):
    """What each rank printed; a rank that ends itself has a return code of 7."""
    code = RANK.replace("CODE", textwrap.indent(textwrap.dedent(code), " " * 8))
    environment = {"SIMULATED_ASCEND_DEVICES": str(size)} | environment
    variables = {name: str(value) for name, value in (SIMULATED | environment).items()}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(rank), str(size), str(tmp_path / "id")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        for rank in range(size)
    ]
    try:
        results = [rank.communicate(timeout=timeout) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (output, errors) in zip(ranks, results, strict=True):
        assert rank.returncode in (0, 7), output + errors
    return [output for output, _ in results]


def in_one(code, **environment):
    """The output of one process, errors of Tenon included."""
    code = "import tenon\nfrom tenon import collective\ntry:\n" + textwrap.indent(
        textwrap.dedent(code), "    "
    )
    code += "\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    variables = {name: str(value) for name, value in (SIMULATED | environment).items()}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **variables},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("delay", [0, 500])
@pytest.mark.parametrize("size", [2, 4])
def test_ranks_in_processes(tmp_path, size, delay):
    code = """
        base = np.arange(70_000, dtype="float32")  # more than one piece of the simulated library
        x = tenon.tensor(base * (rank + 1)).to(device)
        every = range(1, size + 1)
        np.testing.assert_array_equal(comm.all_reduce(x).cpu().numpy(), base * sum(every))
        np.testing.assert_array_equal(comm.all_reduce(x, "max").cpu().numpy(), base * size)
        np.testing.assert_allclose(comm.all_reduce(x, "mean").cpu().numpy(), base * (size + 1) / 2, rtol=1e-6)
        np.testing.assert_array_equal(
            comm.all_gather(x).cpu().numpy(), np.concatenate([base * r for r in every])
        )
        part = len(base) // size
        np.testing.assert_array_equal(
            comm.reduce_scatter(x).cpu().numpy(), base[part * rank : part * (rank + 1)] * sum(every)
        )
        np.testing.assert_array_equal(comm.broadcast(x + 0, root=1).cpu().numpy(), base * 2)
        if rank == 0:
            comm.send(x, 1)
        if rank == 1:
            np.testing.assert_array_equal(comm.recv(x * 0, 0).cpu().numpy(), base)
        comm.barrier()
        swapped = comm.all_to_all(x).cpu().numpy()
        np.testing.assert_array_equal(
            swapped, np.concatenate([base[part * rank : part * (rank + 1)] * r for r in every])
        )
        pair = comm.split(rank // 2)
        np.testing.assert_array_equal(
            pair.all_reduce(x).cpu().numpy(), base * (4 * (rank // 2) + 3)
        )
        pair.close()
        comm.check()
    """
    outputs = in_processes(tmp_path, size, code, SIMULATED_DELAY_US=delay)
    assert outputs == ["done\n"] * size


@pytest.mark.parametrize("size", [2, 4])
def test_streams_keep_their_order(tmp_path, size):
    code = """
        first, second = tenon.Stream(device), tenon.Stream(device)
        x = tenon.ones((256,), device=device)
        for _ in range(10):
            with first:
                x = comm.all_reduce(x) / size
                event = tenon.Event(device)
                event.record(first)
            with second:
                second.wait(event)
                x = comm.all_reduce(x, "mean") + 1
                event = tenon.Event(device)
                event.record(second)
            first.wait(event)
        second.synchronize()
        assert x.tolist() == [11.0] * 256, x
    """
    outputs = in_processes(tmp_path, size, code, SIMULATED_DELAY_US=2000)
    assert outputs == ["done\n"] * size


@pytest.mark.parametrize("size", [2, 4])
def test_a_rank_that_dies_is_an_error_within_the_timeout(tmp_path, size):
    code = """
        x = tenon.ones(1000, device=device)
        comm.all_reduce(x)
        if rank == 1:
            print("gone", flush=True)
            os._exit(7)
        comm.all_reduce(x)
    """
    begin = time.monotonic()
    outputs = in_processes(tmp_path, size, code, HCCL_EXEC_TIMEOUT=3)
    assert time.monotonic() - begin < 40
    assert outputs.pop(1) == "gone\n"
    for output in outputs:
        assert "all_reduce > ascend: aclrtSynchronizeStream returned 107020" in output


def test_a_rank_that_dies_before_the_ranks_connect(tmp_path):
    code = """
        if rank == 1:
            os._exit(7)
        comm.all_reduce(tenon.ones(1000, device=device))
    """
    output, _ = in_processes(tmp_path, 2, code, HCCL_CONNECT_TIMEOUT=3)
    assert "ascend: all_reduce: timeout (9)" in output


def test_a_rank_that_never_comes():
    output = in_one(
        """
        id = collective.create_id("ascend")
        collective.Communicator("ascend", id, 0, 2)
        """,
        HCCL_CONNECT_TIMEOUT=1,
    )
    assert "ascend: comm_create: timeout (9)" in output


def test_abort_frees_who_waits(tmp_path):
    """In HCCL, in a stream, and in a stream that waits for an event of that one."""
    code = """
        import threading
        x = tenon.ones(1000, device=device)
        comm.all_reduce(x)
        first, second = tenon.Stream(device), tenon.Stream(device)
        if rank == 0:
            threading.Timer(0.5, comm.abort).start()
            with first:
                comm.recv(x, 1)
                event = tenon.Event(device)
                event.record(first)
            with second:
                second.wait(event)
                y = x.relu()
            for wait in (second.synchronize, first.synchronize, event.synchronize, comm.check):
                try:
                    wait()
                    print("no error")
                except Exception as error:
                    print(type(error).__name__, error)
            # The device goes on.
            print(tenon.ones(3, device=device).sum().item())
        else:
            time.sleep(1.5)
    """
    output, other = in_processes(tmp_path, 2, code)
    lines = output.splitlines()
    assert all("aborted" in line for line in lines[:4]), output
    assert lines[4:] == ["3.0", "done"], output
    assert other == "done\n"


def test_abort_frees_who_connects(tmp_path):
    code = """
        import threading
        if rank == 0:
            threading.Timer(0.5, comm.abort).start()
            comm.all_reduce(tenon.ones(1000, device=device))
        time.sleep(1.5)
    """
    output, other = in_processes(tmp_path, 2, code)
    assert "ascend: all_reduce: the communicator was aborted; make a new one" in output
    assert other == "done\n"


def test_dtypes(tmp_path):
    """Moves take all; reductions those of the chip, and an error names what it is."""
    code = """
        for name in ("bool", "uint8", "int16", "float64", "complex64", "bfloat16", "float8_e4m3fn"):
            dtype = getattr(tenon, name, None)
            if dtype is None:
                continue
            x = tenon.tensor([1.0, 0.0, 1.0]).to(dtype).to(device)
            got = comm.all_gather(x).cpu().to(tenon.complex64 if dtype.is_complex else tenon.float32)
            assert got.tolist() == [1, 0, 1, 1, 0, 1], (name, got)
        for name in ("int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "complex64"):
            x = tenon.tensor([1.0, 2.0, 3.0]).to(getattr(tenon, name)).to(device)
            assert comm.all_reduce(x).cpu().tolist() == [2, 4, 6], name
            if name[0] in "bcf":
                assert comm.all_reduce(x, "mean").cpu().tolist() == [1, 2, 3], name
        for name, op in (("float64", "sum"), ("uint8", "sum"), ("bfloat16", "prod"), ("complex64", "prod")):
            try:
                comm.all_reduce(tenon.ones(3, dtype=getattr(tenon, name), device=device), op)
                print("no error")
            except NotImplementedError as error:
                assert "all_reduce" in str(error)
        empty = tenon.ones((0, 3), device=device)
        assert comm.all_reduce(empty).shape == (0, 3)
    """
    assert in_processes(tmp_path, 2, code) == ["done\n"] * 2


def test_a_missing_library_turns_collectives_off_and_nothing_else():
    output = in_one(
        """
        print(tenon.ones(3, device="ascend").sum().item())
        collective.create_id("ascend")
        """,
        TENON_ASCEND_COLLECTIVE="/nowhere/libhccl.so",
    )
    assert output.startswith("3.0\n")
    assert "the library of collectives was not found (/nowhere/libhccl.so" in output
    assert "install CANN's toolkit" in output
    assert "TENON_ASCEND_COLLECTIVE" in output


def test_a_missing_function_turns_collectives_off_and_nothing_else(tmp_path):
    library = tmp_path / "libold.so"
    source = tmp_path / "old.c"
    source.write_text("int HcclGetRootInfo(void* info) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    output = in_one(
        """
        print(tenon.ones(3, device="ascend").sum().item())
        collective.create_id("ascend")
        """,
        TENON_ASCEND_COLLECTIVE=library,
    )
    assert output.startswith("3.0\n")
    assert "the library of collectives lacks HcclCommInitRootInfo" in output
    assert "expected the one of CANN 8 or later" in output


@pytest.mark.parametrize(
    ("failure", "error", "text"),
    [
        ("HcclGetRootInfo:1:4", "InternalError", "comm_id_create: internal error (4)"),
        ("HcclCommInitRootInfo:1:3", "OutOfMemoryError", "comm_create: memory error (3)"),
        ("HcclAllReduce:1:1", "ValueError", "all_reduce: parameter error (1)"),
        ("HcclAllReduce:1:5", "NotImplementedError", "all_reduce: not support feature (5)"),
        ("HcclAsyncError:1:21", "InternalError", "all_reduce: "),
        ("aclnnInplaceDivs:1:161002", "InternalError", "aclnnInplaceDivsGetWorkspaceSize returned"),
        ("aclrtSynchronizeStream:1:507015", "InternalError", "aclrtSynchronizeStream returned"),
    ],
)
def test_failures_are_errors_that_name_the_call(failure, error, text):
    code = """
        id = collective.create_id("ascend")
        with collective.Communicator("ascend", id, 0, 1) as comm:
            comm.all_reduce(tenon.ones(3, device="ascend"), "mean")
    """
    output = in_one(code, SIMULATED_FAIL=failure)
    assert output.startswith(error)
    assert text in output


def test_strangers_get_no_root_info():
    output = in_one(
        """
        import socket, struct
        id = collective.create_id("ascend")
        port, addresses = struct.unpack(">H", id[24:26])[0], struct.unpack("=H", id[26:28])[0]
        host = socket.inet_ntoa(id[28:32])
        for secret in (bytes(16), id[8:24]):
            with socket.create_connection((host, port), timeout=10) as connection:
                connection.sendall(secret)
                received = b""
                while len(received) < 4108 and (more := connection.recv(4108)):
                    received += more
                print(len(received))
        """
    )
    assert output.split() == ["0", "4108"]


def test_ids():
    output = in_one(
        """
        def join(id):
            try:
                collective.Communicator("ascend", id, 0, 1).close()
                print("joined")
            except ValueError as error:
                print(error)

        id = collective.create_id("ascend")
        assert len(id) == 128 and id != collective.create_id("ascend")
        join(b"\\0" * 128)
        join(id)
        join(id)
        """
    )
    strange, joined, again = output.splitlines()
    assert "expected an id that comm_id_create of this plugin made" in strange
    assert joined == "joined"
    assert "no process answers for this id on" in again
    assert "an id serves one communicator" in again
