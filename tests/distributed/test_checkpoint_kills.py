# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of several ranks that are killed while they save: the folder has the old one or the new one."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
import tenon
from tenon.distributed import checkpoint

SAVER = """
import os, sys, time
import tenon, tenon.distributed as dist
from tenon.distributed import checkpoint
dist.init_process_group(timeout=20)
rank, size = dist.get_rank(), dist.get_world_size()
folder, way = sys.argv[1:]
for n in range(1, 10_000):
    x = tenon.full([20_000], float(n))
    state = {"x": checkpoint.Piece(x, (20_000 * size,), (20_000 * rank,)), "y": tenon.full([9_000], float(n)), "n": n}
    if n <= 2 or not way.startswith("load"):
        checkpoint.save(state, folder, asynchronous=way == "asynchronous")
    else:
        assert checkpoint.load(state, folder)["n"] == 2
    if n == (3 if way == "asynchronous" else 2):  # the second one is there now
        print("saves", flush=True)
"""
KILLS = int(os.environ.get("TENON_TEST_KILLS", "2"))


@pytest.mark.parametrize("way", ["now", "asynchronous", "load"])
def test_kills_leave_the_old_or_the_new(tmp_path, way):
    """The whole job is killed, or one of its ranks, at random moments of saves and of loads; the next job saves into the same
    folder."""
    rng = random.Random(way + os.environ.get("TENON_TEST_SEED", ""))
    script = tmp_path / "saver.py"
    script.write_text(SAVER)
    folder = tmp_path / "c"
    last = 0
    for kill in range(KILLS):
        job = subprocess.Popen(
            [sys.executable, "-m", "tenon", "run", "-n", "2", str(script), str(folder), way],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(2):
            assert "saves" in job.stdout.readline()
        time.sleep(rng.random() * 0.3)
        if kill % 2:
            job.kill()  # and its ranks with it
        else:
            children = subprocess.run(
                ["ps", "-o", "pid=", "--ppid", str(job.pid)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            os.kill(int(rng.choice(children)), signal.SIGKILL)
        job.communicate(timeout=60)
        state = {"x": tenon.zeros([40_000]), "y": tenon.zeros([9_000]), "n": 0}
        state["n"] = checkpoint.load(state, folder)["n"]
        assert state["n"] >= 2
        for name in "xy":
            assert (state[name] == float(state["n"])).all().item()
        last = state["n"]
    checkpoint.save(state, folder)
    assert len(os.listdir(folder)) == 2 and last  # what the killed ones left is gone
