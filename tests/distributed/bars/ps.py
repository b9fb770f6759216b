# SPDX-License-Identifier: Apache-2.0
"""Parameter servers: a large table, the bits of a dense one, servers that are killed, and bytes on the wire."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rows import ROOT, Rows

PROGRAM = """
import os, sys, time
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ps

what, folder = sys.argv[1:3]
if ps.is_server():
    with open(os.path.join(folder, "pid-" + os.environ["TENON_SERVER"]), "w") as file:
        file.write(str(os.getpid()))
    ps.serve(None if what in ("rows", "wire") else folder, log_limit=64 << 20)
    sys.exit()
if os.environ["TENON_ATTEMPT"] != "0":
    print("a worker has failed", flush=True)
    sys.exit(1)
job = ps.init(timeout=300.0)


def meet(name):
    store = job.agent.store
    store.set(f"{name}{job.worker}", b"")
    for worker in range(job.workers):
        store.get(f"{name}{worker}", 300.0)


def rows(total):
    table = ps.Table("t", 8, optim.Adagrad, lr=0.05, mode="async", job=job)
    chunk, begun = min(100_000, total // job.workers), time.perf_counter()
    for start in range(job.worker * chunk, total, job.workers * chunk):
        ids = (tenon.arange(chunk) + start) * 0x9E3779B97F4A7C1
        table.push(ids, tenon.ones([chunk, 8]))
    table.flush()
    meet("pushed")
    pushed = time.perf_counter() - begun
    table.pull(ids)  # all servers are warm
    begun = time.perf_counter()
    for turn in range(10):
        table.pull(ids)
    pulled = (time.perf_counter() - begun) / 10
    if job.worker == 0:
        counters = table.counters()
        print("RESULT", counters["rows"], counters["bytes"], pushed, pulled / chunk, flush=True)


def dense(steps):
    made = dict(lr=0.1, initial_accumulator_value=0.1)
    table = ps.Table("t", 16, optim.Adagrad, job=job, initial_range=0.5, **made)
    embed = ps.DistributedEmbedding(16, table)
    count = 5000
    weight = table.pull(tenon.arange(count)).clone()
    meet("read")
    reference = nn.Embedding(count, 16, _weight=weight)
    optimizer = optim.Adagrad(reference.parameters(), **made)
    for step in range(steps):
        batches = [(tenon.arange(700) * (w + 3) + 131 * step) % count for w in range(job.workers)]
        loss = lambda rows, w: (rows * (rows.detach() * (w + 1) + step).sin()).sum()
        loss(embed(batches[job.worker]), job.worker).backward()
        total = None
        for w, ids in enumerate(batches):
            optimizer.zero_grad()
            loss(reference(ids), w).backward()
            total = reference.weight.grad if total is None else total + reference.weight.grad
        reference.weight.grad = total / job.workers
        optimizer.step()
    same = bool((table.pull(tenon.arange(count)) == reference.weight).all().item())
    meet("compared")
    print("RESULT", int(same), flush=True)


def kill(steps):
    table = ps.Table("t", 4, optim.SGD, lr=1.0, mode="async", initial_range=0.0)
    ids = tenon.arange(2000)
    for step in range(steps):
        table.push(ids, -tenon.ones([2000, 4]))
        table.flush()
        print("pushed", step, flush=True)
    meet("done")
    found = table.pull(ids)
    print("RESULT", steps * job.workers, found.min().item(), found.max().item(), flush=True)
    meet("seen")


def wire(steps):
    table = ps.Table("t", 8, optim.SGD, lr=1.0, mode="async")
    before = job.agent.counters()
    for step in range(steps):
        ids = tenon.arange(4096) * 7 + step
        table.pull(ids)
        table.push(ids, tenon.ones([4096, 8]))
    table.flush()
    after = job.agent.counters()
    payload = steps * 4096 * 2 * (8 + 32)
    print("RESULT", sum(after.values()) - sum(before.values()), payload, flush=True)


{"rows": rows, "dense": dense, "kill": kill, "wire": wire}[what](int(sys.argv[3]))
ps.close()
"""


class Run:
    """A job of 2 workers and 2 servers."""

    def __init__(self, what: str, number: int, restarts: int = 0) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        script = self.folder / "program.py"
        script.write_text(PROGRAM)
        command = [sys.executable, "-m", "tenon", "run", "-n", "2", "--servers", "2"]
        command += [
            "--max-restarts",
            str(restarts),
            str(script),
            what,
            str(self.folder),
            str(number),
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
        )

    def results(self) -> list[list[float]]:
        out, _ = self.process.communicate()
        self._folder.cleanup()
        found = re.findall(r"RESULT (.*)", out)
        if self.process.returncode or not found:
            raise RuntimeError(out)
        return [[float(word) for word in line.split()] for line in found]

    def kill_server(self, index: int) -> None:
        path = self.folder / f"pid-{index}"
        os.kill(int(path.read_text()), signal.SIGKILL)


def loopback_bytes() -> int:
    text = Path("/proc/net/dev").read_text()
    return int(re.search(r"lo:\s*(\d+)", text)[1])  # type: ignore[index]


def main() -> None:
    rows = Rows()
    total = int(os.environ.get("PS_ROWS", 10**7))
    ((count, size, seconds, pull),) = Run("rows", total).results()
    rows.add("rows on 2 servers, Adagrad, dim 8", f"{count:.0f}", f"{total}", count == total)
    rows.add("bytes of memory a row", f"{size / count:.0f}, of which 64 numbers")
    rows.add("rows pushed a second, 2 workers", f"{total / seconds:,.0f}")
    rows.add("rows pulled a second by a worker", f"{1 / pull:,.0f}")
    found = Run("dense", 30).results()
    rows.add(
        "sync, 30 steps: workers with the bits of dense",
        f"{sum(f[0] for f in found):.0f} of 2",
        "2",
        all(f[0] for f in found),
    )
    kills, turns, draw = 0, 400, random.Random(7)
    run = Run("kill", turns, restarts=100)
    begun = time.monotonic()
    seen = 0
    said = []
    for line in run.process.stdout:  # type: ignore[union-attr]
        if "pushed" in line:
            seen += 1
        else:
            said.append(line)
        if seen > 20 * (kills + 1) and kills < 30:
            run.kill_server(draw.randrange(2))
            kills += 1
        if "RESULT" in line and "[0]" in line:
            expected, least, most = map(float, line.split("RESULT")[1].split())
            rows.add(
                f"pushes lost or doubled, {kills} servers killed",
                f"{expected - least:.0f} and {most - expected:.0f} of {expected:.0f}",
                "0 and 0",
                least == most == expected,
            )
    if run.process.wait():
        print("".join(said))
    rows.add(
        "restarts, seconds of the whole",
        f"{kills}, {time.monotonic() - begun:.0f}",
        "",
        run.process.returncode == 0,
    )
    before = loopback_bytes()
    found = Run("wire", 100).results()
    on_wire = loopback_bytes() - before
    payload = sum(f[1] for f in found)
    told = sum(f[0] for f in found)
    rows.add(
        "bytes of messages / ids and numbers, dim 8",
        f"{told / payload:.4f}",
        "1.15",
        told <= 1.15 * payload,
    )
    rows.add(
        "bytes on the loopback device / ids and numbers",
        f"{on_wire / payload:.4f}",
        "1.15",
        on_wire <= 1.15 * payload,
    )
    rows.end()


if __name__ == "__main__":
    main()
