# SPDX-License-Identifier: Apache-2.0
"""Jobs that go on: ranks that fail are started again, on the same number of ranks or on another one, and read on from
where the last checkpoint was."""

import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tenon.distributed as dist

TRAIN = """
import json, os, random, signal, sys, time
import tenon, tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import checkpoint

EPOCHS, GLOBAL_BATCH = 3, 12
folder, kill_at = sys.argv[1], int(sys.argv[2])
dist.init_process_group(timeout=30)
rank, size = dist.get_rank(), dist.get_world_size()
tenon.manual_seed(7 + rank)  # models differ until they are loaded, or are those of rank 0
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
with tenon.no_grad():
    for n, p in enumerate(model.parameters()):
        p.copy_((tenon.arange(p.size).reshape(p.shape) % 5 - 2.0) * 0.2 + 0.05 * n)
wrapped = dist.DistributedDataParallel(model)
optimizer = dist.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=0.02)
data = [(tenon.tensor([float(i * k % 11) / 11 for k in (1, 2, 3, 5)]), tenon.tensor([float(i % 7) / 7])) for i in range(48)]
batches = dist.DistributedBatchSampler(data, GLOBAL_BATCH // size, shuffle=True, seed=3)
steps = checkpoint.Steps(folder)
step, state = steps.load({"model": wrapped, "optimizer": optimizer, "epoch": 0, "batch": 0})
epoch, batch = state["epoch"], state["batch"]
if rank == 0:
    print("begins", json.dumps([size, step, epoch, batch, os.environ.get("TENON_ATTEMPT", "")]))
while epoch < EPOCHS:
    batches.set_epoch(epoch, start=batch)
    for rows in batches:
        if step == kill_at and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        x, y = (tenon.stack([data[i][k] for i in rows]) for k in (0, 1))
        loss = nn.functional.mse_loss(wrapped(x), y)
        loss.backward()
        optimizer.step()
        step, batch = step + 1, batch + 1
        read = dist.all_gather_object(rows)
        mean = dist.all_reduce(loss.detach().reshape([1]), "mean").item()
        if rank == 0:
            print("step", json.dumps([step, sorted(sum(read, [])), mean]))
        if step % 2 == 0:
            steps.save(step, {"model": wrapped, "optimizer": optimizer, "epoch": epoch, "batch": batch},
                       asynchronous=True)
    epoch, batch = epoch + 1, 0
steps.wait()
if rank == 0:
    print("weights", json.dumps([p.tolist() for p in model.parameters()]))
"""


def run(tmp_path, ranks, kill_at=-1, *options, folder="run"):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    process = subprocess.run(
        [sys.executable, "-m", "tenon", "run", "-n", str(ranks), *options, str(script)]
        + [str(tmp_path / folder), str(kill_at)],
        capture_output=True,
        text=True,
        timeout=150,
    )
    lines = [line.removeprefix("[0] ").split(" ", 1) for line in process.stdout.splitlines()]
    told = {"begins": [], "step": [], "weights": []}
    for kind, text in lines:
        told[kind].append(json.loads(text))
    return process, told


