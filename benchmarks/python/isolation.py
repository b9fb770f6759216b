# SPDX-License-Identifier: Apache-2.0
"""What a process of its own costs a device plugin: calls and copies of the example's device, loaded in
process and isolated.

    python isolation.py [--plugin build/release/plugins/isolated/tests/libraries/libtenon_toy.so]

Both sides of a call spin, so this wants two processors for itself. On a machine that is busy, run it
as `chrt -f 10 python isolation.py`: the least of several rounds says what the code costs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
DEFAULT = os.path.join(
    os.environ.get("TENON_BUILD_DIR", os.path.join(ROOT, "build/release")),
    "plugins/isolated/tests/libraries/libtenon_toy.so",
)


def least_seconds(call, repeats, rounds=7):
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


def measure(plugin, isolated):
    import numpy as np
    import tenon

    start = time.perf_counter()
    tenon.plugins.load(plugin, isolated=isolated)
    load = time.perf_counter() - start
    x, y, m = (tenon.tensor(v, device="toy") for v in ([1.0], [2.0], [[1.0]]))
    results = {
        "x + y, one element [us]": least_seconds(lambda: x + y, 20000) * 1e6,
        "x + 1.0 [us]": least_seconds(lambda: x + 1.0, 20000) * 1e6,
        "m @ m, kernel may decline [us]": least_seconds(lambda: m @ m, 20000) * 1e6,
        "x.item() [us]": least_seconds(lambda: x.item(), 20000) * 1e6,
    }
    rest = least_seconds(lambda: time.sleep(0.002), 100)
    after_rest = least_seconds(lambda: (time.sleep(0.002), x + y), 100)
    results["x + y after 2 ms of rest [us]"] = max(0.0, after_rest - rest) * 1e6
    for size, name in ((256 << 10, "256 KiB"), (64 << 20, "64 MiB")):
        here = tenon.tensor(np.ones(size // 4, np.float32))
        there = here.to("toy")
        repeats = max(2, (64 << 20) // size)
        into = least_seconds(lambda tensor=here: tensor.to("toy"), repeats)
        out_of = least_seconds(lambda tensor=there: tensor.to("cpu"), repeats)
        results[f"{name} to the device [GB/s]"] = size / into / 1e9
        results[f"{name} from the device [GB/s]"] = size / out_of / 1e9
    results["loading [ms]"] = load * 1e3
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--plugin", default=DEFAULT)
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("--mode", choices=["in process", "isolated"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mode:
        print(json.dumps(measure(options.plugin, options.mode == "isolated")))
        return
    results = {}
    for mode in ("in process", "isolated"):
        command = [sys.executable, __file__, "--plugin", options.plugin, "--mode", mode]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        results[mode] = json.loads(output)
    print(f"{'':34}{'in process':>12}{'isolated':>12}")
    for name, before in results["in process"].items():
        print(f"{name:34}{before:12.2f}{results['isolated'][name]:12.2f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
