# SPDX-License-Identifier: Apache-2.0
"""Plan the training of a GPT on ranks that are not there: the fastest ways of dividing it, and placements of one block.

    python tune_gpt.py                                # 16 ranks of a cluster that is described below
    python tune_gpt.py --quick
    tenon tune tune_gpt.py:recipe -n 4 --run 2        # as processes of this machine

The machine is a description: links between tensor parallel ranks carry 400 Gbit/s, those between others 25 Gbit/s. The block
is planned for workstations, on which it is worth dividing.
"""

from __future__ import annotations

import argparse
import sys

import tenon
import tenon.distributed as dist
from gpt_2x2x2 import LENGTH, PLAN, gpt, loss_of
from tenon import nn

TOKENS, HEADS = 64, 4


def recipe(width: int = 64, depth: int = 4, rows: int = 32) -> dist.Recipe:
    """What `tenon tune` has to know."""

    def batch(count: int, layout: object) -> tuple[tenon.Tensor, tenon.Tensor]:
        tokens = tenon.zeros([count, LENGTH], dtype=tenon.int64)
        return tokens, tokens

    return dist.Recipe(
        model=lambda layout: gpt(TOKENS, width, depth, HEADS),
        batch=batch,
        loss=loss_of,
        rows=rows,
        tensor_parallel=PLAN,
        units="blocks.*",
        divides={"tp": HEADS},
    )


def cluster() -> dist.Machine:
    near, far = dist.Link.of(400e9, 5e-6), dist.Link.of(25e9, 3e-5)
    links = {"tp": near, "dp": far, "pp": far, "world": far}
    return dist.Machine(flops=40e12, bandwidth=1e12, overhead=1e-6, links=links)


def workstations() -> dist.Machine:
    """Slower ones, on which a block is worth dividing."""
    return dist.Machine(flops=1e11, bandwidth=2e10, links={"axis 0": dist.Link.of(10e9)})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 ranks, a narrow model, few ways")
    options = parser.parse_args(arguments)
    ranks, sizes, space = 16, {"width": 256, "depth": 8, "rows": 64}, {"microbatches": [1, 4, 8]}
    if options.quick:
        ranks, sizes = 4, {"width": 32, "depth": 2, "rows": 8}
        space = {"microbatches": [1, 2], "zero": [0, 1], "recompute": [False]}
    found = recipe(**sizes)
    report = dist.tune(found, ranks, cluster(), space=space)
    for row in report.rows(8):
        print("  ".join(f"{cell:>14}" for cell in row))
    print(f"best of {len(report.candidates)} ways: {report.best.config}")

    width = sizes["width"]
    block = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    x = tenon.empty([sizes["rows"] * LENGTH, width], device="meta")
    mse = nn.functional.mse_loss
    plan = dist.auto(block, (4,), x, loss=mse, target=x, machine=workstations())
    print(plan)
    print(plan.explain())
    return 0


if __name__ == "__main__":
    sys.exit(main())
