# SPDX-License-Identifier: Apache-2.0
"""Seeded faults among three ranks: which rank it was, and in which line, has to stand in the error of each of the others
within a second.

A rank that says nothing, because it stands still, or its link does, is given up after the time limit, here 2 s, which the
program chooses; the second counts from there. FAULTS and SEED are other numbers.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import tenon.distributed as dist
from network import Network, is_allowed
from ranks import PRELUDE
from rows import Rows

SIZE, CALLS, LIMIT = 3, 6, 2.0
COUNT, SEED = int(os.environ.get("FAULTS", "50")), int(os.environ.get("SEED", "1"))

# What the rank does in place of its call number `at`, or before it.
WRONG_CALLS = {
    "another dtype": "dist.all_reduce(tenon.ones([8], dtype=tenon.int32))",
    "another count": "dist.all_reduce(tenon.ones([9]))",
    "another reduction": "dist.all_reduce(tenon.ones([8]), 'max')",
    "another call": "dist.broadcast(tenon.ones([8]), 0)",
    "a skipped call": "pass",
}
ENDS = {
    "an exception": "raise ValueError('no such file')",
    "an abort": "dist.abort(f'rank {rank} has seen enough')",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "the process leaves": "sys.exit(0)",
    "os._exit": "os._exit(3)",
    "no memory": "limited()",
}
SILENT = {"SIGSTOP": "os.kill(os.getpid(), signal.SIGSTOP)", "a long computation": "time.sleep(30)"}
LINKS = ("a link that is cut", "a link of 1 kbit/s")

PROGRAM = """
import json, resource

def limited():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
    tenon.ones([1 << 28])


def tell(kind, text):
    print(json.dumps([kind, time.monotonic(), text]), flush=True)


# Time limits do not count how long a loaded machine takes to start the processes.
open(os.path.join({folder!r}, "started%d" % rank), "w").close()
while len([name for name in os.listdir({folder!r}) if name.startswith("started")]) < size:
    time.sleep(0.01)
dist.init_process_group(timeout={limit})
dist.barrier()
try:
    for number in range({calls}):
        if rank == {victim} and number == {at}:
            if {pauses}:
                tell("ready", "")
                time.sleep(1.0)
            tell("fault", "")
            {fault}
            if {takes_place}:
                continue
        if number % 2:
            dist.all_gather_into_tensor(tenon.zeros([8 * size]), tenon.ones([8]))
        else:
            dist.all_reduce(tenon.ones([8]))
    dist.barrier()
    tell("end", "")
except dist.CollectiveError as error:
    tell(type(error).__name__, str(error))
    os._exit(1)  # what others say first counts