def test_4_3_4_ranks(tmp_path):
    """A rank is killed on 4, the job goes on with 3, is killed again, and ends with 4: what one undisturbed run does."""
    _, whole = run(tmp_path, 1, folder="whole")
    losses = {step: (rows, loss) for step, rows, loss in whole["step"]}
    assert sorted(losses) == list(range(1, 13))
    seen = {}
    for ranks, kill_at, first in ((4, 3, 0), (3, 7, 2), (4, -1, 6)):
        process, told = run(tmp_path, ranks, kill_at)
        assert process.returncode == (0 if kill_at < 0 else 128 + signal.SIGKILL), process.stderr
        size, step, epoch, batch, _ = told["begins"][0]
        # The save before the kill may have been under way.
        assert size == ranks and step in (first, max(first - 2, 0)) and 4 * epoch + batch == step
        for number, rows, loss in told["step"]:
            assert rows == losses[number][0]
            assert loss == pytest.approx(losses[number][1], rel=1e-4)
            seen[number] = loss
    assert sorted(seen) == sorted(losses)
    for ours, theirs in zip(told["weights"][0], whole["weights"][0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


def test_max_restarts(tmp_path):
    process, told = run(tmp_path, 2, 5, "--max-restarts", "2")
    # It is killed at the same step each time: two restarts are not enough.
    assert process.returncode == 128 + signal.SIGKILL
    attempts = [begin[4] for begin in told["begins"]]
    assert attempts == ["0", "1", "2"] and all(step <= 5 for step, *_ in told["step"])
    told = process.stderr.splitlines()
    assert told[-1] == "tenon run: the first failure: rank 1 was ended by SIGKILL"
    for number in (1, 2):
        text = f"rank 1 was ended by SIGKILL; all ranks start again, restart {number} of 2"
        assert any(text in line for line in told)


def test_a_restart_goes_on_to_the_end(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """
import os, tenon, tenon.distributed as dist
dist.init_process_group(timeout=30)
dist.barrier()
attempt = int(os.environ["TENON_ATTEMPT"])
if dist.get_rank() == 2 and attempt < 2:
    raise KeyError(f"attempt {attempt}")
print(attempt, dist.all_reduce(tenon.ones([1])).item())
"""
    )
    process = subprocess.run(
        [sys.executable, "-m", "tenon", "run", "-n", "3", "--max-restarts", "5", str(script)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert process.returncode == 0, process.stderr
    done = [line for line in process.stdout.splitlines() if "] 2 " in line]
    assert sorted(done) == ["[0] 2 3.0", "[1] 2 3.0", "[2] 2 3.0"]
    for attempt in range(2):
        assert (
            f"the first failure: rank 2 ended with KeyError: 'attempt {attempt}' at train.py:7; all ranks start "
            f"again, restart {attempt + 1} of 5"
        ) in process.stderr


def test_ranks_become_fewer(tmp_path):
    """One less at each restart, and not fewer than it was said."""
    script = tmp_path / "train.py"
    script.write_text(
        """
import os, sys, tenon.distributed as dist
dist.init_process_group(timeout=30)
dist.barrier()
if dist.get_rank() == 0:
    print(os.environ["TENON_ATTEMPT"], dist.get_world_size(), os.environ["WORLD_SIZE"])
if os.environ["TENON_ATTEMPT"] != "3":
    dist.barrier()
    sys.exit(3)
"""
    )
    process = subprocess.run(
        [sys.executable, "-m", "tenon", "run", "-n", "1:3", "--max-restarts", "3", str(script)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert process.returncode == 0, process.stderr
    told = sorted(line.removeprefix("[0] ") for line in process.stdout.splitlines())
    assert told == ["0 3 3", "1 2 2", "2 1 1", "3 1 1"]
    assert "; 2 ranks start again, restart 1 of 3" in process.stderr
    assert "; all ranks start again, restart 3 of 3" in process.stderr


def test_a_job_that_the_user_ends_is_not_started_again(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import time; print('ready', flush=True); time.sleep(60)")
    process = subprocess.Popen(
        [sys.executable, "-m", "tenon", "run", "-n", "2", "--max-restarts", "3", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(2):
        assert "ready" in process.stdout.readline()
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM and "start again" not in errors
    assert output == "" and time.monotonic() - began < 25


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--max-restarts", "-1", "x.py"], "expected --max-restarts of 0 or more, got -1"),
        (["--max-restarts", "1", "--nnodes", "2", "x.py"], "restarts the ranks of one machine"),
        (["-n", "2:4", "x.py"], "expected --max-restarts, as ranks become fewer at a restart"),
        (
            ["-n", "4:2", "--max-restarts", "1", "x.py"],
            "expected FEWEST:MOST, as in -n 2:4, got -n 4:2",
        ),
        (["-n", "0", "x.py"], "expected one rank at least"),
    ],
)
def test_wrong_arguments(arguments, text, capsys):
    from tenon.cli import main

    assert main(["run", *arguments]) == 1
    assert text in capsys.readouterr().err


def test_batches_from_within_an_epoch():
    rng = random.Random(0)
    for _ in range(20):
        count, start = 12 * rng.randint(2, 5), rng.randint(0, 2)
        all_batches = []
        for size in (1, 2, 3, 4):
            samplers = [
                dist.DistributedBatchSampler(range(count), 12 // size, size, rank, True)
                for rank in range(size)
            ]
            for sampler in samplers:
                sampler.set_epoch(5, start)
            batches = [list(sampler) for sampler in samplers]
            whole = [sum(parts, []) for parts in zip(*batches, strict=True)]
            all_batches.append(whole)
        assert all(batches == all_batches[0] for batches in all_batches)
        samplers[0].set_epoch(5)
        assert len(list(samplers[0])) == len(samplers[0])
    with pytest.raises(ValueError, match="expected start from 0 to 5, got 6"):
        dist.DistributedBatchSampler(range(60), 12, 1, 0).set_epoch(0, 6)
