# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: 10,000 pairs of layouts, planned; 200 saved in one layout and loaded into another; jobs that are killed while
they save. LAYOUTS, SAVES and KILLS are other numbers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rows import ROOT, Rows
from tenon.distributed.checkpoint.boxes import Box, overlap
from test_sharded_checkpoints import cut_of, test_any_layout_into_any_other

LAYOUTS, SAVES, KILLS = (
    int(os.environ.get(name, n))
    for name, n in (("LAYOUTS", 10_000), ("SAVES", 200), ("KILLS", 100))
)


def plans(count: int) -> int:
    """How many pairs of layouts are right: what a rank wants is there, each element once."""
    right = 0
    for seed in range(count):
        rng = random.Random(seed)
        shape = tuple(rng.randint(0, 40) for _ in range(rng.randint(0, 4)))
        before = [Box(o, n) for own in cut_of(rng, shape, rng.randint(1, 16)) for o, n in own]
        after = [Box(o, n) for own in cut_of(rng, shape, rng.randint(1, 16)) for o, n in own]
        is_right = overlap(before) is None
        for box in after:
            is_right &= sum(box.within(other).elements for other in before) == box.elements
        right += is_right
    return right


def main() -> None:
    rows = Rows()
    start = time.monotonic()
    right = plans(LAYOUTS)
    rows.add(
        f"{LAYOUTS} pairs of layouts",
        f"{right} right, {time.monotonic() - start:.0f} s",
        "all",
        right == LAYOUTS,
    )
    right = 0
    for seed in range(SAVES):
        with tempfile.TemporaryDirectory() as folder:
            try:
                test_any_layout_into_any_other(Path(folder), 1000 + seed)
                right += 1
            except Exception as error:
                print(f"seed {seed}: {type(error).__name__}: {error}")
    rows.add(
        f"{SAVES} checkpoints loaded in another layout", f"{right} right", "all", right == SAVES
    )
    # A third of the kills while ranks save, one while a thread does, one while they load. A run of the test has a time limit, so
    # some at a time.
    status, each = 0, 2
    for seed in range((KILLS + 3 * each - 1) // (3 * each)):
        command = [
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/distributed/test_checkpoint_kills.py",
        ]
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, "TENON_TEST_KILLS": str(each), "TENON_TEST_SEED": str(seed)},
            capture_output=True,
            text=True,
            check=False,
        )
        status |= done.returncode
        if done.returncode:
            print(done.stdout[-2000:])
    rows.add(
        f"{KILLS} jobs killed while they save or load",
        "the old or the new" if status == 0 else "lost",
        "none lost",
        status == 0,
    )
    rows.end()


if __name__ == "__main__":
    main()
