# SPDX-License-Identifier: Apache-2.0
"""One thread pool in the process: whatever runs, no thread is there but the program's and the pool's."""

import os
import subprocess
import sys

import pytest

without_tsan = pytest.mark.skipif(
    "tsan" in os.environ.get("LD_PRELOAD", ""),
    reason="ThreadSanitizer has a thread of its own, and lets no child start any after a fork",
)

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="counts threads in /proc"
)

PRELUDE = """
import os, threading, time
import tenon
from tenon import nn, optim

def threads():
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                names.append(file.read().strip())
        except FileNotFoundError:  # the thread ended after it was listed
            pass
    return sorted(names)[-8:], sum(name == "tenon-worker" for name in names), len(names)

def work():
    x = tenon.uniform((512, 512))
    (tenon.exp(x) @ x).sum().item()
    tenon.softmax(x, 1).sum(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 10))
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    loss = model(tenon.uniform((16, 3, 32, 32))).sum()
    loss.backward()
    optimizer.step()
"""


def run(code: str, threads: int) -> None:
    environment = {**os.environ, "TENON_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_import_starts_no_thread():
    run("names, workers, total = threads(); assert total == 1, names", 3)


@without_tsan
def test_all_work_shares_the_workers():
    run("work(); names, workers, total = threads(); assert (workers, total) == (2, 3), names", 3)


def test_one_thread_means_one():
    run("work(); names, workers, total = threads(); assert (workers, total) == (0, 1), names", 1)


@without_tsan
def test_callers_on_other_threads_bring_no_workers():
    run(
        """
others = [threading.Thread(target=work) for _ in range(3)]
for other in others: other.start()
work()
for other in others: other.join()
for _ in range(500):  # join() returns when Python is done with a thread, a little before it ends
    names, workers, total = threads()
    if total <= 3: break
    time.sleep(0.01)
assert workers == 2, names
assert total == 3, names
""",
        3,
    )


@without_tsan
def test_a_child_has_a_pool_of_its_own():
    run(
        """
work()
child = os.fork()
if child == 0:
    work()
    os._exit(0 if threads()[1:] == (2, 3) else 1)
assert os.waitpid(child, 0)[1] == 0
""",
        3,
    )
