# SPDX-License-Identifier: Apache-2.0
"""tenon run, and the variables of other launchers."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tenon.distributed.environment import read_environment


def launch(tmp_path, program, *arguments, ranks=3):
    script = tmp_path / "train.py"
    script.write_text(program)
    return subprocess.Popen(
        [sys.executable, "-m", "tenon", "run", "-n", str(ranks), str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ranks_meet_and_their_output_has_their_number(tmp_path):
    program = """
import os, sys
import tenon, tenon.distributed as dist
dist.init_process_group()
x = dist.all_reduce(tenon.full([2], float(dist.get_rank())))
print(x.tolist(), sys.argv[1:], dist.get_local_rank(), os.environ["PADDLE_TRAINER_ID"])
"""
    process = launch(tmp_path, program, "--lr", "3")
    output, errors = process.communicate(timeout=50)
    assert process.returncode == 0, errors
    assert sorted(output.splitlines()) == [
        f"[{rank}] [3.0, 3.0] ['--lr', '3'] {rank} {rank}" for rank in range(3)
    ]


def test_the_first_failure_is_printed_last(tmp_path):
    program = """
import tenon, tenon.distributed as dist
dist.init_process_group()
if dist.get_rank() == 2:
    raise KeyError("weights")
dist.all_reduce(tenon.ones([2]))
"""
    process = launch(tmp_path, program)
    _, errors = process.communicate(timeout=50)
    assert process.returncode == 1
    last = errors.splitlines()[-1]
    assert (
        last == "tenon run: the first failure: rank 2 ended with KeyError: 'weights' at train.py:5"
    )


def test_a_killed_rank_ends_the_job(tmp_path):
    program = """
import os, signal, time, tenon.distributed as dist
dist.init_process_group()
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)  # sees nothing of it
"""
    began = time.monotonic()
    process = launch(tmp_path, program)
    _, errors = process.communicate(timeout=50)
    assert process.returncode == 128 + signal.SIGKILL and time.monotonic() - began < 40
    assert errors.splitlines()[-1] == "tenon run: the first failure: rank 1 was ended by SIGKILL"


def test_signals_are_passed_on(tmp_path):
    program = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: (print("ends", flush=True), os._exit(0)))
print("ready", flush=True)
time.sleep(60)
"""
    process = launch(tmp_path, program, ranks=2)
    for _ in range(2):
        assert "ready" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert sorted(output.splitlines()) == ["[0] ends", "[1] ends"]
    assert process.returncode == 0


def test_ranks_end_with_the_launcher(tmp_path):
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    process = launch(tmp_path, program, ranks=2)
    ranks = [int(process.stdout.readline().split()[-1]) for _ in range(2)]
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{rank}/stat") and "Z" not in state(rank) for rank in ranks):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["-n", "0", "x.py"], "expected one rank at least, got -n 0"),
        (["-n", "2"], "expected a script to run"),
        (["--nnodes", "2", "x.py"], "several machines need --rendezvous HOST:PORT"),
        (["--rendezvous", "host", "x.py"], "expected --rendezvous HOST:PORT, got 'host'"),
        (["--node-rank", "1", "x.py"], "expected --node-rank from 0 to 0, got 1"),
    ],
)
def test_wrong_arguments(arguments, text, capsys):
    from tenon.cli import main

    assert main(["run", *arguments]) == 1
    assert text in capsys.readouterr().err


def test_variables_of_launchers():
    torchrun = {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "a",
        "MASTER_PORT": "29500",
    }
    found = read_environment({**torchrun, "TORCHELASTIC_USE_AGENT_STORE": "True"})
    assert (found.rank, found.size, found.local_rank, found.address, found.port) == (
        3,
        4,
        1,
        "a",
        29501,
    )
    assert not found.has_store
    mpi = {
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    }
    found = read_environment(mpi)
    assert (found.launcher, found.rank, found.size) == ("Open MPI", 1, 2) and found.folder
    with pytest.raises(ValueError, match="several machines; export MASTER_ADDR and MASTER_PORT"):
        read_environment({**mpi, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"})
    slurm = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "0", "SLURM_LOCALID": "1"}
    found = read_environment({**slurm, "MASTER_ADDR": "b", "MASTER_PORT": "7"})
    assert (found.launcher, found.rank, found.address, found.port) == ("Slurm", 1, "b", 7)
    assert read_environment({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}).size == 1  # an allocation
    assert read_environment({}).size == 1
    with pytest.raises(ValueError, match="MASTER_ADDR and MASTER_PORT not; start the ranks with"):
        read_environment({"RANK": "0", "WORLD_SIZE": "2"})
    with pytest.raises(ValueError, match="expected a number in the variable RANK, got 'x'"):
        read_environment({**torchrun, "RANK": "x"})
    with pytest.raises(ValueError, match="expected a rank from 0 to 3 in the variables"):
        read_environment({**torchrun, "RANK": "4"})
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        read_environment({**torchrun, "TENON_JOB_SECRET": "abc"})
