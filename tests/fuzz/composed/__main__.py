# SPDX-License-Identifier: Apache-2.0
"""Random programs over tensors of layouts coo, csr, csc, bsr and ragged, gradients of rows, and strings, beside the same
programs over dense tensors, rows one by one, whole gradients and Python's strings: the same results, gradients and bits
compiled, or refusals that say what to do, and no third outcome.

    python -m tests.fuzz.composed --minutes 10 [--seed 2] [--only matrices,ragged] [--case 4711]
"""

from __future__ import annotations

import argparse
import sys

from ..peers.campaign import run_cases
from . import matrices, ragged, rows, strings

PROGRAMS = {"matrices": matrices, "ragged": ragged, "rows": rows, "strings": strings}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.composed", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="of all programs together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    options = parser.parse_args()
    names, failed = options.only.split(","), False
    for name in names:
        numbers = range(options.seed * 1_000_000, (options.seed + 1) * 1_000_000)
        if options.case is not None:
            numbers = range(options.case, options.case + 1)
        result = run_cases(PROGRAMS[name].case, (), numbers, 60 * options.minutes / len(names))
        print(f"== {name}\n{result}", flush=True)
        failed |= bool(result.found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
