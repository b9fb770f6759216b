# SPDX-License-Identifier: Apache-2.0
"""A job of 4 ranks of which one is killed, that goes on with 3, loses one again, and ends with 4: the bits of jobs of as many
ranks that ended by themselves where the killed ones were resumed. And how long a restart takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rows import Rows
from test_restarts import TRAIN

KILL = """        if step == kill_at and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
"""
# The same job, which ends by itself when it has made so many steps.
ENDS = """        if step == kill_at:
            steps.wait()
            dist.barrier()
            sys.exit(0)
"""
# Tells when a rank dies, and when the first step behind the restart is done.
CLOCK = """        if step == kill_at and rank == size - 1 and os.environ["TENON_ATTEMPT"] == "0":
            print("dies", json.dumps(time.time()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
"""


def run(folder: Path, script: str, ranks: int, at: int, *options: str) -> dict[str, list]:
    file = folder / "train.py"
    file.write_text(script)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tenon",
            "run",
            "-n",
            str(ranks),
            *options,
            str(file),
            str(folder / "run"),
            str(at),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told: dict[str, list] = {"begins": [], "step": [], "weights": [], "dies": [], "first": []}
    for line in done.stdout.splitlines():
        kind, text = line.partition("] ")[2].split(" ", 1)
        told[kind].append(json.loads(text))
    if not told["begins"]:
        print(done.stderr)
    return told


def main() -> None:
    rows = Rows()
    assert KILL in TRAIN
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        killed = [run(Path(one), TRAIN, n, at) for n, at in ((4, 5), (3, 9), (4, -1))]
        starts = [told["begins"][0][1] for told in killed]
        ends = TRAIN.replace(KILL, ENDS)
        whole = [
            run(Path(other), ends, n, at) for n, at in ((4, starts[1]), (3, starts[2]), (4, -1))
        ]
        rows.add("4 -> 3 -> 4 ranks go on from steps", str(starts), "", True)
        same = killed[2]["weights"] == whole[2]["weights"] != []
        rows.add("weights of undisturbed jobs", "the same bits" if same else "others", "bits", same)
    with tempfile.TemporaryDirectory() as folder:
        clock = TRAIN.replace(KILL, CLOCK).replace(
            "        step, batch = step + 1, batch + 1\n",
            "        step, batch = step + 1, batch + 1\n"
            "        if rank == 0 and os.environ['TENON_ATTEMPT'] == '1' and not os.path.exists(folder + '-first'):\n"
            "            open(folder + '-first', 'w').close()\n"
            "            print('first', json.dumps(time.time()), flush=True)\n",
        )
        told = run(Path(folder), clock, 4, 5, "--max-restarts", "1")
        seconds = told["first"][0] - told["dies"][0]
        rows.add(
            "from a death to the first step again, 4 ranks", f"{seconds:.1f} s", "2 s", seconds <= 2
        )
    rows.end()


if __name__ == "__main__":
    main()