"""


def commands(kind: str, network: Network | None) -> list[list[str]]:
    words = [sys.executable, "-c"]
    if network is None:
        return [words] * SIZE
    return [network.command(rank, words) for rank in range(SIZE)]


def play(kind: str, victim: int, at: int, transport: str) -> tuple[bool, float, str]:
    """Whether all others named the rank and a line, seconds from the fault to the last of them, and a text."""
    is_link = kind in LINKS
    fault = WRONG_CALLS.get(kind) or ENDS.get(kind) or SILENT.get(kind) or "pass"
    network = Network(SIZE) if is_link else None
    server = None if is_link else dist.serve_store("127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        program = PRELUDE + PROGRAM.format(
            folder=folder,
            limit=LIMIT,
            calls=CALLS,
            victim=victim,
            at=at,
            fault=fault,
            pauses=is_link,
            takes_place=kind in WRONG_CALLS,
        )
        try:
            if network:
                network.__enter__()
            variables = {
                **os.environ,
                "WORLD_SIZE": str(SIZE),
                "PROCESSES": str(SIZE),
                "MASTER_ADDR": network.address(0) if network else "127.0.0.1",
                "MASTER_PORT": "29400" if server is None else str(server.port),
                "TENON_COLLECTIVES_TRANSPORT": "tcp" if network else transport,
            }
            if server is not None:
                variables["TENON_STORE"] = "test"
            files = [Path(folder) / str(rank) for rank in range(SIZE)]
            processes = [
                subprocess.Popen(
                    [*words, program],
                    env={**variables, "RANK": str(rank)},
                    stdout=file.open("w"),
                    stderr=subprocess.STDOUT,
                )
                for rank, (words, file) in enumerate(
                    zip(commands(kind, network), files, strict=True)
                )
            ]
            deadline = time.monotonic() + 90
            if network:
                while '"ready"' not in files[victim].read_text() and time.monotonic() < deadline:
                    time.sleep(0.01)
                if kind == "a link that is cut":
                    network.cut(victim)
                else:
                    network.shape(victim, "1kbit")
            others = [rank for rank in range(SIZE) if rank != victim]
            for rank in others:
                processes[rank].wait(max(deadline - time.monotonic(), 1))
            for process in processes:
                process.kill()
                process.wait()
            return judge(kind, victim, others, files)
        finally:
            if network:
                network.__exit__()
            if server is not None:
                server.close()


def judge(kind: str, victim: int, others: list[int], files: list[Path]) -> tuple[bool, float, str]:
    lines: list[list] = []
    for file in files:
        lines.append(
            [json.loads(line) for line in file.read_text().splitlines() if line.startswith("[")]
        )
    faults = [told[1] for told in lines[victim] if told[0] == "fault"]
    if not faults:
        return False, 0.0, "no fault happened: " + files[victim].read_text()[-300:]
    seconds, is_named, text = 0.0, True, ""
    for rank in others:
        told = lines[rank][-1] if lines[rank] else ["nothing", 0.0, files[rank].read_text()[-300:]]
        text = f"{told[0]}: {told[2]}"
        seconds = max(seconds, told[1] - faults[0])
        # In which rank, and in which line of the user's program.
        is_named &= f"rank {victim}" in text
        # What abort() tells is a text of the program's own.
        is_named &= kind == "an abort" or re.search(r" at \S+:\d+", text) is not None
        if not is_named:
            break
    return is_named, seconds, text


def full_shared_memory() -> tuple[bool, str]:
    """A job whose /dev/shm is full: it has to say so."""
    script = "import tenon, tenon.distributed as dist; dist.init_process_group(timeout=10); dist.barrier()"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(script)
        file.flush()
        command = f"mount -t tmpfs -o size=64k tmpfs /dev/shm && {sys.executable} -m tenon run -n 3 {file.name}"
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", command],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    return done.returncode != 0 and "/dev/shm" in done.stderr, textwrap.shorten(
        done.stderr[-300:], 200
    )


def main() -> None:
    rows = Rows()
    rng = random.Random(SEED)
    kinds = [*WRONG_CALLS, *ENDS, *SILENT, *(LINKS if is_allowed() else ())]
    slowest: dict[str, list[float]] = {}
    wrong = 0
    for index in range(COUNT):
        kind = kinds[index % len(kinds)]
        victim, at = rng.randrange(SIZE), rng.randrange(1, CALLS)
        transport = rng.choice(["tcp", "shared memory"])
        is_named, seconds, text = play(kind, victim, at, transport)
        late = LIMIT if kind in SILENT or kind in LINKS else 0.0
        slowest.setdefault(kind, []).append(seconds - late)
        if not is_named or seconds - late > 1.0:
            wrong += 1
            print(
                f"fault {index}, {kind} of rank {victim} at call {at}, {transport}: {seconds:.2f} s, {text}"
            )
    for kind, values in slowest.items():
        rows.add(
            f"{kind}, {len(values)} times",
            f"{max(values):.3f} s at most",
            "1 s",
            max(values) <= 1.0,
        )
    rows.add(f"{COUNT} faults", f"{COUNT - wrong} named in time", "all", wrong == 0)
    if is_allowed():
        is_told, text = full_shared_memory()
        rows.add("a full /dev/shm", "told" if is_told else text, "told by name", is_told)
    rows.end()


if __name__ == "__main__":
    main()
