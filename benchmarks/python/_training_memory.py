# SPDX-License-Identifier: Apache-2.0
"""How much the resident size of a fresh process grows at most during training steps.

python _training_memory.py tenon "mlp b64 train SGD" 1
"""

from __future__ import annotations

import re
import subprocess
import sys

from _libraries import limit_threads, start

STEPS = 3


def resident(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return int(re.search(rf"{field}:\s+(\d+) kB", file.read()).group(1))


def growth_here(step) -> float:
    """MiB above what model and data take."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the highest size starts afresh
    before = resident("VmRSS")
    for _ in range(STEPS):
        step()
    return (resident("VmHWM") - before) / 1024


def growth(library: str, name: str, threads: int) -> float:
    """The same in a process of its own."""
    command = [sys.executable, __file__, library, name, str(threads)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


if __name__ == "__main__":
    from training_steps import training_step

    library, name, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    limit_threads(threads)
    start(library, threads)
    print(growth_here(training_step(library, name)))
