# SPDX-License-Identifier: Apache-2.0
"""torch.distributed under the alias: one training script on two ranks, beside PyTorch with Gloo."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parent / "alias_ranks" / "train_on_ranks.py"


def losses(arguments, folder, expected=0, **variables):
    """What rank 0 prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**environment, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    if expected:
        return done.stdout + done.stderr
    (line,) = [each for each in done.stdout.splitlines() if "losses" in each]
    return [float(each) for each in line.partition("losses")[2].split()]


def test_launched_ranks_train_as_the_processes_that_the_script_starts(tmp_path):
    launched = losses(["-m", "tenon", "run", "-n", "2", "-m", "tenon.torch", SCRIPT], tmp_path)
    assert len(launched) == 9 and launched[-1] < launched[0]
    assert losses(["-m", "tenon.torch", SCRIPT], tmp_path) == launched


def test_losses_are_those_of_pytorch(tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    ours = losses(["-m", "tenon", "run", "-n", "2", "-m", "tenon.torch", SCRIPT], tmp_path)
    assert ours == pytest.approx(losses([SCRIPT], tmp_path), abs=1e-5)


FAILING = """
import sys
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, how):
    if rank == 1:
        if how == "raise":
            raise ValueError("long " * 40000 + "of rank 1")  # more than a pipe takes
        sys.exit(5)

if __name__ == "__main__":
    try:
        mp.spawn(work, args=("raise",), nprocs=2)
    except mp.ProcessRaisedException as error:
        assert error.error_index == 1 and "long of rank 1" in str(error), error
    try:
        mp.spawn(work, args=("exit",), nprocs=2)
    except mp.ProcessExitedException as error:
        assert error.exit_code == 5 and "process 1 ended with exit code 5" in str(error), error
    for call, text in (
        (lambda: mp.spawn(work, start_method="fork"), "spawn(): expected start_method='spawn'"),
        (lambda: mp.set_sharing_strategy("file_system"), "expected 'file_descriptor', got 'file_system'"),
        (lambda: dist.init_process_group("gloo", rank=1, world_size=2), "variables MASTER_ADDR and MASTER_PORT"),
        (lambda: dist.init_process_group("mpi"), "expected backend 'gloo' or 'nccl', got 'mpi'"),
        (lambda: dist.checkpoint.FileSystemReader("x"), "torch.distributed.checkpoint.FileSystemReader: Tenon"),
        (lambda: dist.rpc, "torch.distributed.rpc: Tenon, which stands for PyTorch here, does not have it"),
    ):
        try:
            call()
        except Exception as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    print("done")
"""


def test_what_fails_in_processes_is_told(tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MASTER_")}
    environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))
    done = subprocess.run(
        [sys.executable, "-m", "tenon.torch", "failing.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and "done" in done.stdout, done.stdout + done.stderr
