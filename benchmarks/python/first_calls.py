# SPDX-License-Identifier: Apache-2.0
"""How long a compiled training step takes to be there: Tenon, JAX and PyTorch, each in fresh processes with empty caches.

    python first_calls.py [--threads 1] [--rounds 3] [--only mlp] [--json results.json]

The clock starts when the library is imported and the model is built. `first` is the first call's time, and `until` that of all
calls before the step runs as it will: two or three for Tenon, which runs and records the function meanwhile, one for the others,
which compile in it. `later` is the median of the calls that follow. The losses of the first calls have to agree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

STEPS = ("mlp b64 train SGD", "gpt2 block t256 b4 train AdamW", "resnet18 b8 train momentum")
CHECKED, LATER = 3, 5  # calls


def compiled(library: str, name: str, threads: int) -> Any:
    """The step, and whatever its library imports for it."""
    import importlib

    import training_steps

    module = importlib.import_module(library)
    work = (training_steps.SMALL | training_steps.LARGE)[name]
    start, data = training_steps.starts(work), training_steps.data(work)
    if library != "jax":
        module.set_num_threads(threads)
    kind = importlib.import_module(training_steps.STEPS[library])
    step = kind.training_step(library, work, start, *data)
    return step if library == "jax" else module.compile(step)


def measure_here(library: str, name: str, threads: int) -> dict[str, Any]:
    step = compiled(library, name, threads)
    seconds: list[float] = []
    losses: list[float] = []
    before = 0  # calls until the step is compiled
    while len(seconds) < before + 1 + LATER:
        begin = time.perf_counter()
        losses.append(float(step()))
        seconds.append(time.perf_counter() - begin)
        if not before and (library != "tenon" or step.programs):
            before = len(seconds)
    return {
        "first": seconds[0],
        "until": sum(seconds[:before]),
        "later": statistics.median(seconds[before + 1 :]),
        "losses": losses[:CHECKED],
    }


def measure(library: str, name: str, threads: int) -> dict[str, Any]:
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory() as caches:
        environment = os.environ | {
            "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
            "TRITON_CACHE_DIR": f"{caches}/triton",
            "XDG_CACHE_HOME": caches,
        }
        child = subprocess.run(
            [
                sys.executable,
                __file__,
                "--child",
                library,
                "--only",
                name,
                "--threads",
                str(threads),
            ],
            env=environment,
            capture_output=True,
            text=True,
        )
    if child.returncode:
        raise RuntimeError(f"{library}, {name}: {child.stderr[-2000:]}")
    return json.loads(child.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="steps whose name contains this text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="jax,torch")
    parser.add_argument("--json", default="")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.threads :])  # JAX counts these
    if options.child:
        print(json.dumps(measure_here(options.child, options.only, options.threads)))
        return
    libraries = ["tenon", *filter(None, options.peers.split(","))]
    print(
        "| step | library | first call | until it is compiled | later calls | until, Tenon / it |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    results = []
    for name in STEPS:
        if options.only not in name:
            continue
        rounds = [
            {who: measure(who, name, options.threads) for who in libraries}
            for _ in range(options.rounds)
        ]
        for who in libraries:
            np.testing.assert_allclose(
                rounds[0][who]["losses"], rounds[0]["tenon"]["losses"], rtol=1e-3, err_msg=who
            )
            median = {
                key: statistics.median(each[who][key] for each in rounds)
                for key in ("first", "until", "later")
            }
            ratio = statistics.median(
                each["tenon"]["until"] / each[who]["until"] for each in rounds
            )
            results.append({"step": name, "library": who, "ratio": ratio, **median})
            shown = f"{ratio:.4f}" if who != "tenon" else ""
            print(
                f"| {name} | {who} | {median['first'] * 1e3:.1f} ms | {median['until'] * 1e3:.1f} ms "
                f"| {median['later'] * 1e3:.1f} ms | {shown} |",
                flush=True,
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"threads": options.threads, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
