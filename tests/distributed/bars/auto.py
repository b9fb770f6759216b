# SPDX-License-Identifier: Apache-2.0
"""Plans of dist.auto beside all plans that there are, on small models: how much cheaper the cheapest is, and whether ranks that
are there take as long as was predicted, as an order: Kendall's tau of simulated and measured times of a selection of plans.

Bars: 5 %; tau 0.8 on 2 ranks.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time

import tenon
import tenon.distributed as dist
from rows import Rows
from tenon import nn
from tenon.distributed.planning.auto.choices import leaves_of, states_of
from tenon.distributed.planning.auto.costs import Like
from tenon.distributed.planning.auto.plan import _Step
from tenon.distributed.planning.auto.search import chain_of
from tenon.distributed.tensor_parallel import sharded_parameter

mse = nn.functional.mse_loss
PLANS = 12  # that are measured
ROUNDS = 5


def mlp(width: int, hidden: int) -> nn.Sequential:
    tenon.manual_seed(0)
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


def every_plan(model: nn.Sequential, rows: int, width: int, ranks: int) -> list[tuple]:
    """(input placements, placements of parameters) in each combination."""
    like = Like((rows, width), tenon.float32)
    leaves = [
        (link.name, leaf)
        for link in chain_of(model, like)
        for leaf in leaves_of(link.module, link.name, (ranks,), {})
    ]
    found = []
    for at in states_of(like.shape, (ranks,)):
        for choice in itertools.product(*(leaf.options for _, leaf in leaves)):
            named = zip(leaves, choice, strict=True)
            found.append((at, {f"{n}.{key}": p for (n, _), style in named for key, p in style}))
    return found


def costs(
    model: nn.Sequential, rows: int, width: int, ranks: int, machine: dist.Machine
) -> list[float]:
    like = Like((rows, width), tenon.float32)
    step = _Step(model, like, mse, like, (ranks,), None, 0)
    return [
        dist.predict(step.traced(at, parameters, {})[0], machine).seconds
        for at, parameters in every_plan(model, rows, width, ranks)
    ]


def kendall(one: list[float], other: list[float]) -> float:
    pairs = list(itertools.combinations(range(len(one)), 2))
    signs = [(one[a] - one[b]) * (other[a] - other[b]) for a, b in pairs]
    return sum((s > 0) - (s < 0) for s in signs) / len(pairs)


def serve(rows: int, width: int, hidden: int) -> None:
    """One rank: measures a selection of plans in turn, and predicts them on the machine that it calibrates."""
    dist.init_process_group(timeout=300.0)
    ranks = dist.get_world_size()
    mesh = dist.init_device_mesh("cpu", (ranks,))
    machine = dist.calibrate(mesh)
    model = mlp(width, hidden)
    simulated = costs(model, rows, width, ranks, machine)
    order = sorted(range(len(simulated)), key=lambda i: simulated[i])
    chosen = [order[i * (len(order) - 1) // (PLANS - 1)] for i in range(PLANS)]
    plans = every_plan(model, rows, width, ranks)
    x = tenon.ones([rows, width])
    steps = []
    for index in chosen:
        at, parameters = plans[index]
        model = mlp(width, hidden)
        for name, module in model.named_children():
            for key, value in list(vars(module).items()):
                if isinstance(value, nn.Parameter):
                    made = sharded_parameter(value, mesh, parameters[f"{name}.{key}"])
                    setattr(module, key, made)
        given = dist.distribute_tensor(x, mesh, at, src_data_rank=None)

        def step(model: nn.Sequential = model, given: tenon.Tensor = given) -> None:
            for p in model.parameters():
                p.grad = None
            mse(model(given), x).backward()

        steps.append(step)
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(1 + ROUNDS):
        for own, step in zip(times, steps, strict=True):
            dist.barrier()
            start = time.perf_counter()
            step()
            dist.barrier()
            own.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        measured = [min(own[1:]) for own in times]
        print(json.dumps([[simulated[i] for i in chosen], measured]), flush=True)
    dist.destroy_process_group()


def main() -> None:
    rows = Rows()
    dist.reshard_policy("allow")
    for name, (batch, width, hidden), rate in (
        ("large weights", (64, 64, 256), 1e9),
        ("many rows", (1024, 32, 64), 1e8),
        ("slow links", (32, 128, 256), 1e7),
    ):
        for ranks in (2, 4):
            machine = dist.Machine(1e9, 1e9, 1e-6, {"axis 0": dist.Link.of(rate)})
            model = mlp(width, hidden)
            x = tenon.empty([batch, width], device="meta")
            plan = dist.auto(
                model, (ranks,), x, loss=mse, target=x, machine=machine, optimizer_states=0
            )
            every = costs(model, batch, width, ranks, machine)
            off = plan.prediction.seconds / min(every) - 1
            rows.add(
                f"{name}, {ranks} ranks, {len(every)} plans", f"{off:+.1%}", "5 %", off <= 0.05
            )
    for name, sizes in (
        ("1024 rows of 256", (1024, 256, 1024)),
        ("64 rows of 512", (64, 512, 2048)),
    ):
        words = [sys.executable, "-m", "tenon", "run", "-n", "2", __file__, *map(str, sizes)]
        told = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ)
        line = next(each for each in told.stdout.splitlines() if "[[" in each)
        simulated, measured = json.loads(line[line.index("[[") :])
        tau = kendall(simulated, measured)
        rows.add(f"{name}: order of {PLANS} plans", f"tau {tau:.2f}", "0.8", tau >= 0.8)
    rows.end()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(*map(int, sys.argv[1:]))
    else:
        main()
