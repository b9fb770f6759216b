# SPDX-License-Identifier: Apache-2.0
"""Every program of comparisons with peers, one after another.

    python -m tests.fuzz.peers [--minutes 5] [--seed 1]

`--minutes` is the time of each. Prints what each prints, and at the end which of them found a difference
without a row; the exit status is 1 if one did. The peers come from an environment outside the repository.
"""

import argparse
import subprocess
import sys

PROGRAMS = (
    ("compat", "numpy"),
    ("compat", "torch"),
    ("compat", "paddle"),
    ("nn",),
    ("optim",),
    ("distributions",),
    ("metrics",),
    ("data",),
    ("vision",),
    ("audio",),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", default="5")
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    failed = []
    for name, *library in PROGRAMS:
        title = " ".join([name, *library])
        print(f"== {title}", flush=True)
        command = [sys.executable, "-m", f"tests.fuzz.peers.{name}", *library]
        command += ["--minutes", options.minutes]
        if not library:  # the namespaces are asked every form of every parameter, and draw nothing
            command += ["--seed", options.seed]
        if subprocess.run(command).returncode:
            failed.append(title)
    print(f"differences in: {', '.join(failed)}" if failed else "no difference without a row")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
