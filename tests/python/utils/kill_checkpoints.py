# SPDX-License-Identifier: Apache-2.0
"""Kills processes that save checkpoints, at any moment, and loads what they left.

python tests/python/utils/kill_checkpoints.py 200
"""

from __future__ import annotations

import os
import random
import select
import signal
import struct
import sys
import tempfile
import time

import tenon
from tenon.utils import CheckpointManager


def save_for_ever(folder: str, report: int, first: int, asynchronous: bool) -> None:
    """Saves one step after the other; writes to `report` each that is on the disk."""
    manager = CheckpointManager(folder, keep=2)
    for step in range(first, first + 10**6):
        parts = [tenon.full((20_000,), float(step)), tenon.full((7,), float(step))]
        manager.save(step, {"step": step, "parts": parts}, asynchronous=asynchronous)
        for part in parts:
            part.fill_(-1.0)  # the copy must be of the moment of the call
        manager.wait()
        os.write(report, struct.pack("<q", step))


def kill_once(folder: str, first: int, seconds: float, asynchronous: bool) -> int:
    """The last step that the killed process reported."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            save_for_ever(folder, writer, first, asynchronous)
        finally:
            os._exit(1)
    os.close(writer)
    if first == 1:
        # A busy machine may take longer than any of these times for a first step, without which nothing is tested.
        select.select([reader], [], [])
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    reported = b""
    while chunk := os.read(reader, 1 << 16):
        reported += chunk
    os.close(reader)
    steps = struct.unpack(f"<{len(reported) // 8}q", reported[: len(reported) // 8 * 8])
    return steps[-1] if steps else first - 1


def run(folder: str, count: int, seed: int = 0) -> int:
    """Kill `count` processes; how many steps they saved."""
    rng = random.Random(seed)
    latest = 0
    for number in range(count):
        reported = kill_once(folder, latest + 1, rng.uniform(0.002, 0.03), number % 2 == 1)
        manager = CheckpointManager(folder, keep=2)
        assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]
        if reported == latest == 0:
            continue  # killed before the first was whole
        step, state = manager.load()
        assert step >= reported and state["step"] == step, (step, reported)
        for part in state["parts"]:
            assert (part == float(step)).all().item(), f"step {step} holds another's values"
        latest = step
    manager.save(latest + 1, {})
    assert len(manager.steps()) == 2, "a complete save deletes what killed ones left"
    return latest


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
        print(f"{kills} kills, {run(folder, kills)} checkpoints, all that were reported load")
