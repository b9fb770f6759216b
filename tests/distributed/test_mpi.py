# SPDX-License-Identifier: Apache-2.0
"""Ranks that mpirun starts, whose data MPI moves: with each of the two families of libraries that is installed."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import tenon.distributed as dist
from ranks import Processes

LAUNCHERS = {  # as Debian names them
    "Open MPI": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"],
    "MPICH": ["mpirun.mpich"],
}


def mpirun(family, *arguments, **variables):
    command = LAUNCHERS[family]
    if shutil.which(command[0]) is None:
        package = {"Open MPI": "openmpi-bin", "MPICH": "mpich"}[family]
        pytest.skip(f"{family} is not installed (apt-get install {package})")
    here = os.path.dirname(os.path.abspath(__file__))
    return subprocess.run(
        [*command, "-n", "2", sys.executable, *arguments],
        env={
            **os.environ,
            # Open MPI refuses to run as root, which containers do, without these.
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "TENON_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]),
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("family", LAUNCHERS)
def test_cases_of_the_host_backend(family):
    done = mpirun(family, os.path.join(os.path.dirname(__file__), "mpi_cases.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == [
        "test_every_call:1",
        "test_dtypes_are_reduced_as_themselves:15",
        "test_dtypes_that_are_moved_only:3",
        "test_works_go_on_by_themselves:1",
        "test_a_ring_that_sends_before_it_receives:1",
        "sizes:1",
        "groups:1",
        "wrong_arguments:1",
        "meets_again:1",
    ]
    assert "WARN" not in done.stderr  # memory that the library still has when it ends


FAILURES = """
import os, signal, sys, time, tenon, tenon.distributed as dist
from tenon.distributed.environment import read_environment
case, rank = sys.argv[1], read_environment().rank
try:
    dist.init_process_group("host" if case == "differs" and rank else "mpi", timeout=30.0)
    if rank and case == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(tenon.ones([200_000 + rank * (case == "counts")]))
except Exception as error:
    print(f"{rank} {type(error).__name__}: {error}", flush=True)
    time.sleep(0.3)  # the other one prints its own before mpirun ends it
    sys.exit(3)
"""


@pytest.mark.parametrize(
    "case, expected",
    [
        ("counts", "0 CollectiveMismatch: .* call 1 of world: rank 0 all_reduce\\(float32\\[200000\\], sum\\)"),
        ("killed", "0 PeerFailed: rank 1 is gone: its process ended .* rank 0 was in call 1 of world"),
        ("differs", "0 ValueError: expected all ranks to ask for the same backend, got Open MPI v.* on rank 0 and no MPI"),
    ],
    ids=["counts", "killed", "differs"],
)  # fmt: skip
def test_failures_end_the_job_and_say_why(case, expected):
    done = mpirun("Open MPI", "-c", FAILURES, case)
    assert done.returncode != 0
    assert re.search(expected, done.stdout), done.stdout + done.stderr


def test_processes_that_are_no_ranks_of_mpi():
    with Processes(2, "dist.init_process_group('mpi')") as processes:
        for _, errors in processes.finish():
            assert "start it with `mpirun -n 2 python ...`" in errors


def test_a_library_that_is_not_there():
    program = "dist.init_process_group('mpi')"
    with Processes(1, program, TENON_MPI="/nowhere/libmpi.so") as processes:
        assert (
            "needs the library of the MPI that started this process (Debian: apt-get install openmpi-bin; or its "
            "path in the variable TENON_MPI): /nowhere/libmpi.so: cannot open"
            in processes.finish()[0][1]
        )


def test_backends_have_names():
    with pytest.raises(NotImplementedError, match="got 'gloo'; 'host' does what Gloo does"):
        dist.init_process_group("gloo")
